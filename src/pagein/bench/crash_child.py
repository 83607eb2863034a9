"""The process that ``pagein bench crash`` kills: an agent's host that acknowledges through a pipe what it was promised.

It decides what to do next from the record alone, as a resumed host must: the next call is the one after the last that
is recorded, whether that was answered or not. What its tools do it writes to a file of effects as they do it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from pagein.errors import NothingToUndo
from pagein.log import Body, Entry, Log, Verification
from pagein.log.opening import open_log
from pagein.memory import AgentMemory
from pagein.steps import (
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

BUDGET = 1_200
BORN, READY = "born", "ready"

Acknowledged = tuple[tuple[int, str], ...]
"""Positions and digests of entries, each told once the verb that wrote it has returned."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run is recorded, and where its tools leave their effects."""

    url: str
    session: str
    effects: str


class Noting:
    """A log that remembers what was appended through it until that is taken."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._noted: list[tuple[int, str]] = []

    def head(self) -> int:
        """See Log.head."""
        return self._log.head()

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """See Log.append."""
        entries = self._log.append(bodies, after=after, at=at)
        self._noted += ((each.position, each.digest) for each in entries)
        return entries

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """See Log.read."""
        return self._log.read(start, stop)

    def verify(self) -> Verification:
        """See Log.verify."""
        return self._log.verify()

    def close(self) -> None:
        """See Log.close."""
        self._log.close()

    def taken(self) -> Acknowledged:
        """What was appended since this was last asked."""
        noted, self._noted = tuple(self._noted), []
        return noted


def call_numbers(steps: Sequence[Step]) -> list[int]:
    """The numbers of the calls that are recorded, in order."""
    return [int(call.id) for step in steps if isinstance(step, ActionStep) for call in step.tool_calls]


def play(place: Place, seed: int, told: Connection) -> None:
    """Work on until killed."""
    told.send(BORN)
    log = Noting(open_log(place.url, session=place.session, timeout=60))
    memory = AgentMemory(log, budget=BUDGET)
    told.send(READY)
    _Host(memory, log, place, random.Random(seed), told).work()  # noqa: S311 - when to do what


class _Host:
    def __init__(
        self, memory: AgentMemory, log: Noting, place: Place, chance: random.Random, told: Connection
    ) -> None:
        self.memory, self.log, self.chance, self.told = memory, log, chance, told
        self.effects = os.open(place.effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.number = max(call_numbers(memory.steps), default=-1) + 1

    def work(self) -> None:
        """Turns without end."""
        if self.log.head() == 0:
            self.record(SystemPromptStep("You run what is numbered."))
        self.record(TaskStep(f"Go on with {self.number}."))
        while True:
            self.memory.view()
            self.acknowledge()
            self.turn()
            self.aside()

    def turn(self) -> None:
        """An action, durable before its tools run; each observation as it comes, in any order."""
        calls = [
            ToolCall(str(self.number + each), "run", f'{{"file": "src/part_{self.number + each}.py"}}')
            for each in range(self.chance.choice((1, 1, 1, 2, 3)))
        ]
        self.number += len(calls)
        self.record(ActionStep("I run the next.", tuple(calls)))
        for call in self.chance.sample(calls, len(calls)):
            os.write(self.effects, f"{call.id}\n".encode())
            self.record(Observation(call.id, self.seen(call)))

    def aside(self) -> None:
        """Now and then something else."""
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
        self.acknowledge()

    def seen(self, call: ToolCall) -> Content:
        """What a tool gives: mostly a page of text, seldom more than fits a body, or a picture."""
        if self.chance.random() < 0.05:
            return (Text(f"{call.id}: the screen"), Image(self.chance.randbytes(3_000), "image/png"))
        lines = self.chance.choice((1, 5, 20, 20, 40, 900))
        return "".join(f"{call.id}:{line}: assert value_{line} == {line * 7}\n" for line in range(lines))

    def record(self, *items: Step | Observation) -> None:
        """Record, and say so afterwards."""
        self.memory.record(*items)
        self.acknowledge()

    def acknowledge(self) -> None:
        """Tell what was promised: nothing of it may be gone from now on."""
        if noted := self.log.taken():
            self.told.send(noted)
