"""The oracle: what a run must hold, said a second time by plain lists, knowing nothing of the library's own rules."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pagein.events.entries import Body, Compaction, Erased, Observed, Pin, Undo, Unpin
from pagein.events.steps import ActionStep, Observation, Step, SystemPromptStep, TaskStep
from pagein.log.base import Entry


class Refused(Exception):
    """The run may not take this."""


@dataclass(slots=True)
class Call:
    """One call the model made: whose it is, and what became of it ("open", "answered", "unknown", "late")."""

    action: int
    index: int
    id: str
    fate: str = "open"

    def is_meant(self, seen: Observation) -> bool:
        """True where the observation could be this call's answer."""
        return self.id == seen.call_id and (seen.index is None or seen.index == self.index)


@dataclass(slots=True)
class Oracle:
    """What was recorded, position by position; ``rows`` is the log as it must be, compactions as they were found."""

    rows: list[Any] = field(default_factory=list)
    steps: dict[int, Step] = field(default_factory=dict)
    """Every step, with every answer that ever came."""
    seen: dict[int, Step] = field(default_factory=dict)
    """Every step as the model was told it: what came late stands as unknown."""
    notes: dict[int, Observation] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    pins: dict[int, str] = field(default_factory=dict)
    systems: list[SystemPromptStep] = field(default_factory=list)
    """The system prompts that came before anything else was said or pinned."""
    compactions: list[int] = field(default_factory=list)
    """The positions of those that hold."""

    @property
    def head(self) -> int:
        """The next position."""
        return len(self.rows)

    def open(self) -> list[Call]:
        """The calls that wait, in the model's order."""
        return [call for call in self.calls if call.fate == "open"]

    def abandoned(self) -> list[Call]:
        """The calls that were closed without a result."""
        return [call for call in self.calls if call.fate == "unknown"]

    def answered(self) -> list[Call]:
        """The calls that have their result."""
        return [call for call in self.calls if call.fate in ("answered", "late")]

    def after(self, items: Sequence[Step | Observation], *, strict: bool = True) -> Oracle:
        """The oracle after these items, all of them. Raises Refused where one may not follow."""
        later = copy.deepcopy(self)
        for item in items:
            if isinstance(item, Observation):
                later.hear_result(item, strict=strict)
            else:
                later.hear_step(item)
        return later

    def hear_step(self, step: Step) -> None:
        """Take in a step; what was open is given up first."""
        for call in self.open():
            self._answer(call, Observation(call.id, "", "unknown", call.index), fate="unknown")
        self._add_step(self.head, step)

    def _add_step(self, at: int, step: Step) -> None:
        is_first = len(self.systems) == len(self.steps) and not self.pins and not self.notes
        if isinstance(step, SystemPromptStep) and is_first:
            self.systems.append(step)
        self.rows.append(step)
        self.steps[at] = self.seen[at] = step
        if isinstance(step, ActionStep):
            held = len(step.observations)
            for index, made in enumerate(step.tool_calls):
                answered = index < held and step.observations[index] is not None
                self.calls.append(Call(at, index, made.id, "answered" if answered else "open"))

    def hear_result(self, seen: Observation, *, strict: bool) -> None:
        """Take in a result: of an open call, else of one that was given up, else of none."""
        for call in self.open():
            if call.is_meant(seen):
                self._answer(call, seen, fate="answered")
                return
        for call in self.abandoned():
            if call.is_meant(seen):
                call.fate = "late"
                self.notes[self.head] = seen
                self.rows.append(Observed(call.action, call.index, seen, late=True))
                self.steps[call.action] = _with(self.steps[call.action], call.index, seen)
                return
        if strict:
            raise Refused(f"nothing waits for {seen.call_id!r}")
        self.notes[self.head] = seen
        self.rows.append(Observed(-1, 0, seen, late=True))

    def _answer(self, call: Call, seen: Observation, *, fate: str) -> None:
        call.fate = fate
        self.rows.append(Observed(call.action, call.index, seen))
        self.steps[call.action] = _with(self.steps[call.action], call.index, seen)
        self.seen[call.action] = _with(self.seen[call.action], call.index, seen)

    def pin(self, text: str) -> None:
        """The host pinned a text."""
        self.pins[self.head] = text
        self.rows.append(Pin(text))

    def unpin(self, position: int) -> None:
        """The host let a pin go."""
        del self.pins[position]
        self.rows.append(Unpin(position))

    def undo(self) -> None:
        """The last compaction that held was taken back."""
        self.rows.append(Undo(self.compactions.pop()))

    def find(self, entries: Iterable[Entry]) -> list[Compaction]:
        """Take in what the library wrote of its own accord, which may be compactions only; gives them."""
        found: list[Compaction] = []
        for entry in entries:
            assert isinstance(entry.body, Compaction), (
                f"nobody asked for the entry at {entry.position}: {entry.body}"
            )
            self.compactions.append(self.head)
            self.rows.append(entry.body)
            found.append(entry.body)
        return found

    @classmethod
    def of(cls, rows: Iterable[Any]) -> Oracle:
        """What a run holds whose log says this, from its beginning."""
        made = cls()
        for row in rows:
            match row:
                case Observed():
                    made._hear(row)
                case Compaction():
                    made.compactions.append(made.head)
                    made.rows.append(row)
                case Pin(text=text):
                    made.pin(text)
                case Unpin(position=position):
                    made.unpin(position)
                case Undo():
                    made.undo()
                case Erased():
                    made.rows.append(row)
                case _:
                    made._add_step(made.head, row)
        return made

    def _hear(self, row: Observed) -> None:
        seen, meant = row.observation, (row.action, row.index)
        call = next((each for each in self.calls if (each.action, each.index) == meant), None)
        if not row.late:
            assert call is not None
            self._answer(call, seen, fate="unknown" if seen.status == "unknown" else "answered")
            return
        self.notes[self.head] = seen
        self.rows.append(row)
        if call is not None:
            call.fate = "late"
            self.steps[call.action] = _with(self.steps[call.action], call.index, seen)

    def bodies(self) -> list[Body]:
        """The log as it must be."""
        return list(self.rows)

    def tasks(self) -> list[tuple[int, TaskStep]]:
        """What the user said, in order."""
        return [(at, step) for at, step in self.steps.items() if isinstance(step, TaskStep)]


def _with(step: Step, index: int, seen: Observation) -> Step:
    assert isinstance(step, ActionStep)
    answers = list(step.observations) + [None] * (len(step.tool_calls) - len(step.observations))
    answers[index] = seen
    return replace(step, observations=tuple(answers))
