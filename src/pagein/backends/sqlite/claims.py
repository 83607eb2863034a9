"""Claims on background jobs in a SQLite file: a row names the worker and the end of its lease."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from pagein.backends.sqlite.connection import SharedDatabase
from pagein.backends.sqlite.migrations import CLAIMS_TABLE

_TAKE = """INSERT INTO worker_claims VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant, session, kind)
    DO UPDATE SET worker = excluded.worker, until = excluded.until WHERE until < ?"""
_MINE = "WHERE tenant = ? AND session = ? AND kind = ? AND worker = ?"


class Claims(SharedDatabase):
    """The claims on one tenant's jobs in a file. ``lease`` in seconds: how long a claim outlives its worker.

    Raises LogError where the file is foreign, busy, or not writable.
    """

    def __init__(
        self, path: str, worker: str, *, tenant: str = "", lease: float = 30.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._worker, self._tenant = worker, tenant
        self._lease, self._clock = lease, clock
        self._connect(path, timeout=5.0, synchronous="NORMAL")
        self._execute(CLAIMS_TABLE)

    @contextlib.contextmanager
    def claim(self, session: str, kind: str) -> Iterator[bool]:
        """Claim a job until the end of the block, renewed meanwhile; False where another worker has it."""
        now = self._clock()
        key = (self._tenant, session, kind)
        if not self._execute(_TAKE, *key, self._worker, now + self._lease, now):
            yield False
            return
        over = threading.Event()
        renewing = threading.Thread(target=self._renew, args=(key, over), name="pagein claims", daemon=True)
        renewing.start()
        try:
            yield True
        finally:
            over.set()
            renewing.join()
            self._execute(f"DELETE FROM worker_claims {_MINE}", *key, self._worker)  # noqa: S608 - ours

    def _renew(self, key: tuple[str, str, str], over: threading.Event) -> None:
        while not over.wait(self._lease / 3):
            # A file that is busy for a moment is tried again before the lease is over.
            with contextlib.suppress(Exception):
                self._execute(
                    f"UPDATE worker_claims SET until = ? {_MINE}",  # noqa: S608 - ours
                    self._clock() + self._lease, *key, self._worker,
                )  # fmt: skip

    def _execute(self, statement: str, *values: object) -> int:
        """Run one statement in a transaction of its own; return how many rows it changed."""
        with self._using(writing=True) as database:
            return database.execute(statement, values).rowcount
