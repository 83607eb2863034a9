"""Cancellation of work that may not be left half done."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TypeVar

T = TypeVar("T")


async def finish_first(work: asyncio.Future[T]) -> T:
    """Await the work. A cancellation is raised once it is done: a write in a thread cannot be called back."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({work})
        if not work.cancelled():
            work.exception()
        raise
