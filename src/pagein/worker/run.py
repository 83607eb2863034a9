"""Runs the worker for an address, and stops it on signals."""

from __future__ import annotations

import os
import signal
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager

from pagein.backends.open import is_postgres, open_store
from pagein.backends.sqlite.claims import Claims
from pagein.backends.sqlite.log import SQLiteStore
from pagein.errors import ConfigurationError
from pagein.worker.jobs import Job, JobResult, WorkQueue

POLL_SECONDS = 5.0
"""Seconds between two looks for what is due."""

LEASE_SECONDS = 30.0
"""Seconds after which a worker that was not heard of is taken for dead."""


def work(
    jobs: WorkQueue,
    *,
    stop: threading.Event | None = None,
    once: bool = False,
    every: float = POLL_SECONDS,
    lease: float = LEASE_SECONDS,
) -> Iterator[JobResult]:
    """Do jobs until ``stop`` is set or, ``once``, until none is due that no other worker has; yield results.

    Many workers may share a store: a job is done by one of them at a time, and by another where that one dies.
    Raises ConfigurationError for a store in memory, which no other process can share, and LogError.
    """
    if not isinstance(jobs, WorkQueue):
        raise ConfigurationError(f"work takes a WorkQueue, such as WorkQueue('run.db'), not {jobs!r}")
    over = threading.Event() if stop is None else stop
    if is_postgres(jobs.url):
        from pagein.worker.postgres import work_on_server  # noqa: PLC0415 - its queue is an extra

        yield from work_on_server(jobs, stop=over, once=once, every=every, lease=lease)
        return
    store = open_store(jobs.url, tenant=jobs.tenant)
    if not isinstance(store, SQLiteStore) or not store.is_durable:
        raise ConfigurationError("a worker needs a store that others can reach: a file or a postgresql:// address")
    store.log().close()
    yield from work_on_file(jobs, store.path, stop=over, once=once, every=every, lease=lease)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set, so that the current job can end; only in the main thread."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def work_on_file(
    jobs: WorkQueue, path: str, *, stop: threading.Event, once: bool, every: float, lease: float
) -> Iterator[JobResult]:
    """Do jobs until ``stop`` is set or, ``once``, until none is due that no other worker has; yield each result."""
    name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    with closing(Claims(path, name, tenant=jobs.tenant, lease=lease, clock=jobs.clock)) as claims:
        failed: set[Job] = set()
        while not stop.is_set():
            did = False
            for job in jobs.due_jobs():
                if stop.is_set() or (job in failed and once):
                    continue
                with claims.claim(job.session, job.kind) as is_mine:
                    result = jobs.do(job, stop) if is_mine else None
                if result is not None:
                    did = did or not result.failed
                    failed.update([job] if result.failed else ())
                    yield result
            if not did and (once or stop.wait(every)):
                return
