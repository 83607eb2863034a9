"""An AgentMemory for a framework that keeps and edits a history of its own; what the integrations build on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from pagein.context.view.view import View
from pagein.events.entries import Erased
from pagein.formats import Item
from pagein.log.base import LogStore, StoredLog
from pagein.memory._runtime import MemoryRuntime, open_run
from pagein.memory._state import RunState
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.operations.filtered_view import make_filtered_view
from pagein.memory.operations.history import Expansion, expand
from pagein.memory.operations.load import catch_up, reload
from pagein.memory.operations.record import RecordResult, record
from pagein.memory.operations.requests import RenderedRequest, render_again
from pagein.memory.options import Options
from pagein.memory.requests import RequestFilter
from pagein.tokens import Budget, TokenCounter

P = ParamSpec("P")
T = TypeVar("T")


def runtime_of(memory: AgentMemory) -> MemoryRuntime:
    """Return the parts of a memory, for the worker, the server and the conformance suites, which look inside."""
    return memory._runtime  # noqa: SLF001 - the declared way for other packages


def take_turn(
    memory: AgentMemory, operation: Callable[Concatenate[RunState, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run an operation in a turn of a memory. Raises what the operation raises."""
    return memory._runtime.take_turn(operation, *args, **kwargs)  # noqa: SLF001 - the declared way for other packages


class HostMemory(AgentMemory):
    """An AgentMemory that a framework may hold for several calls, rebuild after edits, and read its log from.

    A subclass that overrides ``wrap_log`` reads its log as another one, on every branch.
    """

    def wrap_log(self, log: StoredLog) -> StoredLog:
        """The log of a branch as this memory reads it."""
        return log

    def _wrap_log(self, log: StoredLog) -> StoredLog:
        return self.wrap_log(log)

    def log(self, branch: str | None = None) -> StoredLog:
        """The log of a branch, by default the current one. Raises UnknownBranch, LogClosed."""
        runtime = self._runtime
        with self._runtime.turn_lock:
            runtime.check_open()
            return runtime.log if branch is None else runtime.branch_log(branch)

    @property
    def head(self) -> int:
        """The number of entries this memory has read; its next entry goes there."""
        return self._runtime.state.fold.head

    @property
    def counter(self) -> TokenCounter:
        """The counter of every view's tokens."""
        return self._runtime.state.counter

    @property
    def open_calls(self) -> Sequence[tuple[int, int]]:
        """The calls without a result: the position of the action, and the index of the call in it."""
        return tuple(self._runtime.state.fold.calls.open)

    def set_budget(self, budget: Budget) -> None:
        """Hold every later view to this budget."""
        self._runtime.state.usage.budget = budget

    def note_request(self, view: View, *, summary_mode: bool = False, max_tokens: int | None = None) -> None:
        """Note a view that a framework sends in its own form, as it is in the memory's. A failure is a problem of the run.

        ``summary_mode`` and ``max_tokens`` are those that the view was made with.
        """
        with self._runtime.turn_lock, self._runtime.state.problems.guard("a request is not in the table of requests"):
            self._runtime.render(view, None, RequestFilter(summary_mode, None, max_tokens))
            self._runtime.requests.write()

    def exclusive(self) -> AbstractContextManager[object]:
        """Hold this memory for several calls of this thread; other threads wait."""
        return self._runtime.turn_lock

    def refresh(self, *, rebuild: bool = False) -> None:
        """Fold in the entries of other writers, or with ``rebuild`` the whole log again, and the search index with it.

        Raises LogErased if the run was erased whole.
        """
        with self._runtime.turn_lock:
            self._runtime.take_turn(reload if rebuild else catch_up)
            if rebuild:
                self._runtime.search.clear_if_open()

    def record_new_messages(
        self, messages: Sequence[Any], parse: Callable[[Sequence[Any]], tuple[Item, ...]]
    ) -> RecordResult:
        """Record messages that are all new, in a format of the framework's own. Raises what ``parse`` raises."""
        return self._runtime.take_turn(record, parse(messages), strict=False)

    def filtered_view(self, *, summary_mode: bool = False, max_tokens: int | None = None) -> View:
        """The view; with ``summary_mode`` or ``max_tokens``, as ``to_messages`` takes them, another that records nothing."""
        return self._runtime.take_turn(make_filtered_view, RequestFilter(summary_mode, None, max_tokens))


class RecordedRun:
    """A run of a read-only store: its log, requests and originals. Unlike a memory it does not fold the log to open it."""

    def __init__(self, store: LogStore, session: str, **options: Unpack[Options]) -> None:
        self._runtime = MemoryRuntime(open_run(store, options, session, None), options)
        self.log, self.table = self._runtime.log, self._runtime.requests.table
        self._head = 0

    def request(self, number: int | None = None) -> RenderedRequest:
        """See ``AgentMemory.request``."""
        runtime, head = self._runtime, self.log.head()
        news = self.log.read(self._head, head) if self._head else ()
        if head < self._head or any(isinstance(entry.body, Erased) for entry in news):
            runtime.state.past.clear()
        self._head = head
        return render_again(runtime.state, runtime.requests.find(number))

    def expand(self, handle: str, answers: Mapping[int, list[int]]) -> Expansion:
        """See ``AgentMemory.expand``; ``answers`` has the positions of the results of each action."""
        runtime, fold = self._runtime, self._runtime.state.fold
        fold.head, fold.calls.answers = self.log.head(), dict(answers)
        return expand(runtime.state, handle)

    def close(self) -> None:
        """Close its logs; a second call does nothing."""
        self._runtime.close()
