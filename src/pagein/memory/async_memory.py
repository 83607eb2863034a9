"""AsyncAgentMemory: AgentMemory for async code. The operations are the same; blocking effects run in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from pagein._common.flows import adrive
from pagein.context.costs import RunCost
from pagein.context.view.view import Report, View
from pagein.events.entries import Compaction, FactScope, Importance
from pagein.events.replay import replay
from pagein.events.steps import Observation, Step
from pagein.formats import FormatName, keywords
from pagein.log.base import Log, Verification
from pagein.memory import checkpoints, erasure
from pagein.memory._effects import AnyEffect, BeginJob, CollectJob, Flow
from pagein.memory._memory_base import MemoryBase
from pagein.memory._runtime import MemoryRuntime, OpenedRun
from pagein.memory._state import RunState
from pagein.memory._turn import close_memory, open_memory, run_turn
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.background.summary_writer import SummaryTask
from pagein.memory.branches import Branch, Comparison
from pagein.memory.operations import branch as branching
from pagein.memory.operations import compact as compacting
from pagein.memory.operations import edit as editing
from pagein.memory.operations import history, pins
from pagein.memory.operations.facts_block import save_procedure
from pagein.memory.operations.filtered_view import make_filtered_view
from pagein.memory.operations.history import Expansion, full_step, succinct_step
from pagein.memory.operations.load import do_nothing
from pagein.memory.operations.pins import LedgerEntry
from pagein.memory.operations.record import RecordResult, record
from pagein.memory.operations.requests import RenderedRequest, render_again
from pagein.memory.operations.summarize import collect_summary
from pagein.memory.operations.text_protocol import TextObservations
from pagein.memory.operations.view import make_view
from pagein.memory.options import Options, RecallFilters, check_count, check_usage
from pagein.memory.requests import RequestFilter, RequestRecord
from pagein.memory.tools import call_tool

if TYPE_CHECKING:
    from pagein.facts.fact import Fact
    from pagein.facts.ranking import RankedFact
    from pagein.memory.checkpoints import CheckpointInfo, RunStatus
    from pagein.memory.erasure import Erasure
    from pagein.search.base import Hit

P = ParamSpec("P")
T = TypeVar("T")


class AsyncAgentMemory(MemoryBase):
    """AgentMemory for async code: the same methods with the same docstrings, awaited; the store is reached from a thread.

    ``async with AsyncAgentMemory.open("run.db", budget=80_000) as memory:``, or ``await`` what ``open`` returns. Tasks
    take turns. A call that is cancelled before its turn changes nothing; one that has begun is finished. ``steps`` is
    awaited too.
    """

    def __init__(self, log: Log | OpenedRun, **options: Unpack[Options]) -> None:
        self._runtime = MemoryRuntime(log, options)
        self._turn_lock = asyncio.Lock()
        self._is_loaded = False
        model, summarizer = self._runtime.model, self._runtime.state.summaries.summarizer
        self._summary_task: SummaryTask | None = None
        if model is not None and summarizer is not None:
            self._summary_task = SummaryTask(model, summarizer, self._runtime.summary_account)
        self._runtime.summary_writer = self._summary_task

    async def _perform(self, effect: AnyEffect) -> Any:
        if isinstance(effect, BeginJob | CollectJob):
            # Summaries are written in a task of this loop; any other effect may block.
            result = self._runtime.perform(effect)
            return await result if inspect.isawaitable(result) else result
        return await asyncio.to_thread(self._runtime.perform, effect)

    async def _take_turn(
        self, operation: Callable[Concatenate[RunState, P], Flow[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        async with self._turn_lock:
            self._runtime.check_open()
            # A write in a thread cannot be called back. So a turn that has begun is finished before its cancellation
            # is raised: the memory never knows less than the log.
            flow = self._finish_turn(operation.__name__, lambda run: operation(run, *args, **kwargs))
            turn = asyncio.ensure_future(flow)
            try:
                return await asyncio.shield(turn)
            except asyncio.CancelledError:
                while not turn.done():
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.wait({turn})
                if not turn.cancelled():
                    turn.exception()
                raise

    async def _finish_turn(self, name: str, operation: Callable[[RunState], Flow[T]]) -> T:
        if not self._is_loaded:
            self._runtime.facts.loop = asyncio.get_running_loop()
            await adrive(open_memory(self._runtime), self._perform)
            self._is_loaded = True
        return await adrive(run_turn(self._runtime, name, operation), self._perform)

    def report(self) -> Report:
        return self._runtime.report()

    async def cost(self) -> RunCost:
        return await asyncio.to_thread(self._runtime.requests.cost)

    # Recording

    async def record(self, *items: Step | Observation, importance: Importance | None = None) -> RecordResult:
        return await self._take_turn(record, items, strict=True, importance=importance)

    async def record_messages(
        self,
        messages: Any,
        format: FormatName | None = None,
        *,
        whole: bool | None = None,
        usage: Any = None,
        observations: TextObservations = None,
    ) -> RecordResult:
        report = None if usage is None else check_usage(usage)
        transcript = self._runtime.read_transcript(messages, format, observations)
        return await self._take_turn(record, transcript, strict=False, whole=whole, usage=report)

    async def pin(self, text: str) -> str:
        return await self._take_turn(pins.pin, text)

    async def mark(self, handle: str, importance: Importance = "high") -> None:
        await self._take_turn(pins.mark, handle, importance)

    async def unpin(self, handle: str) -> None:
        await self._take_turn(pins.unpin, handle)

    async def ledger(self) -> tuple[LedgerEntry, ...]:
        return await self._take_turn(pins.ledger)

    async def save_procedure(self, task: str | None = None) -> Fact:
        return await self._take_turn(save_procedure, task)

    async def find_procedures(self, query: str, limit: int = 2) -> tuple[RankedFact, ...]:
        return await asyncio.to_thread(lambda: self.facts.find_procedures(query, limit=limit))

    async def call_tool(self, name: str, arguments: str | Mapping[str, Any] = "{}") -> str:
        return await self._take_turn(call_tool, name, arguments, self._runtime.clock())

    # The view

    async def view(self, *, reserve: int = 0, tools: Any = None) -> View:
        return await self._take_turn(make_view, self._runtime.request_room(reserve, tools))

    async def to_messages(
        self,
        format: FormatName | None = None,
        *,
        summary_mode: bool = False,
        keep_last_n: int | None = None,
        max_tokens: int | None = None,
        reserve: int = 0,
        tools: Any = None,
    ) -> list[Any]:
        room = self._runtime.request_room(reserve, tools, format)
        filter = RequestFilter(summary_mode, check_count(keep_last_n), max_tokens)
        view = await self._take_turn(make_filtered_view, filter, room)
        messages: list[Any] = self._runtime.render(view, format, filter)["messages"]
        await asyncio.to_thread(self._runtime.requests.write)
        return messages

    async def to_request(
        self, format: FormatName | None = None, *, reserve: int = 0, tools: Any = None
    ) -> dict[str, Any]:
        view = await self._take_turn(make_view, self._runtime.request_room(reserve, tools, format))
        request = self._runtime.render(view, format)
        await asyncio.to_thread(self._runtime.requests.write)
        return keywords(format or self._runtime.format.name, request)

    async def compact(self, *, wait: bool = False) -> Compaction | None:
        return await self._take_turn(compacting.compact, wait=wait)

    async def clear_view(self) -> Compaction | None:
        return await self._take_turn(compacting.clear_view)

    async def undo(self) -> Compaction:
        return await self._take_turn(compacting.undo)

    async def wait(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as in AgentMemory
        is_done = await self._take_turn(collect_summary, timeout)
        return is_done and await asyncio.to_thread(self._runtime.wait, timeout)

    # History

    @property
    async def steps(self) -> tuple[Step, ...]:
        return self._runtime.revive(await self._take_turn(history.read_steps))

    async def get_full_steps(self) -> list[dict[str, Any]]:
        return [full_step(position, step) for position, step in await self._take_turn(history.read_steps)]

    async def get_succinct_steps(self) -> list[dict[str, Any]]:
        return [succinct_step(position, step) for position, step in await self._take_turn(history.read_steps)]

    async def return_full_code(self) -> str:
        return history.full_code(await self._take_turn(history.read_steps))

    async def replay(self, detailed: bool = False, write: Callable[[str], object] = print) -> None:
        replay((step for _, step in await self._take_turn(history.read_steps)), write, detailed=detailed)

    async def edit(self, handle: str, step: Step | Observation | str) -> Compaction:
        return await self._take_turn(editing.edit, handle, step)

    async def remove(self, handle: str) -> Compaction:
        return await self._take_turn(editing.remove, handle)

    async def reset(self) -> Branch:
        return await self._take_turn(branching.reset, self._runtime.clock())

    async def expand(self, handle: str | int) -> Expansion:
        return await self._take_turn(history.expand, handle)

    async def recall(self, query: str, limit: int = 10, **filters: Unpack[RecallFilters]) -> tuple[Hit, ...]:
        return await self._take_turn(history.recall, query, limit, filters, self._runtime.clock())

    async def verify(self) -> Verification:
        return await self._take_turn(history.verify)

    # Requests

    async def requests(self, after: int = 0, limit: int | None = None) -> tuple[RequestRecord, ...]:
        return await asyncio.to_thread(self._runtime.requests.read, after, limit)

    async def request(self, number: int | None = None) -> RenderedRequest:
        record = await asyncio.to_thread(self._runtime.requests.find, number)
        return await self._take_turn(render_again, record)

    async def note_outcome(
        self,
        outcome: str = "",
        *,
        number: int | None = None,
        usage: Any = None,
        seconds: Mapping[str, float] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        await asyncio.to_thread(
            self._runtime.requests.note_outcome, outcome, number=number, usage=usage, seconds=seconds, notes=notes
        )

    # Checkpoints

    async def checkpoint(self, name: str, state: Any = None) -> str:
        return await self._take_turn(checkpoints.checkpoint, name, state)

    async def checkpoints(self) -> tuple[CheckpointInfo, ...]:
        return await self._take_turn(checkpoints.checkpoints)

    async def status(self, name: str | None = None) -> RunStatus:
        return await self._take_turn(checkpoints.status, name)

    async def resume(self, name: str | None = None, *, fresh: bool = False) -> RunStatus:
        return await self._take_turn(checkpoints.resume, name, fresh=fresh)

    # Branches

    async def fork(self, at: int | str | None = None, name: str | None = None) -> Branch:
        return await self._take_turn(branching.fork, at, name, self._runtime.clock())

    async def switch(self, branch: str) -> None:
        await self._take_turn(branching.switch, branch, self._runtime.clock())

    async def branches(self) -> tuple[Branch, ...]:
        return await self._take_turn(branching.list_branches)

    async def drop(self, branch: str) -> None:
        await self._take_turn(branching.drop, branch, self._runtime.clock())

    async def rewind(self, to: int | str) -> Branch:
        return await self._take_turn(branching.rewind, to, self._runtime.clock())

    async def compare(self, left: str, right: str) -> Comparison:
        return await self._take_turn(branching.compare, left, right)

    # Erasure

    async def erase(self, *handles: str | int, reason: str = "") -> Erasure:
        return await self._take_turn(erasure.erase, handles, reason)

    async def erase_facts(self, scope: FactScope = "user", *, reason: str = "") -> Erasure:
        return await self._take_turn(erasure.erase_facts, scope, reason)

    async def erase_session(self, *, reason: str = "", trace: bool = True) -> Erasure:
        return await self._take_turn(erasure.erase_session, reason, trace=trace)

    # Closing

    async def close(self) -> None:
        runtime = self._runtime
        async with self._turn_lock:
            if self._is_loaded and not runtime.is_closed:
                await adrive(close_memory(runtime), self._perform)
            runtime.is_closed = True
            if self._summary_task is not None:
                await self._summary_task.close()
            await asyncio.to_thread(runtime.close)

    async def _open(self) -> Self:
        await self._take_turn(do_nothing)
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()


for _name, _method in vars(AsyncAgentMemory).items():
    if not _name.startswith("_"):
        _method.__doc__ = getattr(AgentMemory, _name).__doc__
