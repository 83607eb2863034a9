"""Extracts: the lines and names of removed steps that stay in view, selected by expected need per token.

The worth of a line is the chance that its identifiers, or the line itself, are needed soon and are not visible. Lines
are selected greedily by worth per token, and each identifier counts once (weighted coverage; the greedy choice is within
1 - 1/e of the best, Nemhauser 1978).
"""

from __future__ import annotations

import heapq
import math
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from pagein.context.salience.lines import LineParser, strip_line_number
from pagein.context.salience.series import cut_endings, find_series
from pagein.context.salience.tracker import SalienceTracker, TrackedLine
from pagein.events.quoting import quote_lines
from pagein.tokens import TokenCounter

NAME_ALONE_SHARE = 0.7
"""Worth of an identifier alone, relative to one in a line with context."""

REQUEST_SHARE, ACTION_SHARE, DECISION_SHARE = 0.5, 0.2, 0.1
"""Shares of an extract reserved for the newest requests, actions and decisions. What failed has a block of its own.

Requests have a share only in the extract of a range: elsewhere they are verbatim or clipped beside it. With .15 for
actions, agents repeated what had failed (``python -m benchmarks degrade``: .2 times a run).
"""

OLD_ACTION_SHARE = 0.15
"""The share reserved for action lines dropped from the tracker's pool, in runs of hundreds of steps.

Without it agents returned to options they had ruled out: 121 to 196 times in a search of 400 steps, 0 times with it (3
runs, at a quarter of the full length). Shorter runs have no such lines.
"""

NAMES_MAX_SHARE = 0.5
"""The largest share of an extract for identifiers alone: a long list of names displaces lines that say more."""

MAX_MISFITS = 32
"""Candidates too long for the tokens left, after which the selection ends."""

MIN_TOKENS_LEFT = 8
"""Tokens left below which the selection ends."""

RESERVED_LINE_MAX_TOKENS = 60
"""Tokens of a line above which no share is reserved for it."""


class ExtractLine(NamedTuple):
    """A line of an extract and its position in the run; ``mark`` is ``user: ``, ``> `` for an action, ``! `` for a failure or ""."""

    position: int
    order: int
    text: str
    mark: str

    @classmethod
    def of(cls, line: TrackedLine) -> ExtractLine:
        """Return a tracked line as it is shown: quoted where no mark stands before it, as it could pass for another's."""
        mark = "user: " if line.is_request else "> " if line.is_action else "! " if line.is_failure else ""
        return cls(line.position, line.order, line.text if mark else quote_lines(line.text), mark)

    @property
    def with_mark(self) -> str:
        """The line behind its mark."""
        return self.mark + self.text


NO_LINES: Mapping[str, TrackedLine] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class VisibleContent:
    """The visible text: its lines, the identifiers with context in them, and all identifiers."""

    lines: frozenset[str]
    names_with_context: frozenset[str]
    names: frozenset[str]

    @classmethod
    def parse(
        cls, texts: Iterable[str], parser: LineParser, tracked: Mapping[str, TrackedLine] = NO_LINES
    ) -> VisibleContent:
        """Parse texts; a ``tracked`` line counts with its tracked identifiers."""
        lines: set[str] = set()
        names_with_context: set[str] = set()
        names: set[str] = set()
        lookup = tracked.get
        for parsed_line in chain.from_iterable(map(parser.parse_text, texts)):
            lines.add(parsed_line.key)
            line = lookup(parsed_line.key) or parsed_line
            if line.names:
                names.update(line.names)
                names_with_context |= line.names_with_context
        return cls(frozenset(lines), frozenset(names_with_context), frozenset(names))

    @classmethod
    def merge(cls, contents: Sequence[VisibleContent]) -> VisibleContent:
        """Return the union of these contents."""
        return cls(
            frozenset().union(*(content.lines for content in contents)),
            frozenset().union(*(content.names_with_context for content in contents)),
            frozenset().union(*(content.names for content in contents)),
        )


@dataclass(frozen=True, slots=True)
class Extract:
    """An extract: lines in the order of the run, and identifiers whose lines did not fit."""

    lines: tuple[ExtractLine, ...] = ()
    names: tuple[str, ...] = ()


class ExtractCandidate(NamedTuple):
    """A candidate for an extract: a line, or a name alone."""

    key: str
    names: tuple[str, ...]
    is_line: bool


Offer = tuple[float, int, bool, str]
"""An entry of the heap: the negative worth per token, the order, True for a line, the key."""


@dataclass(slots=True)
class GreedySelection:
    """A greedy selection in progress: the candidates, their remaining worth, and the tokens left."""

    counter: TokenCounter
    tokens_left: int
    name_tokens_left: int
    name_worths: dict[str, float]
    lines: Mapping[str, TrackedLine]
    line_worths: Mapping[str, float]
    min_rate: float = 0.0
    alone: float = NAME_ALONE_SHARE
    heap: list[Offer] = field(default_factory=list)

    def offer_all(self, lines: Iterable[str], names: Iterable[tuple[int, str]]) -> None:
        """Put lines and names on the heap by their worth per token; those worth too little are left out."""
        rate, tracked = self.rate, self.lines
        for key in lines:
            gain = rate(key, True)
            if gain > self.min_rate:
                self.heap.append((-gain, tracked[key].order, True, key))
        for order, name in names:
            gain = rate(name, False)
            if gain > self.min_rate:
                self.heap.append((-gain, order, False, name))
        heapq.heapify(self.heap)

    def rate(self, key: str, is_line: bool) -> float:
        """Return the expected needs met per token by a line or a name."""
        worth = self.name_worths.get
        if not is_line:
            return worth(key, 0.0) / ((1.5 + len(key) / 3.5) / self.alone)
        line, gain = self.lines[key], self.line_worths[key]
        for name in line.names:
            gain += worth(name, 0.0)
        return gain / (4 + len(line.text) / 3.5)

    def take(self) -> Iterator[ExtractCandidate]:
        """Yield the best candidates by worth per token until the tokens are spent."""
        misfits, heap = 0, self.heap
        while heap and self.tokens_left > MIN_TOKENS_LEFT and misfits < MAX_MISFITS:
            offered, order, is_line, key = heap[0]
            rate = self.rate(key, is_line)
            if self.min_rate < rate < -offered * 0.999:
                # A selected candidate covers part of its worth: put it back at its new rate.
                heapq.heapreplace(heap, (-rate, order, is_line, key))
                continue
            heapq.heappop(heap)
            if rate <= self.min_rate:
                continue
            text, names = (self.lines[key].text, self.lines[key].names) if is_line else (key, (key,))
            cost = self.counter.text(text) + 2
            if not is_line and cost > self.name_tokens_left:
                continue
            misfits += cost > self.tokens_left
            if cost <= self.tokens_left:
                self.tokens_left -= cost
                self.name_tokens_left -= 0 if is_line else cost
                candidate = ExtractCandidate(key, names, is_line)
                self.cover(candidate)
                yield candidate

    def cover(self, candidate: ExtractCandidate) -> None:
        """Reduce the worth of the names in a selected candidate: to 0 in a line, to that of context for a name alone."""
        for name in candidate.names:
            if candidate.is_line:
                self.name_worths.pop(name, None)
            else:
                self.name_worths[name] *= 1 - self.alone

    def reserve(self, newest: Iterable[tuple[str, TrackedLine]], tokens: int) -> Iterator[ExtractCandidate]:
        """Yield the short lines among these, in order, until ``tokens`` are spent."""
        for key, line in newest:
            cost = self.counter.text(line.text) + 3
            if cost > tokens:
                break
            if cost <= RESERVED_LINE_MAX_TOKENS:
                candidate = ExtractCandidate(key, line.names, is_line=True)
                tokens -= cost
                self.tokens_left -= cost
                self.cover(candidate)
                yield candidate


def select_lines(
    tracker: SalienceTracker,
    tokens: int,
    counter: TokenCounter,
    *,
    visible: Iterable[str] | VisibleContent,
    within: tuple[int, int] | None = None,
    worth: float = 0.0,
    alone: float = NAME_ALONE_SHARE,
    reserves: bool = True,
    focus: frozenset[str] = frozenset(),
) -> Extract:
    """Select the lines and identifiers of the run that are not visible, in at most ``tokens`` tokens.

    ``within`` limits it to lines last seen at positions ``[first, last)``, and to the identifiers in them. With ``worth``
    only what meets as many expected needs per token is selected. ``alone`` is the worth of an identifier alone, relative to
    one in a line. With ``reserves`` the newest requests, actions and decisions have a share, whatever their worth. Lines
    with names of the ``focus`` are likelier.
    """
    if not isinstance(visible, VisibleContent):
        visible = VisibleContent.parse(visible, tracker.parser, tracker.lines)
    chances, worths = tracker.focus_on(focus) if focus else (tracker.name_chances(), tracker.line_worths())
    name_worths = {
        name: chance * (1 - alone) if name in visible.names else chance
        for name, chance in chances.items()
        if name not in visible.names_with_context
    }
    lines = dict(_hidden_lines(tracker.lines, visible.lines, within))
    old_actions = dict(_hidden_lines(tracker.old_actions, visible.lines, within))
    for key, line in cut_endings({**tracker.old_actions, **tracker.lines}, tracker.tools):
        table = lines if key in lines else old_actions
        if strip_line_number(line.text) in visible.lines:
            table.pop(key, None)
        elif reserves and key in table:
            table[key] = line
    line_worths = _join_series(lines, old_actions, worths) if reserves else worths
    selection = GreedySelection(
        counter, tokens, int(tokens * NAMES_MAX_SHARE), name_worths, lines, line_worths, worth, alone
    )
    reserved = (
        tuple(_reserve_shares(selection, old_actions.items(), tokens, requests=within is not None)) if reserves else ()
    )
    reserved_keys = {candidate.key for candidate in reserved}
    names = _offered_names(tracker, name_worths, visible.names)
    if within is not None:
        names_within = {name for line in lines.values() for name in line.names}
        names = ((order, name) for order, name in names if name in names_within)
    selection.offer_all((key for key in lines if key not in reserved_keys), names)
    return _build_extract(ChainMap(lines, old_actions), [*reserved, *selection.take()])


def _join_series(
    lines: dict[str, TrackedLine], old_actions: dict[str, TrackedLine], worths: dict[str, float]
) -> dict[str, float]:
    """Put one line in the place of the calls of each series; return the worths with its own, the largest of theirs."""
    own_worths: dict[str, float] = {}
    for series in find_series(old_actions | lines):
        is_tracked = [lines.pop(key, None) is not None for key in series.keys]
        for key in series.keys:
            old_actions.pop(key, None)
        text = series.line.text
        (lines if any(is_tracked) else old_actions)[text] = series.line
        own_worths[text] = max(worths.get(key, 0.0) for key in series.keys)
    return worths | own_worths


def _hidden_lines(
    table: Mapping[str, TrackedLine], visible_lines: Collection[str], within: tuple[int, int] | None
) -> Iterator[tuple[str, TrackedLine]]:
    """Yield the lines that are not visible and were last seen ``within`` the positions."""
    first, last = within or (0, math.inf)
    for key, line in table.items():
        # In an extract the tool stands before the argument that is the key of a call.
        is_visible = key in visible_lines or (line.is_action and line.text in visible_lines)
        if first <= line.position < last and not is_visible:
            yield key, line


def _offered_names(
    tracker: SalienceTracker, name_worths: Iterable[str], visible_names: Collection[str]
) -> Iterator[tuple[int, str]]:
    """Yield the identifiers that are not visible; a number only if the agent wrote it itself."""
    tracked = tracker.names
    for order, name in enumerate(name_worths):
        if name not in visible_names:
            use = tracked[name].use
            if not name.isdigit() or use.argued > 0 or use.in_prose:
                yield order, name


def _reserve_shares(
    selection: GreedySelection, old_actions: Iterable[tuple[str, TrackedLine]], tokens: int, *, requests: bool
) -> Iterator[ExtractCandidate]:
    """Select the newest lines of each kind that has a reserved share."""
    lines = selection.lines.items()
    kinds = (
        ([pair for pair in lines if requests and pair[1].is_request], REQUEST_SHARE),
        ([pair for pair in lines if pair[1].is_action], ACTION_SHARE),
        ([pair for pair in lines if pair[1].is_decision], DECISION_SHARE),
    )
    for pairs, share in kinds:
        newest = sorted(pairs, key=lambda pair: -pair[1].order)
        yield from selection.reserve(newest, int(tokens * share))
    yield from selection.reserve(old_actions, int(tokens * OLD_ACTION_SHARE))


def _build_extract(tracked: Mapping[str, TrackedLine], candidates: Sequence[ExtractCandidate]) -> Extract:
    names_in_lines = {name for candidate in candidates if candidate.is_line for name in candidate.names}
    lines = {candidate.key: tracked[candidate.key] for candidate in candidates if candidate.is_line}
    extract_lines = sorted(map(ExtractLine.of, lines.values()), key=lambda line: (line.position, line.order))
    alone = (candidate.key for candidate in candidates if not candidate.is_line)
    return Extract(tuple(extract_lines), tuple(name for name in alone if name not in names_in_lines))
