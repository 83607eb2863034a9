"""A request as it is measured: its canonical JSON as a provider's cache sees it, its tokens, what a model reads in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagein.context.view.layout import messages_of
from pagein.evaluation.needs import Reading
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, Observation
from pagein.formats import Format, Item
from pagein.tokens import TokenCounter
from pagein.tokens.requests import REQUEST, message_tokens

Wire = Mapping[str, Any]
"""One message in a provider's spelling."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a request, read once."""

    wire: Wire
    canonical: str
    role: str
    tokens: int
    reading: Reading
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    speaks: bool
    """True where it holds anything but answers."""


@dataclass(slots=True)
class Scale:
    """Weighs messages of one format, each different one once; equal messages are the same ``Said``."""

    counter: TokenCounter
    format: Format
    _known: dict[str, Said] = field(default_factory=dict)

    def weigh(self, wire: Wire) -> Said:
        """The message, read. Raises FormatError for what is not of the format."""
        canonical = json.dumps(wire, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        found = self._known.get(canonical)
        if found is None:
            found = self._known[canonical] = self._read(wire, canonical)
        return found

    def request(self, messages: Iterable[Wire]) -> tuple[Said, ...]:
        """A whole request, message by message."""
        return tuple(self.weigh(each) for each in messages)

    def _read(self, wire: Wire, canonical: str) -> Said:
        # A system prompt that stands apart from the messages is measured as the first of them.
        apart = "role" not in wire and "system" in wire
        items = self.format.parse({**wire, "messages": []} if apart else [wire])
        return Said(
            wire,
            canonical,
            "system" if apart else str(wire.get("role", "")),
            sum(message_tokens(as_message(item), self.counter) for item in items),
            Reading.of(items),
            tuple(call.id for item in items if isinstance(item, ActionStep) for call in item.tool_calls),
            tuple(item.call_id for item in items if isinstance(item, Observation)),
            not items or any(not isinstance(item, Observation) for item in items),
        )


def as_message(item: Item) -> Message:
    """One thing said, as a message that can be counted."""
    match item:
        case Observation(call_id=call_id, content=content, extra=extra):
            return Message("tool", content, call_id=call_id, extra=extra)
        case ActionStep(content=spoken, tool_calls=calls, extra=extra):
            return Message("assistant", spoken, calls, extra=extra)
        case _:
            return messages_of(item)[0]


def tokens_of(request: Iterable[Said]) -> int:
    """Tokens of the whole request."""
    return REQUEST + sum(each.tokens for each in request)


def canonical(request: Iterable[Said]) -> str:
    """The request as canonical JSON."""
    return f"[{','.join(each.canonical for each in request)}]"


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


def orphans(request: Sequence[Said]) -> int:
    """How many answers lack their call right before them, and how many calls their answer."""
    found = 0
    waiting: list[str] = []
    for said in request:
        for answer in said.answers:
            if answer in waiting:
                waiting.remove(answer)
            else:
                found += 1
        if said.speaks:
            found += len(waiting)
            waiting = list(said.calls)
    return found + len(waiting)
