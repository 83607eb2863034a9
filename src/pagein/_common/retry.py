"""Retries for writers of a log that others write to, too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from pagein.errors import Conflict, PageinError

T = TypeVar("T")


def retry_on_conflict(
    action: Callable[[], T], *, attempts: int, errors: tuple[type[PageinError], ...] = (Conflict,)
) -> T:
    """Call the action until it raises none of the ``errors``, at most ``attempts`` times. The last error goes through."""
    for _ in range(attempts - 1):
        with suppress(*errors):
            return action()
    return action()
