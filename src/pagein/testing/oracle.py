"""Oracle of the stateful machine: a second, plain model of a run that shares no rules with the library."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pagein.events.entries import BY_LIST, CLEARED, REWRITTEN, Compaction, Erased, Mark, Observed, Pin, Undo, Unpin
from pagein.events.steps import ActionStep, Observation, Step, SystemPromptStep, TaskStep
from pagein.log.base import Entry


class IllegalItem(Exception):
    """The item may not follow in this run."""


@dataclass(slots=True)
class OracleCall:
    """One tool call: its place, and its ``fate``: "open", "answered", "unknown" or "late"."""

    action: int
    index: int
    id: str
    fate: str = "open"

    def is_answered_by(self, observation: Observation) -> bool:
        """Report whether the observation can be this call's result."""
        return self.id == observation.call_id and (observation.index is None or observation.index == self.index)


@dataclass(slots=True)
class Oracle:
    """The expected record. ``rows`` are the bodies of the log; compactions are taken over from the log."""

    rows: list[Any] = field(default_factory=list)
    steps: dict[int, Step] = field(default_factory=dict)
    """Every step by position, with all results."""
    shown_steps: dict[int, Step] = field(default_factory=dict)
    """Every step by position as the model sees it: a late result is unknown there."""
    notes: dict[int, Observation] = field(default_factory=dict)
    calls: list[OracleCall] = field(default_factory=list)
    pins: dict[int, str] = field(default_factory=dict)
    systems: list[SystemPromptStep] = field(default_factory=list)
    """The system prompts that came before any other step or pin."""
    compactions: list[int] = field(default_factory=list)
    """The positions of the compactions that are not undone."""

    @property
    def head(self) -> int:
        """The next position."""
        return len(self.rows)

    def open_calls(self) -> list[OracleCall]:
        """Return the calls without a result, in the model's order."""
        return [call for call in self.calls if call.fate == "open"]

    def abandoned_calls(self) -> list[OracleCall]:
        """Return the calls that were closed without a result."""
        return [call for call in self.calls if call.fate == "unknown"]

    def answered_calls(self) -> list[OracleCall]:
        """Return the calls that have their result."""
        return [call for call in self.calls if call.fate in ("answered", "late")]

    def after(self, items: Sequence[Step | Observation], *, strict: bool = True) -> Oracle:
        """Return the oracle after all these items. Raises IllegalItem where one may not follow."""
        later = copy.deepcopy(self)
        for item in items:
            if isinstance(item, Observation):
                later.add_result(item, strict=strict)
            else:
                later.add_step(item)
        return later

    def add_step(self, step: Step) -> None:
        """Add a step; calls still open are closed as unknown first."""
        for call in self.open_calls():
            self._answer(call, Observation(call.id, "", "unknown", call.index), fate="unknown")
        self._add_step(self.head, step)

    def _add_step(self, at: int, step: Step) -> None:
        is_first = len(self.systems) == len(self.steps) and not self.pins and not self.notes
        if isinstance(step, SystemPromptStep) and is_first:
            self.systems.append(step)
        self.rows.append(step)
        self.steps[at] = self.shown_steps[at] = step
        if isinstance(step, ActionStep):
            result_count = len(step.observations)
            for index, call in enumerate(step.tool_calls):
                answered = index < result_count and step.observations[index] is not None
                self.calls.append(OracleCall(at, index, call.id, "answered" if answered else "open"))

    def add_result(self, observation: Observation, *, strict: bool) -> None:
        """Add a result: of an open call, else of one that was closed, else of none."""
        for call in self.open_calls():
            if call.is_answered_by(observation):
                self._answer(call, observation, fate="answered")
                return
        for call in self.abandoned_calls():
            if call.is_answered_by(observation):
                call.fate = "late"
                self.notes[self.head] = observation
                self.rows.append(Observed(call.action, call.index, observation, late=True))
                self.steps[call.action] = _with_observation(self.steps[call.action], call.index, observation)
                return
        if strict:
            raise IllegalItem(f"nothing waits for {observation.call_id!r}")
        self.notes[self.head] = observation
        self.rows.append(Observed(-1, 0, observation, late=True))

    def _answer(self, call: OracleCall, observation: Observation, *, fate: str) -> None:
        call.fate = fate
        self.rows.append(Observed(call.action, call.index, observation))
        self.steps[call.action] = _with_observation(self.steps[call.action], call.index, observation)
        self.shown_steps[call.action] = _with_observation(self.shown_steps[call.action], call.index, observation)

    def pin(self, text: str) -> None:
        """Add a pin."""
        self.pins[self.head] = text
        self.rows.append(Pin(text))

    def unpin(self, position: int) -> None:
        """Remove a pin."""
        del self.pins[position]
        self.rows.append(Unpin(position))

    def undo(self) -> None:
        """Undo the last compaction."""
        position = self.undoable[-1]
        self.compactions.remove(position)
        self.rows.append(Undo(position))

    @property
    def undoable(self) -> list[int]:
        """The positions of the compactions that ``undo`` takes back, oldest first."""
        return [position for position in self.compactions if self.rows[position].policy not in BY_LIST]

    def _add_compaction(self, body: Compaction) -> None:
        self.compactions.append(self.head)
        self.rows.append(body)
        for by in body.replacements if body.policy == REWRITTEN else ():
            (stub,) = by.stubs
            for known in (self.steps, self.shown_steps):
                step = known[by.first]
                result = step.observations[stub.index] if isinstance(step, ActionStep) else None
                changed = replace(result, content=stub.content) if result is not None else None
                known[by.first] = (
                    replace(step, content=stub.content)  # type: ignore[arg-type] # a TaskStep
                    if changed is None
                    else _with_observation(step, stub.index, changed)
                )

    def add_compactions(self, entries: Iterable[Entry]) -> list[Compaction]:
        """Add the compactions that the library wrote, and return them; it may write nothing else."""
        compactions: list[Compaction] = []
        for entry in entries:
            assert isinstance(entry.body, Compaction), f"unexpected entry at {entry.position}: {entry.body}"
            self._add_compaction(entry.body)
            compactions.append(entry.body)
        return compactions

    @classmethod
    def from_rows(cls, rows: Iterable[Any]) -> Oracle:
        """Return the oracle of a log with these rows."""
        oracle, rows = cls(), list(rows)
        undone = {row.position for row in rows if isinstance(row, Undo)}
        for at, row in enumerate(rows):
            match row:
                case Observed():
                    oracle._add_observed(row)
                case Compaction() if at not in undone:
                    oracle._add_compaction(row)
                case Compaction():
                    oracle.rows.append(row)
                case Pin(text=text):
                    oracle.pin(text)
                case Unpin(position=position):
                    oracle.unpin(position)
                case Undo() | Erased() | Mark():
                    oracle.rows.append(row)
                case _:
                    oracle._add_step(oracle.head, row)
        return oracle

    def _add_observed(self, row: Observed) -> None:
        observation, place = row.observation, (row.action, row.index)
        call = next((candidate for candidate in self.calls if (candidate.action, candidate.index) == place), None)
        if not row.late:
            assert call is not None
            self._answer(call, observation, fate="unknown" if observation.status == "unknown" else "answered")
            return
        self.notes[self.head] = observation
        self.rows.append(row)
        if call is not None:
            call.fate = "late"
            self.steps[call.action] = _with_observation(self.steps[call.action], call.index, observation)

    def tasks(self) -> list[tuple[int, TaskStep]]:
        """Return the user's messages since the view was cleared with their positions, in order."""
        cleared = max((at for at in self.compactions if self.rows[at].policy == CLEARED), default=-1)
        return [(at, step) for at, step in self.steps.items() if isinstance(step, TaskStep) and at > cleared]


def _with_observation(step: Step, index: int, observation: Observation) -> Step:
    assert isinstance(step, ActionStep)
    answers = list(step.observations) + [None] * (len(step.tool_calls) - len(step.observations))
    answers[index] = observation
    return replace(step, observations=tuple(answers))
