"""A stream of bytes as events, each with the bytes that it came in: server-sent events, or the objects of a JSON array. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pagein.server.http import parse_object

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")
_MARK = re.compile(rb'["{}]|\\.', re.DOTALL)

MAX_EVENT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event: its bytes, and the JSON object in it; None for a comment, for ``[DONE]`` and for what is no JSON."""

    raw: bytes
    data: dict[str, Any] | None
    is_done: bool = False


@dataclass(slots=True)
class EventSplitter:
    """Splits a stream into events. ``rest`` is what came behind the last whole one."""

    rest: bytearray = field(default_factory=bytearray)
    _searched: int = 0

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield the events that the chunk ends. Raises ValueError for an event without an end."""
        self.rest += chunk
        while match := _END.search(self.rest, max(0, self._searched - 3)):
            raw = bytes(self.rest[: match.end()])
            del self.rest[: match.end()]
            self._searched = 0
            yield read_event(raw)
        self._searched = len(self.rest)
        if len(self.rest) > MAX_EVENT_BYTES:
            raise ValueError("an event of the stream is too long")

    def end(self) -> Iterator[StreamEvent]:
        """Yield what stands behind the last whole event, where the stream ended without an empty line."""
        if self.rest.strip():
            yield read_event(bytes(self.rest))
        self.rest.clear()


def read_event(raw: bytes) -> StreamEvent:
    """Read the data of one event."""
    lines = [line[5:].removeprefix(b" ") for line in _LINE.split(raw) if line.startswith(b"data:")]
    data = b"\n".join(lines)
    return StreamEvent(raw, parse_object(data), is_done=data.strip() == b"[DONE]")


@dataclass(slots=True)
class ArraySplitter:
    """Splits a JSON array into its objects, each with what stands before it. ``rest`` is what came behind the last whole one."""

    rest: bytearray = field(default_factory=bytearray)
    _scanned: int = 0
    _depth: int = 0
    _is_in_string: bool = False

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield the objects that the chunk ends."""
        self.rest += chunk
        while match := _MARK.search(self.rest, self._scanned):
            mark, self._scanned = match[0], match.end()
            if mark == b'"':
                self._is_in_string = not self._is_in_string
            elif not self._is_in_string:
                self._depth += {b"{": 1, b"}": -1}.get(mark, 0)
                if mark == b"}" and self._depth == 0:
                    raw = bytes(self.rest[: self._scanned])
                    del self.rest[: self._scanned]
                    self._scanned = 0
                    yield StreamEvent(raw, parse_object(raw[raw.index(b"{") :]))
        # A picture is one long string: what was scanned is not scanned again, but for a backslash that waits for its letter.
        self._scanned = max(self._scanned, len(self.rest) - self.rest.endswith(b"\\"))

    def end(self) -> Iterator[StreamEvent]:
        """Yield what stands behind the last object."""
        if self.rest:
            yield StreamEvent(bytes(self.rest), None)
        self.rest.clear()
