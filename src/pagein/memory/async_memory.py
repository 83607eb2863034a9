"""AsyncAgentMemory: AgentMemory for async code. Its calls are those of AgentMemory, one after another in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from pagein._common.cancellation import finish_first
from pagein.context.view.view import Report
from pagein.errors import ConfigurationError
from pagein.events.callbacks import CallbackRegistry
from pagein.events.steps import Step
from pagein.log.base import Log
from pagein.memory._memory_base import MemoryBase
from pagein.memory._runtime import OpenedRun
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.background.asked_model import FindLoop, await_in_loop
from pagein.memory.operations import history
from pagein.memory.operations.load import do_nothing
from pagein.memory.operations.summarize import collect_summary
from pagein.memory.options import Options

P = ParamSpec("P")
T = TypeVar("T")


def in_thread(
    method: Callable[Concatenate[AgentMemory, P], T],
) -> Callable[Concatenate[AsyncAgentMemory, P], Coroutine[Any, Any, T]]:
    """Make a method of AgentMemory one of AsyncAgentMemory."""

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(method, self, *args, **kwargs)  # type: ignore[no-any-return]

    return call


class AsyncAgentMemory(MemoryBase):
    """AgentMemory for async code: the same methods with the same docstrings, awaited; they run in a thread of the memory's.

    ``async with AsyncAgentMemory.open("run.db", budget=80_000) as memory:``, or ``await`` what ``open`` returns. Tasks
    take turns, those of several event loops too. A call that is cancelled before its turn changes nothing; one that has
    begun is finished. ``steps`` is awaited too.
    """

    def __init__(self, log: Log | OpenedRun, **options: Unpack[Options]) -> None:
        super().__init__(log, **options)
        self._runtime.open_summary_writer(self._find_loop)
        if self._runtime.state.callbacks is not None:
            self._runtime.state.callbacks = CallbacksInLoop(self._runtime.state.callbacks, self._find_loop)
        self._thread = ThreadPoolExecutor(1, "AsyncAgentMemory")

    def _find_loop(self) -> asyncio.AbstractEventLoop | None:
        return self._runtime.facts.loop

    async def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the memory's thread, after the calls before it. A call that has begun is finished first."""
        runtime, loop, abandoned = self._runtime, running_loop(), threading.Event()
        runtime.check_open()
        task = asyncio.current_task()
        cancellations = task.cancelling() if task is not None else 0

        def work() -> T:
            if task is not None and task.cancelling() > cancellations:
                raise CancelledError  # the loop is still to deliver it
            runtime.facts.loop = loop
            if runtime.summary_writer is not None:
                runtime.summary_writer.abandoned = abandoned
            return function(*args, **kwargs)

        try:
            future = self._thread.submit(contextvars.copy_context().run, work)
        except RuntimeError:
            runtime.check_open()  # it was closed in the same moment, in another loop
            raise
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not future.cancel():
                abandoned.set()
                with suppress(Exception):
                    await finish_first(waiting)
            raise

    def report(self) -> Report:
        return self._runtime.report()

    cost = in_thread(AgentMemory.cost)

    # Recording

    record = in_thread(AgentMemory.record)
    record_messages = in_thread(AgentMemory.record_messages)
    pin = in_thread(AgentMemory.pin)
    mark = in_thread(AgentMemory.mark)
    unpin = in_thread(AgentMemory.unpin)
    ledger = in_thread(AgentMemory.ledger)
    save_procedure = in_thread(AgentMemory.save_procedure)
    find_procedures = in_thread(AgentMemory.find_procedures)
    call_tool = in_thread(AgentMemory.call_tool)

    # The view

    view = in_thread(AgentMemory.view)
    to_messages = in_thread(AgentMemory.to_messages)
    to_request = in_thread(AgentMemory.to_request)
    compact = in_thread(AgentMemory.compact)
    clear_view = in_thread(AgentMemory.clear_view)
    undo = in_thread(AgentMemory.undo)

    async def wait(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as in AgentMemory
        is_done = await self._call(self._runtime.take_turn, collect_summary, timeout)
        return is_done and await asyncio.to_thread(self._runtime.wait, timeout)

    # History

    @property
    async def steps(self) -> tuple[Step, ...]:
        return self._runtime.revive(await self._call(self._runtime.take_turn, history.read_steps))

    get_full_steps = in_thread(AgentMemory.get_full_steps)
    get_succinct_steps = in_thread(AgentMemory.get_succinct_steps)
    return_full_code = in_thread(AgentMemory.return_full_code)
    replay = in_thread(AgentMemory.replay)
    edit = in_thread(AgentMemory.edit)
    remove = in_thread(AgentMemory.remove)
    reset = in_thread(AgentMemory.reset)
    expand = in_thread(AgentMemory.expand)
    recall = in_thread(AgentMemory.recall)
    verify = in_thread(AgentMemory.verify)

    # Requests

    requests = in_thread(AgentMemory.requests)
    request = in_thread(AgentMemory.request)
    note_outcome = in_thread(AgentMemory.note_outcome)

    # Checkpoints

    checkpoint = in_thread(AgentMemory.checkpoint)
    checkpoints = in_thread(AgentMemory.checkpoints)
    status = in_thread(AgentMemory.status)
    resume = in_thread(AgentMemory.resume)

    # Branches

    fork = in_thread(AgentMemory.fork)
    switch = in_thread(AgentMemory.switch)
    branches = in_thread(AgentMemory.branches)
    drop = in_thread(AgentMemory.drop)
    rewind = in_thread(AgentMemory.rewind)
    compare = in_thread(AgentMemory.compare)

    # Erasure

    erase = in_thread(AgentMemory.erase)
    erase_facts = in_thread(AgentMemory.erase_facts)
    erase_session = in_thread(AgentMemory.erase_session)

    # Closing

    async def close(self) -> None:
        if self._runtime.is_forked or self._runtime.is_closed:
            return
        try:
            await self._call(self._runtime.close)
        finally:
            if self._runtime.is_closed:
                self._thread.shutdown(wait=False)

    async def _open(self) -> Self:
        await self._call(self._runtime.take_turn, do_nothing)
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class CallbacksInLoop(CallbackRegistry):
    """The callbacks of an async memory: called in its event loop, where they may begin tasks, while its thread waits."""

    def __init__(self, registry: CallbackRegistry, find_loop: FindLoop) -> None:
        self._registry, self._find_loop = registry, find_loop

    def callback(self, step: object, **beside: Any) -> None:
        """Call the callbacks registered for the step, in the loop."""
        loop = self._find_loop()
        if loop is None:
            self._registry.callback(step, **beside)
            return

        async def call() -> None:
            self._registry.callback(step, **beside)

        await_in_loop(call, loop, lambda: not loop.is_running())


def running_loop() -> asyncio.AbstractEventLoop:
    """The running event loop. Raises ConfigurationError where asyncio runs none, as under trio."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "AsyncAgentMemory is awaited in an event loop of asyncio, and none runs here. Under trio use AgentMemory in a "
            "thread: await trio.to_thread.run_sync(memory.to_messages)"
        ) from None


for _name, _method in vars(AsyncAgentMemory).items():
    if not _name.startswith("_"):
        _method.__doc__ = getattr(AgentMemory, _name).__doc__
