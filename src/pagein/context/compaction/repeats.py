"""Repeats: older results that a newer one in view repeats or replaces, each left as one line that points to it. Pure.

The same file read again, the same command run again: nothing is lost, as the lines stand in the newer result, those that
are gone since beside the line, and the older result behind its handle. A newer screenshot replaces an older one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from pagein.context.compaction.base import is_stubbed, iter_observations
from pagein.context.compaction.policies.mask import MASK_MIN_CHARS, masked_line
from pagein.context.salience.lines import LineParser
from pagein.context.tool_rules import Tools
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.entries import Replacement, Stub
from pagein.events.handles import observation_handle
from pagein.events.quoting import MARK
from pagein.events.steps import ActionStep, Text, ToolCall, as_parts, as_text

SAME_CALL_SHARE, OTHER_CALL_SHARE = 0.5, 0.8
"""Share of an older result that a newer one has to repeat, in characters of its lines: one of the same call, of another."""

COMPARED_RESULTS = 3
"""Newer results that an older one is compared with: those that have most of its lines."""

_NUMBER = re.compile(
    r"(?i)(?<![\w./-])(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.,]*Z?)?|\d(?:[.,:]?\d)*(?:[a-z%]{1,3}\d{0,4}){0,4})(?![\w/-])"
)

SHOWN_LINES, SHOWN_CHARS = 8, 400
"""Lines that are gone since, and their characters, up to which they stand in the line's place."""


@dataclass(frozen=True)
class Result:
    """A result in view: its call, its text and its lines."""

    first: int
    index: int
    call: ToolCall
    text: str
    lines: tuple[tuple[str, str], ...]
    """The lines: their text without line numbers, and as they are shown."""
    images: tuple[object, ...]

    @cached_property
    def keys(self) -> Counter[str]:
        """The lines without line numbers, and how often each comes."""
        return Counter(key for key, _ in self.lines)

    @cached_property
    def kinds(self) -> Counter[str]:
        """The lines without times, ages and other numbers that stand alone; none where they then tell nothing apart."""
        kinds = Counter(kind_of(key) for key, _ in self.lines)
        return kinds if len(kinds) > len(self.keys) * SAME_CALL_SHARE else Counter()

    @property
    def handle(self) -> str:
        """The handle of the result."""
        return observation_handle(self.first, self.index)

    def is_same_call(self, other: Result) -> bool:
        """True if both answer the same call."""
        return self.call.name == other.call.name and self.call.arguments == other.call.arguments


@dataclass(frozen=True)
class NewerResults:
    """The results that stay in view behind a place: by their lines, the newest of each call, the newest of each state."""

    by_line: dict[str, list[Result]] = field(default_factory=dict)
    by_call: dict[tuple[str, str], Result] = field(default_factory=dict)
    by_state: dict[str, Result] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Add a result that stays."""
        self.by_call.setdefault((result.call.name, result.call.arguments), result)
        for key in result.keys:
            self.by_line.setdefault(key, []).append(result)


def fold_repeats(view: View, start: int) -> Iterator[Replacement]:
    """Replace the results from ``start`` on that a newer one repeats, wholly or mostly, by a line with both handles."""
    newer, folded = NewerResults(), list[Replacement]()
    for entry in reversed(view.run[bisect_left(view.run, start, key=lambda entry: entry.first) :]):
        stubs = list[Stub]()
        for result in _results(entry, view.tracker.parser):
            text = None if entry.first in view.important else _stub_text(result, newer, view.tools)
            if text is None:
                newer.add(result)
            else:
                stubs.append(Stub("observation", result.index, text, "mask"))
        if stubs:
            folded.append(Replacement(entry.first, entry.last, tuple(stubs)))
    yield from reversed(folded)


def _stub_text(result: Result, newer: NewerResults, tools: Tools) -> str | None:
    """Return what stands for a result that a newer one repeats or replaces, else None and remember the state it shows."""
    repeat = _find_repeat(result, newer.by_line)
    if repeat is not None:
        return _repeat_text(result, repeat)
    poll = newer.by_call.get((result.call.name, result.call.arguments))
    if poll is not None and _is_polled(result, poll):
        return _repeat_text(result, poll, but_numbers=True)
    state = tools.state_of(result.call)
    standing = newer.by_state.setdefault(state, result) if state else result
    return None if standing is result else _masked_result(result, f"{standing.handle} is newer")


def _is_polled(result: Result, newer: Result) -> bool:
    """True if a newer result of the same call has most of the lines, but for the numbers in them."""
    share = sum(len(kind) for kind in result.kinds if kind in newer.kinds)
    return share >= max(1, sum(map(len, result.kinds)) * SAME_CALL_SHARE) and result.images == newer.images


def _results(entry: ViewEntry, parser: LineParser) -> Iterator[Result]:
    """Yield the results of an action that are shown as recorded and are long enough, the last one first."""
    if not isinstance(entry.item, ActionStep):
        return
    for index, observation in reversed(list(iter_observations(entry))):
        text = as_text(observation.content)
        images = tuple(part for part in as_parts(observation.content) if not isinstance(part, Text))
        if is_stubbed(entry, index) or not (images or len(text) > MASK_MIN_CHARS):
            continue
        parsed = (line for line in parser.parse_text(text) if line.key)
        # An empty line behind its number and a tab is left out.
        lines = tuple(
            (line.key, line.raw.strip()) for line in parsed if not (line.key.isdigit() and line.raw[-1:] == "\t")
        )
        yield Result(entry.first, index, entry.item.tool_calls[index], text, lines, images)


def _find_repeat(result: Result, newest_with: Mapping[str, list[Result]]) -> Result | None:
    """Return the newer result that has most of the lines of this one, the newest of equals; None if none has enough."""
    shares = Counter[int]()
    candidates: dict[int, Result] = {}
    for key in result.keys:
        for newer in islice(newest_with.get(key, ()), COMPARED_RESULTS):
            candidates[id(newer)] = newer
            shares[id(newer)] += len(key)
    if not shares:
        return None
    ((number, share),) = shares.most_common(1)
    newer = candidates[number]
    least = SAME_CALL_SHARE if newer.is_same_call(result) else OTHER_CALL_SHARE
    is_repeat = share >= sum(map(len, result.keys)) * least and result.images == newer.images
    return newer if is_repeat else None


def _repeat_text(result: Result, newer: Result, *, but_numbers: bool = False) -> str:
    """Return the line that stands for a result, and under it what is gone since, where that is little."""
    older_lines, newer_lines = (result.kinds, newer.kinds) if but_numbers else (result.keys, newer.keys)
    missing, added = older_lines - newer_lines, (newer_lines - older_lines).total()
    if not missing and not added and not but_numbers:
        is_same = [key for key, _ in result.lines] == [key for key, _ in newer.lines]
        why = "has the same" if is_same else "has the same lines in another order"
        return masked_line(result.text, result.handle, f"{newer.handle} {why}")
    again = "has it again, but for numbers" if but_numbers else "has it again"
    why = f"{newer.handle} {again}, without {missing.total()} of its lines, with {added} others"
    head = masked_line(result.text, result.handle, why)
    shown = {kind_of(key) if but_numbers else key: line for key, line in result.lines}
    gone = [shown[key] for key in missing.elements()]
    is_little = len(gone) <= SHOWN_LINES and sum(map(len, gone)) <= SHOWN_CHARS
    return "\n".join((head, *(MARK + line for line in gone))) if is_little else head


def kind_of(line: str) -> str:
    """Return a line without the times, ages and other numbers that stand alone in it.

    >>> kind_of("api-7 1/1 Running 0 3d2h"), kind_of('"progress": 40,')
    ('api-7 1/1 Running # #', '"progress": #,')
    """
    return _NUMBER.sub("#", line)


def _masked_result(result: Result, why: str) -> str:
    """Return the line that stands for a result and says why."""
    if len(result.text) > MASK_MIN_CHARS:
        return masked_line(result.text, result.handle, why)
    return f"[{len(result.images)} images masked: {result.handle}; {why}]"
