"""A model that is asked from a thread beside the run: in that thread, or in the event loop of an async memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from pagein.errors import PageinError
from pagein.models.base import AsyncModel, Model, ModelRequest, ModelResponse
from pagein.models.deadlines import call_model, call_with_deadline
from pagein.models.errors import ModelCancelled, ModelUnavailable
from pagein.models.retrying import RetryingModel
from pagein.models.writer_account import WriterAccount

T = TypeVar("T")

FindLoop = Callable[[], asyncio.AbstractEventLoop | None]
"""Gives the event loop of an async memory's last call; None in sync code."""

DEADLINE_GRACE = 2
"""Seconds after a request's own timeout at which the wait for its model ends."""

_POLL_SECONDS = 0.05


def with_retries(model: Model | AsyncModel, account: WriterAccount | None) -> RetryingModel:
    """The model with retries around it, unless it has them; its attempts are charged to the account."""
    retrying = model if isinstance(model, RetryingModel) else RetryingModel(model)
    return retrying if account is None else retrying.limited_by(account)


def ask_model(
    model: RetryingModel,
    request: ModelRequest,
    is_cancelled: Callable[[], bool],
    loop: asyncio.AbstractEventLoop | None,
) -> ModelResponse:
    """Ask a model, within the request's timeout, and await it in the loop where there is one.

    Raises what the model raises, ModelCancelled where ``is_cancelled`` turns true, CancelledError where the loop ended.
    """
    if loop is not None:
        return await_in_loop(lambda: model.awrite(request), loop, is_cancelled)
    # The model keeps the deadline; this wait, and each within it, ends early when it is cancelled.
    wait = request.timeout + DEADLINE_GRACE
    return call_with_deadline(wait, lambda: call_model(model, request), name=model.name, is_cancelled=is_cancelled)


def await_in_loop(
    begin: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop, is_cancelled: Callable[[], bool]
) -> T:
    """Await a coroutine in the loop of another thread, to its end, also where ``is_cancelled`` turns true.

    Raises what it raises, ModelCancelled where it was cancelled by this, CancelledError by another or with the loop.
    """
    tasks: list[asyncio.Task[T]] = []
    has_ended = threading.Event()

    def start() -> None:
        tasks.append(loop.create_task(begin()))
        tasks[0].add_done_callback(lambda _: has_ended.set())

    call_in(loop, start)
    is_called_off = False
    while not has_ended.wait(_POLL_SECONDS):
        if loop.is_closed():
            raise CancelledError
        if is_called_off and not loop.is_running():
            break  # it ends when the loop runs on
        if not is_called_off and is_cancelled():
            is_called_off = True
            call_in(loop, lambda: [task.cancel() for task in tasks])
    if is_called_off:
        raise ModelCancelled("the wait was called off")
    if tasks[0].cancelled():
        raise CancelledError
    return tasks[0].result()


def call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Have the loop of another thread call a function. Raises CancelledError for a loop that was closed."""
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        raise CancelledError from None


class BackgroundModel:
    """A model for requests beside a run: with retries, and cancelled when ``cancelled`` is set.

    With a loop the model is awaited there, from another thread. Every error is a ModelError.
    """

    def __init__(
        self, model: Model | AsyncModel, cancelled: threading.Event, find_loop: FindLoop, account: WriterAccount | None
    ) -> None:
        self._model, self._cancelled, self._find_loop = with_retries(model, account), cancelled, find_loop
        self.name, self.window = model.name, model.window

    def write(self, request: ModelRequest) -> ModelResponse:
        """The response, within the request's timeout. Raises ModelError."""
        loop = self._find_loop()
        if loop is not None and (loop.is_closed() or loop is _running_loop()):
            raise ModelUnavailable(f"{self.name} is awaited: call facts in a thread, as asyncio.to_thread does")
        try:
            return ask_model(self._model, request, self._cancelled.is_set, loop)
        except PageinError:
            raise
        except Exception as error:  # a user's model may raise anything
            if loop is not None and loop.is_closed():
                raise ModelCancelled(f"the wait for {self.name} ended with its loop") from None
            raise ModelUnavailable(f"{self.name}: {type(error).__name__}: {error}") from error


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
