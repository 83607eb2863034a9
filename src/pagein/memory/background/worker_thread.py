"""The thread in which a memory writes summaries, extracts facts and embeds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

END_SECONDS = 1.0
"""Seconds to wait at close for cancelled work; its thread keeps no interpreter from ending."""


class WorkerThread(Generic[T]):
    """A daemon thread that does one piece of work. ``cancelled`` asks the work to end early."""

    def __init__(
        self, name: str, work: Callable[[threading.Event], T], cancelled: threading.Event | None = None
    ) -> None:
        self.cancelled = threading.Event() if cancelled is None else cancelled
        self.result: T | None = None
        """The result of the work; None until it is done."""
        self._work = work
        self._thread = threading.Thread(target=self._do_work, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """True while the work goes on."""
        return self._thread.is_alive()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the work at most ``timeout`` seconds, or until it ends."""
        self._thread.join(timeout)

    def _do_work(self) -> None:
        self.result = self._work(self.cancelled)
