"""Deadlines for model calls, and their cancellation.

A socket's timeout starts again with every byte, so a server that sends one byte a second never times out. A deadline
does not restart. An abandoned call goes on in a daemon thread, which does not keep the interpreter from exiting.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from pagein.errors import ConfigurationError
from pagein.models.base import AsyncModel, Model, ModelRequest, ModelResponse
from pagein.models.errors import ModelCancelled, ModelRefused, ModelUnavailable

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
_POLL_SECONDS = 0.05
"""Seconds between two checks for cancellation."""


_IS_CANCELLED: contextvars.ContextVar[Callable[[], bool] | None] = contextvars.ContextVar("is_cancelled", default=None)
"""Cancellation check of the enclosing wait: nested waits end with it."""


def is_wait_cancelled() -> bool:
    """True inside a call whose enclosing wait was cancelled."""
    is_cancelled = _IS_CANCELLED.get()
    return is_cancelled is not None and is_cancelled()


def sleep_unless_cancelled(seconds: float) -> None:
    """Sleep; return within 50 ms of the enclosing wait's cancellation."""
    deadline = time.monotonic() + seconds
    while not is_wait_cancelled() and (seconds_left := deadline - time.monotonic()) > 0:
        time.sleep(min(seconds_left, _POLL_SECONDS))


def call_with_deadline(
    seconds: float,
    call: Callable[[], T],
    *,
    name: str,
    is_cancelled: Callable[[], bool] | None = None,
    abort: Callable[[], None] | None = None,
) -> T:
    """Run ``call`` in a daemon thread; return its result within ``seconds``. ``abort`` runs if there is none.

    Raises what ``call`` raises, ModelUnavailable at the deadline, and ModelCancelled within 50 ms of ``is_cancelled``
    turning true.
    """
    outcomes: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()
    is_cancelled = is_cancelled or _IS_CANCELLED.get()
    if is_cancelled is not None and is_cancelled():
        raise ModelCancelled(f"the wait for {name} was called off")
    context = contextvars.copy_context()
    context.run(_IS_CANCELLED.set, is_cancelled)

    def work() -> None:
        outcomes.put(_outcome_of(lambda: context.run(call), name))

    threading.Thread(target=work, name=f"pagein asks {name}", daemon=True).start()
    finished = False
    try:
        result, error = _wait_for_outcome(outcomes, seconds, name, is_cancelled)
        finished = True
    finally:
        if abort is not None and not finished:
            abort()
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def _outcome_of(call: Callable[[], T], name: str) -> tuple[T | None, Exception | None]:
    """Run ``call`` in a thread of its own; an exit or an interrupt there is no user's, but a failure of the model."""
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001 - raised again where it is waited for
        return None, error
    except BaseException as error:  # noqa: BLE001
        return None, ModelRefused(f"{name} raised {type(error).__name__}")


def _wait_for_outcome(
    outcomes: queue.SimpleQueue[tuple[T | None, Exception | None]],
    seconds: float,
    name: str,
    is_cancelled: Callable[[], bool] | None,
) -> tuple[T | None, Exception | None]:
    deadline = time.monotonic() + seconds
    while True:
        seconds_left = deadline - time.monotonic()
        try:
            return outcomes.get(timeout=max(0.0, min(seconds_left, _POLL_SECONDS) if is_cancelled else seconds_left))
        except queue.Empty:
            pass
        if is_cancelled is not None and is_cancelled():
            raise ModelCancelled(f"the wait for {name} was called off")
        if seconds_left <= _POLL_SECONDS and time.monotonic() >= deadline:
            raise ModelUnavailable(f"{name} did not answer within {seconds:g} s")


async def await_with_deadline(seconds: float, call: Awaitable[T], *, name: str) -> T:
    """Async variant of ``call_with_deadline``. A task's cancellation passes through unchanged."""
    import asyncio  # noqa: PLC0415 - a quarter of a short command's time, and only here is it used

    try:
        async with asyncio.timeout(seconds) as limit:
            return await call
    except TimeoutError:
        if not limit.expired():
            raise
    raise ModelUnavailable(f"{name} did not answer within {seconds:g} s")


def call_model(model: Model | AsyncModel, request: ModelRequest) -> ModelResponse:
    """Return the answer of a sync model. Raises ConfigurationError for one that is async only."""
    write: Callable[[ModelRequest], ModelResponse] | None = getattr(model, "write", None)
    if write is None:
        raise ConfigurationError(f"{model.name} can only be awaited: use it with AsyncAgentMemory")
    return write(request)


async def acall_model(model: Model | AsyncModel, request: ModelRequest) -> ModelResponse:
    """Return the answer of any model; one that is sync only runs in a thread."""
    awrite: Callable[[ModelRequest], Awaitable[ModelResponse]] | None = getattr(model, "awrite", None)
    if awrite is not None:
        return await awrite(request)
    return await run_in_thread(lambda: call_model(model, request))


async def run_in_thread(call: Callable[[], T]) -> T:
    """Run ``call`` in a daemon thread, so that an abandoned call does not keep the interpreter from exiting."""
    import asyncio  # noqa: PLC0415

    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def resolve(result: T | None, error: Exception | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        outcome = _outcome_of(lambda: context.run(call), "the model")
        if not loop.is_closed():
            loop.call_soon_threadsafe(resolve, *outcome)

    threading.Thread(target=work, name="pagein asks", daemon=True).start()
    return await future
