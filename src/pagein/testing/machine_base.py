"""Base classes of the stateful machine: a memory, its oracle, the promises, and moves that fork, rewind and erase."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pagein.backends.memory import InMemoryStore
from pagein.context.compaction.base import Policy, PolicyName
from pagein.context.view.view import View
from pagein.errors import Illegal, OverBudget
from pagein.events.entries import Checkpoint, Compaction, Erased, FactsShown
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, Opaque, PlanningStep, Step, SystemPromptStep, TaskStep, as_parts
from pagein.formats import FormatName, format_named
from pagein.log.base import Log
from pagein.memory._state import PageInState
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.branches import Branches
from pagein.memory.erasure.redact import ERASED
from pagein.memory.host_memory import runtime_of, take_turn
from pagein.memory.operations.load import write_snapshot
from pagein.memory.options import Options
from pagein.memory.snapshots import decode_body, encode_snapshot
from pagein.models.base import Model
from pagein.testing import promises
from pagein.testing.machine_inputs import LogDisk, UnreliableLog
from pagein.testing.oracle import Oracle
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.budget import as_budget
from pagein.tokens.bytes import BYTES_A_UNIT, ByteCounter
from pagein.tokens.counter import message_tokens
from pagein.tokens.encodings import Encoding

LIBRARY_ENTRIES = (Compaction, Checkpoint, FactsShown)
"""Entries that the library writes, and may rewrite without erased text."""


class WatchedMemory(RuleBasedStateMachine):
    """A memory under test, the oracle it is compared with, and the promises. Subclasses add the moves."""

    memory: AgentMemory
    budget: Budget

    limits: ClassVar[Sequence[int | Budget]] = (
        160, 260, 400, 1_200, 3_000, Budget(700, high=0.8, low=0.5), Budget(900, output=200, margin=0.1),
    )  # fmt: skip
    """The budgets that the machine tries."""

    formats: ClassVar[Sequence[FormatName]] = promises.FORMATS
    """The wire formats that every request is rendered in."""

    def __init__(self) -> None:
        super().__init__()
        self._folder: Path | None = None
        self._in_memory = InMemoryStore()
        self.disk = LogDisk()
        self._logs: list[Log] = []
        self._counter = self.counter()
        self.oracle = Oracle()
        self.transcript: list[dict[str, Any]] | None = None
        self.skipped_checks = 0
        self.forged: list[str] = []
        """Beginnings of lines that tools forged, each with a word of its own."""
        self._smallest_limit = max(as_budget(limit).limit for limit in self.limits)
        self._last_request: tuple[int, tuple[Message, ...]] | None = None
        self._waited = 0.0
        """Seconds by which the run's clock is ahead."""
        self._forgot_page_ins = False
        """True after a crash: those of a run that was closed are kept in its snapshot, the others are looked for anew."""

    # Overridable parts

    @property
    def folder(self) -> Path:
        """The folder of this run, removed after it."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="pagein-machine-"))
        return self._folder

    def open_log(self) -> Log:
        """Open the log of this run; every call opens the same one."""
        return self._in_memory.log()

    @property
    def log(self) -> Log:
        """The log of the branch that the run is on."""
        return runtime_of(self.memory).log

    def policy(self) -> PolicyName | Policy:
        """Return the policy under test."""
        return "ladder"

    def counter(self) -> TokenCounter:
        """Return the token counter."""
        return Encoding("o200k_base")

    def summary_model(self) -> Model | None:
        """Return the model that writes summaries, None by default."""
        return None

    def options(self) -> Options:
        """Return further options of the memory."""
        return {}

    def _open(self) -> AgentMemory:
        self._smallest_limit = min(self._smallest_limit, self.budget.limit if self.budget.bytes is None else 0)
        return self._open_another(
            **Options(policy=self.policy(), summarizer=self.summary_model(), spend=None) | self.options()
        )

    def _open_another(self, *, quick: bool = True, **options: Unpack[Options]) -> AgentMemory:
        """Open another memory of the run, on its current branch; without ``quick``, without a snapshot."""
        disk = self.disk if quick else LogDisk()
        root = UnreliableLog(self.open_log(), disk)
        self._logs.append(root)
        branches = Branches(root)
        arguments = Options(counter=self._counter, budget=self.budget, clock=self._clock) | options
        memory = AgentMemory(branches.select(), **arguments)
        runtime_of(memory).branches = branches
        return memory

    def teardown(self) -> None:
        for log in self._logs:
            log.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _clock(self) -> float:
        return time.time() + self._waited

    # The promises, after every move

    @invariant()
    def promises_hold(self) -> None:
        if not hasattr(self, "memory"):
            return
        self._check_record()
        if self.skipped_checks:
            self.skipped_checks -= 1
            return
        self._check_next_view()

    def _check_record(self) -> None:
        self._collect_compactions()
        entries = list(self.log.read())
        expected = self.oracle.rows
        assert len(entries) == len(expected), f"the log has {len(entries)} entries, not {len(expected)}"
        for entry, body in zip(entries, expected, strict=True):
            assert entry.body == body, f"entry {entry.position} is {entry.body!r}, and was {body!r}"
        promises.check_lossless(self.memory.steps, [self.oracle.steps[at] for at in sorted(self.oracle.steps)])

    def _check_next_view(self) -> None:
        before = self._state()
        try:
            view = self.memory.view()
        except OverBudget as error:
            assert self._state() == before, "OverBudget was raised, and something changed"
            self._check_over_budget(error)
            return
        for number, _ in enumerate(self._collect_compactions()):
            promises.check_progress(
                list(self.log.read()), self.oracle.head - 1 - number, self._counter,
                has_byte_limit=self.budget.bytes is not None,
            )  # fmt: skip
        self._check_view(view)
        self._check_requests(view)
        settled = self._state()
        assert self.memory.view() == view, "two views in a row differ"
        assert self._state() == settled, "the second of two views recorded something"
        self._last_request = (self.oracle.head, promises.settled_prefix(view))
        self._forgot_page_ins = False

    def _check_view(self, view: View) -> None:
        oracle = self.oracle
        assert view.limit == self.budget.limit
        promises.check_budget(view, self._counter)
        promises.check_well_formed(view.messages(), self.formats)
        promises.check_opaque_content(view, self.formats)
        promises.check_tiling(view, oracle.shown_steps, oracle.notes)
        promises.check_retrievable(self.memory.expand, view, oracle.steps, oracle.notes)
        is_limited = self.budget.bytes is not None
        promises.check_replay(list(self.log.read()), view, self._counter, may_lack_ledger=is_limited)
        promises.check_verbatim(
            view, oracle.pins.values(), oracle.tasks(), self._counter, self.formats,
            half=0 if self._may_clip_earlier_words() else self._smallest_limit // 2,
        )  # fmt: skip
        promises.check_data_framing(view, oracle.systems)
        promises.check_forgeries(view, (), self.forged)
        if not is_limited:
            promises.check_open_work(view, oracle.shown_steps)

    def _check_requests(self, view: View) -> None:
        for name in self.formats:
            try:
                request = self.memory.to_messages(name)
            except Illegal as error:
                raise AssertionError(str(error)) from error
            rendered = format_named(name).render(view.messages())
            assert request == rendered["messages"]
            promises.check_bytes(rendered, self.budget)
        self._check_requests_again(request)
        if self._last_request is not None:
            head, earlier = self._last_request
            kinds = {type(row).__name__ for row in self.oracle.rows[head:]}
            if not kinds & {"Compaction", "Undo", "Unpin"}:
                promises.check_prefix(earlier, view.messages(), with_page_ins=not self._forgot_page_ins)
                if self.budget.bytes is None:
                    promises.check_answers(earlier, view, self._counter)

    def _check_requests_again(self, request: list[Any]) -> None:
        """Check that the last request is rendered again from the log as it was."""
        if self.memory.report().problems:
            return  # on a full disk it may not be in the table
        again = self.memory.request()
        assert not again.problem, f"request {again.record.number}: {again.problem}"
        assert again.request["messages"] == request, f"request {again.record.number} is another one"

    def _may_clip_earlier_words(self) -> bool:
        """Report whether earlier user messages may be clipped and folded: by the floor, or for a long one that was erased since."""
        rows, compactions = self.oracle.rows, self.oracle.compactions
        last = max(compactions, default=-1)
        return any("floor" in rows[at].policy for at in compactions) or any(
            isinstance(row, TaskStep) and row.content == ERASED for row in rows[: max(0, last)]
        )

    def _check_over_budget(self, error: OverBudget) -> None:
        """Check that the kept content, with an allowance for the rest, does exceed the budget."""
        limit, counter, call_cost = self.budget.limit, self._counter, 90
        if error.unit == "bytes":
            limit, counter, call_cost = self.budget.bytes or 0, ByteCounter(), 180  # JSON's keys and signs
        assert error.needed > error.limit == limit
        fixed = [Message("system", entry.content, extra=entry.extra) for entry in self.oracle.systems]
        fixed += [
            Message("user", step.content) for step in self.oracle.steps.values() if isinstance(step, SystemPromptStep)
        ][len(fixed) :]  # fmt: skip
        fixed += [Message("user", f"<pinned>\n{text}\n</pinned>") for text in self.oracle.pins.values()]
        fixed += [Message("user", step.content) for _, step in self.oracle.tasks()[-1:]]
        actions = [step for step in self.oracle.steps.values() if isinstance(step, ActionStep)][-1:]
        thinking = (part for step in actions for part in as_parts(step.content) if isinstance(part, Opaque))
        fixed += [Message("assistant", (part,)) for part in thinking]
        cost = sum(message_tokens(message, counter) for message in fixed)
        call_count = sum(len(step.tool_calls) for step in actions)
        slack = 140 + 20 * len(fixed) + call_cost * call_count
        size = 1 if error.unit == "tokens" else BYTES_A_UNIT
        assert (cost + slack) * size > limit, (
            f"OverBudget says {error.needed} {error.unit} are needed; what may not leave costs {cost * size}, the limit is "
            f"{limit}, and {', '.join(error.steps)} are said to stay"
        )

    # Helpers

    def _collect_compactions(self) -> list[Any]:
        return list(self.oracle.add_compactions(self.log.read(self.oracle.head)))

    def _state(self) -> tuple[Any, ...]:
        """Return everything that a failing call may not change."""
        # Problems of background work may appear at any time.
        return self.log.head(), replace(self.memory.report(), problems=()), self.memory.steps

    def _check_refusal(self, error: type[Exception], call: Callable[[], Any]) -> None:
        before = self._state()
        try:
            call()
        except error:
            assert self._state() == before, f"{error.__name__} was raised, and something changed"
        else:
            raise AssertionError(f"{error.__name__} was due, and not raised")


class BranchingMachine(WatchedMemory):
    """A machine whose run is reopened, forked and rewound."""

    def __init__(self) -> None:
        super().__init__()
        self.other_branches: dict[str, Oracle] = {}
        """The oracles of the other branches, by name."""

    @rule(data=st.data(), how=st.sampled_from(("snapshot", "back", "branch")))
    def goes_on_elsewhere(self, data: st.DataObject, how: str) -> None:
        self._collect_compactions()
        self._finish_background_work()
        if how == "snapshot" or (how == "branch" and not self.other_branches):
            take_turn(self.memory, write_snapshot)
        elif how == "back":
            self._rewind(data.draw(st.integers(0, self.oracle.head)))
        else:
            self._switch(data.draw(st.sampled_from(sorted(self.other_branches))))
        self._check_snapshot_state()

    def _finish_background_work(self) -> None:
        """Wait for background work; a subclass that has some overrides this."""

    def _rewind(self, at: int) -> None:
        self.other_branches[self._current_branch()] = self.oracle
        self.memory.rewind(at)
        self.oracle = Oracle.from_rows(self.oracle.rows[:at])
        self.transcript, self._last_request = None, None

    def _switch(self, name: str) -> None:
        self.other_branches[self._current_branch()] = self.oracle
        self.memory.switch(name)
        self.oracle = self.other_branches.pop(name)
        self.transcript, self._last_request = None, None

    def _current_branch(self) -> str:
        return next(branch.name for branch in self.memory.branches() if branch.is_current)

    def _check_snapshot_state(self) -> None:
        """Check that opening from a snapshot gives the same state as the whole log."""
        quick, whole = (memory_state(self._open_another(quick=use_snapshot)) for use_snapshot in (True, False))
        for part, value in whole.items():
            assert quick[part] == value, f"{part} is {quick[part]} from a snapshot, and {value} from the log"


class ErasingMachine(BranchingMachine):
    """A machine that erases steps on every branch. ``erased_words`` are unique to the erased steps."""

    def __init__(self) -> None:
        super().__init__()
        self.secret_count = 0
        self.erased_words: list[str] = []

    @rule(kind=st.sampled_from((TaskStep, PlanningStep, ActionStep)), lines=st.integers(1, 12))
    def says_a_secret(self, kind: type[TaskStep | PlanningStep | ActionStep], lines: int) -> None:
        self._collect_compactions()
        self.secret_count += 1
        text = "\n".join(f"peer at row {number} of zq{self.secret_count}xw" for number in range(lines))
        step = kind(text)
        self.oracle = self.oracle.after([step])
        self.memory.record(step)
        self.transcript = None

    @rule(data=st.data())
    def erases(self, data: st.DataObject) -> None:
        if not any(map(_secret_word, self.oracle.rows)):
            self.says_a_secret(PlanningStep, 3)
        self._collect_compactions()
        self._finish_background_work()
        at = data.draw(st.sampled_from([at for at, row in enumerate(self.oracle.rows) if _secret_word(row)]))
        word = _secret_word(self.oracle.rows[at])
        other = self._open_another()  # keeps the log open meanwhile
        assert word in repr(other.steps)
        erased = self.memory.erase(at, reason="asked for")
        assert erased.entries, f"s{at} was erased, and no entry is reported"
        self.erased_words.append(word)
        promises.check_erasure(other, (word,))
        branches = runtime_of(self.memory).branches
        self.oracle = self._oracle_after_erasure(word, self.oracle, self.log)
        self.other_branches = {
            name: self._oracle_after_erasure(word, oracle, branches.log(name))
            for name, oracle in self.other_branches.items()
        }
        self.transcript, self._last_request = None, None
        verification = self.memory.verify()
        assert verification.ok, verification.problems
        assert verification.erased, "verify() reports no erased entry"
        self._check_snapshot_state()

    def _oracle_after_erasure(self, word: str, oracle: Oracle, log: Log) -> Oracle:
        """Return the oracle of a branch after an erasure: entries with the word are marked, all others unchanged."""
        entries = list(log.read())
        rows = [entry.body for entry in entries]
        for entry, expected in zip(entries, oracle.rows, strict=False):
            if entry.body != expected:
                assert isinstance(expected, LIBRARY_ENTRIES) or word in repr(expected), (
                    f"entry {entry.position} was {expected!r}"
                )
                assert type(entry.body) is type(expected)
                assert entry.erased is not None, f"entry {entry.position} changed, and is not marked as erased"
        assert all(isinstance(row, Erased) for row in rows[oracle.head :])
        return Oracle.from_rows(rows)

    def _check_record(self) -> None:
        super()._check_record()
        promises.check_erasure(self.memory, self.erased_words)


def memory_state(memory: AgentMemory) -> dict[str, object]:
    """Return the state of a memory, part by part."""
    run_state = runtime_of(memory).state
    run_state.fold.learned.learn_ahead()  # it learns when it is asked
    parts = dict(decode_body(encode_snapshot(run_state.log, PageInState())))
    del parts["ends"], parts["blocks"]  # depend on what was counted and shown
    fold = parts.pop("fold")
    return {**fold, **parts, "view": runtime_of(memory).state.fold.view(1), "steps": memory.steps}


def _secret_word(row: object) -> str:
    """Return the word that only this step has; "" for other rows."""
    text = str(getattr(row, "content", "")) if isinstance(row, Step) else ""
    return text.rpartition(" ")[2] if text.endswith("xw") and " zq" in text else ""
