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

from pagein.context.salience.lines import Reader
from pagein.context.salience.tracker import Line, Memo
from pagein.tokens import TokenCounter

BARE = 0.7
"""What an identifier by itself is worth beside one in a line that says what it is about."""

ASKED, DONE, FAILED, DECIDED = 0.5, 0.2, 0.05, 0.1
"""Shares of an extract that are kept for what the user asked, what was done, what failed, what was decided; newest first.

The user's words have a share only in an extract of a span of its own: elsewhere they stand beside it, or are clipped.
At .15 and .1 for what was done and what failed, agents did again what had failed (``python -m benchmarks degrade``: .2 a run).
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


class Chosen(NamedTuple):
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
    """Something that may stay in sight: a line, or a name by itself."""

    key: str
    text: str
    order: int
    names: tuple[str, ...]
    is_line: bool


Offer = tuple[float, int, bool, str]
"""What a line or a name loses a token by not being taken, so that the best comes first; its order, which it is, its key."""


@dataclass(slots=True)
class Choice:
    """A greedy choice under way: what there is, what is still to gain, and what is left to spend."""

    counter: TokenCounter
    left: int
    named: int
    worth: dict[str, float]
    lines: Mapping[str, Line]
    worths: Mapping[str, float]
    heap: list[Offer] = field(default_factory=list)

    def offer_all(self, lines: Iterable[str], names: Iterable[tuple[int, str]]) -> None:
        """Put these lines and names on the heap by what each gains a token now; what gains nothing is left out."""
        rate, every = self.rate, self.lines
        for key in lines:
            gain = rate(key, True)
            if gain > 0:
                self.heap.append((-gain, every[key].order, True, key))
        for order, name in names:
            gain = rate(name, False)
            if gain > 0:
                self.heap.append((-gain, order, False, name))
        heapq.heapify(self.heap)

    def rate(self, key: str, is_line: bool) -> float:
        """Expected needs met a token, by a line or by a name."""
        known = self.worth.get
        if not is_line:
            return known(key, 0.0) / ((1.5 + len(key) / 3.5) / BARE)
        line, gain = self.lines[key], self.worths[key]
        for name in line.names:
            gain += known(name, 0.0)
        return gain / (4 + len(line.text) / 3.5)

    def take(self) -> Iterator[Candidate]:
        """The best by worth a token, one after the other, until the tokens are spent."""
        misfits, heap = 0, self.heap
        while heap and self.left > LEAST_LEFT and misfits < MOST_MISFITS:
            offered, order, is_line, key = heap[0]
            rate = self.rate(key, is_line)
            if 0 < rate < -offered * 0.999:
                # Something taken since covers part of what this was worth: it waits its new turn.
                heapq.heapreplace(heap, (-rate, order, is_line, key))
                continue
            heapq.heappop(heap)
            if rate <= 0:
                continue
            text, names = (self.lines[key].text, self.lines[key].names) if is_line else (key, (key,))
            cost = self.counter.text(text) + 2
            if not is_line and cost > self.named:
                continue
            misfits += cost > self.left
            if cost <= self.left:
                self.left -= cost
                self.named -= 0 if is_line else cost
                each = Candidate(key, text, order, names, is_line)
                self.cover(each)
                yield each

    def cover(self, each: Candidate) -> None:
        """The names of a line taken are worth nothing more; a name by itself is worth what grounding it adds."""
        for name in each.names:
            if each.is_line:
                self.worth.pop(name, None)
            else:
                self.worth[name] *= 1 - BARE

    def reserve(self, newest: Iterable[tuple[str, Line]], tokens: int) -> Iterator[Candidate]:
        """Those of these lines that are short, in their order, until ``tokens`` are spent."""
        for key, line in newest:
            cost = self.counter.text(line.text) + 3
            if cost > tokens:
                break
            if cost <= MOST_RESERVED:
                each = Candidate(key, line.text, line.order, line.names, is_line=True)
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
    lines = dict(_out_of_sight(memo.lines, sight.lines, within))
    choice = Choice(counter, tokens, int(tokens * NAMED), worth, lines, memo.worths(line_worth))
    deeds = _out_of_sight(memo.deeds, sight.lines, within)
    held = tuple(_held(choice, deeds, tokens, asked=within is not None))
    kept = {each.key for each in held}
    names = _names(memo, worth, sight.named)
    if within is not None:
        near = {name for each in lines.values() for name in each.names}
        names = ((order, name) for order, name in names if name in near)
    choice.offer_all((key for key in lines if key not in kept), names)
    return _extract(memo, [*held, *choice.take()])


def _out_of_sight(
    table: Mapping[str, Line], shown: Collection[str], within: tuple[int, int] | None
) -> Iterator[tuple[str, Line]]:
    """The lines of a table that are not in sight, last seen ``within`` the positions, in their order."""
    first, last = within or (0, math.inf)
    for key, each in table.items():
        if first <= each.position < last and key not in shown:
            yield key, each


def _names(memo: Memo, worth: Iterable[str], shown: Collection[str]) -> Iterator[tuple[int, str]]:
    """The identifiers that are not in sight and say something by themselves; a number does where the agent wrote it."""
    known = memo.names
    for order, name in enumerate(worth):
        if name not in shown:
            use = known[name].use
            if not name.isdigit() or use.argued > 0 or use.said:
                yield order, name


def _held(
    choice: Choice, deeds: Iterable[tuple[str, Line]], tokens: int, *, asked: bool
) -> Iterator[Candidate]:
    """What has its share whatever it is worth: what the user asked, what was done, what failed, what was decided."""
    every = choice.lines.items()
    if asked:
        yield from choice.reserve(_newest(each for each in every if each[1].asks), int(tokens * ASKED))
    yield from choice.reserve(_newest(each for each in every if each[1].leads), int(tokens * DONE))
    yield from choice.reserve(_newest(each for each in every if each[1].fails), int(tokens * FAILED))
    yield from choice.reserve(_newest(each for each in every if each[1].decides), int(tokens * DECIDED))
    yield from choice.reserve(deeds, int(tokens * LONG_AGO))


def _newest(lines: Iterable[tuple[str, Line]]) -> list[tuple[str, Line]]:
    return sorted(lines, key=lambda each: -each[1].order)


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
