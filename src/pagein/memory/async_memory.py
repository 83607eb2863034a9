"""AsyncAgentMemory: AgentMemory for async code. The operations are the same; blocking effects run in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from pagein._common.flows import adrive
from pagein.context.view.view import Report
from pagein.events.steps import Step
from pagein.log.base import Log
from pagein.memory._effects import AnyEffect, BeginJob, Call, CollectJob, Flow
from pagein.memory._memory_base import MemoryBase
from pagein.memory._runtime import MemoryRuntime, OpenedRun
from pagein.memory._state import RunState
from pagein.memory._turn import close_memory, open_memory, run_turn
from pagein.memory._turn_lock import AsyncTurnLock, running_loop
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.background.summary_writer import SummaryTask
from pagein.memory.operations import history
from pagein.memory.operations.load import do_nothing
from pagein.memory.operations.requests import RenderedRequest, render_again
from pagein.memory.operations.summarize import collect_summary
from pagein.memory.options import Options

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def await_turn_of(
    method: Callable[Concatenate[AgentMemory, P], T],
) -> Callable[Concatenate[AsyncAgentMemory, P], Coroutine[Any, Any, T]]:
    """Make a method of AgentMemory one of AsyncAgentMemory. The method returns its turn, which is a coroutine there."""

    @functools.wraps(method)
    async def await_turn(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        turn: Any = method(self, *args, **kwargs)
        return await turn

    return await_turn


def run_in_thread(
    method: Callable[Concatenate[AgentMemory, P], T],
) -> Callable[Concatenate[AsyncAgentMemory, P], Coroutine[Any, Any, T]]:
    """Make a method of AgentMemory that takes no turn, but reaches the store, one of AsyncAgentMemory."""

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *args, **kwargs)

    return call


class AsyncAgentMemory(MemoryBase):
    """AgentMemory for async code: the same methods with the same docstrings, awaited; the store is reached from a thread.

    ``async with AsyncAgentMemory.open("run.db", budget=80_000) as memory:``, or ``await`` what ``open`` returns. Tasks
    take turns, those of several event loops too. A call that is cancelled before its turn changes nothing; one that has
    begun is finished. ``steps`` is awaited too.
    """

    def __init__(self, log: Log | OpenedRun, **options: Unpack[Options]) -> None:
        self._runtime = MemoryRuntime(log, options)
        self._turn_lock, self._performing = AsyncTurnLock(), threading.Lock()
        self._is_loaded = False
        self._cancellation: asyncio.CancelledError | None = None
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
        # A future: the end of a loop cancels every task, and the memory is never to know less than the log.
        perform = functools.partial(contextvars.copy_context().run, self._perform_alone, effect)
        work: asyncio.Future[Any] = asyncio.get_running_loop().run_in_executor(None, perform)
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError as cancellation:
                self._cancellation = cancellation
        return work.result()

    def _perform_alone(self, effect: AnyEffect) -> Any:
        """Perform an effect in a thread, after the one of a turn that was left there with its loop."""
        with self._performing:
            return self._runtime.perform(effect)

    @contextlib.contextmanager
    def _cancelled_at_the_end(self) -> Iterator[None]:
        """Raise at the end of the block the cancellation that came in it."""
        self._cancellation = None
        try:
            yield
        finally:
            if self._cancellation is not None:
                raise self._cancellation

    async def _take_turn(
        self, operation: Callable[Concatenate[RunState, P], Flow[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self._runtime.check_open()
        async with self._turn_lock.turn() as was_left:
            self._runtime.check_open()
            self._runtime.was_cut_off |= was_left
            self._runtime.facts.loop = running_loop()
            with self._cancelled_at_the_end():
                if not self._is_loaded:
                    await adrive(open_memory(self._runtime), self._perform)
                    self._is_loaded = True
                turn = run_turn(self._runtime, operation.__name__, lambda run: operation(run, *args, **kwargs))
                return await adrive(turn, self._perform)

    async def _after(
        self, turn: Coroutine[Any, Any, T], work: Callable[[T], R], blocking: Callable[[], object] = lambda: None
    ) -> R:
        result = work(await turn)
        await asyncio.to_thread(blocking)
        return result

    def report(self) -> Report:
        return self._runtime.report()

    cost = run_in_thread(AgentMemory.cost)

    # Recording

    record = await_turn_of(AgentMemory.record)
    record_messages = await_turn_of(AgentMemory.record_messages)
    pin = await_turn_of(AgentMemory.pin)
    mark = await_turn_of(AgentMemory.mark)
    unpin = await_turn_of(AgentMemory.unpin)
    ledger = await_turn_of(AgentMemory.ledger)
    save_procedure = await_turn_of(AgentMemory.save_procedure)
    find_procedures = run_in_thread(AgentMemory.find_procedures)
    call_tool = await_turn_of(AgentMemory.call_tool)

    # The view

    view = await_turn_of(AgentMemory.view)
    to_messages = await_turn_of(AgentMemory.to_messages)
    to_request = await_turn_of(AgentMemory.to_request)
    compact = await_turn_of(AgentMemory.compact)
    clear_view = await_turn_of(AgentMemory.clear_view)
    undo = await_turn_of(AgentMemory.undo)

    async def wait(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as in AgentMemory
        is_done = await self._take_turn(collect_summary, timeout)
        return is_done and await asyncio.to_thread(self._runtime.wait, timeout)

    # History

    @property
    async def steps(self) -> tuple[Step, ...]:
        return self._runtime.revive(await self._take_turn(history.read_steps))

    get_full_steps = await_turn_of(AgentMemory.get_full_steps)
    get_succinct_steps = await_turn_of(AgentMemory.get_succinct_steps)
    return_full_code = await_turn_of(AgentMemory.return_full_code)
    replay = await_turn_of(AgentMemory.replay)
    edit = await_turn_of(AgentMemory.edit)
    remove = await_turn_of(AgentMemory.remove)
    reset = await_turn_of(AgentMemory.reset)
    expand = await_turn_of(AgentMemory.expand)
    recall = await_turn_of(AgentMemory.recall)
    verify = await_turn_of(AgentMemory.verify)

    # Requests

    requests = run_in_thread(AgentMemory.requests)

    async def request(self, number: int | None = None) -> RenderedRequest:
        record = await asyncio.to_thread(self._runtime.requests.find, number)
        return await self._take_turn(render_again, record)

    note_outcome = run_in_thread(AgentMemory.note_outcome)

    # Checkpoints

    checkpoint = await_turn_of(AgentMemory.checkpoint)
    checkpoints = await_turn_of(AgentMemory.checkpoints)
    status = await_turn_of(AgentMemory.status)
    resume = await_turn_of(AgentMemory.resume)

    # Branches

    fork = await_turn_of(AgentMemory.fork)
    switch = await_turn_of(AgentMemory.switch)
    branches = await_turn_of(AgentMemory.branches)
    drop = await_turn_of(AgentMemory.drop)
    rewind = await_turn_of(AgentMemory.rewind)
    compare = await_turn_of(AgentMemory.compare)

    # Erasure

    erase = await_turn_of(AgentMemory.erase)
    erase_facts = await_turn_of(AgentMemory.erase_facts)
    erase_session = await_turn_of(AgentMemory.erase_session)

    # Closing

    async def close(self) -> None:
        runtime = self._runtime
        if runtime.is_forked:
            return  # what there is to close is the parent's
        async with self._turn_lock.turn():
            with self._cancelled_at_the_end():
                if self._is_loaded and not runtime.is_closed:
                    await adrive(close_memory(runtime), self._perform)
                runtime.is_closed = True
                if self._summary_task is not None:
                    await self._summary_task.close()
                await self._perform(Call(MemoryRuntime.close))

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
