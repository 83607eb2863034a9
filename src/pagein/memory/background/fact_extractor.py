"""A run read for facts beside the run: in one daemon thread, one reading at a time. Whoever records waits for nothing.

What was not read stays in the log, and the watermark says how far it was: a reading that fails, or is called off, is
lost to nobody, here or in the next process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from pagein.errors import PageinError
from pagein.facts.extraction.pipeline import Pace, Read
from pagein.facts.store import Facts
from pagein.models.base import Ask, AsyncModel, Model, Reply
from pagein.models.deadlines import within
from pagein.models.errors import ModelCancelled, ModelUnavailable
from pagein.models.retrying import Patient

ENDS = 1.0
"""Seconds to wait for a reading that was called off; its thread keeps no interpreter from ending."""

_LOOK = 0.05
"""Seconds between two looks at whether the wait was called off."""


class Reader:
    """Reads one run for facts, when it is time by ``clock``, in a thread that is there while something is to be read.

    ``tell`` is given what a reading failed with, and None after one that did not. A failed reading is tried again with
    the next turn. ``stopped`` is set at close, and calls off what the model is asked.
    """

    def __init__(
        self,
        facts: Facts,
        clock: Callable[[], float],
        tell: Callable[[Exception | None], None],
        stopped: threading.Event,
    ) -> None:
        # Rules read at once; a model when the session is quiet.
        self._pace = Pace(facts.settings.debounce if facts.asks else 0.0)
        self._facts, self._clock, self._tell, self._stopped = facts, clock, tell, stopped
        self._turn = threading.Condition()
        self._read: Read | None = None
        self._head = self._done = 0
        self._wanted = self._busy = False
        self._thread: threading.Thread | None = None

    def attend(self, read: Read, head: int) -> None:
        """Note that the run has come to ``head``: it is read when it is time."""
        with self._turn:
            now = self._clock()
            due, new = self._pace.is_due(now), head > self._head
            if new:
                self._read, self._head = read, head
                self._pace.hear(now)
            if due:
                self._wanted = True
                self._turn.notify_all()
            if due or new:
                self._go()

    def flush(self, read: Read, head: int) -> None:
        """Begin to read now whatever was not read yet."""
        with self._turn:
            self._read, self._head = read, max(head, self._head)
            if self._head > self._done:
                self._wanted = True
                self._turn.notify_all()
                self._go()

    def wait(self, timeout: float | None) -> bool:
        """Wait until nothing is being read, at most ``timeout`` seconds (None: for ever); True when that is so."""
        with self._turn:
            return self._turn.wait_for(lambda: not self._busy and not self._wanted, timeout)

    def close(self) -> None:
        """Call off what is under way; a second call does nothing."""
        self._stopped.set()
        with self._turn:
            thread = self._thread
            self._turn.notify_all()
        if thread is not None:
            thread.join(ENDS)

    def _go(self) -> None:
        if self._thread is None and not self._stopped.is_set():
            self._thread = threading.Thread(target=self._work, name="pagein reads", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            read, head = job
            problem: Exception | None
            try:
                self._facts.flush(read, head)
                problem = self._facts.failed
            except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
                problem = error
            if not self._stopped.is_set():
                self._tell(problem)
            with self._turn:
                self._busy = False
                if problem is None:
                    self._done = max(head, self._done)
                self._turn.notify_all()

    def _next(self) -> tuple[Read, int] | None:
        """What to read, once it is time; None where nothing is left to be read."""
        with self._turn:
            while self._read is not None and not self._stopped.is_set():
                now = self._clock()
                if self._wanted or self._pace.is_due(now):
                    self._wanted, self._busy = False, True
                    self._pace.rest()
                    return self._read, self._head
                if self._pace.first is None:
                    break
                self._turn.wait(min(max(self._pace.left(now), _LOOK), self._pace.debounce))
            self._thread, self._wanted = None, False
            self._turn.notify_all()
            return None


class Beside:
    """A model as it is asked beside a run: with patience, and given up when ``stopped`` is set.

    With a ``loop`` it is awaited there, from another thread. Whatever goes wrong is a ModelError.
    """

    def __init__(
        self,
        model: Model | AsyncModel,
        stopped: threading.Event,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        patient = Patient(model, sleep=stopped.wait, stopped=stopped.is_set)
        self._model = model if isinstance(model, Patient) else patient
        self._stopped, self._loop = stopped, loop
        self.name, self.window = model.name, model.window

    def write(self, ask: Ask) -> Reply:
        """The answer, within the ask's timeout. Raises ModelError."""
        try:
            return self._written(ask) if self._loop is None else self._awaited(ask, self._loop)
        except PageinError:
            raise
        except Exception as error:  # a user's model may raise anything
            raise ModelUnavailable(f"{self.name}: {type(error).__name__}: {error}") from error

    def _written(self, ask: Ask) -> Reply:
        wait = ask.timeout + 2
        return within(wait, lambda: self._model.write(ask), name=self.name, stopped=self._stopped.is_set)

    def _awaited(self, ask: Ask, loop: asyncio.AbstractEventLoop) -> Reply:
        if loop.is_closed() or loop is _running():
            raise ModelUnavailable(
                f"{self.name} is awaited: call facts in a thread, as asyncio.to_thread does"
            )
        future = asyncio.run_coroutine_threadsafe(self._model.awrite(ask), loop)
        while True:
            try:
                return future.result(_LOOK)
            except TimeoutError:
                if future.done():
                    raise
            if self._stopped.is_set() or loop.is_closed():
                future.cancel()
                raise ModelCancelled(f"the wait for {self.name} was called off")


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
