"""Measured requests: canonical JSON, as a provider's cache compares it, tokens and text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagein.context.view.layout import messages_of
from pagein.evaluation.needs import MessageText
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, Observation
from pagein.formats import Format, Item
from pagein.tokens import TokenCounter
from pagein.tokens.counter import REQUEST_TOKENS, message_tokens

Wire = Mapping[str, Any]
"""One message in a provider's format."""


@dataclass(frozen=True, slots=True)
class MeasuredMessage:
    """One message of a request, measured once."""

    wire: Wire
    canonical: str
    role: str
    tokens: int
    reading: MessageText
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    has_speech: bool
    """True where it has anything besides tool results."""


@dataclass(slots=True)
class Scale:
    """Measures messages of one format; equal messages give the same ``MeasuredMessage``."""

    counter: TokenCounter
    format: Format
    _cache: dict[str, MeasuredMessage] = field(default_factory=dict)

    def measure(self, wire: Wire) -> MeasuredMessage:
        """Measure a message. Raises FormatError where it does not have the format."""
        canonical = json.dumps(wire, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        message = self._cache.get(canonical)
        if message is None:
            message = self._cache[canonical] = self._measure_new(wire, canonical)
        return message

    def measure_request(self, messages: Iterable[Wire]) -> tuple[MeasuredMessage, ...]:
        """Measure a request, message by message."""
        return tuple(self.measure(message) for message in messages)

    def _measure_new(self, wire: Wire, canonical: str) -> MeasuredMessage:
        # A separate system prompt is measured as the first message.
        is_system = "role" not in wire and "system" in wire
        items = self.format.parse({**wire, "messages": []} if is_system else [wire])
        return MeasuredMessage(
            wire,
            canonical,
            "system" if is_system else str(wire.get("role", "")),
            sum(message_tokens(as_message(item), self.counter) for item in items),
            MessageText.from_items(items),
            tuple(call.id for item in items if isinstance(item, ActionStep) for call in item.tool_calls),
            tuple(item.call_id for item in items if isinstance(item, Observation)),
            not items or any(not isinstance(item, Observation) for item in items),
        )


def as_message(item: Item) -> Message:
    """Convert an item to a message, for counting its tokens."""
    match item:
        case Observation(call_id=call_id, content=content, extra=extra):
            return Message("tool", content, call_id=call_id, extra=extra)
        case ActionStep(content=text, tool_calls=calls, extra=extra):
            return Message("assistant", text, calls, extra=extra)
        case _:
            return messages_of(item)[0]


def request_tokens(request: Iterable[MeasuredMessage]) -> int:
    """Count the tokens of a request."""
    return REQUEST_TOKENS + sum(message.tokens for message in request)


def canonical_json(request: Iterable[MeasuredMessage]) -> str:
    """Render a request as canonical JSON."""
    return f"[{','.join(message.canonical for message in request)}]"


def prefix_share(earlier: str, later: str) -> float:
    """The share of the earlier request that is a prefix of the later one, in characters.

    >>> prefix_share("abcd", "abxy")
    0.5
    """
    low, high = 0, min(len(earlier), len(later))
    while low < high:
        middle = (low + high + 1) // 2
        if earlier[low:middle] == later[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low / len(earlier) if earlier else 1.0


def count_orphans(request: Sequence[MeasuredMessage]) -> int:
    """Count the results without their call right before them, and the calls without their result."""
    count = 0
    waiting: list[str] = []
    for message in request:
        for answer in message.answers:
            if answer in waiting:
                waiting.remove(answer)
            else:
                count += 1
        if message.has_speech:
            count += len(waiting)
            waiting = list(message.calls)
    return count + len(waiting)
