"""What the model sees now: a value folded from the log, with the cost and the reason of every token in it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pagein.context.salience.tracker import Memo
from pagein.context.view.layout import Item, closing, lay_out, mended
from pagein.events.entries import Stub, Tier
from pagein.events.handles import range_handle
from pagein.events.messages import Message
from pagein.tokens import TokenCounter
from pagein.tokens.requests import request_tokens

ShownAs = Literal["system", "pin", "user", "whole", "note", "recalled", "facts"] | Tier
"""By which tier something is in the view."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One thing in the view: what stands for the steps at positions ``[first, last)``, what it costs, and why."""

    first: int
    last: int
    item: Item
    tier: ShownAs
    why: str
    messages: tuple[Message, ...]
    tokens: int
    ids: tuple[str, ...] = ()
    stubs: tuple[Stub, ...] = ()

    @property
    def handle(self) -> str:
        """The handle that gives back the original of what is shown."""
        return range_handle(self.first, self.last)


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the report: this many tokens of the request are here, by this tier, for this reason."""

    handle: str
    tier: str
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class Out:
    """Something that is not in the view as it was recorded: its handle, the tier that took it out, and why."""

    handle: str
    tier: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """Every token of the request, and everything that is out. ``lines`` add up to ``tokens``.

    ``problems`` is what went wrong in the background since the memory was opened, each thing once.
    """

    tokens: int
    limit: int
    lines: tuple[Line, ...]
    out: tuple[Out, ...]
    problems: tuple[str, ...] = ()

    def by_tier(self) -> dict[str, int]:
        """Tokens by tier, dearest first."""
        sums: dict[str, int] = {}
        for line in self.lines:
            sums[line.tier] = sums.get(line.tier, 0) + line.tokens
        return dict(sorted(sums.items(), key=lambda pair: -pair[1]))


@dataclass(frozen=True, slots=True)
class View:
    """What the model sees: system prompts, settled pins, then the run in order; its cost in tokens, and the limit.

    ``tail`` is no part of the run: what came back stands behind it and is made afresh for every request, what is known
    stands where it first stood, before what was recorded at its position. Two views are equal when they show the same.
    """

    systems: tuple[Shown, ...]
    kept: tuple[Shown, ...]
    run: tuple[Shown, ...]
    head: int
    tokens: int
    limit: int
    counter: TokenCounter = field(compare=False, repr=False)
    memo: Memo = field(compare=False, repr=False)
    tail: tuple[Shown, ...] = ()

    @property
    def entries(self) -> tuple[Shown, ...]:
        """Everything shown that was recorded, or stands for it, in prompt order."""
        return (*self.systems, *self.kept, *self.run)

    @property
    def shown(self) -> tuple[Shown, ...]:
        """Everything in the request, in its order: the tail where it stands, too."""
        run = list(self.run)
        for each in reversed(self.tail):
            run.insert(bisect_left(run, each.first, key=lambda shown: shown.first), each)
        return (*self.systems, *self.kept, *run)

    @property
    def report(self) -> Report:
        """Every token by tier and reason, and what is out."""
        lines = [Line(each.handle, each.tier, each.tokens, each.why) for each in self.entries]
        lines.extend(Line("", each.tier, each.tokens, each.why) for each in self.tail)
        rest = self.tokens - sum(line.tokens for line in lines)
        lines.append(Line("", "request", rest, "what every request costs beside its messages"))
        return Report(self.tokens, self.limit, tuple(lines), tuple(_out(self.entries)))

    def messages(self) -> tuple[Message, ...]:
        """The request in order, before any provider's spelling."""
        return lay_out(each.messages for each in self.shown)

    def with_tail(self, tail: Sequence[Shown]) -> View:
        """The view with this beside the run, and counted."""
        made = replace(self, tail=tuple(tail))
        return replace(made, tokens=cost(made.shown, self.counter))


def _out(entries: Iterable[Shown]) -> Iterable[Out]:
    for each in entries:
        if each.tier in ("summary", "floor"):
            yield Out(each.handle, each.tier, each.why)
        for stub in each.stubs:
            handle = f"{each.handle}.{stub.index}" if stub.slot == "observation" else each.handle
            yield Out(handle, stub.tier, f"{stub.slot}: {each.why}")


def cost(entries: Sequence[Shown], counter: TokenCounter) -> int:
    """Tokens of the request that shows these entries, what legality adds at its ends included."""
    ends: list[Message] = []
    for each in entries:
        if each.tier != "system":
            ends.extend(mended(each.messages))
            break
    else:
        ends.extend(mended(()))
    if entries:
        ends.extend(closing(entries[-1].messages))
    return request_tokens(ends, counter) + sum(each.tokens for each in entries)
