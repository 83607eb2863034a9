"""A server on loopback that speaks both chat completions and the messages API, and fails as it is told.

    with FaultServer(Reaction(status=500), Reaction(status=429, headers={"Retry-After": "1"})) as server:
        model = OpenAIModel("fake", base_url=server.openai)  # a 500, a 429, then answers

Each request takes the next reaction; when they are used up, ``then`` answers. What was asked is in ``heard``.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

Break = Literal["", "truncate", "reset", "drip"]
ECHO = "\0echo"
"""A text that stands for the last message of the request."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What the server does with one request: waits, then answers ``text``, or ``body`` as it is, with a status.

    ``truncate`` closes in the middle of the answer, ``reset`` breaks the connection unasked, ``drip`` sends a byte a
    tenth of a second and never ends. ``usage`` is input and output tokens; None reports none.
    """

    text: str = "A summary of what happened."
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    delay: float = 0.0
    broken: Break = ""
    usage: tuple[int, int] | None = (100, 10)
    finish: str = ""


def failure(status: int, message: str, *, retry_after: str = "", **fields: Any) -> Reaction:
    """A reaction with an error body in the shape both providers share, and what else stands in it."""
    headers = {"Retry-After": retry_after} if retry_after else {}
    return Reaction(status=status, headers=headers, body={"error": {"message": message, **fields}})


@dataclass(frozen=True, slots=True)
class Heard:
    """One request as it came in; the names of headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


class FaultServer:
    """The server, listening between ``with`` and its end. ``openai`` and ``anthropic`` are base URLs for the SDKs."""

    def __init__(self, *script: Reaction, then: Reaction | None = None) -> None:
        self._script, self._then = list(script), then or Reaction()
        self._lock, self._closing = threading.Lock(), threading.Event()
        self.heard: list[Heard] = []
        self._server = _Listening(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def anthropic(self) -> str:
        """The base URL for Anthropic's SDK."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai(self) -> str:
        """The base URL for OpenAI's SDK."""
        return f"{self.anthropic}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next_after(self, heard: Heard) -> Reaction:
        """The reaction to this request, which is remembered."""
        with self._lock:
            self.heard.append(heard)
            return self._script.pop(0) if self._script else self._then

    def wait(self, seconds: float) -> bool:
        """Waits, but not for longer than the server is open; whether it was closed meanwhile."""
        return self._closing.wait(seconds)


class _Listening(ThreadingHTTPServer):
    def __init__(self, owner: FaultServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Conversation)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone away is what the tests are about."""


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listening

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        owner = self.server.owner
        size = int(self.headers.get("Content-Length") or 0)
        asked = json.loads(self.rfile.read(size) or b"{}")
        reaction = owner.next_after(
            Heard(self.path, {name.lower(): value for name, value in self.headers.items()}, asked)
        )
        self.close_connection = True
        if reaction.delay and owner.wait(reaction.delay):
            return
        if reaction.broken == "reset":
            # Closing with a linger of nothing sends a reset instead of an end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        with suppress(OSError):
            self._answer(reaction, asked)

    def _answer(self, reaction: Reaction, asked: dict[str, Any]) -> None:
        streams = bool(asked.get("stream")) and reaction.body is None and reaction.status == 200
        payload = self._payload(reaction, asked, streams=streams)
        self.send_response(reaction.status)
        self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
        self.send_header("Connection", "close")
        if not streams:
            self.send_header("Content-Length", str(len(payload)))
        for name, value in reaction.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reaction.broken == "drip":
            for byte in payload:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if self.server.owner.wait(0.1):
                    return
        self.wfile.write(payload[: len(payload) * 3 // 5] if reaction.broken == "truncate" else payload)

    def _payload(self, reaction: Reaction, asked: dict[str, Any], *, streams: bool) -> bytes:
        if reaction.body is not None:
            body = reaction.body
            return body.encode() if isinstance(body, str) else json.dumps(body).encode()
        text = _last(asked) if reaction.text == ECHO else reaction.text
        anthropic = self.path.endswith("/messages")
        if not streams:
            whole = anthropic_answer if anthropic else openai_answer
            return json.dumps(whole(text, reaction)).encode()
        events = _anthropic_events(text, reaction) if anthropic else _openai_events(text, reaction)
        return "".join(events).encode()


def openai_answer(text: str, reaction: Reaction) -> dict[str, Any]:
    """A whole answer as chat completions give it."""
    message = {"role": "assistant", "content": text}
    answer = {"id": "c1", "object": "chat.completion", "created": 0, "model": "fake"}
    choice = {"index": 0, "message": message, "finish_reason": reaction.finish or "stop"}
    return {**answer, "choices": [choice], **_openai_usage(reaction)}


def anthropic_answer(text: str, reaction: Reaction) -> dict[str, Any]:
    """A whole answer as the messages API gives it."""
    told, written = reaction.usage or (0, 0)
    return {
        "id": "m1", "type": "message", "role": "assistant", "model": "fake", "stop_sequence": None,
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": reaction.finish or "end_turn",
        "usage": {"input_tokens": told, "output_tokens": written},
    }  # fmt: skip


def _openai_usage(reaction: Reaction) -> dict[str, Any]:
    if reaction.usage is None:
        return {}
    told, written = reaction.usage
    return {"usage": {"prompt_tokens": told, "completion_tokens": written, "total_tokens": told + written}}


def _openai_events(text: str, reaction: Reaction) -> list[str]:
    row = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
    deltas = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in _pieces(text)]
    end = {"index": 0, "delta": {}, "finish_reason": reaction.finish or "stop"}
    rows = [{**row, "choices": [choice]} for choice in (*deltas, end)]
    rows.append({**row, "choices": [], **_openai_usage(reaction)})
    return [f"data: {json.dumps(each)}\n\n" for each in rows] + ["data: [DONE]\n\n"]


def _anthropic_events(text: str, reaction: Reaction) -> list[str]:
    written = (reaction.usage or (0, 0))[1]
    start = {**anthropic_answer("", reaction), "stop_reason": None}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        for piece in _pieces(text)
    ]
    end = {"stop_reason": reaction.finish or "end_turn", "stop_sequence": None}
    rows: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": written}},
        {"type": "message_stop"},
    ]
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in rows]


def _pieces(text: str) -> list[str]:
    size = max(8, len(text) // 200)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _last(asked: dict[str, Any]) -> str:
    content = asked["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
