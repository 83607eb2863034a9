"""Writers of summaries, one job at a time while the run goes on: in a thread, or in a task of the event loop."""

from __future__ import annotations

import asyncio
import threading

from pagein._common.flows import adrive, drive
from pagein.errors import ConfigurationError
from pagein.memory.background.worker_thread import END_SECONDS, WorkerThread
from pagein.models.base import AsyncModel, Model, ModelRequest, ModelResponse
from pagein.models.deadlines import acall_model, call_model, call_with_deadline
from pagein.models.errors import ModelRefused
from pagein.models.retrying import RetryingModel
from pagein.models.writer_account import WriterAccount
from pagein.summaries.job import JobOutcome, Summarizer, SummaryJob
from pagein.summaries.pipeline import run_job

START_DELAY = 0.05
"""Seconds before a job starts: the turn that asked for it ends first, since one interpreter runs one thread at a time."""

DEADLINE_GRACE = 2
"""Seconds after a request's own timeout at which the wait for its model ends."""


def with_retries(model: Model | AsyncModel, account: WriterAccount | None) -> RetryingModel:
    """The model with retries around it, unless it has them; its attempts are charged to the account."""
    retrying = model if isinstance(model, RetryingModel) else RetryingModel(model)
    return retrying if account is None else retrying.limited_by(account)


class SummaryThread:
    """Writes summaries in a thread. A cancelled job ends before the next one starts."""

    def __init__(self, model: Model | AsyncModel, summarizer: Summarizer, account: WriterAccount | None) -> None:
        if not callable(getattr(model, "write", None)):
            raise ConfigurationError(f"{model.name} can only be awaited: use it with AsyncAgentMemory")
        self._model, self._summarizer = with_retries(model, account), summarizer
        self._worker: WorkerThread[JobOutcome] | None = None
        self._cancelled_worker: WorkerThread[JobOutcome] | None = None

    def begin(self, job: SummaryJob) -> None:
        """Start the job."""
        before = self._cancelled_worker

        def work(cancelled: threading.Event) -> JobOutcome:
            if before is not None:
                before.join()
            return JobOutcome() if cancelled.wait(START_DELAY) else self._write(job, cancelled)

        self._worker = WorkerThread("pagein writes", work)

    def collect(self, timeout: float | None) -> JobOutcome | None:
        """Wait for the outcome at most ``timeout`` seconds (None: as long as it takes); None while at work."""
        if self._worker is None:
            return None
        self._worker.join(timeout)
        return self._worker.result

    def cancel(self) -> None:
        """Cancel the job at once; its outcome is dropped."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.cancelled.set()
            self._cancelled_worker = worker

    def close(self) -> None:
        """Cancel the job, and wait a moment for its thread."""
        self.cancel()
        if self._cancelled_worker is not None:
            self._cancelled_worker.join(END_SECONDS)

    def _write(self, job: SummaryJob, cancelled: threading.Event) -> JobOutcome:
        def ask(request: ModelRequest) -> ModelResponse:
            # The model keeps the deadline; this wait, and each within it, ends early when the job is cancelled.
            return call_with_deadline(
                request.timeout + DEADLINE_GRACE,
                lambda: call_model(self._model, request),
                name=self._summarizer.name,
                is_cancelled=cancelled.is_set,
            )

        try:
            return drive(run_job(job, self._summarizer), ask)
        except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
            return JobOutcome(problem=error)


class SummaryTask:
    """Writes summaries in a task of the running loop. A cancelled job ends before the next one starts.

    A job whose loop was closed before it was done is begun again in the loop that asks for it.
    """

    def __init__(self, model: Model | AsyncModel, summarizer: Summarizer, account: WriterAccount | None) -> None:
        self._model, self._summarizer = with_retries(model, account), summarizer
        self._job: SummaryJob | None = None
        self._task: asyncio.Task[JobOutcome] | None = None
        self._cancelled_task: asyncio.Task[JobOutcome] | None = None

    def begin(self, job: SummaryJob) -> None:
        """Start the job; call it in the loop."""
        self._job = job
        self._task = asyncio.create_task(self._write(job, self._cancelled_task), name="pagein writes")

    async def collect(self, timeout: float | None) -> JobOutcome | None:  # noqa: ASYNC109 - it waits, and cancels nothing
        """Wait for the outcome at most ``timeout`` seconds (None: as long as it takes); None while at work."""
        if self._task is not None and self._job is not None and _is_lost(self._task):
            self.begin(self._job)
        task = self._task
        if task is None:
            return None
        if timeout != 0:
            await _wait_here(task, timeout)
        if task.cancelled():
            return JobOutcome()
        return task.result() if task.done() else None

    def cancel(self) -> None:
        """Cancel the job at once; its outcome is dropped. Any thread may call it."""
        task, self._task = self._task, None
        if task is not None and not task.done() and not task.get_loop().is_closed():
            self._cancelled_task = task
            task.get_loop().call_soon_threadsafe(task.cancel)

    async def close(self) -> None:
        """Cancel the job, and wait until it has ended."""
        self.cancel()
        await _wait_here(self._cancelled_task)

    async def _write(self, job: SummaryJob, before: asyncio.Task[JobOutcome] | None) -> JobOutcome:
        await _wait_here(before)
        try:
            return await adrive(run_job(job, self._summarizer), lambda request: acall_model(self._model, request))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            return JobOutcome(problem=ModelRefused(f"{self._summarizer.name} raised CancelledError"))
        except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
            return JobOutcome(problem=error)


def _is_lost(task: asyncio.Task[JobOutcome]) -> bool:
    """True where the task's loop was closed before it had a result."""
    return task.get_loop().is_closed() and (task.cancelled() or not task.done())


async def _wait_here(task: asyncio.Task[JobOutcome] | None, timeout: float | None = None) -> None:  # noqa: ASYNC109 - it cancels nothing
    """Wait for a task of this loop; one of another is not waited for."""
    if task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop():
        await asyncio.wait({task}, timeout=timeout)
