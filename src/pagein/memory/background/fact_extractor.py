"""Extraction of facts beside a run, in a thread, one reading at a time. Recording does not wait for it.

Entries that were not read stay in the log, and the position that was read is recorded with the facts. So a reading that
fails or is cancelled is repeated, here or in the next process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pagein.facts.extraction.pipeline import ReadEntries, ReadingPace
from pagein.facts.store import Facts
from pagein.memory.background.worker_thread import END_SECONDS, WorkerThread

_POLL_SECONDS = 0.05


class FactExtractor:
    """Reads a run for facts when that is due by ``clock``, in a thread that ends when nothing is left to read.

    ``report`` gets the error of each reading, None after one that succeeded; a failed reading is repeated with the next
    turn. ``cancelled`` is set at close, and cancels the request to the model.
    """

    def __init__(
        self,
        facts: Facts,
        clock: Callable[[], float],
        report: Callable[[Exception | None], None],
        cancelled: threading.Event,
    ) -> None:
        # Rules read at once; a model reads when the session is quiet.
        self._pace = ReadingPace(facts.settings.debounce if facts.uses_model else 0.0)
        self._facts, self._clock, self._report, self._cancelled = facts, clock, report, cancelled
        self._changed = threading.Condition()
        self._read: ReadEntries | None = None
        self._head = self._read_until = 0
        self._is_due = self._is_reading = False
        self._worker: WorkerThread[None] | None = None

    def extract_due(self, read: ReadEntries, head: int) -> None:
        """Note that the run has come to ``head``; it is read when that is due."""
        with self._changed:
            now = self._clock()
            is_due, is_new = self._pace.is_due(now), head > self._head
            if is_new:
                self._read, self._head = read, head
                self._pace.note_turn(now)
            if is_due:
                self._is_due = True
                self._changed.notify_all()
            if is_due or is_new:
                self._start()

    def flush(self, read: ReadEntries, head: int) -> None:
        """Start to read all unread entries now."""
        with self._changed:
            self._read, self._head = read, max(head, self._head)
            if self._head > self._read_until:
                self._is_due = True
                self._changed.notify_all()
                self._start()

    def wait(self, timeout: float | None) -> bool:
        """Wait until nothing is being read, at most ``timeout`` seconds (None: as long as it takes); True if so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_reading and not self._is_due, timeout)

    def close(self) -> None:
        """Cancel the reading, and wait a moment for its thread; a second call does nothing."""
        self._cancelled.set()
        with self._changed:
            worker = self._worker
            self._changed.notify_all()
        if worker is not None:
            worker.join(END_SECONDS)

    def _start(self) -> None:
        if self._worker is None and not self._cancelled.is_set():
            self._worker = WorkerThread("pagein reads", self._read_all, self._cancelled)

    def _read_all(self, cancelled: threading.Event) -> None:
        while (reading := self._next_reading()) is not None:
            read, head = reading
            problem: Exception | None
            try:
                self._facts.flush(read, head)
                problem = self._facts.last_error
            except Exception as error:  # noqa: BLE001 - a user's model may raise anything; the run goes on
                problem = error
            if not cancelled.is_set():
                self._report(problem)
            with self._changed:
                self._is_reading = False
                if problem is None:
                    self._read_until = max(head, self._read_until)
                self._changed.notify_all()

    def _next_reading(self) -> tuple[ReadEntries, int] | None:
        """Wait until a reading is due, and return it; None if nothing is left to read."""
        with self._changed:
            while self._read is not None and not self._cancelled.is_set():
                now = self._clock()
                if self._is_due or self._pace.is_due(now):
                    self._is_due, self._is_reading = False, True
                    self._pace.reset()
                    return self._read, self._head
                if self._pace.first is None:
                    break
                remaining = max(self._pace.remaining(now), _POLL_SECONDS)
                self._changed.wait(min(remaining, self._pace.debounce))
            self._worker, self._is_due = None, False
            self._changed.notify_all()
            return None
