"""Which worker an address means, and how it is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pagein.backends.open import is_postgres, open_log
from pagein.backends.sqlite.connection import MEMORY
from pagein.backends.sqlite.log import SQLiteLog
from pagein.errors import ConfigurationError
from pagein.worker.jobs import Desk, Done

EVERY = 5.0
"""Seconds between two looks for what is due."""

LEASE = 30.0
"""Seconds after which a worker that was not heard of is taken for dead."""


def work(
    desk: Desk,
    *,
    stop: threading.Event | None = None,
    once: bool = False,
    every: float = EVERY,
    lease: float = LEASE,
) -> Iterator[Done]:
    """Each job as it is done: until ``stop`` is set or, ``once``, until nothing is due that another does not hold.

    Many workers may share a store; a job is done by one of them at a time, and by another where that one dies. Raises
    ConfigurationError for a store in memory, where there is nobody to share it, and LogError.
    """
    over = threading.Event() if stop is None else stop
    if is_postgres(desk.url):
        from pagein.worker.postgres import work_on_server  # noqa: PLC0415 - its queue is an extra

        yield from work_on_server(desk, stop=over, once=once, every=every, lease=lease)
        return
    log = open_log(desk.url, tenant=desk.tenant)
    log.close()
    if not isinstance(log, SQLiteLog) or log.path == MEMORY:
        raise ConfigurationError(
            "a worker needs a store that others can reach: a file or a postgresql:// address"
        )
    from pagein.worker.sqlite import work_on_file  # noqa: PLC0415 - one of two

    yield from work_on_file(desk, log.path, stop=over, once=once, every=every, lease=lease)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set, so that what is under way is brought to an end; only in the main thread."""
    stop = threading.Event()
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
