"""The lock of an async memory's turns, for the tasks of any event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pagein.errors import ConfigurationError, LogBusy

_LOOK_SECONDS = 0.25
"""Seconds after which a task that waits looks itself: who was to go before it may be in a loop that was stopped meanwhile."""

_STOPPED_MAX_LOOKS = 20
"""Looks for which a task waits for one that has its turn in a loop that was stopped."""


class AsyncTurnLock:
    """A lock whose holders are tasks of one event loop, or of several: they have it in the order in which they came.

    asyncio's own is of the loop in which two tasks met first: a program that calls ``asyncio.run`` twice would fail. A task
    whose loop was stopped is passed over, and has its turn when the loop runs on. One whose loop was closed never comes back.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._holder: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """Have the lock; True where the one before left it, in the middle of a turn, with a loop that was closed."""
        called = asyncio.Event()
        was_left = await self._wait(called, running_loop())
        try:
            yield was_left
        finally:
            with self._guard:
                if self._holder is called:  # else the loop was closed, and another has the lock
                    self._holder = self._loop = None
            self._call_next()

    async def _wait(self, called: asyncio.Event, loop: asyncio.AbstractEventLoop) -> bool:
        with self._guard:
            self._waiting[called] = loop
        looks = 0
        try:
            while (was_left := self._take(called, loop)) is None:
                called.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(called.wait(), _LOOK_SECONDS)
                looks = looks + 1 if (holder := self._loop) is not None and not holder.is_running() else 0
                if looks > _STOPPED_MAX_LOOKS:
                    raise LogBusy(
                        "a task has its turn with this memory in an event loop that was stopped. Nothing was written; run "
                        "that loop on until the task is done, or open a memory for each loop."
                    )
        except BaseException:
            with self._guard:
                self._waiting.pop(called, None)
            self._call_next()
            raise
        return was_left

    def _take(self, called: asyncio.Event, loop: asyncio.AbstractEventLoop) -> bool | None:
        """Take the lock, if it is free and nobody who can run came before; None if not, True if a closed loop had it."""
        with self._guard:
            was_left = self._loop is not None and self._loop.is_closed()
            if (self._loop is not None and not was_left) or self._first() is not called:
                return None
            del self._waiting[called]
            self._holder, self._loop = called, loop
            return was_left

    def _first(self) -> asyncio.Event | None:
        return next((called for called, loop in self._waiting.items() if loop.is_running()), None)

    def _call_next(self) -> None:
        with self._guard:
            called = self._first() if self._loop is None else None
            if called is not None:
                with suppress(RuntimeError):  # it was closed in the same moment
                    self._waiting[called].call_soon_threadsafe(called.set)


def running_loop() -> asyncio.AbstractEventLoop:
    """The running event loop. Raises ConfigurationError where asyncio runs none, as under trio."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "AsyncAgentMemory is awaited in an event loop of asyncio, and none runs here. Under trio use AgentMemory in a "
            "thread: await trio.to_thread.run_sync(memory.to_messages)"
        ) from None
