"""How long we wait for a model: to the deadline and not longer, whatever the other side does.

A socket's timeout starts again with every byte, so a server that drips one a second never times out. A deadline does
not. A call that is given up goes on in a daemon thread, which keeps no interpreter from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pagein.errors import ConfigurationError
from pagein.models.base import Ask, AsyncModel, Model, Reply
from pagein.models.errors import ModelCancelled, ModelUnavailable

T = TypeVar("T")
_LOOK = 0.05
"""Seconds between two looks at whether the wait was called off."""


_CALLED_OFF: contextvars.ContextVar[Callable[[], bool] | None] = contextvars.ContextVar(
    "called off", default=None
)
"""Whether the wait around this one was called off: what is waited for within a wait ends with it."""


def called_off() -> bool:
    """Whether nobody waits any more for what is done here, within a wait that was called off."""
    stopped = _CALLED_OFF.get()
    return stopped is not None and stopped()


def nap(seconds: float) -> None:
    """Sleep; at most 50 ms longer than anybody waits for what comes after."""
    until = time.monotonic() + seconds
    while not called_off() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK))


def within(
    seconds: float,
    call: Callable[[], T],
    *,
    name: str,
    stopped: Callable[[], bool] | None = None,
    abort: Callable[[], None] | None = None,
) -> T:
    """What ``call`` returns or raises, within ``seconds``. ``abort`` is called when it is given up.

    Raises ModelUnavailable at the deadline, ModelCancelled within 50 ms of ``stopped`` turning true.
    """
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
    stopped = stopped or _CALLED_OFF.get()
    if stopped is not None and stopped():
        raise ModelCancelled(f"the wait for {name} was called off")
    context = contextvars.copy_context()
    context.run(_CALLED_OFF.set, stopped)

    def work() -> None:
        try:
            done.put((context.run(call), None))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            done.put((None, error))

    threading.Thread(target=work, name=f"pagein asks {name}", daemon=True).start()
    finished = False
    try:
        result, error = _awaited(done, seconds, name, stopped)
        finished = True
    finally:
        if abort is not None and not finished:
            abort()
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def _awaited(
    done: queue.SimpleQueue[tuple[T | None, BaseException | None]],
    seconds: float,
    name: str,
    stopped: Callable[[], bool] | None,
) -> tuple[T | None, BaseException | None]:
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        try:
            return done.get(timeout=max(0.0, min(left, _LOOK) if stopped else left))
        except queue.Empty:
            pass
        if stopped is not None and stopped():
            raise ModelCancelled(f"the wait for {name} was called off")
        if left <= _LOOK and time.monotonic() >= deadline:
            raise ModelUnavailable(f"{name} did not answer within {seconds:g} s")


async def awithin(seconds: float, call: Awaitable[T], *, name: str) -> T:
    """As ``within``, awaited. A cancelled task is cancelled: nothing turns that into an error of ours."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call
    except TimeoutError:
        if not limit.expired():
            raise
    raise ModelUnavailable(f"{name} did not answer within {seconds:g} s")


def written(model: Model | AsyncModel, ask: Ask) -> Reply:
    """The answer of a model that can be called. Raises ConfigurationError for one that can only be awaited."""
    write: Callable[[Ask], Reply] | None = getattr(model, "write", None)
    if write is None:
        raise ConfigurationError(f"{model.name} can only be awaited: use it with AsyncAgentMemory")
    return write(ask)


async def awritten(model: Model | AsyncModel, ask: Ask) -> Reply:
    """The answer of any model, awaited; one that can only be called is called in a thread of its own."""
    awrite: Callable[[Ask], Awaitable[Reply]] | None = getattr(model, "awrite", None)
    if awrite is not None:
        return await awrite(ask)
    return await threaded(lambda: written(model, ask))


async def threaded(call: Callable[[], T]) -> T:
    """What ``call`` returns, from a daemon thread: a cancelled wait does not keep the interpreter from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def tell(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        try:
            outcome: tuple[T | None, BaseException | None] = (context.run(call), None)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            outcome = (None, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, *outcome)

    threading.Thread(target=work, name="pagein asks", daemon=True).start()
    return await future
