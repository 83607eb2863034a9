"""A scripted provider with faults: in the place of an answer, or in the middle of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pagein.server import http
from pagein.testing.provider import Answer, Received, ScriptedProvider
from pagein.testing.provider.app import Exchange
from pagein.testing.provider.wire import Event, error_body

FaultKind = Literal[
    "rate-limit", "overloaded", "overflow", "overflow-event", "error-event", "cut", "silence", "bad-json", "bare-500"
]
STREAMED = ("cut", "error-event", "overflow-event")
"""Faults of a stream; where nothing is streamed they are in the place of the answer."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one answer.

    ``overflow-event`` and ``error-event`` are errors as the first event of a stream and behind some; ``cut`` closes the
    connection in the middle; ``silence`` answers nothing, and ends when the client hangs up.
    """

    kind: FaultKind
    window: int = 0
    """Tokens that an overflow names; 0 names none."""


@dataclass
class FaultyProvider(ScriptedProvider):
    """A ScriptedProvider with ``faults`` by the number of the request, from 0; under ``/echo`` it sends back what came."""

    faults: Mapping[int, Fault] = field(default_factory=dict)

    def read_request(self, *about: Any, is_refused: bool = False) -> Received:
        """See ``ScriptedProvider``. Of a faulty answer only the one that is cut was read by the cache."""
        fault = self.faults.get(len(self.received))
        is_refused = is_refused or (fault is not None and fault.kind != "cut")
        return super().read_request(*about, is_refused=is_refused)

    def open_exchange(self, *about: Any) -> Exchange:
        """See ``ScriptedProvider``."""
        exchange = FaultyExchange(self, *about)
        exchange.fault = self.faults.get(exchange.number)
        return exchange

    async def answer_other(self, path: str, body: Any, raw: bytes, send: http.Send) -> None:
        """See ``ScriptedProvider``."""
        if path == "/echo":
            head = _pairs({"content-type": "application/octet-stream", "x-scripted": "echo"})
            await http.send_answer(send, 200, head, raw)
        else:
            await super().answer_other(path, body, raw, send)


class FaultyExchange(Exchange):
    """An exchange that may end with a fault."""

    fault: Fault | None = None

    async def respond(self) -> None:
        """Send the answer, or the fault. Raises CutOff: the server closes the connection without an end then."""
        fault = self.fault
        if fault is None:
            await super().respond()
        elif not self.is_streamed or fault.kind not in STREAMED:
            await self._break(fault)
        elif fault.kind == "overflow-event":
            await self.send_answer(Answer())
        else:
            await super().respond()

    async def stream(self, events: Iterable[Event]) -> None:
        """Send the events up to the fault, and the fault."""
        await super().stream(events if self.fault is None else self._with_fault(list(events), self.fault))

    def _with_fault(self, events: list[Event], fault: Fault) -> Iterator[Event]:
        if fault.kind == "cut":
            yield from events[: len(events) // 2]
            raise CutOff
        is_overflow = fault.kind == "overflow-event"
        yield from events[: 2 if self.protocol == "responses" and is_overflow else 0 if is_overflow else 3]
        message = self.overflow_message(fault.window)[1] if is_overflow else "Overloaded"
        kind = "invalid_request_error" if is_overflow else "overloaded_error"
        if self.protocol == "responses":
            code = "context_length_exceeded" if is_overflow else "server_error"
            response = {"id": f"resp_{self.number:06}", "object": "response", "status": "failed", "output": []}
            failed = {**response, "error": {"code": code, "message": message}}
            yield Event("response.failed", {"type": "response.failed", "sequence_number": 2, "response": failed})
        else:
            body = error_body(self.protocol, 400 if is_overflow else 503, kind, message)
            yield Event("error" if self.protocol == "messages" else "", body)

    async def _break(self, fault: Fault) -> None:
        match fault.kind:
            case "rate-limit":
                head = {"retry-after": "7", "x-ratelimit-remaining-requests": "0"}
                await self.fail(429, "rate_limit_error", "Rate limit reached", head)
            case "overloaded":
                await self.fail(503 if self.protocol == "gemini" else 529, "overloaded_error", "Overloaded")
            case "overflow" | "overflow-event":
                await self.overflow(fault.window)
            case "silence":
                await asyncio.sleep(3_600)
            case "bad-json":
                await http.send_json(self.send, 200, b'{"id": "msg_1", "content": [')
            case "cut":
                head = {"content-type": "application/json", "content-length": "400"}
                await http.start_answer(self.send, 200, _pairs(head))
                await http.send_chunk(self.send, b'{"id": ')
                raise CutOff
            case "bare-500" | "error-event":
                pairs = _pairs({"content-type": "text/plain"})
                await http.send_answer(self.send, 500, pairs, b"Internal Server Error")


class CutOff(Exception):
    """The connection is closed in the middle of an answer."""


def _pairs(head: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head.items()]
