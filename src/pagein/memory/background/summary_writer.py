"""One job at a time, written while the run goes on: in a daemon thread, or in a task of the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from pagein._common.drive import adrive, drive
from pagein.errors import ConfigurationError
from pagein.models.base import Ask, AsyncModel, Model, Reply
from pagein.models.deadlines import awritten, within, written
from pagein.models.retrying import Patient
from pagein.summaries.job import Author, Job, Outcome
from pagein.summaries.pipeline import write

if TYPE_CHECKING:
    import asyncio

ENDS = 1.0
"""Seconds to wait at close for a job that was called off; its thread keeps no interpreter from ending."""


def patient(model: Model | AsyncModel) -> Model | AsyncModel:
    """The model with patience around it, unless the user brought some."""
    return model if isinstance(model, Patient) else Patient(model)


BEGINS = 0.05
"""Seconds before a thread begins: the turn that asked for it ends first, since one interpreter runs one thread at a time."""


class _Begun:
    """One job at work: what calls it off, and what came of it."""

    def __init__(self, job: Job, before: threading.Thread | None, work: Callable[[_Begun], Outcome]) -> None:
        self.job = job
        self.stopped = threading.Event()
        self.outcome: Outcome | None = None
        self._before, self._work = before, work
        self.thread = threading.Thread(target=self._run, name="pagein writes", daemon=True)

    def _run(self) -> None:
        if self._before is not None:
            self._before.join()  # it was called off, and ends within a moment: two never write at once
        if not self.stopped.wait(BEGINS):
            self.outcome = self._work(self)


class Thread:
    """Has an author write jobs in a daemon thread, one at a time."""

    def __init__(self, model: Model | AsyncModel, author: Author) -> None:
        if not callable(getattr(model, "write", None)):
            raise ConfigurationError(f"{model.name} can only be awaited: use it with AsyncAgentMemory")
        self._model, self._author = patient(model), author
        self._begun: _Begun | None = None
        self._ending: threading.Thread | None = None

    def begin(self, job: Job) -> None:
        """Start on the job; whatever happens to it is told by ``collect``."""
        self._begun = _Begun(job, self._ending, self._written)
        self._begun.thread.start()

    def collect(self, timeout: float | None) -> Outcome | None:
        """What came of the job, waited for at most ``timeout`` seconds (None: for ever)."""
        if self._begun is None:
            return None
        self._begun.thread.join(timeout)
        return self._begun.outcome

    def call_off(self) -> None:
        """Give up the job that is under way, at once: what comes of it after this is seen by nobody."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.stopped.set()
            self._ending = begun.thread

    def close(self) -> None:
        """Call off what is under way, and give it a moment to end."""
        self.call_off()
        if self._ending is not None:
            self._ending.join(ENDS)

    def _written(self, begun: _Begun) -> Outcome:
        def ask(ask: Ask) -> Reply:
            # The model holds the deadline; this ends the wait, and every wait within it, when the job is called off.
            return within(
                ask.timeout + 2,
                lambda: written(self._model, ask),
                name=self._author.name,
                stopped=begun.stopped.is_set,
            )

        try:
            return drive(write(begun.job, self._author), ask)
        except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
            return Outcome(problem=error)


class Task:
    """Has an author write jobs in a task of the running loop, one at a time."""

    def __init__(self, model: Model | AsyncModel, author: Author) -> None:
        self._model, self._author = patient(model), author
        self._task: asyncio.Task[Outcome] | None = None
        self._ending: asyncio.Task[Outcome] | None = None

    def begin(self, job: Job) -> None:
        """Start on the job; whatever happens to it is told by ``collect``."""
        import asyncio  # noqa: PLC0415 - there is a loop, or this would not be called

        self._task = asyncio.create_task(self._work(job, self._ending), name="pagein writes")

    async def collect(self, timeout: float | None) -> Outcome | None:  # noqa: ASYNC109 - it waits, and cancels nothing
        """What came of the job, waited for at most ``timeout`` seconds (None: for ever)."""
        import asyncio  # noqa: PLC0415

        if self._task is None:
            return None
        if timeout != 0:
            await asyncio.wait({self._task}, timeout=timeout)
        return self._task.result() if self._task.done() else None

    def call_off(self) -> None:
        """As ``Thread.call_off``; may be called from any thread."""
        task, self._task = self._task, None
        if task is not None:
            self._ending = task
            task.get_loop().call_soon_threadsafe(task.cancel)

    async def close(self) -> None:
        """Call off what is under way, and wait until it is."""
        import asyncio  # noqa: PLC0415

        self.call_off()
        if self._ending is not None and not self._ending.done():
            await asyncio.wait({self._ending})

    async def _work(self, job: Job, before: asyncio.Task[Outcome] | None) -> Outcome:
        if before is not None and not before.done():
            import asyncio  # noqa: PLC0415

            await asyncio.wait({before})  # it was called off: two never write at once
        try:
            return await adrive(write(job, self._author), self._ask)
        except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
            return Outcome(problem=error)

    async def _ask(self, ask: Ask) -> Reply:
        return await awritten(self._model, ask)
