"""The extractive digest: which lines of what leaves stay in sight, chosen by need covered per token.

A line is worth the chance that its identifiers, or the line itself, are needed soon and are not in sight already;
lines are taken greedily by worth a token, each identifier's chance counted once (weighted coverage; the greedy choice
is within 1 - 1/e of the best, Nemhauser 1978).
"""

from __future__ import annotations

import heapq
import math
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from pagein.tokens import TokenCounter
from pagein.view.memo import Line, Memo
from pagein.view.reading import Reader

BARE = 0.7
"""What an identifier by itself is worth beside one in a line that says what it is about."""

ASKED, DONE, FAILED, DECIDED = 0.5, 0.2, 0.05, 0.1
"""Shares of an extract that are kept for what the user asked, what was done, what failed, what was decided; newest first.

The user's words have a share only in an extract of a span of its own: elsewhere they stand beside it, or are clipped.
At .15 and .1 for what was done and what failed, agents did again what had failed (``pagein bench degrade``: .2 a run).
"""

LONG_AGO = 0.15
"""The share that is kept for what was done so long ago that the memo keeps it for that alone, in a run of hundreds of steps.

Without it agents went back to what they had ruled out: 121 to 196 times in a hunt of 400 steps, and 0 with it (3 runs at
a quarter of the full length). Where a run is not as long nothing is aside, and nothing changes.
"""

NAMED = 0.5
"""The share of an extract that identifiers by themselves may take: a list of names crowds out what says something."""

MOST_MISFITS = 32
"""Candidates too long for what is left, after which the choice ends."""

LEAST_LEFT = 8
"""Tokens that are too few for another line."""

MOST_RESERVED = 60
"""Tokens beyond which a line is not kept for its kind alone."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A line that stays in sight, and where it came from: ``mark`` is ``>`` for what was done, ``!`` for an error."""

    position: int
    order: int
    text: str
    mark: str


NOTHING: Mapping[str, Line] = MappingProxyType({})
"""No line is known."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What is in sight already: lines, identifiers with words that ground them, and identifiers by themselves."""

    lines: frozenset[str]
    grounded: frozenset[str]
    named: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str], reader: Reader, known: Mapping[str, Line] = NOTHING) -> Sight:
        """What the texts show; of a line that is ``known`` it counts as it is known."""
        lines: set[str] = set()
        grounded: set[str] = set()
        named: set[str] = set()
        know = known.get
        for each in (line for text in texts for line in reader.text(text)):
            lines.add(each.key)
            line = know(each.key) or each
            if line.names:
                named.update(line.names)
                grounded |= line.grounded
        return cls(frozenset(lines), frozenset(grounded), frozenset(named))


@dataclass(frozen=True, slots=True)
class Extract:
    """What stays in sight: lines in the order of the run, and identifiers for which no line found room."""

    lines: tuple[Chosen, ...] = ()
    names: tuple[str, ...] = ()


class Candidate(NamedTuple):
    """Something that may stay in sight: a line with its own chance, or a name by itself. Made by the thousand."""

    key: str
    text: str
    order: int
    names: tuple[str, ...]
    own: float
    price: float
    is_line: bool


@dataclass(slots=True)
class Choice:
    """A greedy choice under way: what is still to gain, and what is left to spend."""

    counter: TokenCounter
    left: int
    named: int
    worth: dict[str, float]
    heap: list[tuple[float, int, int, Candidate]] = field(default_factory=list)

    def offer_all(self, many: Iterable[Candidate]) -> None:
        """Put all of them on the heap, as ``offer`` does."""
        rated = ((self.rate(each), each) for each in many)
        self.heap += [(-rate, each.order, each.is_line, each) for rate, each in rated if rate > 0]
        heapq.heapify(self.heap)

    def offer(self, each: Candidate) -> None:
        """Put a line or a name on the heap by what it gains a token now; nothing where it gains nothing."""
        rate = self.rate(each)
        if rate > 0:
            heapq.heappush(self.heap, (-rate, each.order, each.is_line, each))

    def rate(self, each: Candidate) -> float:
        """Expected needs met a token."""
        known = self.worth.get
        gain = each.own
        for name in each.names:
            gain += known(name, 0.0)
        return gain / each.price

    def take(self) -> Iterator[Candidate]:
        """The best by worth a token, one after the other, until the tokens are spent."""
        misfits = 0
        while self.heap and self.left > LEAST_LEFT and misfits < MOST_MISFITS:
            rate, _, _, each = heapq.heappop(self.heap)
            if self.rate(each) < -rate * 0.999:
                # Something taken since covers part of what this was worth: it waits its new turn.
                self.offer(each)
                continue
            cost = self.counter.text(each.text) + 2
            if not each.is_line and cost > self.named:
                continue
            misfits += cost > self.left
            if cost <= self.left:
                self.left -= cost
                self.named -= 0 if each.is_line else cost
                self.cover(each)
                yield each

    def cover(self, each: Candidate) -> None:
        """The names of a line taken are worth nothing more; a name by itself is worth what grounding it adds."""
        for name in each.names:
            if each.is_line:
                self.worth.pop(name, None)
            else:
                self.worth[name] *= 1 - BARE

    def reserve(self, lines: Iterable[Candidate], tokens: int) -> Iterator[Candidate]:
        """The newest of these lines that are short, until ``tokens`` are spent."""
        for each in sorted(lines, key=lambda each: -each.order):
            cost = self.counter.text(each.text) + 3
            if cost > tokens:
                break
            if cost <= MOST_RESERVED:
                tokens -= cost
                self.left -= cost
                self.cover(each)
                yield each


def choose(
    memo: Memo,
    tokens: int,
    counter: TokenCounter,
    *,
    visible: Iterable[str] | Sight,
    within: tuple[int, int] | None = None,
    line_worth: float = 0.38,
) -> Extract:
    """Lines and identifiers of the run, not among the visible texts, worth at most ``tokens`` tokens of sight.

    ``within`` narrows it to lines last seen at positions ``[first, last)``, and to the identifiers in them.
    """
    sight = visible if isinstance(visible, Sight) else Sight.of(visible, memo.reader, memo.lines)
    worth = {
        name: chance * (1 - BARE) if name in sight.named else chance
        for name, chance in memo.name_chances().items()
        if name not in sight.grounded
    }
    choice = Choice(counter, tokens, int(tokens * NAMED), worth)
    lines = {each.key: each for each in _lines(memo, sight.lines, line_worth, within)}
    near = None if within is None else {name for each in lines.values() for name in each.names}
    deeds = tuple(_deeds(memo, sight.lines, within))
    held = tuple(_held(memo, choice, lines.values(), deeds, tokens, asked=within is not None))
    for each in held:
        lines.pop(each.key, None)
    names = (each for each in _names(memo, worth, sight.named) if near is None or each.key in near)
    choice.offer_all((*lines.values(), *names))
    return _extract(memo, [*held, *choice.take()])


def _lines(
    memo: Memo, shown: Collection[str], worth: float, within: tuple[int, int] | None
) -> Iterator[Candidate]:
    """The lines that are not in sight, each with what it is worth by itself."""
    first, last = within or (0, math.inf)
    worths = memo.worths(worth)
    for key, each in memo.lines.items():
        if first <= each.position < last and key not in shown:
            text = each.text
            yield Candidate(key, text, each.order, each.names, worths[key], 4 + len(text) / 3.5, True)


def _deeds(memo: Memo, shown: Collection[str], within: tuple[int, int] | None) -> Iterator[Candidate]:
    """What was done so long ago that it stays for having been done alone."""
    first, last = within or (0, math.inf)
    for key, each in memo.deeds.items():
        if first <= each.position < last and key not in shown:
            yield Candidate(key, each.text, each.order, each.names, 0.0, math.inf, True)


def _names(memo: Memo, worth: Iterable[str], shown: Collection[str]) -> Iterator[Candidate]:
    """The identifiers that are not in sight and say something by themselves; a number does where the agent wrote it."""
    known = memo.names
    for order, name in enumerate(worth):
        if name not in shown:
            use = known[name].use
            if not name.isdigit() or use.argued > 0 or use.said:
                yield Candidate(name, name, order, (name,), 0.0, (1.5 + len(name) / 3.5) / BARE, False)


def _held(
    memo: Memo,
    choice: Choice,
    lines: Collection[Candidate],
    deeds: Collection[Candidate],
    tokens: int,
    *,
    asked: bool,
) -> Iterator[Candidate]:
    """What has its share whatever it is worth: what the user asked, what was done, what failed, what was decided."""
    known = memo.lines
    if asked:
        yield from choice.reserve((each for each in lines if known[each.key].asks), int(tokens * ASKED))
    yield from choice.reserve((each for each in lines if known[each.key].leads), int(tokens * DONE))
    yield from choice.reserve((each for each in lines if known[each.key].fails), int(tokens * FAILED))
    yield from choice.reserve((each for each in lines if known[each.key].decides), int(tokens * DECIDED))
    yield from choice.reserve(deeds, int(tokens * LONG_AGO))


def _extract(memo: Memo, taken: Sequence[Candidate]) -> Extract:
    said = {name for each in taken if each.is_line for name in each.names}
    known = ChainMap(memo.lines, memo.deeds)
    lines = {each.key: known[each.key] for each in taken if each.is_line}
    return Extract(
        tuple(sorted(map(_chosen, lines.values()), key=lambda each: (each.position, each.order))),
        tuple(each.key for each in taken if not each.is_line and each.key not in said),
    )


def _chosen(line: Line) -> Chosen:
    return Chosen(line.position, line.order, line.text, _mark(line))


def _mark(line: Line) -> str:
    if line.asks:
        return "user: "
    return "> " if line.leads else "! " if line.fails else ""
