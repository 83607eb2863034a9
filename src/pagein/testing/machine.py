"""The stateful machine: any history, and after every move every promise.

    class MyMachine(MemoryMachine):
        def open_log(self):                 # opens one and the same store, again after each crash
            return MyLog(self.folder / "run.db")

        def policy(self):                   # a name, or your own
            return MyPolicy()

    TestMine = MyMachine.TestCase
    TestMine.settings = LOCAL               # or CI, or NIGHTLY

Each broken promise is an AssertionError that says which, found by the functions of ``promises`` and by the oracle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from pagein.errors import Conflict, Illegal, LogUnwritable, NothingToUndo, OverBudget, ProtocolError
from pagein.events.handles import step_handle
from pagein.events.steps import (
    ActionStep,
    Content,
    FinalAnswerStep,
    Observation,
    PlanningStep,
    Step,
    SystemPromptStep,
    TaskStep,
    ToolCall,
    Usage,
)
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.testing import promises
from pagein.testing.machine_checks import as_budget
from pagein.testing.machine_erasure import Forgetting
from pagein.testing.machine_moves import called, has_wire, lines, prose, results, short, spoken, wire
from pagein.testing.oracle import Refused


def profile(examples: int, moves: int = 30, *, shrink: bool = False, seed: bool = True) -> settings:
    """How long a machine runs. Shrinking one failure can take minutes, so it is off unless asked for."""
    phases = [Phase.explicit, Phase.generate, *([Phase.shrink] if shrink else [])]
    return settings(
        max_examples=examples, stateful_step_count=moves, deadline=None, database=None, derandomize=seed, phases=phases,
        suppress_health_check=list(HealthCheck), print_blob=False, report_multiple_bugs=False,
    )  # fmt: skip


LOCAL = profile(40)
CI = profile(100, 40)
NIGHTLY = profile(2_000, 60, seed=False)


def chosen_profile() -> settings:
    """LOCAL, or what the environment variable ``PAGEIN_PROFILE`` names: ``ci`` or ``nightly``."""
    return {"ci": CI, "nightly": NIGHTLY}.get(os.environ.get("PAGEIN_PROFILE", ""), LOCAL)


class MemoryMachine(Forgetting):
    """Plays any run against an AgentMemory, and checks the promises after every move.

    Override ``open_log`` (a log that outlives its object), ``policy``, ``counter`` or ``limits``.
    """

    # Opening

    @initialize(limit=st.integers(0, 6), spoken_by_wire=st.booleans(), first=st.none() | lines)
    def begin(self, limit: int, spoken_by_wire: bool, first: str | None) -> None:
        self.budget = as_budget(self.limits[limit % len(self.limits)])
        self.memory = self._open()
        self.transcript = [] if spoken_by_wire else None
        if first is not None:
            self._say(SystemPromptStep(first))

    # What a host says

    @rule(content=spoken)
    def user_speaks(self, content: Content) -> None:
        self._say(TaskStep(content))

    @precondition(lambda self: self.oracle.open())
    @rule(content=lines)
    def user_interrupts(self, content: str) -> None:
        self._say(TaskStep(content))

    @rule(content=prose, calls=called, usage=st.booleans())
    def assistant_speaks(self, content: Content | None, calls: list[ToolCall], usage: bool) -> None:
        # A truthful report: what the view cost when it was sent.
        told = Usage(self._sent_tokens()) if usage and self.transcript is None else None
        self._say(ActionStep(content, tuple(calls), usage=told))

    @rule(content=prose, calls=called.filter(len))
    def assistant_calls(self, content: Content | None, calls: list[ToolCall]) -> None:
        self._say(ActionStep(content, tuple(calls)))

    @precondition(lambda self: self.oracle.open())
    @rule(data=st.data())
    def results_come(self, data: st.DataObject) -> None:
        waiting = self.oracle.open()
        chosen = data.draw(st.lists(st.sampled_from(range(len(waiting))), unique=True, min_size=1))
        batch = [self._answer(data, waiting[each].id, waiting[each].index) for each in chosen]
        self._say(*batch)

    @precondition(lambda self: self.oracle.abandoned())
    @rule(data=st.data())
    def result_comes_late(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.oracle.abandoned()))
        self._say(self._answer(data, call.id, call.index))

    @precondition(lambda self: self.oracle.answered())
    @rule(data=st.data())
    def result_comes_twice(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.oracle.answered()))
        self._say(self._answer(data, call.id, call.index))

    @rule(call_id=st.sampled_from(("", "call_1", "nobody")), content=short)
    def result_of_nothing_comes(self, call_id: str, content: str) -> None:
        self._say(Observation(call_id, content))

    @rule(content=lines, kind=st.sampled_from((PlanningStep, FinalAnswerStep, SystemPromptStep)))
    def other_steps(self, content: str, kind: Callable[[str], Step]) -> None:
        self._say(kind(content))

    @rule(data=st.data(), content=prose, calls=called)
    def whole_turn(self, data: st.DataObject, content: Content | None, calls: list[ToolCall]) -> None:
        step = ActionStep(content, tuple(calls))
        self._say(step, *(self._answer(data, call.id, index) for index, call in enumerate(calls)))

    def _answer(self, data: st.DataObject, call_id: str, index: int) -> Observation:
        status = "error" if data.draw(st.booleans()) and self.transcript is None else "ok"
        named = index if data.draw(st.booleans()) else None
        return Observation(call_id, data.draw(results), status, named)  # type: ignore[arg-type]

    def _say(self, *items: Step | Observation) -> None:
        """Record by type or by wire; what the oracle refuses must be refused, and change nothing."""
        if self.transcript is not None and all(has_wire(item) for item in items):
            self._say_by_wire(items)
            return
        self.transcript = None  # what was recorded by type is in no transcript of the host's
        try:
            expected = self.oracle.after(items)
        except Refused:
            self._refused(ProtocolError, lambda: self.memory.record(*items))
            return
        written = self.memory.record(*items)
        self.oracle, before = expected, self.oracle
        assert (written.first, written.last) == (before.head, expected.head), f"record says {written}"

    def _say_by_wire(self, items: Sequence[Step | Observation]) -> None:
        assert self.transcript is not None
        new = [wire(item) for item in items]
        heard = format_named("openai").parse(new)
        self.transcript += new
        whole = len(self.transcript) % 2 == 0
        expected = self.oracle.after(heard, strict=False)
        self.memory.record_messages(
            self.transcript if whole else new, "openai", whole=None if whole else False
        )
        self.oracle = expected

    @precondition(lambda self: self.transcript)
    @rule(told=st.booleans())
    def whole_history_again(self, told: bool) -> None:
        assert self.transcript is not None
        written = self.memory.record_messages(self.transcript, "openai", whole=True if told else None)
        assert written.first == written.last, "a history that was recorded already was recorded again"

    # What a host asks

    @rule(moves=st.integers(1, 4))
    def nobody_looks(self, moves: int) -> None:
        self.quiet = moves

    @rule(
        summary_mode=st.booleans(), last=st.none() | st.integers(0, 3), most=st.none() | st.sampled_from((90, 200, 600))
    )  # fmt: skip
    def controls(self, summary_mode: bool, last: int | None, most: int | None) -> None:
        asked: dict[str, Any] = {"summary_mode": summary_mode, "keep_last_n": last, "max_tokens": most}
        before = self._state()
        for name in self.formats:
            try:
                request = self.memory.to_messages(name, **asked)
            except OverBudget as error:
                assert error.needed > error.limit
                continue
            except Illegal as error:
                raise AssertionError(f"{name} would refuse what {asked} gives: {error}") from error
            assert request
        if not (summary_mode is False and last is None and most is None):
            assert self._state() == before, f"{asked} changed the record"
        self._found()

    @rule()
    def compact(self) -> None:
        self._found()
        before = self.oracle.head
        made = self.memory.compact()
        found = self._found()
        assert found == ([made] if made else []), "compact() tells of something else than it recorded"
        assert self.oracle.head == before + len(found)

    @rule()
    def undo(self) -> None:
        self._found()
        if not self.oracle.compactions:
            self._refused(NothingToUndo, self.memory.undo)
            return
        position = self.oracle.compactions[-1]
        body = self.oracle.rows[position]
        assert self.memory.undo() == body
        self.oracle.undo()

    @rule(text=lines | st.sampled_from(("</pinned>", "never <b>drop</b>", "</PINNED >")))
    def pin(self, text: str) -> None:
        self._found()
        assert self.memory.pin(text) == step_handle(self.oracle.head)
        self.oracle.pin(text)

    @precondition(lambda self: self.oracle.pins)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        position = data.draw(st.sampled_from(sorted(self.oracle.pins)))
        self._found()
        self.memory.unpin(step_handle(position))
        self.oracle.unpin(position)

    # What goes wrong

    @rule(limit=st.integers(0, 6))
    def change_budget(self, limit: int) -> None:
        self.budget = as_budget(self.limits[limit % len(self.limits)])
        self.crash_and_reopen()

    @rule()
    def crash_and_reopen(self) -> None:
        self._found()
        before = self.memory.steps
        self.memory = self._open()  # the old one is dropped without a word
        promises.lossless(self.memory.steps, before)
        self._opens_alike()
        found = self.memory.verify()
        assert found.ok, found.problems

    @rule(
        verb=st.sampled_from(("task", "pin", "undo", "view")), other=st.sampled_from(("task", "pin", "undo"))
    )
    def second_writer(self, verb: str, other: str) -> None:
        self._found()
        rival = self._another()
        self._write(rival, other)
        before = self._state()
        head = self.log.head()
        try:
            self._verb(verb)()
        except (NothingToUndo, OverBudget):
            assert self.log.head() == head, f"{verb} raised, and wrote"
        except Conflict:
            assert self.log.head() == head, "a refused writer wrote"
            assert self.memory.steps == tuple(self.oracle.steps.values())
        else:
            assert verb in ("view", "undo"), f"{verb} did not notice the other writer"
            assert verb == "view" or self.log.head() == head or self._state() != before
        self._resync()

    def _write(self, memory: AgentMemory, verb: str) -> None:
        """Another handle on the same log does something, and the oracle hears of it."""
        if verb == "pin":
            memory.pin("another's pin")
            self.oracle.pin("another's pin")
        elif verb == "undo" and self.oracle.compactions:
            memory.undo()
            self.oracle.undo()
        else:
            self.oracle = self.oracle.after([TaskStep("another's words")])
            memory.record(TaskStep("another's words"))
            self.transcript = None

    def _resync(self) -> None:
        """After a conflict the next try works: nothing has to be opened again."""
        self._sent = None
        if self._state()[1] != self._another().report():
            self.transcript = None
            try:
                self.memory.pin("after the conflict")
            except Conflict:
                self.memory.pin("after the conflict")
            self.oracle.pin("after the conflict")
        else:
            self.transcript = None
        self._found()

    @rule(verb=st.sampled_from(("task", "pin", "unpin", "undo", "view", "compact", "messages")))
    def disk_is_full(self, verb: str) -> None:
        self._found()
        before = self._state()
        self.disk.full = True
        try:
            self._verb(verb)()
        except LogUnwritable:
            assert self._state() == before, f"{verb} failed, and changed something"
        except (NothingToUndo, OverBudget):
            assert self._state() == before, f"{verb} raised, and changed something"
        else:
            assert self.disk.full, f"{verb} swallowed the failure"
            assert self._state() == before or verb == "view"
        self.disk.full = False
        self._found()

    def _verb(self, verb: str) -> Callable[[], Any]:
        pinned = sorted(self.oracle.pins)
        verbs: dict[str, Callable[[], Any]] = {
            "task": lambda: self.memory.record(TaskStep("words that were not recorded")),
            "messages": lambda: self.memory.record_messages(
                [{"role": "user", "content": "lost"}], whole=False
            ),
            "pin": lambda: self.memory.pin("lost"),
            "unpin": lambda: self.memory.unpin(step_handle(pinned[0])) if pinned else self.memory.pin("lost"),
            "undo": self.memory.undo,
            "view": self.memory.view,
            "compact": self.memory.compact,
        }
        return verbs[verb]
