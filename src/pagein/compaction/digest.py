"""The extractive digest: which lines of what leaves stay in sight, chosen by need covered per token.

A line is worth the chance that its identifiers, or the line itself, are needed soon and are not in sight already;
lines are taken greedily by worth a token, each identifier's chance counted once (weighted coverage; the greedy choice
is within 1 - 1/e of the best, Nemhauser 1978).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pagein.lexing import identifiers, words
from pagein.tokens import TokenCounter
from pagein.view.memo import Line, Memo, bare

BARE = 0.6
"""What an identifier by itself is worth beside one in a line that says what it is about."""

DONE, FAILED = 0.15, 0.1
"""Shares of an extract that are kept for what was done and for what failed, newest first."""

MOST_RESERVED = 60
"""Tokens beyond which a line is not kept for its kind alone."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A line that stays in sight, and where it came from: ``mark`` is ``>`` for what was done, ``!`` for an error."""

    position: int
    order: int
    text: str
    mark: str


def grounds(line: str, name: str) -> bool:
    """True where a line says enough beside a name: three other words, or all it has."""
    return len(set(words(line.replace(name, " ")))) >= 3


@dataclass(frozen=True, slots=True)
class Sight:
    """What is in sight already: lines, identifiers with words that ground them, and identifiers by themselves."""

    lines: frozenset[str]
    grounded: frozenset[str]
    named: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Sight:
        """What the texts show."""
        lines: set[str] = set()
        grounded: set[str] = set()
        named: set[str] = set()
        for text in texts:
            for raw in text.splitlines():
                lines.add(bare(raw))
                for name in identifiers(raw):
                    named.add(name)
                    if name not in grounded and grounds(raw, name):
                        grounded.add(name)
        return cls(frozenset(lines), frozenset(grounded), frozenset(named))


@dataclass(frozen=True, slots=True)
class Extract:
    """What stays in sight: lines in the order of the run, and identifiers for which no line found room."""

    lines: tuple[Chosen, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class Choice:
    """A greedy choice under way: what is still to gain, and what is left to spend."""

    memo: Memo
    counter: TokenCounter
    left: int
    worth: dict[str, float]
    line_worth: float
    heap: list[tuple[float, int, str, bool]] = field(default_factory=list)

    def offer(self, key: str, order: int, *, is_line: bool) -> None:
        """Put a line or a name on the heap by what it gains a token now; nothing where it gains nothing."""
        rate = self.rate(key, is_line=is_line)
        if rate > 0:
            heapq.heappush(self.heap, (-rate, order, key, is_line))

    def rate(self, key: str, *, is_line: bool) -> float:
        """Expected needs met a token."""
        if not is_line:
            return BARE * self.worth.get(key, 0.0) / (1.5 + len(key) / 3.5)
        line = self.memo.lines[key]
        gain = sum(self.worth.get(name, 0.0) for name in line.names)
        return (gain + self.line_worth * self.memo.line_chance(key)) / (4 + len(line.text) / 3.5)

    def take(self) -> Iterator[tuple[str, bool]]:
        """The best by worth a token, one after the other, until the tokens are spent."""
        while self.heap and self.left > 8:
            rate, order, key, is_line = heapq.heappop(self.heap)
            if self.rate(key, is_line=is_line) < -rate * 0.999:
                # Something taken since covers part of what this was worth: it waits its new turn.
                self.offer(key, order, is_line=is_line)
                continue
            text = self.memo.lines[key].text if is_line else key
            cost = self.counter.text(text) + 2
            if cost > self.left:
                continue
            self.left -= cost
            if is_line:
                self.cover(key)
            else:
                self.worth[key] *= 1 - BARE
            yield key, is_line

    def cover(self, key: str) -> None:
        """The names of a line taken are worth nothing more."""
        for name in self.memo.lines[key].names:
            self.worth.pop(name, None)

    def reserve(self, lines: Iterable[tuple[str, Line]], tokens: int) -> Iterator[str]:
        """The newest of these lines that are short, until ``tokens`` are spent."""
        for key, line in sorted(lines, key=lambda pair: -pair[1].order):
            cost = self.counter.text(line.text) + 3
            if cost > tokens:
                break
            if cost <= MOST_RESERVED:
                tokens -= cost
                self.left -= cost
                self.cover(key)
                yield key


def choose(
    memo: Memo,
    tokens: int,
    counter: TokenCounter,
    *,
    visible: Iterable[str],
    line_worth: float = 0.3,
) -> Extract:
    """Lines and identifiers of the run, not among the visible texts, worth at most ``tokens`` tokens of sight."""
    sight = Sight.of(visible)
    worth = {
        name: memo.name_chance(name) * (1 - BARE if name in sight.named else 1)
        for name in memo.names
        if name not in sight.grounded
    }
    choice = Choice(memo, counter, tokens, worth, line_worth)
    open_to = {key: line for key, line in memo.lines.items() if key not in sight.lines}
    held = [
        *choice.reserve(((key, each) for key, each in open_to.items() if each.leads), int(tokens * DONE)),
        *choice.reserve(((key, each) for key, each in open_to.items() if each.fails), int(tokens * FAILED)),
    ]
    for key, line in open_to.items():
        if key not in held:
            choice.offer(key, line.order, is_line=True)
    for order, name in enumerate(worth):
        if name not in sight.named:
            choice.offer(name, order, is_line=False)
    taken = list(choice.take())
    lines = [memo.lines[key] for key in (*held, *(key for key, is_line in taken if is_line))]
    said = {name for line in lines for name in line.names}
    return Extract(
        tuple(sorted(map(_chosen, lines), key=lambda each: (each.position, each.order))),
        tuple(key for key, is_line in taken if not is_line and key not in said),
    )


def _chosen(line: Line) -> Chosen:
    return Chosen(line.position, line.order, line.text, "> " if line.leads else "! " if line.fails else "")
