"""A queue of calls: they run one after another, in threads that all queues share."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class QueuedCall(Generic[T]):
    """A call and its result. One that waits for a model has a thread of its own, so that no other queue waits with it."""

    work: Callable[[], T]
    waits_for_model: bool
    future: Future[T] = field(default_factory=Future)
    is_taken: bool = False


class CallQueue(Generic[T]):
    """Runs calls one at a time, in the order in which they came. A call whose future was cancelled before is passed over."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[QueuedCall[T]] = deque()
        self._is_at_work = False

    def submit(self, work: Callable[[], T], *, waits_for_model: bool = False) -> Future[T]:
        """Queue a call, and return the future of its result. It has RuntimeError where no thread can be begun."""
        call = QueuedCall(work, waits_for_model)
        with self._guard:
            self._waiting.append(call)
            begins, self._is_at_work = not self._is_at_work, True
        if begins:
            self._begin_next()
        return call.future

    def _begin_next(self) -> None:
        while (call := self._pop()) is not None:
            try:
                if call.waits_for_model:
                    threading.Thread(target=self._run, args=(call,), name="AsyncAgentMemory waits", daemon=True).start()
                else:
                    _shared_threads(os.getpid()).submit(self._run, call)
            except RuntimeError as error:  # the interpreter ends, or the system has no more threads
                if not self._take(call):
                    return  # a thread of the pool has come to it
                if call.future.set_running_or_notify_cancel():
                    call.future.set_exception(error)
            else:
                return

    def _pop(self) -> QueuedCall[T] | None:
        with self._guard:
            self._is_at_work = bool(self._waiting)
            return self._waiting.popleft() if self._waiting else None

    def _take(self, call: QueuedCall[T]) -> bool:
        with self._guard:
            was_taken, call.is_taken = call.is_taken, True
        return not was_taken

    def _run(self, call: QueuedCall[T]) -> None:
        if not self._take(call):
            return  # it was refused, and the pool came to it nevertheless
        if call.future.set_running_or_notify_cancel():
            try:
                result = call.work()
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                call.future.set_exception(error)
            else:
                call.future.set_result(result)
        self._begin_next()


@functools.cache
def _shared_threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of its parent's
    """The threads of a process: as many as asyncio has, as more would only wait for one another and for the file."""
    return ThreadPoolExecutor(min(32, (os.cpu_count() or 1) + 4), "AsyncAgentMemory")
