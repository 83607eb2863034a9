"""Patience with a model: retries with back-off, a circuit breaker, a spend limit, no resend of what overflowed.

Around any model; itself a model. The course of one ask is written once, as a generator that says what to do next
(send this, wait so long), and driven in both colours. Time, sleep and chance come in by the door.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from pagein._common.drive import adrive, drive
from pagein.errors import ConfigurationError
from pagein.events.steps import Usage
from pagein.models.base import Ask, AsyncModel, Model, Reply
from pagein.models.deadlines import awritten, called_off, nap, within, written
from pagein.models.errors import (
    CircuitOpen,
    ModelCancelled,
    ModelError,
    ModelOverflow,
    ModelUnavailable,
    SpendLimit,
)
from pagein.models.overflow import Overflow
from pagein.models.spending import Spending, most_of
from pagein.tokens import TokenCounter

_REMEMBERED = 64
"""Asks that overflowed, of which so many are known again."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How often and how long: ``attempts`` in all, pauses of ``first`` seconds, then ``factor`` times as long each.

    A pause is between half and the whole of its length, by chance, so that many who failed together do not come back
    together; never over ``most``. A provider's Retry-After is kept to; one beyond ``longest`` ends the ask.
    ``attempt`` is the most seconds one attempt may take; None: all that is left.
    """

    attempts: int = 4
    first: float = 0.5
    factor: float = 2.0
    most: float = 20.0
    longest: float = 60.0
    attempt: float | None = None

    def __post_init__(self) -> None:
        positive = self.attempts >= 1 and self.first >= 0 and self.factor >= 1 and self.most >= 0
        if not positive or (self.attempt is not None and not self.attempt > 0):
            raise ConfigurationError(f"waits need at least one attempt, and no negative time: {self}")

    def pause(self, failures: int, asked: float | None, chance: float) -> float:
        """Seconds to wait after that many failures; ``chance`` in [0, 1)."""
        full = min(self.most, self.first * self.factor ** min(failures - 1, 64))
        return max(asked or 0.0, full * (0.5 + chance / 2))


class Breaker:
    """Leaves a model alone that failed ``failures`` times in a row, for ``cool_down`` seconds; then lets one ask try.

    What fails is an ask with all its attempts. An overflow, a spend limit and a wait called off are not the model's.
    Safe to share between threads.
    """

    def __init__(
        self, failures: int = 3, cool_down: float = 60.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if failures < 1 or cool_down < 0:
            raise ConfigurationError(
                f"a breaker needs failures >= 1 and cool_down >= 0: {failures}, {cool_down}"
            )
        self._most, self._cool_down, self._clock = failures, cool_down, clock
        self._failed, self._until, self._trying = 0, 0.0, False
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether an ask now would be turned away."""
        with self._lock:
            return self._closed_for() > 0

    def enter(self, name: str) -> None:
        """Lets an ask through. Raises CircuitOpen when the model is left alone."""
        with self._lock:
            left = self._closed_for()
            if left > 0:
                raise CircuitOpen(
                    f"{name} failed {self._failed} times in a row and is left alone for {left:.3g} s more",
                    retry_after=left,
                )
            self._trying = self._failed >= self._most

    def leave(self, error: BaseException | None) -> None:
        """Notes how an ask that was let through ended."""
        with self._lock:
            self._trying = False
            if error is None:
                self._failed = 0
            elif _is_the_models(error):
                self._failed += 1
                if self._failed >= self._most:
                    self._until = self._clock() + self._cool_down

    def _closed_for(self) -> float:
        if self._failed < self._most:
            return 0.0
        left = self._until - self._clock()
        return left if left > 0 or not self._trying else max(self._cool_down, 0.001)


def _is_the_models(error: BaseException) -> bool:
    ours = (ModelOverflow, ModelCancelled, SpendLimit, CircuitOpen)
    return isinstance(error, ModelError) and not isinstance(error, ours)


Course = Generator[Ask | float, Reply | None, Reply]
"""One ask on its way: an Ask to send, or seconds to wait; in the end the reply."""


class Patient:
    """A model around a model: within the ask's timeout it tries again what may heal, and only that.

    ``sleep`` waits for a given number of seconds when called; ``stopped`` turns true when nobody waits any longer:
    ``Patient(model, sleep=event.wait, stopped=event.is_set)`` stops at ``event.set()``. ``counter`` counts what an ask
    may cost; without one it is the model's own.
    """

    def __init__(
        self,
        model: Model | AsyncModel,
        *,
        waits: Waits | None = None,
        breaker: Breaker | None = None,
        spending: Spending | None = None,
        counter: TokenCounter | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = nap,
        chance: Callable[[], float] = random.random,
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        self._model, self._waits = model, waits or Waits()
        self._breaker, self._spending, self._counter = breaker or Breaker(clock=clock), spending, counter
        self._clock, self._sleep, self._chance, self._stopped = clock, sleep, chance, stopped
        self._overflowed: OrderedDict[bytes, Overflow] = OrderedDict()
        self._learnt: int | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def window(self) -> int:
        """The model's window, or a smaller one that an overflow taught."""
        return min(self._model.window, self._learnt or self._model.window)

    @property
    def breaker(self) -> Breaker:
        """The breaker, to look at or to share."""
        return self._breaker

    def write(self, ask: Ask) -> Reply:
        """The answer, within the ask's timeout over all attempts. Raises ModelError, SpendLimit and CircuitOpen too."""
        return drive(self._course(ask), self._done)

    async def awrite(self, ask: Ask) -> Reply:
        """As ``write``, awaited; a cancelled task stops at once, and keeps no promise of the spend limit."""
        return await adrive(self._course(ask), self._adone)

    def _done(self, effect: Ask | float) -> Reply | None:
        if not isinstance(effect, Ask):
            self._sleep(effect)
            return None
        if self._stopped is None:
            return written(self._model, effect)
        # The model holds the deadline; this only looks whether anyone still waits for it.
        wait = effect.timeout + 1
        return within(wait, lambda: written(self._model, effect), name=self.name, stopped=self._stopped)

    async def _adone(self, effect: Ask | float) -> Reply | None:
        if isinstance(effect, Ask):
            return await awritten(self._model, effect)
        import asyncio  # noqa: PLC0415 - as long to import as all the rest of the room

        await asyncio.sleep(effect)
        return None

    def _course(self, ask: Ask) -> Course:
        """Breaker outside, attempts inside. However the inside ends, the breaker is told."""
        self._unless_stopped()
        print_of = _print_of(ask)
        self._unless_overflowed(print_of)
        self._breaker.enter(self.name)
        ended: BaseException | None = ModelCancelled("the ask was given up")
        try:
            reply = yield from self._attempts(ask)
            ended = None
        except ModelOverflow as error:
            self._learn(print_of, error)
            ended = error
            raise
        except Exception as error:
            ended = error
            raise
        finally:
            self._breaker.leave(ended)
        return reply

    def _attempts(self, ask: Ask) -> Course:
        deadline = self._clock() + ask.timeout
        failures = 0
        while True:
            left = deadline - self._clock()
            share = min(left, self._waits.attempt or left)
            try:
                return (yield from self._paid(replace(ask, timeout=max(share, 0.001))))
            except ModelError as error:
                failures += 1
                pause = self._pause(error, failures, deadline - self._clock())
                if pause is None:
                    raise
            yield pause
            self._unless_stopped()

    def _pause(self, error: ModelError, failures: int, left: float) -> float | None:
        """Seconds until the next attempt, or None when there is to be none."""
        asked = error.retry_after if isinstance(error, ModelUnavailable) else None
        if not error.heals or failures >= self._waits.attempts or (asked or 0.0) > self._waits.longest:
            return None
        pause = self._waits.pause(failures, asked, self._chance())
        return pause if pause < left else None

    def _paid(self, ask: Ask) -> Course:
        """One attempt, promised before and settled after."""
        if self._spending is None:
            return (yield from _sent(ask))
        most = most_of(ask, self.name, self._counter)
        self._spending.promise(most)
        cost = most  # an attempt that was given up may have cost all of it
        try:
            reply = yield from _sent(ask)
            cost = reply.usage or most
        except ModelError as error:
            cost = error.usage or (most if error.unknown_cost else Usage(0))
            raise
        except Exception:
            cost = Usage(0)
            raise
        finally:
            self._spending.settle(most, cost)
        return reply

    def _learn(self, print_of: bytes, error: ModelOverflow) -> None:
        with self._lock:
            # Not the error: its traceback would keep the request alive.
            self._overflowed[print_of] = Overflow(error.window, error.asked)
            while len(self._overflowed) > _REMEMBERED:
                self._overflowed.popitem(last=False)
            if error.window:
                self._learnt = error.window

    def _unless_overflowed(self, print_of: bytes) -> None:
        with self._lock:
            known = self._overflowed.get(print_of)
        if known is not None:
            raise ModelOverflow(
                f"the same request overflowed {self.name} before and was not sent again; send a shorter one",
                window=known.window,
                asked=known.asked,
            )

    def _unless_stopped(self) -> None:
        if called_off() or (self._stopped is not None and self._stopped()):
            raise ModelCancelled(f"the wait for {self.name} was called off")


def _sent(ask: Ask) -> Course:
    reply = yield ask
    if reply is None:
        raise ConfigurationError("a model's write must return a Reply")
    return reply


def _print_of(ask: Ask) -> bytes:
    """What makes two asks the same to a window: their messages and the room for the answer."""
    told = repr((ask.messages, ask.max_tokens))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()
