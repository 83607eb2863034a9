"""A worker on a SQLite file: what is due is claimed, done, and let go."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing

from pagein.backends.sqlite.claims import Claims
from pagein.worker.jobs import Desk, Done, Job


def work_on_file(
    desk: Desk, path: str, *, stop: threading.Event, once: bool, every: float, lease: float
) -> Iterator[Done]:
    """Each job as it is done, until ``stop`` is set or, ``once``, until nothing is due that another does not hold."""
    name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    with closing(Claims(path, name, tenant=desk.tenant, lease=lease, clock=desk.clock)) as claims:
        failed: set[Job] = set()
        while not stop.is_set():
            did = False
            for job in desk.due():
                if stop.is_set() or (job in failed and once):
                    continue
                with claims.held(job.session, job.kind) as is_mine:
                    done = desk.do(job, stop) if is_mine else None
                if done is not None:
                    did = did or not done.failed
                    failed.update([job] if done.failed else ())
                    yield done
            if not did and (once or stop.wait(every)):
                return
