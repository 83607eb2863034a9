"""A worker on a SQLite file: it claims each due job, does it, and releases the claim."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing

from pagein.backends.sqlite.claims import Claims
from pagein.worker.jobs import Job, JobResult, WorkQueue


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
