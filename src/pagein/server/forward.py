"""Forwarding of requests to their upstream, and those that the proxy passes on byte for byte."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2

from pagein.models.environment import redact_keys
from pagein.server import http
from pagein.server.metrics import Metrics
from pagein.server.settings import LOOPBACK, ServerSettings

logger = logging.getLogger("pagein.server")


def open_upstream(
    client: httpx2.AsyncClient, settings: ServerSettings, incoming: http.Incoming, *, headers: http.Pairs, content: Any
) -> AbstractAsyncContextManager[httpx2.Response]:
    """Forward a request to its upstream.

    Its address goes out beside that of the upstream, as it came: nothing in it leads elsewhere, and the client logs none.
    """
    _, base, path = settings.upstream_of(incoming.path)
    query = b"?" + incoming.query if incoming.query else b""
    address = httpx2.URL(base)
    target = address.raw_path.rstrip(b"/") + path.encode("latin-1") + query
    return client.stream(incoming.method, address, headers=headers, content=content, extensions={"target": target})


def describe_failure(settings: ServerSettings, path: str, error: httpx2.HTTPError) -> tuple[int, str]:
    """The status and the text for a client whose upstream failed, and a line in the log.

    The address of the upstream is for its operator: in the text, clients of other machines read its name.
    """
    name, base, _ = settings.upstream_of(path)
    kind = type(error).__name__
    logger.warning("the upstream %s (%s) did not answer: %s %s", name, base, kind, redact_keys(str(error))[:300])
    where = base if settings.host in LOOPBACK else repr(name)
    text = f"the upstream {where} did not answer ({kind}): check its address and the network"
    return 504 if isinstance(error, httpx2.TimeoutException) else 502, text


class PassThrough:
    """Passes requests on as they come, bodies of any size in both directions."""

    def __init__(self, settings: ServerSettings, client: httpx2.AsyncClient, metrics: Metrics) -> None:
        self._settings, self._client, self._metrics = settings, client, metrics

    async def handle(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Pass one request on."""
        self._metrics.count("passed")
        incoming = await http.read_incoming(scope, receive, 0, with_body=False)
        upload = _Upload(receive)
        try:
            await http.run_until_hangup(upload.receive_after, self._pass(incoming, upload.chunks(), send))
        except http.ClientGone:
            self._metrics.count("hangups")

    async def _pass(self, incoming: http.Incoming, body: AsyncIterator[bytes], send: http.Send) -> None:
        headers = http.request_headers(incoming.pairs)
        if "accept-encoding" not in incoming.headers:  # else httpx asks for codings of its own
            headers.append((b"accept-encoding", b"identity"))
        length = incoming.headers.get("content-length")
        has_body = length not in (None, "0") or "transfer-encoding" in incoming.headers
        if has_body and length is not None:
            headers.append((b"content-length", length.encode()))
        is_started = False
        try:
            content = body if has_body else None
            request = open_upstream(self._client, self._settings, incoming, headers=headers, content=content)
            async with request as response:
                is_started = True
                pairs = [*http.response_headers(response.headers.raw), (http.OWN_HEADER.encode(), b"passed")]
                await http.start_answer(send, response.status_code, pairs)
                async for chunk in response.aiter_raw():
                    await http.send_chunk(send, chunk)
                await http.send_chunk(send, b"", more=False)
        except httpx2.HTTPError as error:
            if is_started:
                raise http.StreamBroken from None
            status, text = describe_failure(self._settings, incoming.path, error)
            problem = {"error": {"message": text, "type": "api_error"}}
            await http.send_json(send, status, json.dumps(problem).encode(), **{http.OWN_HEADER: "passed"})


class _Upload:
    """The body of a request as it comes in; behind it the client's hanging up."""

    def __init__(self, receive: http.Receive) -> None:
        self._receive, self._is_read = receive, asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of the body. Raises http.ClientGone."""
        try:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise http.ClientGone
                if message.get("body"):
                    yield message["body"]
                if not message.get("more_body"):
                    return
        finally:
            self._is_read.set()

    async def receive_after(self) -> dict[str, object]:
        """Receive what comes behind the body."""
        await self._is_read.wait()
        return dict(await self._receive())
