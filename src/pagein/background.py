"""One job at a time, written while the run goes on: in a daemon thread, or in a task of the event loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pagein.driving import adrive, drive
from pagein.errors import ConfigurationError
from pagein.models.contract import Ask, AsyncModel, Model, Reply
from pagein.models.patience import Patient
from pagein.models.waiting import awritten, within, written
from pagein.writing import Author, Job, Outcome
from pagein.writing.course import write

if TYPE_CHECKING:
    import asyncio

ENDS = 1.0
"""Seconds to wait at close for a job that was called off; its thread keeps no interpreter from ending."""


def patient(model: Model | AsyncModel, stopped: threading.Event | None = None) -> Model | AsyncModel:
    """The model with patience around it, unless the user brought some; it gives up when ``stopped`` is set."""
    if isinstance(model, Patient):
        return model
    if stopped is None:
        return Patient(model)
    return Patient(model, sleep=stopped.wait, stopped=stopped.is_set)


BEGINS = 0.05
"""Seconds before a thread begins: the turn that asked for it ends first, since one interpreter runs one thread at a time."""


class Thread:
    """Has an author write jobs in a daemon thread."""

    def __init__(self, model: Model | AsyncModel, author: Author) -> None:
        if not callable(getattr(model, "write", None)):
            raise ConfigurationError(f"{model.name} can only be awaited: use it with AsyncAgentMemory")
        self._stopped = threading.Event()
        self._model, self._author = patient(model, self._stopped), author
        self._thread: threading.Thread | None = None
        self._outcome: Outcome | None = None

    def begin(self, job: Job) -> None:
        """Start on the job; whatever happens to it is told by ``collect``."""
        self._outcome = None
        self._thread = threading.Thread(target=self._work, args=(job,), name="pagein writes", daemon=True)
        self._thread.start()

    def collect(self, timeout: float | None) -> Outcome | None:
        """What came of the job, waited for at most ``timeout`` seconds (None: for ever)."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._outcome

    def close(self) -> None:
        """Call off what is under way; what is written after this is seen by nobody."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(ENDS)

    def _work(self, job: Job) -> None:
        self._stopped.wait(BEGINS)
        try:
            self._outcome = drive(write(job, self._author), self._ask)
        except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
            self._outcome = Outcome(problem=error)

    def _ask(self, ask: Ask) -> Reply:
        # The model holds the deadline; this ends the wait, and every wait within it, when the memory is closed.
        return within(
            ask.timeout + 2,
            lambda: written(self._model, ask),
            name=self._author.name,
            stopped=self._stopped.is_set,
        )


class Task:
    """Has an author write jobs in a task of the running loop."""

    def __init__(self, model: Model | AsyncModel, author: Author) -> None:
        self._model, self._author = patient(model), author
        self._task: asyncio.Task[Outcome] | None = None

    def begin(self, job: Job) -> None:
        """Start on the job; whatever happens to it is told by ``collect``."""
        import asyncio  # noqa: PLC0415 - there is a loop, or this would not be called

        self._task = asyncio.create_task(self._work(job), name="pagein writes")

    async def collect(self, timeout: float | None) -> Outcome | None:  # noqa: ASYNC109 - it waits, and cancels nothing
        """What came of the job, waited for at most ``timeout`` seconds (None: for ever)."""
        import asyncio  # noqa: PLC0415

        if self._task is None:
            return None
        if timeout != 0:
            await asyncio.wait({self._task}, timeout=timeout)
        return self._task.result() if self._task.done() else None

    async def close(self) -> None:
        """Call off what is under way, and wait until it is."""
        import asyncio  # noqa: PLC0415

        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self, job: Job) -> Outcome:
        try:
            return await adrive(write(job, self._author), self._ask)
        except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
            return Outcome(problem=error)

    async def _ask(self, ask: Ask) -> Reply:
        return await awritten(self._model, ask)
