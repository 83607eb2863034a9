"""The scripted provider as an ASGI app: it checks every request, counts it, and answers by its script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

from pagein.formats import format_named
from pagein.server import http
from pagein.server.wire import GEMINI, MESSAGES, Endpoint, WireProtocol, find_endpoint, find_rows
from pagein.testing.provider.prompt_cache import PromptCache, Reading
from pagein.testing.provider.scripts import Answer, Protocol, Question, Script
from pagein.testing.provider.wire import Event, answer_events, error_body, whole_answer

OverflowSpelling = Literal["anthropic", "openai", "gemini", "bare"]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came in, and the provider's judgement of it. ``headers`` have names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any
    reading: Reading = field(default_factory=lambda: Reading(0, 0, 0, 0))
    is_over: bool = False
    problems: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    is_compaction: bool = False


@dataclass(slots=True)
class ScriptedProvider:
    """A provider with a window of ``window`` tokens (0: none), which answers by ``script``.

    ``pause`` is the time between two events of a stream, in seconds.
    ``received`` has every request to a model; ``others`` those to any other address.
    """

    script: Script
    window: int = 0
    spelling: OverflowSpelling = "anthropic"
    pause: float = 0.0
    received: list[Received] = field(default_factory=list)
    others: list[Received] = field(default_factory=list)
    hangups: int = 0
    cache: PromptCache = field(default_factory=PromptCache)

    @property
    def over(self) -> int:
        """The number of requests that did not fit the window."""
        return sum(request.is_over for request in self.received)

    @property
    def illegal(self) -> tuple[str, ...]:
        """The first problem of each request that is wrong."""
        return tuple(request.problems[0] for request in self.received if request.problems)

    @property
    def compactions(self) -> int:
        """The number of requests in which a client had the model compact its history."""
        return sum(request.is_compaction for request in self.received)

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            incoming = await http.read_incoming(scope, receive, limit=1 << 30)
        except http.ClientGone:
            return
        path, headers, body = incoming.path, incoming.headers, _parse(incoming.raw)
        endpoint = find_endpoint(path) if scope["method"] == "POST" else None
        if endpoint is None or endpoint.is_count:
            self.others.append(Received(path, headers, body))
            await self.answer_other(path, body, incoming.raw, send)
            return
        number = len(self.received)
        request = self.read_request(endpoint.protocol, path, headers, body)
        self.received.append(request)
        is_array = endpoint.is_stream and b"alt=sse" not in incoming.query
        try:
            await http.run_until_hangup(receive, self.open_exchange(endpoint, number, request, send, is_array).answer())
        except http.ClientGone:
            self.hangups += 1

    def open_exchange(self, *about: Any) -> Exchange:
        """The exchange that answers a request; a subclass may answer otherwise."""
        return Exchange(self, *about)

    def read_request(
        self, protocol: WireProtocol, path: str, headers: Mapping[str, str], body: Any, *, is_refused: bool = False
    ) -> Received:
        """Judge a request. One that ``is_refused`` in any case does not come to the cache."""
        if not isinstance(body, dict):
            return Received(path, headers, body, problems=("the body is not JSON",))
        question = _question(protocol.name, body)
        tokens = self.cache.count(body)
        is_over = bool(self.window) and tokens > self.window
        problems = format_named(protocol.format).problems(_messages(protocol.name, body))
        # Anthropic takes a system message in mid-conversation with a beta header; the format's rules do not know it.
        if "mid-conversation" in headers.get("anthropic-beta", ""):
            problems = tuple(problem for problem in problems if ".role: system" not in problem)
        # Gemini takes contents of one role in a row, as its SDK's chats have them.
        if protocol is GEMINI:
            problems = tuple(problem for problem in problems if not problem.endswith("in a row"))
        reading = Reading(tokens, 0, 0, 0)
        if not (is_refused or is_over or problems):
            reading = self.cache.look_up(body, explicit=protocol is MESSAGES)
        return Received(path, headers, body, reading, is_over, problems, question.tools, question.is_compaction)

    async def answer_other(self, path: str, body: Any, raw: bytes, send: http.Send) -> None:
        """Answer a request to another address than a model's."""
        if path == "/v1/messages/count_tokens" and isinstance(body, dict):
            await _send_json(send, 200, {"input_tokens": self.cache.count(body)})
        elif path == "/v1/responses/input_tokens" and isinstance(body, dict):
            tokens = self.cache.count(body)
            await _send_json(send, 200, {"object": "response.input_tokens", "input_tokens": tokens})
        elif path.endswith(":countTokens") and isinstance(body, dict):
            await _send_json(send, 200, {"totalTokens": self.cache.count(body)})
        elif path == "/v1/models":
            await _send_json(send, 200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            await _send_json(send, 404, error_body("messages", 404, "not_found_error", f"no {path}"))


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    provider: ScriptedProvider
    endpoint: Endpoint
    number: int
    request: Received
    send: http.Send
    is_array: bool = False
    """True for a stream that is a JSON array in place of events."""

    @property
    def protocol(self) -> Protocol:
        return self.endpoint.protocol.name

    async def answer(self) -> None:
        """Answer by the script."""
        request, body = self.request, self.request.body
        if not isinstance(body, dict) or request.problems:
            problem = request.problems[0]
            await self.fail(400, "invalid_request_error", problem)
            return
        if request.is_over:
            await self.overflow(self.provider.window)
            return
        await self.respond()

    @property
    def is_streamed(self) -> bool:
        """True where the answer is to come in events."""
        return bool(self.request.body.get("stream")) or self.endpoint.is_stream

    async def respond(self) -> None:
        """Send the script's answer to a request that is in order."""
        await self.send_answer(self.provider.script(_question(self.protocol, self.request.body)))

    async def send_answer(self, answer: Answer) -> None:
        """Send an answer, whole or in events."""
        request, body = self.request, self.request.body
        model = self.endpoint.model or str(body.get("model", "scripted"))
        if not self.is_streamed:
            whole = whole_answer(self.protocol, model, self.number, answer, request.reading)
            await _send_json(self.send, 200, whole, {"request-id": f"req_{self.number}"})
            return
        options = body.get("stream_options") or {}
        with_usage = bool(options.get("include_usage"))
        events = answer_events(self.protocol, model, self.number, answer, request.reading, with_usage=with_usage)
        await self.stream(events)

    async def stream(self, events: Iterable[Event]) -> None:
        """Send the events of an answer."""
        kind = "application/json" if self.is_array else "text/event-stream"
        head = {"content-type": f"{kind}; charset=utf-8", "request-id": f"req_{self.number}"}
        await http.start_answer(self.send, 200, _pairs(head))
        for at, event in enumerate(events):
            frame = (b",\r\n" if at else b"[") + json.dumps(event.data, indent=2).encode()
            await http.send_chunk(self.send, frame if self.is_array else event.encode())
            if self.provider.pause:
                await asyncio.sleep(self.provider.pause)
        await http.send_chunk(self.send, b"]" if self.is_array else b"", more=False)

    async def overflow(self, window: int) -> None:
        """Answer that the request is longer than the window."""
        status, message, code = self.overflow_message(window)
        await self.fail(status, "invalid_request_error", message, code=code)

    def overflow_message(self, window: int) -> tuple[int, str, str]:
        """The status, the words and the code with which a provider says so."""
        tokens = self.request.reading.tokens
        match self.provider.spelling:
            case "anthropic":
                suffix = f": {tokens} tokens > {window} maximum" if window else ""
                return 400, f"prompt is too long{suffix}", ""
            case "openai":
                named = f" This model's maximum context length is {window} tokens." if window else ""
                text = f"Your input exceeds the context window of this model.{named}"
                return 400, text, "context_length_exceeded"
            case "gemini":
                text = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
                return 400, text if window else text.replace(f" ({tokens})", "").replace(" (0)", ""), ""
            case "bare":
                return 413, "Input is too long for requested model.", ""

    async def fail(
        self, status: int, kind: str, message: str, head: Mapping[str, str] | None = None, *, code: str = ""
    ) -> None:
        """Answer with an error."""
        await _send_json(self.send, status, error_body(self.protocol, status, kind, message, code), head)


def _messages(protocol: Protocol, body: Mapping[str, Any]) -> Any:
    """The messages of a request, and what its system says, as its format checks them."""
    if protocol == "gemini":
        return {**body, "contents": find_rows(GEMINI, body)}
    if protocol != "responses":
        return {"messages": body.get("messages"), **({"system": body["system"]} if body.get("system") else {})}
    rows = body.get("input")
    return [{"role": "user", "content": rows}] if isinstance(rows, str) else rows


def _question(protocol: Protocol, body: Mapping[str, Any]) -> Question:
    tools = [tool for tool in body.get("tools") or () if isinstance(tool, Mapping)]
    keys = ("functionDeclarations", "function_declarations")  # Google reads both spellings
    tools = [named for tool in tools for named in next((tool[key] for key in keys if key in tool), [tool])]
    names = [tool.get("name") or (tool.get("function") or {}).get("name") for tool in tools]
    return Question(protocol, body, tuple(str(name) for name in names if name))


def _parse(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _pairs(head: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head.items()]


async def _send_json(send: http.Send, status: int, body: Any, head: Mapping[str, str] | None = None) -> None:
    pairs = _pairs({"content-type": "application/json", **(head or {})})
    await http.send_answer(send, status, pairs, json.dumps(body).encode())


async def _live(receive: http.Receive, send: http.Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def serve_app(app: Any) -> AbstractContextManager[str]:
    """Serve an ASGI app while the context is open; gives its address, without a path. Raises ImportError without uvicorn."""
    from pagein.server.run import serve_in_thread  # noqa: PLC0415 - needs the extra serve

    return serve_in_thread(app)
