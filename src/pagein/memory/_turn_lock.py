"""The lock of an async memory's turns, for the tasks of any event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future

from pagein.errors import ConfigurationError


class AsyncTurnLock:
    """A lock whose holders are tasks of one event loop, or of several: they have it in the order in which they came.

    asyncio's own is of the loop in which two tasks met first: a program that calls ``asyncio.run`` twice would fail.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_taken = False
        self._waiting = deque[tuple[asyncio.AbstractEventLoop, Future[None]]]()

    async def __aenter__(self) -> None:
        loop = running_loop()
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return
            turn = Future[None]()
            self._waiting.append((loop, turn))
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            if not turn.cancel():  # it was given the lock in the same moment
                self._give_on()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._give_on()

    def _give_on(self) -> None:
        with self._guard:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                if not loop.is_closed() and turn.set_running_or_notify_cancel():
                    break
            else:
                self._is_taken = False
                return
        turn.set_result(None)


def running_loop() -> asyncio.AbstractEventLoop:
    """The running event loop. Raises ConfigurationError where asyncio runs none, as under trio."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "AsyncAgentMemory is awaited in an event loop of asyncio, and none runs here. Under trio use AgentMemory in a "
            "thread: await trio.to_thread.run_sync(memory.to_messages)"
        ) from None
