"""Model wrapper with retries and back-off, a circuit breaker and a spend limit; overflowed requests are not resent.

The flow of one request is a generator that yields effects (send a request, sleep), run by a sync and an async driver.
"""

from __future__ import annotations

import copy
import hashlib
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Annotated, Self

from pagein._common.flows import adrive, drive
from pagein._common.validation import POSITIVE_COUNT, SECONDS, CheckedFields, Constraint, check_arguments
from pagein.errors import ConfigurationError
from pagein.events.steps import Usage
from pagein.models import deadlines
from pagein.models.base import AsyncModel, Model, ModelRequest, ModelResponse
from pagein.models.errors import CircuitOpen, ModelCancelled, ModelError, ModelOverflow, ModelUnavailable, SpendLimit
from pagein.models.overflow import Overflow
from pagein.models.spending import Spending, SpendLimiter, counted_usage, max_usage_of
from pagein.tokens import TokenCounter

_MAX_OVERFLOWS = 64
"""Overflowed requests that are remembered."""


@dataclass(frozen=True, slots=True)
class RetryPolicy(CheckedFields):
    """Exponential back-off: ``attempts`` in all, a first pause of ``first`` seconds, each next ``factor`` times longer.

    A pause is at most ``most`` seconds and is shortened by a random part of up to a half. A provider's Retry-After is
    obeyed; one above ``longest`` seconds ends the request. ``attempt`` limits the seconds of one attempt; None: all
    that remain.
    """

    attempts: Annotated[int, Constraint(1, cap=100), "Attempts in all."] = 4
    first: Annotated[float, SECONDS, "Seconds of the first pause."] = 0.5
    factor: Annotated[float, Constraint(1, cap=100), "Factor by which each pause is longer than the one before."] = 2.0
    most: Annotated[float, SECONDS, "Maximum seconds of a pause."] = 20.0
    longest: Annotated[float, SECONDS, "Longest Retry-After in seconds. A longer one ends the request."] = 60.0
    attempt: Annotated[
        float | None,
        Constraint(exclusive=True, cap=86_400),
        "Maximum seconds of one attempt. Default: all that is left.",
    ] = None

    def pause_seconds(self, failures: int, retry_after: float | None, chance: float) -> float:
        """Seconds to wait after ``failures`` failures; ``chance`` is a random number in [0, 1)."""
        full = min(self.most, self.first * self.factor ** min(failures - 1, 64))
        return max(retry_after or 0.0, full * (0.5 + chance / 2))


class Breaker:
    """Circuit breaker: opens for ``cool_down`` seconds after ``failures`` failures in a row; then lets one request try.

    A failure is a request whose attempts all failed. Overflows, spend limits and cancelled waits do not count. Safe to
    share between threads.
    """

    def __init__(
        self,
        failures: Annotated[int, POSITIVE_COUNT, "Failed requests in a row after which the model is paused."] = 3,
        cool_down: Annotated[float, SECONDS, "Seconds of that pause."] = 60.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_arguments(Breaker, {"failures": failures, "cool_down": cool_down})
        self._max_failures, self._cool_down, self._clock = failures, cool_down, clock
        self._failures, self._open_until, self._probing = 0, 0.0, False
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """True if a request would be rejected now."""
        with self._lock:
            return self._seconds_until_closed() > 0

    def enter(self, name: str) -> None:
        """Admit a request. Raises CircuitOpen while the breaker is open."""
        with self._lock:
            seconds_left = self._seconds_until_closed()
            if seconds_left > 0:
                raise CircuitOpen(
                    f"{name} failed {self._failures} times in a row; its circuit breaker is open for {seconds_left:.3g} s more",
                    retry_after=seconds_left,
                )
            self._probing = self._failures >= self._max_failures

    def leave(self, error: BaseException | None) -> None:
        """Note how an admitted request ended; None: it succeeded."""
        with self._lock:
            self._probing = False
            if error is None:
                self._failures = 0
            elif _counts_as_failure(error):
                self._failures += 1
                if self._failures >= self._max_failures:
                    self._open_until = self._clock() + self._cool_down

    def _seconds_until_closed(self) -> float:
        if self._failures < self._max_failures:
            return 0.0
        seconds_left = self._open_until - self._clock()
        return seconds_left if seconds_left > 0 or not self._probing else max(self._cool_down, 0.001)


def _counts_as_failure(error: BaseException) -> bool:
    not_the_models = (ModelOverflow, ModelCancelled, SpendLimit, CircuitOpen)
    return isinstance(error, ModelError) and not isinstance(error, not_the_models)


RequestFlow = Generator[ModelRequest | float, ModelResponse | None, ModelResponse]
"""Flow of one request: yields a ModelRequest to send or seconds to sleep, and returns the response."""


class RetryingModel:
    """A model that wraps a model and retries retryable errors within the request's timeout.

    ``sleep`` waits a number of seconds; ``is_cancelled`` turns true when the caller no longer waits:
    ``RetryingModel(model, sleep=event.wait, is_cancelled=event.is_set)`` stops at ``event.set()``. ``counter`` counts
    the tokens of a request for ``spending``; the default is the model's own.
    """

    def __init__(
        self,
        model: Model | AsyncModel,
        *,
        retry: RetryPolicy | None = None,
        breaker: Breaker | None = None,
        spending: Spending | None = None,
        counter: TokenCounter | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = deadlines.sleep_unless_cancelled,
        chance: Callable[[], float] = random.random,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self._model, self._retry_policy = model, retry or RetryPolicy()
        self.name = model.name
        self._counter = counter
        self.breaker = breaker or Breaker(clock=clock)
        """The circuit breaker, which other models may share."""
        self._limiters: tuple[SpendLimiter, ...] = () if spending is None else (spending,)
        self._clock, self._sleep, self._chance, self._is_cancelled = clock, sleep, chance, is_cancelled
        self._overflows: OrderedDict[bytes, Overflow] = OrderedDict()
        self._learned_window: int | None = None
        self._lock = threading.Lock()

    @property
    def window(self) -> int:
        """The model's window in tokens, or a smaller one that an overflow reported."""
        return min(self._model.window, self._learned_window or self._model.window)

    def limited_by(self, limiter: SpendLimiter) -> Self:
        """The same model, whose attempts are charged to ``limiter`` too; it shares the breaker."""
        limited = copy.copy(self)
        limited._limiters = (*self._limiters, limiter)  # noqa: SLF001 - a copy of this very object
        return limited

    def write(self, request: ModelRequest) -> ModelResponse:
        """Return the answer; the request's timeout covers all attempts. Raises ModelError, SpendLimit or CircuitOpen."""
        return drive(self._request_flow(request), self._perform)

    async def awrite(self, request: ModelRequest) -> ModelResponse:
        """Async variant of ``write``; a cancelled task stops at once and releases its spend reservation."""
        return await adrive(self._request_flow(request), self._aperform)

    def _perform(self, effect: ModelRequest | float) -> ModelResponse | None:
        if not isinstance(effect, ModelRequest):
            self._sleep(effect)
            return None
        if self._is_cancelled is None:
            return deadlines.call_model(self._model, effect)
        # The model enforces the deadline; this only checks for cancellation.
        wait = effect.timeout + 1
        return deadlines.call_with_deadline(
            wait, lambda: deadlines.call_model(self._model, effect), name=self.name, is_cancelled=self._is_cancelled
        )

    async def _aperform(self, effect: ModelRequest | float) -> ModelResponse | None:
        if isinstance(effect, ModelRequest):
            return await deadlines.acall_model(self._model, effect)
        import asyncio  # noqa: PLC0415 - takes as long to import as the rest of the package

        await asyncio.sleep(effect)
        return None

    def _request_flow(self, request: ModelRequest) -> RequestFlow:
        """Run all attempts inside the breaker, which notes the outcome in every case."""
        self._raise_if_cancelled()
        fingerprint = _fingerprint(request)
        self._raise_if_overflowed_before(fingerprint)
        self.breaker.enter(self.name)
        failure: BaseException | None = ModelCancelled("the request was abandoned")
        try:
            response = yield from self._retry(request)
            failure = None
        except ModelOverflow as error:
            self._remember_overflow(fingerprint, error)
            failure = error
            raise
        except Exception as error:
            failure = error
            raise
        finally:
            self.breaker.leave(failure)
        return response

    def _retry(self, request: ModelRequest) -> RequestFlow:
        deadline = self._clock() + request.timeout
        failures = 0
        failure: ModelError | None = None
        while True:
            seconds_left = deadline - self._clock()
            attempt_seconds = min(seconds_left, self._retry_policy.attempt or seconds_left)
            try:
                return (yield from self._attempt(replace(request, timeout=max(attempt_seconds, 0.001))))
            except SpendLimit as error:
                raise failure or error from None
            except ModelError as error:
                failure, failures = error, failures + 1
                pause = self._next_pause(error, failures, deadline - self._clock())
                if pause is None:
                    raise
            yield pause
            self._raise_if_cancelled()

    def _next_pause(self, error: ModelError, failures: int, seconds_left: float) -> float | None:
        """Seconds until the next attempt, or None if there is none."""
        retry_after = error.retry_after if isinstance(error, ModelUnavailable) else None
        if (
            not error.retryable
            or failures >= self._retry_policy.attempts
            or (retry_after or 0.0) > self._retry_policy.longest
        ):
            return None
        pause = self._retry_policy.pause_seconds(failures, retry_after, self._chance())
        return pause if pause < seconds_left else None

    def _attempt(self, request: ModelRequest) -> RequestFlow:
        """Make one attempt; reserve its maximal cost before and settle the real cost after."""
        if not self._limiters:
            return (yield from _send(request))
        max_usage = max_usage_of(request, self.name, self._counter)
        self._reserve(max_usage)
        cost = max_usage  # an abandoned attempt may have cost all of it
        try:
            response = yield from _send(request)
            cost = response.usage or counted_usage(max_usage, response.text, self.name, self._counter)
        except ModelError as error:
            cost = error.usage or (max_usage if error.unknown_cost else Usage(0))
            raise
        except Exception:
            cost = Usage(0)
            raise
        finally:
            for limiter in self._limiters:
                limiter.settle(max_usage, cost)
        return response

    def _reserve(self, max_usage: Usage) -> None:
        """Reserve with every limiter, or with none. Raises SpendLimit."""
        with ExitStack() as reserved:
            for limiter in self._limiters:
                limiter.reserve(max_usage)
                reserved.callback(limiter.settle, max_usage, Usage(0))
            reserved.pop_all()

    def _remember_overflow(self, fingerprint: bytes, error: ModelOverflow) -> None:
        with self._lock:
            # The error itself is not stored: its traceback would keep the request alive.
            self._overflows[fingerprint] = Overflow(error.window, error.requested)
            while len(self._overflows) > _MAX_OVERFLOWS:
                self._overflows.popitem(last=False)
            if error.window:
                self._learned_window = error.window

    def _raise_if_overflowed_before(self, fingerprint: bytes) -> None:
        with self._lock:
            overflow = self._overflows.get(fingerprint)
        if overflow is not None:
            raise ModelOverflow(
                f"the same request overflowed {self.name} before and was not sent again; send a shorter one",
                window=overflow.window,
                requested=overflow.requested,
            )

    def _raise_if_cancelled(self) -> None:
        if deadlines.is_wait_cancelled() or (self._is_cancelled is not None and self._is_cancelled()):
            raise ModelCancelled(f"the wait for {self.name} was called off")


def _send(request: ModelRequest) -> RequestFlow:
    response = yield request
    if response is None:
        raise ConfigurationError("a model's write must return a ModelResponse")
    return response


def _fingerprint(request: ModelRequest) -> bytes:
    """Hash of all that decides whether a request overflows: its messages and ``max_tokens``."""
    identity = repr((request.messages, request.max_tokens))
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()
