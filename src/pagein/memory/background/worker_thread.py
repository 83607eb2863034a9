"""The thread in which a memory writes summaries, extracts facts and embeds."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

END_SECONDS = 1.0
"""Seconds to wait at close for cancelled work; its thread keeps no interpreter from ending."""


class WorkerThread(threading.Thread, Generic[T]):
    """A daemon thread that begins one piece of work at once, in the context of its caller. ``cancelled`` asks it to end early."""

    def __init__(
        self, name: str, work: Callable[[threading.Event], T], cancelled: threading.Event | None = None
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.cancelled = threading.Event() if cancelled is None else cancelled
        self.result: T | None = None
        """The result of the work; None until it is done."""
        self._work, self._context = work, contextvars.copy_context()
        self.start()

    def run(self) -> None:
        """Do the work."""
        self.result = self._context.run(self._work, self.cancelled)
