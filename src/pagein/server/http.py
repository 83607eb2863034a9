"""HTTP at the edges of the proxy: reading a request within limits, headers that are passed on, sending an answer."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pagein._common.json_values import parse_json

T = TypeVar("T")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Pairs = list[tuple[bytes, bytes]]

OWN_HEADER = "x-pagein"
OWN_PREFIX = b"x-pagein"

_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)


class ClientGone(Exception):
    """The client hung up."""


class StreamBroken(Exception):
    """The upstream broke off an answer: the client's connection is closed without an end, too."""


class TooLarge(Exception):
    """A body that is over the limit, as it came or unpacked."""


class Unpackable(Exception):
    """A body that is not in the encoding that its header names."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request that came in: ``raw`` is its body as it came, ``headers`` are by their names in lower case."""

    method: str
    path: str
    query: bytes = field(repr=False)
    pairs: Pairs = field(repr=False)
    raw: bytes = field(default=b"", repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; of several of one name the last."""
        return header_map(self.pairs)


def header_map(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by their names in lower case; of several of one name the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


async def read_incoming(scope: Scope, receive: Receive, limit: int, *, with_body: bool = True) -> Incoming:
    """Read a request. Raises TooLarge, and ClientGone for a client that hung up."""
    chunks: list[bytes] = []
    size = 0
    while with_body:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise TooLarge
        if not message.get("more_body"):
            break
    raw_path = scope.get("raw_path")  # as it came: an escaped slash is part of a name
    path = raw_path.decode("latin-1") if raw_path else str(scope.get("path", "/"))
    return Incoming(scope["method"], path, scope.get("query_string", b""), list(scope["headers"]), b"".join(chunks))


def unpack(raw: bytes, encoding: str, limit: int) -> bytes:
    """Unpack a body. Raises TooLarge, Unpackable."""
    match encoding.strip().lower():
        case "" | "identity":
            return raw
        case "gzip" | "x-gzip":
            return _inflate(raw, limit, 16 + zlib.MAX_WBITS)
        case "deflate":
            return _inflate(raw, limit, zlib.MAX_WBITS)
        case "zstd":
            return _unpack_zstd(raw, limit)
    raise Unpackable(f"the encoding {encoding!r:.40} is not read")


def _inflate(raw: bytes, limit: int, window: int) -> bytes:
    unpacker = zlib.decompressobj(window)
    try:
        data = unpacker.decompress(raw, limit + 1)
    except zlib.error as error:
        raise Unpackable(str(error)) from None
    if len(data) > limit:
        raise TooLarge
    if not unpacker.eof:
        raise Unpackable("the body ends too early")
    return data


def _unpack_zstd(raw: bytes, limit: int) -> bytes:
    import zstandard  # noqa: PLC0415 - loads where a client packs so

    try:
        with zstandard.ZstdDecompressor().stream_reader(raw) as reader:
            data = reader.read(limit + 1)
    except zstandard.ZstdError as error:
        raise Unpackable(str(error)) from None
    if len(data) > limit:
        raise TooLarge
    return bytes(data)


def parse_object(data: bytes) -> dict[str, Any] | None:
    """Parse a JSON object; None for anything else."""
    value = parse_json(data)
    return value if isinstance(value, dict) else None


def request_headers(pairs: Iterable[tuple[bytes, bytes]], *, without: Iterable[bytes] = ()) -> Pairs:
    """The headers of a request that are passed on."""
    pairs = list(pairs)
    left_out = {*_HOP_BY_HOP, *_named_by_connection(pairs), b"host", b"content-length", b"expect", *without}
    return [
        (name, value)
        for name, value in pairs
        if name.lower() not in left_out and not name.lower().startswith(OWN_PREFIX)
    ]


def response_headers(pairs: Iterable[tuple[bytes, bytes]], *, without: Iterable[bytes] = ()) -> Pairs:
    """The headers of an answer that are passed on."""
    pairs = list(pairs)
    left_out = {*_HOP_BY_HOP, *_named_by_connection(pairs), *without}
    return [(name.lower(), value) for name, value in pairs if name.lower() not in left_out]


def _named_by_connection(pairs: Pairs) -> set[bytes]:
    """The headers that are of this connection alone, by its own header."""
    names = (name for key, value in pairs if key.lower() == b"connection" for name in value.split(b","))
    return {name.strip().lower() for name in names}


def send_for_origin(send: Send, origin: str) -> Send:
    """Send answers that a page of this origin may read; what the upstream says of pages is of its own site."""

    async def send_allowed(message: Message) -> None:
        if message["type"] == "http.response.start":
            pairs = [pair for pair in message["headers"] if not pair[0].lower().startswith(b"access-control-")]
            message = {**message, "headers": [*pairs, *_pairs_for_origin(origin)]}
        await send(message)

    return send_allowed


def _pairs_for_origin(origin: str) -> Pairs:
    pairs = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]
    return [*pairs, (b"access-control-expose-headers", b"*")]


async def answer_preflight(send: Send, headers: Mapping[str, str]) -> None:
    """Answer a browser's question whether a page may ask."""
    pairs = _pairs_for_origin(headers.get("origin", ""))
    pairs += [(b"access-control-allow-methods", b"GET, POST"), (b"access-control-max-age", b"600")]
    asked = headers.get("access-control-request-headers", "")
    pairs += [(b"access-control-allow-headers", asked.encode("latin-1"))] if asked else []
    if "access-control-request-private-network" in headers:
        pairs.append((b"access-control-allow-private-network", b"true"))
    await send_answer(send, 204, pairs, b"")


async def start_answer(send: Send, status: int, pairs: Pairs) -> None:
    """Send the beginning of an answer."""
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def send_chunk(send: Send, chunk: bytes, *, more: bool = True) -> None:
    """Send a part of an answer."""
    await send({"type": "http.response.body", "body": chunk, "more_body": more})


async def send_answer(send: Send, status: int, pairs: Pairs, body: bytes) -> None:
    """Send a whole answer."""
    sized = [(name, value) for name, value in pairs if name.lower() != b"content-length"]
    await start_answer(send, status, [*sized, (b"content-length", str(len(body)).encode())])
    await send_chunk(send, body, more=False)


async def send_json(send: Send, status: int, body: bytes, **headers: str) -> None:
    """Send JSON; the names of ``headers`` have underscores in place of hyphens."""
    pairs = [(b"content-type", b"application/json")]
    pairs += [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send_answer(send, status, pairs, body)


async def run_until_hangup(receive: Receive, work: Awaitable[T]) -> T:
    """Do the work of a request whose body was read; stop it when the client hangs up. Raises ClientGone."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_for_hangup(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        raise ClientGone
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _wait_for_hangup(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
