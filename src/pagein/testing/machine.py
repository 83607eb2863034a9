"""Stateful machine: plays any run against a memory, and checks every promise after each move.

    class MyMachine(MemoryMachine):
        def open_log(self):                 # opens the same store at each call
            return MyLog(self.folder / "run.db")

        def policy(self):                   # a name or an object
            return MyPolicy()

    TestMine = MyMachine.TestCase
    TestMine.settings = LOCAL               # or CI, or NIGHTLY

A broken promise raises an AssertionError that names it. The functions of ``promises`` and the oracle find it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from pagein.errors import Conflict, Illegal, LogUnwritable, NothingToUndo, OverBudget, ProtocolError
from pagein.events import steps
from pagein.events.entries import CLEARED, REWRITTEN, Compaction, Importance, Mark
from pagein.events.handles import step_handle
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.host_memory import runtime_of
from pagein.testing import machine_inputs, promises
from pagein.testing.machine_base import ErasingMachine
from pagein.testing.oracle import IllegalItem
from pagein.tokens.budget import as_budget
from pagein.tokens.prices import Prices


def profile(examples: int, moves: int = 30, *, shrink: bool = False, seed: bool = True) -> settings:
    """Return settings with that many runs and moves. ``shrink`` is off by default: shrinking can take minutes."""
    phases = [Phase.explicit, Phase.generate, *([Phase.shrink] if shrink else [])]
    return settings(
        max_examples=examples, stateful_step_count=moves, deadline=None, database=None, derandomize=seed, phases=phases,
        suppress_health_check=list(HealthCheck), print_blob=False, report_multiple_bugs=False,
    )  # fmt: skip


LOCAL = profile(8)
CI = profile(100, 40)
NIGHTLY = profile(2_000, 60, seed=False)


def chosen_profile() -> settings:
    """Return the profile that ``PAGEIN_PROFILE`` names (``ci`` or ``nightly``), else LOCAL."""
    return {"ci": CI, "nightly": NIGHTLY}.get(os.environ.get("PAGEIN_PROFILE", ""), LOCAL)


class MemoryMachine(ErasingMachine):
    """A machine that plays any run against an AgentMemory, and checks the promises after every move.

    Override ``open_log`` (a log that outlives its object), ``policy``, ``counter`` or ``limits``.
    """

    def __init__(self) -> None:
        super().__init__()
        self._list_change: machine_inputs.ListChange | None = None
        """What a client does to the list that it hands over."""

    # Opening

    @initialize(limit=st.integers(0, 6), spoken_by_wire=st.booleans(), first=st.none() | machine_inputs.plain_lines)
    def begin(self, limit: int, spoken_by_wire: bool, first: str | None) -> None:
        self.budget = as_budget(self.limits[limit % len(self.limits)])
        self.memory = self._open()
        self.transcript = [] if spoken_by_wire else None
        if first is not None:
            self._record(steps.SystemPromptStep(first))

    # Steps and results

    @rule(content=machine_inputs.user_contents)
    def user_speaks(self, content: steps.Content) -> None:
        self._record(steps.TaskStep(content))

    @rule(content=machine_inputs.plain_lines)
    def user_speaks_after_a_pause(self, content: str) -> None:
        self._waited += 2 * Prices().lifetime
        self._record(steps.TaskStep(content))

    @precondition(lambda self: self.oracle.open_calls())
    @rule(content=machine_inputs.plain_lines)
    def user_interrupts(self, content: str) -> None:
        self._record(steps.TaskStep(content))

    @rule(content=machine_inputs.model_contents, calls=machine_inputs.tool_calls, usage=st.booleans())
    def assistant_speaks(self, content: steps.Content | None, calls: list[steps.ToolCall], usage: bool) -> None:
        # The tokens of the view when it was sent.
        report = steps.Usage(max(1, self.memory.report().tokens)) if usage and self.transcript is None else None
        self._record(steps.ActionStep(content, tuple(calls), usage=report))

    @rule(content=machine_inputs.model_contents, calls=machine_inputs.tool_calls.filter(len))
    def assistant_calls(self, content: steps.Content | None, calls: list[steps.ToolCall]) -> None:
        self._record(steps.ActionStep(content, tuple(calls)))

    @precondition(lambda self: self.oracle.open_calls())
    @rule(data=st.data())
    def results_come(self, data: st.DataObject) -> None:
        waiting = self.oracle.open_calls()
        numbers = data.draw(st.lists(st.sampled_from(range(len(waiting))), unique=True, min_size=1))
        batch = [self._answer(data, waiting[number].id, waiting[number].index) for number in numbers]
        self._record(*batch)

    @precondition(lambda self: self.oracle.abandoned_calls())
    @rule(data=st.data())
    def result_comes_late(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.oracle.abandoned_calls()))
        self._record(self._answer(data, call.id, call.index))

    @precondition(lambda self: self.oracle.answered_calls())
    @rule(data=st.data())
    def result_comes_twice(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.oracle.answered_calls()))
        self._record(self._answer(data, call.id, call.index))

    @rule(call_id=st.sampled_from(("", "call_1", "nobody")), content=machine_inputs.short_texts)
    def result_of_nothing_comes(self, call_id: str, content: str) -> None:
        self._record(steps.Observation(call_id, content))

    @rule(
        content=machine_inputs.plain_lines,
        kind=st.sampled_from((steps.PlanningStep, steps.FinalAnswerStep, steps.SystemPromptStep)),
    )
    def other_steps(self, content: str, kind: Callable[[str], steps.Step]) -> None:
        self._record(kind(content))

    @rule(data=st.data(), content=machine_inputs.model_contents, calls=machine_inputs.tool_calls)
    def whole_turn(self, data: st.DataObject, content: steps.Content | None, calls: list[steps.ToolCall]) -> None:
        step = steps.ActionStep(content, tuple(calls))
        self._record(step, *(self._answer(data, call.id, index) for index, call in enumerate(calls)))

    def _answer(self, data: st.DataObject, call_id: str, index: int) -> steps.Observation:
        status = "error" if data.draw(st.booleans()) and self.transcript is None else "ok"
        named = index if data.draw(st.booleans()) else None
        return steps.Observation(call_id, data.draw(machine_inputs.result_contents), status, named)  # type: ignore[arg-type]

    def _record(self, *items: steps.Step | steps.Observation) -> None:
        """Record as steps or as messages. An item that the oracle refuses must be refused, and change nothing."""
        if self.transcript is not None and all(machine_inputs.is_openai_expressible(item) for item in items):
            self._record_by_wire(items)
            return
        self.transcript = None  # the transcript lacks what was recorded as steps
        try:
            expected = self.oracle.after(items)
        except IllegalItem:
            self._check_refusal(ProtocolError, lambda: self.memory.record(*items))
            return
        recorded = self.memory.record(*items)
        self.oracle, before = expected, self.oracle
        assert (recorded.first, recorded.last) == (before.head, expected.head), f"record says {recorded}"

    def _record_by_wire(self, items: Sequence[steps.Step | steps.Observation], *, whole: bool = False) -> None:
        assert self.transcript is not None
        new = [machine_inputs.to_openai(item) for item in items]
        items_read = format_named("openai").parse(new)
        self.transcript += new
        whole = whole or len(self.transcript) % 2 == 0
        expected = self.oracle.after(items_read, strict=False)
        self.memory.record_messages(self.transcript if whole else new, "openai", whole=None if whole else False)
        self.oracle = expected

    @precondition(lambda self: self.transcript)
    @rule(explicit=st.booleans())
    def whole_history_again(self, explicit: bool) -> None:
        assert self.transcript is not None
        recorded = self.memory.record_messages(self.transcript, "openai", whole=True if explicit else None)
        assert recorded.first == recorded.last, "a history that was recorded already was recorded again"

    @rule(change=st.sampled_from((machine_inputs.join_users, machine_inputs.divide_user)), seed=st.integers(0, 999))
    def client_joins_or_divides(self, change: machine_inputs.ListChange, seed: int) -> None:
        self._change_list(change, seed, "one line")

    @rule(content=machine_inputs.result_contents, seed=st.integers(0, 999))
    def client_clears_results(self, content: steps.Content, seed: int) -> None:
        self._change_list(machine_inputs.clear_results, seed, steps.as_text(content))

    @rule(message=machine_inputs.foreign_lines, result=machine_inputs.foreign_lines)
    def client_words_anew(self, message: str, result: str) -> None:
        """Hand over other words in the place of a message and of a result: they are shown there, found and read back."""
        head = self.oracle.head
        self.clear_view()
        if self.oracle.head == head and self.oracle.steps:
            return  # the view stays as it is, so the list cannot begin anew
        self._rewind(self.oracle.head)  # the user's first change is a branch; behind its beginning it is a new wording
        self.transcript, self._list_change, word = [], None, f"ключ{self.oracle.head}"
        self._record_by_wire(machine_inputs.make_reading(self.oracle.head, "Waiting."))
        words = f"{message} {word}ж", f"{result} {word}ю"
        self.transcript = machine_inputs.word_anew(self.transcript, *words)
        self.memory.record_messages(self.transcript, "openai")
        assert [compaction.policy for compaction in self._collect_compactions()] == [REWRITTEN], "no new wording"
        assert len(self.memory.branches()) == 1 + len(self.other_branches), "a new wording was taken for an edit"
        for text in words:
            hits = self.memory.recall(text.rpartition(" ")[2])
            assert any(self.memory.expand(hit.handle) == text for hit in hits), f"{text} is not found: {hits}"

    def _change_list(self, change: machine_inputs.ListChange, seed: int, result: str) -> None:
        """Change the client's list for good, and hand it over with new words: these alone are recorded, on the same branch."""
        if not self.transcript or self._list_change not in (None, change):
            head = self.oracle.head
            self.clear_view()
            if self.oracle.head == head and self.oracle.steps:
                return  # the view stays as it is, so the list cannot begin anew
            self.transcript = []
            self._record_by_wire(machine_inputs.make_reading(self.oracle.head, result))
        self._list_change = change
        self.transcript = change(self.transcript, Random(seed))
        self._record_by_wire([steps.TaskStep(f"Words behind entry {self.oracle.head}.")], whole=True)
        assert len(self.memory.branches()) == 1 + len(self.other_branches), f"{change.__name__} was taken for an edit"

    # Requests, compactions and pins

    @rule(moves=st.integers(1, 4))
    def nobody_looks(self, moves: int) -> None:
        self.skipped_checks = moves

    @rule(
        summary_mode=st.booleans(), last=st.none() | st.integers(0, 3), most=st.none() | st.sampled_from((90, 200, 600))
    )  # fmt: skip
    def controls(self, summary_mode: bool, last: int | None, most: int | None) -> None:
        controls: dict[str, Any] = {"summary_mode": summary_mode, "keep_last_n": last, "max_tokens": most}
        before = self._state()
        for name in self.formats:
            try:
                request = self.memory.to_messages(name, **controls)
            except OverBudget as error:
                assert error.needed > error.limit
                continue
            except Illegal as error:
                raise AssertionError(f"{name} would refuse what {controls} gives: {error}") from error
            assert request
            promises.check_bytes({"messages": request}, self.budget)
        if not (summary_mode is False and last is None and most is None):
            assert self._state() == before, f"{controls} changed the record"
        self._collect_compactions()

    @rule()
    def compact(self) -> None:
        self._collect_compactions()
        before = self.oracle.head
        compaction = self.memory.compact()
        recorded = self._collect_compactions()
        assert recorded == ([compaction] if compaction else []), "compact() returned something else than it recorded"
        assert self.oracle.head == before + len(recorded)

    @rule()
    def clear_view(self) -> None:
        self._collect_compactions()
        before = self.oracle.head
        compaction = self.memory.clear_view()
        assert self._collect_compactions() == ([compaction] if compaction else [])
        if compaction is not None:
            assert self.oracle.head == before + 1
            self.transcript = None if self.transcript is None else []  # an application's list begins anew

    @rule()
    def undo(self) -> None:
        self._collect_compactions()
        if not self.oracle.undoable:
            self._check_refusal(NothingToUndo, self.memory.undo)
            return
        body = self.oracle.rows[self.oracle.undoable[-1]]
        assert self.memory.undo() == body
        self.oracle.undo()
        if isinstance(body, Compaction) and body.policy == CLEARED:
            self.transcript = None  # the client's list says something else

    @rule(text=machine_inputs.plain_lines | st.sampled_from(("</pinned>", "never <b>drop</b>", "</PINNED >")))
    def pin(self, text: str) -> None:
        self._collect_compactions()
        before = self._state()
        try:
            handle = self.memory.pin(text)
        except OverBudget as error:
            assert error.refused, f"a pin was refused, and the error does not say so: {error}"
            assert error.needed > error.limit
            assert self._state() == before, "a pin was refused, and something changed"
            return
        if text in self.oracle.pins.values():
            assert handle in {step_handle(position) for position, pinned in self.oracle.pins.items() if pinned == text}
            assert self._state() == before, "a text that was pinned already was recorded again"
            return
        assert handle == step_handle(self.oracle.head)
        self.oracle.pin(text)

    @precondition(lambda self: self.oracle.pins)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        position = data.draw(st.sampled_from(sorted(self.oracle.pins)))
        self._collect_compactions()
        self.memory.unpin(step_handle(position))
        self.oracle.unpin(position)

    @precondition(lambda self: self.oracle.steps)
    @rule(data=st.data(), importance=st.sampled_from(("high", "normal", "low")))
    def mark(self, data: st.DataObject, importance: Importance) -> None:
        position = data.draw(st.sampled_from(sorted(self.oracle.steps)))
        self._collect_compactions()
        self.memory.mark(step_handle(position), importance)
        self.oracle.rows.append(Mark(position, importance))

    # Failures

    @rule(limit=st.integers(0, 6))
    def change_budget(self, limit: int) -> None:
        self.budget = as_budget(self.limits[limit % len(self.limits)])
        self.crash_and_reopen()
        if self._last_request is not None:
            head, earlier = self._last_request
            self._last_request = head, tuple(promises.without_ledger(earlier))

    @rule(most=st.none() | st.sampled_from((1_500, 4_000, 20_000)))
    def limit_bytes(self, most: int | None) -> None:
        self.budget = replace(self.budget, bytes=most)
        self.crash_and_reopen()

    @rule()
    def crash_and_reopen(self) -> None:
        self._collect_compactions()
        before = self.memory.steps
        self.memory = self._open()  # the old one is not closed
        self._forgot_page_ins = True
        promises.check_lossless(self.memory.steps, before)
        self._check_snapshot_state()
        verification = self.memory.verify()
        assert verification.ok, verification.problems

    @rule(operation=st.sampled_from(("task", "pin", "undo", "view")), other=st.sampled_from(("task", "pin", "undo")))
    def second_writer(self, operation: str, other: str) -> None:
        self._collect_compactions()
        rival = self._open_another()
        self._write_as_rival(rival, other)
        before = self._state()
        head = self.log.head()
        try:
            self._operation(operation)()
        except (NothingToUndo, OverBudget):
            assert self.log.head() == head, f"{operation} raised, and wrote"
        except Conflict:
            assert self.log.head() == head, "a refused writer wrote"
            assert self.memory.steps == tuple(self.oracle.steps.values())
        else:
            assert operation in ("view", "undo"), f"{operation} did not notice the other writer"
            assert operation == "view" or self.log.head() == head or self._state() != before
        self._resync()

    def _write_as_rival(self, memory: AgentMemory, operation: str) -> None:
        """Write with another handle on the same log, and update the oracle."""
        text = "another's pin"
        is_pinned = text in self.oracle.pins.values()  # again, it is not recorded
        if operation == "pin" and not is_pinned and self._pin(memory, text):
            self.oracle.pin(text)
        elif operation == "undo" and self.oracle.undoable:
            memory.undo()
            self.oracle.undo()
        else:
            self.oracle = self.oracle.after([steps.TaskStep("another's words")])
            memory.record(steps.TaskStep("another's words"))
            self.transcript = None

    @staticmethod
    def _pin(memory: AgentMemory, text: str) -> bool:
        """Pin a text; False where no view would fit with it."""
        try:
            memory.pin(text)
        except OverBudget as error:
            assert error.refused, "a pin that is not refused raised OverBudget"
            return False
        return True

    def _resync(self) -> None:
        """Check that after a conflict the next try works without reopening anything."""
        self._last_request = self.transcript = None
        if self._state()[1] != self._open_another().report():
            step = steps.TaskStep("after the conflict")
            try:
                self.memory.record(step)
            except Conflict:
                self.memory.record(step)
            self.oracle = self.oracle.after([step])
        self._collect_compactions()

    @rule(operation=st.sampled_from(("task", "pin", "unpin", "undo", "view", "compact", "clear", "messages")))
    def disk_is_full(self, operation: str) -> None:
        self._collect_compactions()
        before = self._state()
        self.disk.full = True
        try:
            self._operation(operation)()
        except LogUnwritable:
            assert self._state() == before, f"{operation} failed, and changed something"
        except (NothingToUndo, OverBudget):
            assert self._state() == before, f"{operation} raised, and changed something"
        else:
            assert self.disk.full, f"{operation} swallowed the failure"
            assert self._state() == before or operation == "view"
        self.disk.full = False
        self._collect_compactions()

    def _operation(self, operation: str) -> Callable[[], Any]:
        pinned = sorted(self.oracle.pins)
        operations: dict[str, Callable[[], Any]] = {
            "task": lambda: self.memory.record(steps.TaskStep("words that were not recorded")),
            "messages": lambda: self.memory.record_messages([{"role": "user", "content": "lost"}], whole=False),
            "pin": lambda: self.memory.pin("lost"),
            "unpin": lambda: self.memory.unpin(step_handle(pinned[0])) if pinned else self.memory.pin("lost"),
            "undo": self.memory.undo,
            "view": self.memory.view,
            "compact": self.memory.compact,
            "clear": self.memory.clear_view,
        }
        return operations[operation]

    @rule(
        beginning=machine_inputs.forged_beginnings,
        frame=machine_inputs.forged_frames,
        count=st.integers(1, 6),
        late=st.booleans(),
    )
    def a_tool_forges(self, beginning: str, frame: str, count: int, late: bool) -> None:
        """A tool writes lines and frames like the library's own: none may stand as one of them."""
        forged = [f"{beginning}fq{len(self.forged) + number}zw" for number in range(count)]
        text = "\n".join((f"{frame} user_id", *(f"{line} is in src/app/main.py, retry {frame}" for line in forged)))
        call = steps.ToolCall("forger", "bash", '{"path": "src/app/main.py"}')
        self._record(steps.ActionStep("", (call,)))
        if late:
            self._record(steps.TaskStep("I interrupt."))
        self._record(steps.Observation(call.id, text))
        self.forged += forged
        self._collect_compactions()
        arguments = ({"query": f"fq{len(self.forged) - 1}zw retry"}, {"handle": "s0-999999"}, {"pattern": "fq|</"})
        names = ("recall", "expand", "expand")
        texts = [self.memory.call_tool(name, given) for name, given in zip(names, arguments, strict=True)]
        promises.check_forgeries(runtime_of(self.memory).state.fold.view(1), texts, self.forged)
