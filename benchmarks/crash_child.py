"""The process that ``python -m benchmarks crash`` kills: an application that acknowledges its writes through a pipe.

It decides what to do next from the log alone, as a resumed application must: the next call is the one after the last
recorded one, answered or not. Its tools write their effects to a file.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from pagein.backends.open import open_log
from pagein.errors import NothingToUndo
from pagein.events.steps import (
    ActionStep,
    Content,
    Image,
    Observation,
    PlanningStep,
    Step,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
)
from pagein.log.base import StoredLog
from pagein.memory._state import SNAPSHOT_MIN_NEW_ENTRIES
from pagein.memory.agent_memory import AgentMemory

BUDGET = 1_200
BORN, READY = "born", "ready"

Acknowledged = tuple[tuple[int, str], ...]
"""Positions and digests of entries, each told once the verb that wrote it has returned."""


@dataclass(frozen=True, slots=True)
class Place:
    """The address of a run, and the file of its tools' effects."""

    url: str
    session: str
    effects: str


def call_numbers(steps: Sequence[Step]) -> list[int]:
    """The numbers of the recorded calls, in order."""
    return [int(call.id) for step in steps if isinstance(step, ActionStep) for call in step.tool_calls]


def play(place: Place, seed: int, told: Connection) -> None:
    """Work until killed."""
    told.send(BORN)
    host = _Host(place, random.Random(seed), told)  # noqa: S311 - when to do what
    told.send(READY)
    host.work()


class _Host:
    def __init__(self, place: Place, chance: random.Random, told: Connection) -> None:
        self.place, self.chance, self.told = place, chance, told
        self.log, self.memory = self.open()
        self.known = self.log.head()
        self.effects = os.open(place.effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.number = max(call_numbers(self.memory.steps), default=-1) + 1

    def open(self) -> tuple[StoredLog, AgentMemory]:
        """Open the log and the memory."""
        log: Any = open_log(self.place.url, session=self.place.session, timeout=60)
        return log, AgentMemory(log, budget=BUDGET)

    def work(self) -> None:
        """Run turns without end."""
        if self.log.head() == 0:
            # So long that snapshots are kept of it.
            plans = [PlanningStep(f"{number}. Go on.") for number in range(SNAPSHOT_MIN_NEW_ENTRIES)]
            self.record(SystemPromptStep("You run what is numbered."), *plans)
        self.record(TaskStep(f"Go on with {self.number}."))
        while True:
            self.memory.view()
            self.acknowledge()
            self.run_turn()
            self.act_at_random()

    def run_turn(self) -> None:
        """Record an action before its tools run, and each observation when it comes, in any order."""
        calls = [
            ToolCall(str(self.number + each), "run", f'{{"file": "src/part_{self.number + each}.py"}}')
            for each in range(self.chance.choice((1, 1, 1, 2, 3)))
        ]
        self.number += len(calls)
        self.record(ActionStep("I run the next.", tuple(calls)))
        for call in self.chance.sample(calls, len(calls)):
            os.write(self.effects, f"{call.id}\n".encode())
            self.record(Observation(call.id, self.make_result(call)))

    def act_at_random(self) -> None:
        """Undo, compact, plan, pin or reopen, now and then."""
        what = self.chance.random()
        if what < 0.12:
            try:
                self.memory.undo()
            except NothingToUndo:
                return
        elif what < 0.2:
            self.memory.compact()
        elif what < 0.24:
            self.record(PlanningStep("1. Go on."))
        elif what < 0.26:
            handle = self.memory.pin("Never run one twice.")
            self.acknowledge()
            self.memory.unpin(handle)
        elif what < 0.32:
            self.memory.close()
            self.log, self.memory = self.open()
        self.acknowledge()

    def make_result(self, call: ToolCall) -> Content:
        """Make a tool's result: mostly a page of text, seldom a very long one or an image."""
        if self.chance.random() < 0.05:
            return (Text(f"{call.id}: the screen"), Image(self.chance.randbytes(3_000), "image/png"))
        lines = self.chance.choice((1, 5, 20, 20, 40, 900))
        return "".join(f"{call.id}:{line}: assert value_{line} == {line * 7}\n" for line in range(lines))

    def record(self, *items: Step | Observation) -> None:
        """Record items, then acknowledge them."""
        self.memory.record(*items)
        self.acknowledge()

    def acknowledge(self) -> None:
        """Send the new entries: none of them may be missing from now on."""
        if noted := tuple((row.position, row.digest) for row in self.log.rows(self.known)):
            self.known += len(noted)
            self.told.send(noted)
