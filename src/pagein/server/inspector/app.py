"""The inspector as an ASGI app: who may ask, the pages, the data, and the events of a store that is written to."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pagein.errors import ConfigurationError, LogEncrypted, PageinError, UnknownHandle, UnknownRequest
from pagein.log.encryption import Key
from pagein.server.inspector.data import InspectorData, NotFound
from pagein.server.inspector.export import export_page
from pagein.server.inspector.scan import SearchCursor
from pagein.server.settings import LOOPBACK, foreign_part

BASE = "/inspect"
KEY_COOKIE = "pagein-inspect"
POLL_SECONDS = 1.0
"""Seconds between two looks at a store for what is new."""

HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}


@dataclass(frozen=True, slots=True)
class InspectorSettings:
    """The store of an inspector, and who may look: without a ``secret`` it listens on this machine alone.

    ``key`` is that of an encrypted store. Raises ConfigurationError for another host without a secret.
    """

    store: str
    host: str = "127.0.0.1"
    port: int = 8791
    tenant: str = ""
    secret: str = field(default="", repr=False)
    key: Key | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.host not in LOOPBACK and not self.secret:
            raise ConfigurationError(
                f"listening on {self.host} lets other machines in: set a secret with PAGEIN_INSPECT_KEY, or use 127.0.0.1"
            )


class InspectorApp:
    """An inspector's ASGI app over one store; it may also be mounted beside others. Raises LogError at once."""

    def __init__(self, settings: InspectorSettings) -> None:
        self.settings = settings
        self.data = InspectorData(settings.store, tenant=settings.tenant, key=settings.key)
        api, run = BASE + "/api", BASE + "/api/runs/{run:path}"
        by_path: Mapping[str, Callable[..., Any]] = {
            "/marks": self.data.marks,
            "/cost": self.data.cost,
            "/asked": self.data.list_asked_again,
            "/requests/{number:int}": self.data.request,
            "/requests/{number:int}/raw": self.data.raw,
            "/requests/{number:int}/diff/{before:int}": self.data.diff,
            "/steps/{handle}": self.data.step,
        }
        self._app = Starlette(
            routes=[
                Route("/", lambda _: RedirectResponse(BASE)),
                Route(BASE + "/static/{name:path}", _static),
                Route(api + "/runs", self._answer(lambda _: self.data.runs())),
                Route(api + "/search", self._answer(self._search)),
                Route(api + "/events", self._events),
                Route(run + "/requests", self._answer(self._requests)),
                *(Route(run + path, self._answer(_with_path(get))) for path, get in by_path.items()),
                Route(run + "/steps/{handle}/text", self._text),
                Route(run + "/export", self._export),
                Route(api + "{rest:path}", _unknown),
                Route(BASE + "{rest:path}", self._page),
            ]
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection: only reading, only for who may."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_missing_headers(message["headers"])]
            await send(message)

        await (self._refuse(Request(scope)) or self._app)(scope, receive, send_with_headers)

    def close(self) -> None:
        """Close the store."""
        self.data.close()

    def _refuse(self, request: Request) -> Response | None:
        """The answer to who may not look; None for all others."""
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("the inspector only reads", 405)
        part = foreign_part(request.headers, self.settings.host, has_key=bool(self.settings.secret))
        if part:
            return PlainTextResponse(f"this {part} is not served", 403)
        if self.settings.secret:
            given = request.query_params.get("key")
            if given is not None and _is_same(given, self.settings.secret):
                answer = RedirectResponse(request.url.path or BASE, 303)
                answer.set_cookie(KEY_COOKIE, self.settings.secret, httponly=True, samesite="strict", path=BASE)
                return answer
            if not _is_same(request.cookies.get(KEY_COOKIE, ""), self.settings.secret):
                return PlainTextResponse("a key is needed: open the address with ?key=...", 401)
        return None

    # Data

    def _answer(self, make: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            try:
                return JSONResponse(await run_in_threadpool(make, request))
            except (NotFound, UnknownHandle, UnknownRequest) as error:
                return JSONResponse({"error": str(error)}, 404)
            except LogEncrypted:
                return JSONResponse(
                    {"error": "This run is encrypted. Start the inspector with its key in PAGEIN_KEY."}, 403
                )
            except PageinError as error:
                return JSONResponse({"error": str(error)}, 500)

        return answer

    def _requests(self, request: Request) -> Any:
        return self.data.requests(request.path_params["run"], _whole(request, "after"))

    def _search(self, request: Request) -> Any:
        asked = request.query_params
        start = SearchCursor(asked["from"], _whole(request, "position")) if "from" in asked else None
        return self.data.search(asked.get("q", "")[:800], asked.get("run"), start)

    async def _text(self, request: Request) -> Response:
        try:
            text = await run_in_threadpool(self.data.text, request.path_params["run"], request.path_params["handle"])
        except PageinError as error:
            return PlainTextResponse(str(error), 404)
        return PlainTextResponse(text.encode("utf-8", "backslashreplace"))

    async def _export(self, request: Request) -> Response:
        run = request.path_params["run"]
        pieces = export_page(self.data, run)
        try:
            first = await run_in_threadpool(next, pieces)
        except PageinError as error:
            return PlainTextResponse(str(error), 404)
        name = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in run)[:80]
        disposition = {"content-disposition": f'attachment; filename="{name}.html"'}
        return StreamingResponse(chain((first,), pieces), media_type="text/html", headers=disposition)

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(self._watch(request), media_type="text/event-stream")

    async def _watch(self, request: Request) -> AsyncIterator[str]:
        """Tell of runs that went on, until the page is closed."""
        run, before = request.query_params.get("run"), None
        yield "retry: 2000\n\n"
        while not await request.is_disconnected():
            try:
                marks: Any = await run_in_threadpool(self._marks, run)
            except PageinError:
                marks = None
            if marks is not None and marks != before:
                before = marks
                yield f"data: {json.dumps(marks)}\n\n"
            else:
                yield ": still here\n\n"
            await asyncio.sleep(POLL_SECONDS)

    def _marks(self, run: str | None) -> Mapping[str, Any]:
        if run is None:
            return {"runs": [[row["run"], row["entries"], row["requests"]] for row in self.data.runs()["runs"]]}
        return {"run": run, "marks": self.data.marks(run)}

    async def _page(self, request: Request) -> Response:
        rest = request.path_params["rest"]
        if rest and not rest.startswith("/"):
            return PlainTextResponse("there is no such page", 404)
        return Response(read_static("index.html"), media_type="text/html")


def read_static(name: str) -> bytes:
    """The bytes of a file of the pages. Raises FileNotFoundError."""
    return (files("pagein.server.inspector") / "static" / name).read_bytes()


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if ".." in name or Path(name).suffix not in _TYPES:
        return await _unknown(request)
    try:
        return Response(read_static(name), media_type=_TYPES[Path(name).suffix])
    except OSError:
        return await _unknown(request)


async def _unknown(_: Request) -> Response:
    return JSONResponse({"error": "there is no such page"}, 404)


def _with_path(get: Callable[..., Any]) -> Callable[[Request], Any]:
    return lambda request: get(**request.path_params)


def _whole(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _is_same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode("utf-8", "surrogatepass"))


def _missing_headers(pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    present = {name.lower() for name, _ in pairs}
    return [(name.encode(), text.encode()) for name, text in HEADERS.items() if name.encode() not in present]
