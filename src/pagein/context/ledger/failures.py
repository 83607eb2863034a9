"""The errors of a run: each distinct one once, with its newest call, and how often it came. Pure and bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import groupby
from typing import Any

from pagein.context.ledger.error_lines import clip_line, error_key, errors_of_readers, find_errors, has_failed
from pagein.events.handles import Place, place_handle
from pagein.events.identifiers import format_call
from pagein.events.steps import Observation, ToolCall, as_text
from pagein.tokens import TokenCounter

MAX_FAILURES = 400
"""Distinct errors that are remembered; beyond it the one that came longest ago is dropped. A large view has hundreds, beside
which those that are shown must not change."""

MAX_RESULTS = 128
"""Results remembered one by one for each error; the oldest ones are remembered as one."""

GONE_HEAD = "Gone when called again:"
"""The heading of the errors that the same call did not give later."""

CALL_MAX_CHARS, ERROR_MAX_CHARS = 28, 100
"""Characters of a call, and of an error, in a line."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """A result of a call that failed: its place, the call in one line, and the error; "" where it went without it.

    ``times`` is more than one where it stands for older results with the error, too. ``number`` is the error's place in
    its result.
    """

    position: int
    index: int
    call: str
    error: str
    times: int = 1
    number: int = 0

    @property
    def place(self) -> Place:
        """The position of the step, and the number of its call."""
        return self.position, self.index


@dataclass(frozen=True, slots=True)
class FailureLine:
    """An error to show: the newest result with it, how many there are, and if the same call went without it later on."""

    result: CallResult
    count: int
    is_gone: bool

    @property
    def key(self) -> tuple[int, ...]:
        """The place of the result, and all else that may change in the line."""
        return (*self.result.place, self.count, self.is_gone)


class FailureLedger:
    """The distinct errors of one run, the one that came longest ago first. The same results give the same ledger."""

    def __init__(self) -> None:
        self._results: dict[str, list[CallResult]] = {}
        """By what is the same in an error each time: its results, and later ones of its newest call without it."""

    def learn(self, position: int, index: int, call: ToolCall, observation: Observation) -> None:
        """Fold the result of a call of the step at this position."""
        errors = find_errors(as_text(observation.content), failed=has_failed(observation))
        if errors and observation.status != "error":
            errors = errors_of_readers(call, errors)
        if not errors and not self._results:
            return
        by_key = {error_key(error): error for error in errors}
        shown = clip_line(format_call(call.name, call.arguments).brief, CALL_MAX_CHARS)
        for key, results in self._results.items():
            if key not in by_key and results[-1].call == shown:
                _append(results, CallResult(position, index, shown, ""))
        for number, (key, error) in enumerate(by_key.items()):
            results = self._results[key] = self._results.pop(key, [])
            _append(results, CallResult(position, index, shown, clip_line(error, ERROR_MAX_CHARS), number=number))
        while len(self._results) > MAX_FAILURES:
            del self._results[next(iter(self._results))]

    def remove_step(self, position: int, index: int | None = None) -> None:
        """Drop the results of a step, or that of one of its calls."""
        for key, results in list(self._results.items()):
            others = [result for result in results if result.position != position or index not in (None, result.index)]
            self._results[key] = others
            if not others:
                del self._results[key]

    def find_hidden(self, hidden: Callable[[int], bool]) -> tuple[FailureLine, ...]:
        """Return the errors of hidden results in order. Results in view change nothing, so a block stays as it is."""
        lines = []
        for results in self._results.values():
            left = [result for result in results if hidden(result.position)]
            errors = [result for result in left if result.error]
            if errors:
                count = sum(result.times for result in errors)
                lines.append(FailureLine(errors[-1], count, is_gone=not left[-1].error))
        return tuple(sorted(lines, key=lambda line: (*line.result.place, line.result.number)))

    def to_state(self) -> dict[str, Any]:
        """Return the ledger as JSON-safe values."""
        return {key: list(map(astuple, results)) for key, results in self._results.items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FailureLedger:
        """Restore a ledger from ``to_state``."""
        ledger = cls()
        ledger._results = {key: [CallResult(*row) for row in rows] for key, rows in state.items()}
        return ledger


def select_failures(lines: Iterable[FailureLine], tokens: int, counter: TokenCounter) -> str:
    """Return the text of the lines that fit: those that are not gone, then those that are; of both, the newest fit first."""
    sections: list[str] = []
    by_state = sorted(lines, key=lambda line: line.is_gone)
    for is_gone, group in groupby(by_state, key=lambda line: line.is_gone):
        room, chosen = tokens - (counter.text(GONE_HEAD) + 1) * is_gone, list[FailureLine]()
        for line in reversed(tuple(group)):
            cost = counter.text(_render(line, None)) + 1
            if cost <= room:
                room -= cost
                chosen.insert(0, line)
        if chosen:
            tokens = room
            above = (None, *(line.result for line in chosen))
            sections += [*[GONE_HEAD] * is_gone, *map(_render, chosen, above)]
    return "\n".join(sections)


def _render(line: FailureLine, above: CallResult | None) -> str:
    """Return the line of an error, without the handle and the call that the line above has, too."""
    result, count = line.result, f" ({line.count} times)" if line.count > 1 else ""
    if above is not None and above.place == result.place:
        return f"! {result.error}{count}"
    call = "" if above is not None and above.call == result.call else f" {result.call}"
    return f"[{place_handle(result.place)}]{call} ! {result.error}{count}"


def _append(results: list[CallResult], result: CallResult) -> None:
    results.append(result)
    if len(results) > MAX_RESULTS:
        oldest, newer = results[:2]
        is_both = bool(oldest.error and newer.error)
        kept = newer if newer.error else oldest
        results[:2] = [replace(kept, times=oldest.times + newer.times) if is_both else kept]
