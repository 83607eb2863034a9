"""Retries for writers of a log that others write to, too."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from pagein.errors import Conflict, PageinError

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.25
"""Seconds of the longest pause after the first conflict, doubled after each further one, and of any pause."""


def retry_on_conflict(
    action: Callable[[], T],
    *,
    attempts: int,
    errors: tuple[type[PageinError], ...] = (Conflict,),
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Call the action until it raises none of the ``errors``, at most ``attempts`` times. The last error goes through.

    A random pause after each conflict, longer and longer, parts the writers: without it, one whose reading is slow beside
    the others' writing can lose every attempt.
    """
    pause = FIRST_PAUSE
    for _ in range(attempts - 1):
        try:
            return action()
        except errors:
            sleep(random.uniform(0, pause))  # noqa: S311 - when to try again
        pause = min(2 * pause, LONGEST_PAUSE)
    return action()
