"""What the machine watches: a memory, the oracle beside it, and every promise, held after every move."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

from hypothesis.stateful import RuleBasedStateMachine, invariant

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.base import Policy
from pagein.context.view.view import View
from pagein.errors import Illegal, OverBudget
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, SystemPromptStep
from pagein.formats import format_named
from pagein.log.base import Log
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.branches import Grove, on_branch
from pagein.memory.options import Options
from pagein.models.base import Model
from pagein.testing import promises
from pagein.testing.machine_moves import Disk, Unreliable
from pagein.testing.oracle import Oracle
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.encodings import Encoding
from pagein.tokens.requests import message_tokens


class Watched(RuleBasedStateMachine):
    """A memory under test: how it is opened, what it is compared with, and the promises. The moves are a subclass's."""

    memory: AgentMemory
    budget: Budget

    limits: ClassVar[Sequence[int | Budget]] = (
        160, 260, 400, 1_200, 3_000, Budget(700, high=0.8, low=0.5), Budget(900, output=200, margin=0.1),
    )  # fmt: skip
    """The budgets that are tried."""

    formats: ClassVar[Sequence[str]] = promises.FORMATS
    """The wire formats that every request is judged by."""

    def __init__(self) -> None:
        super().__init__()
        self._folder: Path | None = None
        self._kept: dict[str, InMemoryLog] = {}
        self.disk = Disk()
        self._opened: list[Log] = []
        self._counter = self.counter()
        self.oracle = Oracle()
        self.transcript: list[dict[str, Any]] | None = None
        self.quiet = 0
        self._smallest = max(as_budget(each).limit for each in self.limits)
        self._sent: tuple[int, tuple[Message, ...]] | None = None

    # What a user may put in

    @property
    def folder(self) -> Path:
        """A folder of this run, removed after it."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="pagein-machine-"))
        return self._folder

    def open_log(self) -> Log:
        """The log of this run: every call opens the same one."""
        return self._in_memory("default")

    @property
    def log(self) -> Log:
        """The log of the branch that the run is on."""
        return self.memory._log  # noqa: SLF001 - what is watched

    def policy(self) -> str | Policy:
        """The policy under test."""
        return "ladder"

    def counter(self) -> TokenCounter:
        """What counts the tokens."""
        return Encoding("o200k_base")

    def author(self) -> Model | None:
        """The model that writes summaries; nobody unless told otherwise."""
        return None

    def options(self) -> Options:
        """What else the memory is told when it is opened."""
        return {}

    def _in_memory(self, session: str) -> InMemoryLog:
        return self._kept.setdefault(session, InMemoryLog(session=session))

    def _open(self) -> AgentMemory:
        self._smallest = min(self._smallest, self.budget.limit)
        return self._another(**Options(policy=self.policy(), summarizer=self.author()) | self.options())

    def _another(self, *, quick: bool = True, **options: Unpack[Options]) -> AgentMemory:
        """Another memory of the run, on the branch it goes on with; not ``quick``: with no snapshot to open it from."""
        disk = self.disk if quick else Disk()
        root = Unreliable(self.open_log(), disk)
        self._opened.append(root)
        grove = Grove(root, lambda session: Unreliable(self._in_memory(session), disk))
        told = Options(counter=self._counter, budget=self.budget) | options
        memory = AgentMemory(on_branch(grove), **told)
        memory._branches = grove  # noqa: SLF001 - as open() does
        return memory

    def teardown(self) -> None:
        for log in self._opened:
            log.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # The promises, after every move

    @invariant()
    def promises_hold(self) -> None:
        if not hasattr(self, "memory"):
            return
        self._record_holds()
        if self.quiet:
            self.quiet -= 1
            return
        self._look()

    def _record_holds(self) -> None:
        self._found()
        entries = list(self.log.read())
        expected = self.oracle.bodies()
        assert len(entries) == len(expected), f"the log has {len(entries)} entries, not {len(expected)}"
        for entry, body in zip(entries, expected, strict=True):
            assert entry.body == body, f"entry {entry.position} is {entry.body!r}, and was {body!r}"
        promises.lossless(self.memory.steps, [self.oracle.steps[at] for at in sorted(self.oracle.steps)])

    def _look(self) -> None:
        before = self._state()
        try:
            view = self.memory.view()
        except OverBudget as error:
            assert self._state() == before, "OverBudget was raised, and something changed"
            self._is_justified(error)
            return
        for number, _ in enumerate(self._found()):
            promises.progress(list(self.log.read()), self.oracle.head - 1 - number, self._counter)
        self._view_holds(view)
        self._request_holds(view)
        settled = self._state()
        assert self.memory.view() == view, "two views in a row differ"
        assert self._state() == settled, "the second of two views recorded something"
        self._sent = (self.oracle.head, promises.settled_prefix(view))

    def _view_holds(self, view: View) -> None:
        oracle = self.oracle
        assert view.limit == self.budget.limit
        promises.within_budget(view, self._counter)
        promises.well_formed(view.messages(), self.formats)
        promises.only_to_its_maker(view, self.formats)
        promises.tiled(view, oracle.seen, oracle.notes)
        promises.retrievable(self.memory.expand, view, oracle.steps, oracle.notes)
        promises.replayed(list(self.log.read()), view, self._counter)
        promises.verbatim(
            view, oracle.pins.values(), oracle.tasks(), self._counter, self.formats,
            half=0 if self._floored() else self._smallest // 2,
        )  # fmt: skip
        promises.data_is_data(view, oracle.systems)

    def _request_holds(self, view: View) -> None:
        for name in self.formats:
            try:
                request = self.memory.to_messages(name)
            except Illegal as error:
                raise AssertionError(str(error)) from error
            assert request == format_named(name).render(view.messages())["messages"]
        if self._sent is not None:
            head, earlier = self._sent
            kinds = {type(row).__name__ for row in self.oracle.rows[head:]}
            if not kinds & {"Compaction", "Undo", "Unpin"}:
                promises.prefix_kept(earlier, view.messages())

    def _floored(self) -> bool:
        """True where the last resort had to be taken, which may clip and fold the user's earlier words."""
        rows = (self.oracle.rows[at] for at in self.oracle.compactions)
        return any("floor" in row.policy for row in rows)

    def _is_justified(self, error: OverBudget) -> None:
        """What may not leave, with a little for what stands for the rest, is indeed over the budget."""
        assert error.needed > error.limit == self.budget.limit
        fixed = [Message("system", each.content, extra=each.extra) for each in self.oracle.systems]
        fixed += [
            Message("user", step.content) for step in self.oracle.steps.values() if isinstance(step, SystemPromptStep)
        ][len(fixed) :]  # fmt: skip
        fixed += [Message("user", f"<pinned>\n{text}\n</pinned>") for text in self.oracle.pins.values()]
        fixed += [Message("user", step.content) for _, step in self.oracle.tasks()[-1:]]
        cost = sum(message_tokens(each, self._counter) for each in fixed)
        acted = [each for each in self.oracle.steps.values() if isinstance(each, ActionStep)]
        heads = len(acted[-1].tool_calls) if acted else 0
        slack = 140 + 20 * len(fixed) + 90 * heads
        assert cost + slack > self.budget.limit, (
            f"OverBudget says {error.needed} tokens are needed; what may not leave costs {cost}, the limit is "
            f"{self.budget.limit}, and {', '.join(error.steps)} are said to stay"
        )

    # Small things

    def _found(self) -> list[Any]:
        return list(self.oracle.find(self.log.read(self.oracle.head)))

    def _state(self) -> tuple[Any, ...]:
        """Everything that a call which raises may not change."""
        # What went wrong in the background may be told at any time.
        return self.log.head(), replace(self.memory.report(), problems=()), self.memory.steps

    def _refused(self, error: type[Exception], call: Callable[[], Any]) -> None:
        before = self._state()
        try:
            call()
        except error:
            assert self._state() == before, f"{error.__name__} was raised, and something changed"
        else:
            raise AssertionError(f"{error.__name__} was due, and not raised")

    def _sent_tokens(self) -> int:
        return max(1, self.memory.report().tokens)


def as_budget(limit: int | Budget) -> Budget:
    """A limit in tokens as a budget."""
    return limit if isinstance(limit, Budget) else Budget(limit)
