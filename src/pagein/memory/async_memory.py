"""AsyncAgentMemory: AgentMemory for async code. Its calls are those of AgentMemory, one after another in a thread."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for_futures
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from pagein._common.cancellation import finish_first
from pagein.context.view.view import Report
from pagein.errors import ConfigurationError
from pagein.events.callbacks import CallbackRegistry
from pagein.events.entries import Compaction
from pagein.events.steps import Step
from pagein.log.base import Log
from pagein.memory._memory_base import MemoryBase
from pagein.memory._runtime import OpenedRun
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.background.asked_model import FindLoop
from pagein.memory.background.call_queue import CallQueue
from pagein.memory.operations import compact as compacting
from pagein.memory.operations import history
from pagein.memory.operations.load import do_nothing
from pagein.memory.operations.summarize import collect_summary
from pagein.memory.options import Options

P = ParamSpec("P")
T = TypeVar("T")

_LOOK_SECONDS = 0.05
"""Seconds after which a call that waits for a callback looks whether its loop was stopped."""


def in_thread(
    method: Callable[Concatenate[AgentMemory, P], T],
) -> Callable[Concatenate[AsyncAgentMemory, P], Coroutine[Any, Any, T]]:
    """Make a method of AgentMemory one of AsyncAgentMemory."""

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._call(functools.partial(method, self, *args, **kwargs))  # type: ignore[no-any-return]

    return call


class AsyncAgentMemory(MemoryBase):
    """AgentMemory for async code: the same methods with the same docstrings, awaited; they run in threads.

    ``async with AsyncAgentMemory.open("run.db", budget=80_000) as memory:``, or ``await`` what ``open`` returns. Tasks
    take turns, those of several event loops too. A call that is cancelled before its turn changes nothing; one that has
    begun is finished. ``steps`` is awaited too.
    """

    def __init__(self, log: Log | OpenedRun, **options: Unpack[Options]) -> None:
        super().__init__(log, **options)
        self._runtime.open_summary_writer(self._find_loop)
        if self._runtime.state.callbacks is not None:
            self._runtime.state.callbacks = CallbacksInLoop(self._runtime.state.callbacks, self._find_loop)
        self._calls = CallQueue[Any]()

    def _find_loop(self) -> asyncio.AbstractEventLoop | None:
        return self._runtime.facts.loop

    async def _call(self, function: Callable[[], T], *, waits_for_model: bool = False) -> T:
        """Call a function in a thread, after the calls before it. A call that has begun is finished first."""
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
            return function()

        future = self._submit(work, waits_for_model=waits_for_model)
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not future.cancel():
                abandoned.set()
                with suppress(Exception):
                    await finish_first(waiting)
            raise

    def _submit(self, work: Callable[[], T], *, waits_for_model: bool) -> Future[T]:
        context = contextvars.copy_context()
        return self._calls.submit(lambda: context.run(work), waits_for_model=waits_for_model)

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

    async def compact(self, *, wait: bool = False) -> Compaction | None:
        return await self._call(lambda: self._runtime.take_turn(compacting.compact, wait=wait), waits_for_model=wait)

    clear_view = in_thread(AgentMemory.clear_view)
    undo = in_thread(AgentMemory.undo)

    async def wait(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as in AgentMemory
        is_done = await self._call(lambda: self._runtime.take_turn(collect_summary, timeout), waits_for_model=True)
        return is_done and await asyncio.to_thread(self._runtime.wait, timeout)

    # History

    @property
    async def steps(self) -> tuple[Step, ...]:
        return self._runtime.revive(await self._call(lambda: self._runtime.take_turn(history.read_steps)))

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
        runtime, loop = self._runtime, running_loop()
        if runtime.is_forked:
            return  # what there is to close is the parent's

        def work() -> None:
            runtime.facts.loop = loop
            runtime.close()

        # Also where it is cancelled before its turn: a scope of anyio cancels every call that its end makes.
        await finish_first(asyncio.wrap_future(self._submit(work, waits_for_model=runtime.model is not None)))

    async def _open(self) -> Self:
        await self._call(lambda: self._runtime.take_turn(do_nothing))
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
        """Call the callbacks registered for the step, in the loop; in one that was stopped, when it runs on."""
        loop = self._find_loop()
        if loop is None:
            self._registry.callback(step, **beside)
            return

        async def call() -> None:
            self._registry.callback(step, **beside)

        calling = call()
        try:
            called = asyncio.run_coroutine_threadsafe(calling, loop)
        except RuntimeError:  # the loop was closed
            calling.close()
            return
        while loop.is_running() and not called.done():
            wait_for_futures((called,), _LOOK_SECONDS)
        if called.done():
            called.result()


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
