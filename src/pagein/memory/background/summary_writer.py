"""The writer of summaries: one job at a time, in a thread, while the run goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import CancelledError

from pagein._common.flows import drive
from pagein.errors import ConfigurationError
from pagein.memory.background.asked_model import FindLoop, ask_model, with_retries
from pagein.memory.background.worker_thread import END_SECONDS, WorkerThread
from pagein.models.base import AsyncModel, Model, ModelRequest, ModelResponse
from pagein.models.errors import ModelRefused
from pagein.models.writer_account import WriterAccount
from pagein.summaries.job import JobOutcome, Summarizer, SummaryJob
from pagein.summaries.pipeline import run_job

START_DELAY = 0.05
"""Seconds before a job starts: the turn that asked for it ends first, since one interpreter runs one thread at a time."""

_POLL_SECONDS = 0.05


class SummaryWriter:
    """Writes summaries in a thread; with ``find_loop`` the model is awaited. A cancelled job ends before the next one starts.

    A job whose event loop was closed before it was done is begun again in the loop that asks for it.
    """

    def __init__(
        self,
        model: Model | AsyncModel,
        summarizer: Summarizer,
        account: WriterAccount | None,
        find_loop: FindLoop | None = None,
    ) -> None:
        if find_loop is None and not callable(getattr(model, "write", None)):
            raise ConfigurationError(f"{model.name} can only be awaited: use it with AsyncAgentMemory")
        self._model, self._summarizer = with_retries(model, account), summarizer
        self._find_loop = find_loop or (lambda: None)
        self.abandoned = threading.Event()
        """Set where nobody waits any more for what ``collect`` waits for."""
        self._job: SummaryJob | None = None
        self._lost_with: asyncio.AbstractEventLoop | None = None
        """The loop in which a request of the job was cancelled, and not by this memory."""
        self._worker: WorkerThread[JobOutcome] | None = None
        self._cancelled_worker: WorkerThread[JobOutcome] | None = None

    def begin(self, job: SummaryJob) -> None:
        """Start the job."""
        before, self._job, self._lost_with = self._cancelled_worker, job, None

        def work(cancelled: threading.Event) -> JobOutcome:
            if before is not None:
                before.join()
            return JobOutcome() if cancelled.wait(START_DELAY) else self._write(job, cancelled)

        self._worker = WorkerThread("pagein writes", work)

    def collect(self, timeout: float | None) -> JobOutcome | None:
        """Wait for the outcome at most ``timeout`` seconds (None: as long as it takes); None while at work."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._worker is not None and self._job is not None:
            remaining = _POLL_SECONDS if deadline is None else min(_POLL_SECONDS, deadline - time.monotonic())
            self._worker.join(max(0.0, remaining))
            loop = self._find_loop()
            is_abandoned = self.abandoned.is_set() or (loop is not None and not loop.is_running())
            if not self._worker.is_alive():
                if self._lost_with is None or not self._lost_with.is_closed():
                    return self._worker.result
                if not is_abandoned:
                    self.begin(self._job)
            if is_abandoned or remaining < _POLL_SECONDS:
                break
        return None

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
            loop = self._find_loop()
            try:
                return ask_model(self._model, request, cancelled.is_set, loop)
            except CancelledError:
                self._lost_with = loop
                raise ModelRefused(f"{self._summarizer.name} raised CancelledError") from None

        try:
            return drive(run_job(job, self._summarizer), ask)
        except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
            return JobOutcome(problem=error)
