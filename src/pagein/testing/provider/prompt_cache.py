"""A provider's prompt cache: what of a request was sent before, and what it costs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagein.tokens.encodings import Encoding

CACHED_PRICE, OTHER_PRICE = 0.1, 1.25
"""The prices of a token that was read from the cache, and of any other, as shares of the plain price."""

MARKER_LOOKBACK = 20
"""Blocks before a marker in which a shorter cached prefix is found, as Anthropic documents it."""

MIN_CACHED_TOKENS = 1_024
PART_TOKENS = 4
"""Tokens that a provider adds for the frame of a message or block."""


@dataclass(frozen=True, slots=True)
class Part:
    """A tool, a system block or a block of a message: its text without markers, and whether it has a marker."""

    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """The tokens of a request: all, those read from the cache, those written to it, and those sent before in this order."""

    tokens: int
    cached: int
    written: int
    shared: int

    @property
    def price(self) -> float:
        """The price of the input, in tokens at the plain price."""
        return CACHED_PRICE * self.cached + OTHER_PRICE * (self.tokens - self.cached)


@dataclass(slots=True)
class PromptCache:
    """The prefixes that a provider has cached. With ``explicit`` only those that a marker ends, as Anthropic does."""

    written: set[bytes] = field(default_factory=set)
    sent: set[bytes] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict)
    _encoding: Encoding = field(default_factory=lambda: Encoding("o200k_base"))

    def count(self, body: Mapping[str, Any]) -> int:
        """Count the tokens of a request."""
        return sum(map(self._count, split_request(body)))

    def look_up(self, body: Mapping[str, Any], *, explicit: bool) -> Reading:
        """Read the request's prefix from the cache, and write what it asks to be written."""
        parts = list(split_request(body))
        counts = [self._count(part) for part in parts]
        chain = list(_chain(parts))
        shared = next((at + 1 for at in range(len(chain) - 1, -1, -1) if chain[at] in self.sent), 0)
        marks = [at for at, part in enumerate(parts) if part.is_marked] if explicit else list(range(len(parts)))
        cached = self._longest_cached(chain, marks, lookback=MARKER_LOOKBACK if explicit else 0)
        if sum(counts[:cached]) < MIN_CACHED_TOKENS:
            cached = 0
        last = marks[-1] + 1 if marks else 0
        self.sent.update(chain)
        self.written.update(chain[at] for at in marks)
        return Reading(
            sum(counts), sum(counts[:cached]), sum(counts[cached:last]) if last > cached else 0, sum(counts[:shared])
        )

    def _longest_cached(self, chain: Sequence[bytes], marks: Sequence[int], *, lookback: int) -> int:
        for mark in reversed(marks):
            for at in range(mark, max(-1, mark - lookback - 1), -1):
                if chain[at] in self.written:
                    return at + 1
        return 0

    def _count(self, part: Part) -> int:
        if part.text not in self._counts:
            self._counts[part.text] = self._encoding.text(part.text) + PART_TOKENS
        return self._counts[part.text]


def split_request(body: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a request in the order in which providers cache them: tools, system, messages."""
    for tool in body.get("tools") or ():
        yield _part(tool, "tool")
    for key in ("system", "instructions", "systemInstruction", "system_instruction"):
        if body.get(key):
            system = body[key]
            yield from _content_parts(system.get("parts", [system]) if isinstance(system, Mapping) else system, key)
    rows = next((body[key] for key in ("messages", "input", "contents") if key in body), ())
    for row in [{"role": "user", "content": rows}] if isinstance(rows, str) else rows:
        role = str(row.get("role", row.get("type"))) if isinstance(row, Mapping) else ""
        content = row.get("content", row.get("parts")) if isinstance(row, Mapping) else None
        if isinstance(content, str | list) and content:
            yield from _content_parts(content, role)
            rest = {key: value for key, value in row.items() if key not in ("content", "parts", "role")}
            if rest.get("tool_calls") or rest.get("tool_call_id"):
                yield _part(rest, role)
        else:
            yield _part(row, role)


def _content_parts(content: Any, role: str) -> Iterator[Part]:
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        yield _part(block, role)


def _part(value: Any, role: str) -> Part:
    is_marked = isinstance(value, Mapping) and _has_marker(value)
    plain = _without_marker(value) if is_marked else value
    return Part(f"{role}:{json.dumps(plain, sort_keys=True, ensure_ascii=False)}", is_marked)


def _has_marker(block: Mapping[str, Any]) -> bool:
    inner = block.get("content")
    nested = inner if isinstance(inner, list) else ()
    return "cache_control" in block or any("cache_control" in row for row in nested if isinstance(row, Mapping))


def _without_marker(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_marker(item) for key, item in value.items() if key != "cache_control"}
    return [_without_marker(item) for item in value] if isinstance(value, list) else value


def _chain(parts: Sequence[Part]) -> Iterator[bytes]:
    digest = b""
    for part in parts:
        digest = hashlib.blake2b(digest + part.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        yield digest
