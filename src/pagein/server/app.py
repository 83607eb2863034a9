"""The server as an ASGI app: who may ask, where a request goes, health and metrics."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from pagein._common.version import __version__
from pagein.backends.open import check_store
from pagein.errors import PageinError
from pagein.memory.agent_memory import AgentMemory
from pagein.server.budgets import WindowTable
from pagein.server.forward import PassThrough
from pagein.server.http import (
    OWN_HEADER,
    Receive,
    Scope,
    Send,
    StreamBroken,
    answer_preflight,
    header_map,
    send_answer,
    send_for_origin,
    send_json,
)
from pagein.server.inspector.app import BASE as INSPECTOR
from pagein.server.inspector.app import InspectorApp, InspectorSettings
from pagein.server.memories import MemoryPool
from pagein.server.metrics import Metrics
from pagein.server.proxy import Proxy
from pagein.server.runs import Runs
from pagein.server.settings import (
    LOOPBACK,
    ServerSettings,
    find_credential,
    foreign_part,
    hash_key,
    tenant_of_credential,
)
from pagein.server.wire import RESPONSES, error_body, find_endpoint

MCP = "/mcp"
KEY_HEADER, UPSTREAMS_HEADER = "x-pagein-key", "x-pagein-upstreams"

STORE_SECONDS = 30.0
"""Seconds to wait for a busy store: SQLite lets writers wait in no order, and here there may be a hundred runs."""

KEPT_SECONDS = 4.0
"""Time for which an idle connection to an upstream is used again: many servers close theirs after 5, also under a request."""

logger = logging.getLogger("pagein.server")


def check_settings(settings: ServerSettings) -> None:
    """Read from the store, and open a memory with the options: else each request would fail, and pass unchanged.

    Raises PageinError.
    """
    check_store(settings.store, settings.tenant)
    AgentMemory.open(":memory:", **settings.options).close()


@dataclass(slots=True)
class _Parts:
    """The parts of a server between start and end."""

    proxy: Proxy
    forward: PassThrough
    mcp: Mapping[str, Any]
    """The MCP server of each tenant; none without the extra."""
    inspector: InspectorApp | None = None


class ServerApp:
    """A server's ASGI app. Its parts are made when it starts, and closed when it ends."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self._parts: _Parts | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                try:
                    await self._serve(scope, receive, send)
                except StreamBroken:
                    logger.info("an upstream broke off an answer")
                    raise
            case "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": "not served; use HTTP"})

    # Its life

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self.running():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except PageinError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have the parts of the server while the context is open. Raises PageinError for a store that cannot be opened."""
        settings, limits = self.settings, self.settings.limits
        check_settings(settings)
        windows = WindowTable(settings.window)
        options = {"timeout": STORE_SECONDS, **settings.options}
        pool = MemoryPool(settings.store, options, most=limits.memories, most_bytes=limits.memory_bytes)
        runs = Runs(settings.store, options, windows, pool)
        timeout = httpx2.Timeout(limits.event_seconds, connect=limits.connect_seconds)
        bounds = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=KEPT_SECONDS)
        async with AsyncExitStack() as ends:
            client = httpx2.AsyncClient(timeout=timeout, limits=bounds, follow_redirects=False)
            await ends.enter_async_context(client)
            proxy = Proxy(settings, runs, windows, client, self.metrics)
            mcp = {tenant: app async for tenant, app in self._mcp_apps(ends)}
            self._parts = _Parts(proxy, PassThrough(settings, client, self.metrics), mcp)
            try:
                yield
            finally:
                if self._parts.inspector is not None:
                    self._parts.inspector.close()
                self._parts = None
                proxy.close()
                runs.close()

    async def _mcp_apps(self, ends: AsyncExitStack) -> AsyncIterator[tuple[str, Any]]:
        try:
            from pagein.server.mcp import McpSettings, http_app  # noqa: PLC0415 - its SDK is an extra
        except ImportError:
            return
        settings = self.settings
        for tenant in sorted(set(settings.keys.values()) or {settings.tenant}):
            served = McpSettings(settings.store, tenant, options=settings.options)
            yield tenant, await ends.enter_async_context(http_app(served, settings.host))

    # Requests

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, headers = str(scope["path"]), header_map(scope["headers"])
        if path in ("/livez", "/readyz", "/metrics") and scope["method"] in ("GET", "HEAD"):
            await self._tell(path, send)
            return
        origin = headers.get("origin", "")
        if origin in self.settings.origins and not _is_own_page(path):
            # Providers refuse what they take for a page's own request.
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0].lower() != b"origin"]}
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await answer_preflight(send, headers)
                return
            send = send_for_origin(send, headers.pop("origin"))
        tenant = self._tenant_of(headers, scope["query_string"])
        has_key = self.settings.host not in LOOPBACK  # a server that others can reach needs one
        is_outside = ".." in path.split("/")  # of the upstream's own path
        if tenant is None or is_outside or foreign_part(headers, self.settings.host, has_key=has_key):
            self.metrics.count("refused", "key" if tenant is None else "host")
            text = f"a proxy key is needed in {KEY_HEADER}" if tenant is None else "the host, origin or path is wrong"
            error = b'{"type": "error", "error": {"type": "permission_error", "message": "%s"}}' % text.encode()
            await send_json(send, 401 if tenant is None else 403, error)
            return
        if headers.get("upgrade", "").lower() == "websocket":  # with this status Codex goes on over HTTP
            self.metrics.count("refused", "websocket")
            await send_json(send, 426, error_body(RESPONSES, 426, "pagein serves no websockets; use HTTP"))
            return
        parts = self._parts
        if parts is None:
            await send_json(send, 503, b'{"error": {"message": "not ready", "type": "api_error"}}', retry_after="1")
            return
        if path == MCP:
            await parts.mcp.get(tenant, _no_mcp)(scope, receive, send)
            return
        if _is_own_page(path) and not (self.settings.keys or self.settings.tenant_secret):
            await self._inspect(parts, scope, receive, send)
            return
        endpoint = find_endpoint(self.settings.upstream_of(path)[2]) if scope["method"] == "POST" else None
        if endpoint is not None:
            await parts.proxy.handle(endpoint, tenant, scope, receive, send)
        else:
            await parts.forward.handle(scope, receive, send)

    async def _inspect(self, parts: _Parts, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the inspector of this store, opened at its first request."""
        settings = self.settings
        if parts.inspector is None:
            try:
                parts.inspector = InspectorApp(
                    InspectorSettings(settings.store, settings.host, settings.port, settings.tenant)
                )
            except PageinError as error:
                await send_answer(send, 503, [(b"content-type", b"text/plain")], f"{error}\n".encode())
                return
        await parts.inspector(scope, receive, send)

    async def _tell(self, path: str, send: Send) -> None:
        kind = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
        plain = [kind, (OWN_HEADER.encode(), __version__.encode())]
        if path == "/metrics":
            await send_answer(send, 200, plain, self.metrics.render().encode())
        elif path == "/livez":
            if self.settings.host in LOOPBACK:  # for pagein run, which may use this server
                plain.append((UPSTREAMS_HEADER.encode(), json.dumps(dict(self.settings.upstreams)).encode()))
            await send_answer(send, 200, plain, b"ok\n")
        else:
            problem = self._find_problem()
            await send_answer(send, 503 if problem else 200, plain, (problem or "ok").encode() + b"\n")

    def _find_problem(self) -> str:
        if self._parts is None:
            return "not running"
        try:
            check_store(self.settings.store, self.settings.tenant)
        except PageinError as error:
            return type(error).__name__
        return ""

    def _tenant_of(self, headers: Mapping[str, str], query: bytes) -> str | None:
        """The tenant of a request; None for one without the key that is needed."""
        settings = self.settings
        if not settings.keys and settings.tenant_secret:
            return tenant_of_credential(settings.tenant_secret, find_credential(headers, query))
        if not settings.keys:
            return settings.tenant
        return self.settings.keys.get(hash_key(headers.get(KEY_HEADER, "")))


def _is_own_page(path: str) -> bool:
    """True for what shows the runs: no page of another site reads that."""
    return path in (MCP, INSPECTOR) or path.startswith(f"{INSPECTOR}/")


async def _no_mcp(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    text = b"no MCP server: it needs pip install 'pagein[mcp]', and runs of credentials have none\n"
    await send_answer(send, 404, [(b"content-type", b"text/plain")], text)
