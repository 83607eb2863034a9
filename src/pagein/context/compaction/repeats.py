"""Repeats: older results that a newer one in view repeats or replaces, each left as one line that points to it. Pure.

The same file read again, the same command run again: nothing is lost, as the lines stand in the newer result, those that
are gone since beside the line, and the older result behind its handle. A newer screenshot replaces an older one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from pagein.context.compaction.base import iter_observations
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

SHOWN_LINES, SHOWN_CHARS = 8, 400
"""Lines that are gone since, and their characters, up to which they stand in the line's place."""


@dataclass(frozen=True)
class Result:
    """A result in view: its call, its text and its lines."""

    first: int
    index: int
    call: ToolCall
    text: str
    lines: Mapping[str, str]
    """The lines as they are shown, by their text without line numbers."""
    images: tuple[object, ...]

    @cached_property
    def handle(self) -> str:
        """The handle of the result."""
        return observation_handle(self.first, self.index)

    def is_same_call(self, other: Result) -> bool:
        """True if both answer the same call."""
        return self.call.name == other.call.name and self.call.arguments == other.call.arguments


def fold_repeats(view: View, start: int) -> Iterator[Replacement]:
    """Replace the results from ``start`` on that a newer one repeats, wholly or mostly, by a line with both handles."""
    newest_with: dict[str, list[Result]] = {}
    newest_state: dict[str, Result] = {}
    folded = list[Replacement]()
    for entry in reversed(view.run[bisect_left(view.run, start, key=lambda entry: entry.first) :]):
        stubs = list[Stub]()
        for result in _results(entry, view.tracker.parser):
            text = None if entry.first in view.important else _stub_text(result, newest_with, newest_state, view.tools)
            if text is not None:
                stubs.append(Stub("observation", result.index, text, "mask"))
                continue
            for key in result.lines:
                newest_with.setdefault(key, []).append(result)
        if stubs:
            folded.append(Replacement(entry.first, entry.last, tuple(stubs)))
    yield from reversed(folded)


def _stub_text(
    result: Result, newest_with: Mapping[str, list[Result]], newest_state: dict[str, Result], tools: Tools
) -> str | None:
    """Return what stands for a result that a newer one repeats or replaces, else None and remember the state it shows."""
    repeat = _find_repeat(result, newest_with)
    if repeat is not None:
        return _repeat_text(result, repeat)
    state = tools.state_of(result.call)
    newer = newest_state.setdefault(state, result) if state else result
    return None if newer is result else _masked_result(result, f"{newer.handle} is newer")


def _results(entry: ViewEntry, parser: LineParser) -> Iterator[Result]:
    """Yield the results of an action that are shown as recorded and are long enough, the last one first."""
    stubbed = {stub.index for stub in entry.stubs if stub.slot == "observation"}
    if not isinstance(entry.item, ActionStep):
        return
    for index, observation in reversed(list(iter_observations(entry))):
        text = as_text(observation.content)
        images = tuple(part for part in as_parts(observation.content) if not isinstance(part, Text))
        if index in stubbed or not (images or len(text) > MASK_MIN_CHARS):
            continue
        lines = {line.key: line.raw.strip() for line in parser.parse_text(text) if line.key}
        yield Result(entry.first, index, entry.item.tool_calls[index], text, lines, images)


def _find_repeat(result: Result, newest_with: Mapping[str, list[Result]]) -> Result | None:
    """Return the newer result that has most of the lines of this one, the newest of equals; None if none has enough."""
    shares = Counter[int]()
    candidates: dict[int, Result] = {}
    for key in result.lines:
        for newer in islice(newest_with.get(key, ()), COMPARED_RESULTS):
            candidates[id(newer)] = newer
            shares[id(newer)] += len(key)
    if not shares:
        return None
    ((number, share),) = shares.most_common(1)
    newer = candidates[number]
    least = SAME_CALL_SHARE if newer.is_same_call(result) else OTHER_CALL_SHARE
    is_repeat = share >= sum(map(len, result.lines)) * least and result.images == newer.images
    return newer if is_repeat else None


def _repeat_text(result: Result, newer: Result) -> str:
    """Return the line that stands for a result, and under it what is gone since, where that is little."""
    gone = [line for key, line in result.lines.items() if key not in newer.lines]
    added = len(newer.lines.keys() - result.lines.keys())
    if not gone and not added:
        return masked_line(result.text, result.handle, f"{newer.handle} has the same")
    head = masked_line(
        result.text,
        result.handle,
        f"{newer.handle} has it again, without {len(gone)} of its lines, with {added} others",
    )
    is_little = len(gone) <= SHOWN_LINES and sum(map(len, gone)) <= SHOWN_CHARS
    return "\n".join((head, *(MARK + line for line in gone))) if is_little else head


def _masked_result(result: Result, why: str) -> str:
    """Return the line that stands for a result and says why."""
    if len(result.text) > MASK_MIN_CHARS:
        return masked_line(result.text, result.handle, why)
    return f"[{len(result.images)} images masked: {result.handle}; {why}]"
