"""The default log: one SQLite file, many sessions, durable before ``append`` returns."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Self

from pagein.backends.sqlite import snapshots as sqlite_snapshots
from pagein.backends.sqlite.connection import is_busy, open_database, translated
from pagein.backends.sqlite.rows import ROWS_AT_ONCE, SQLiteRows
from pagein.backends.sqlite.vacuum import scrub
from pagein.errors import Conflict, LogClosed, LogUnreadable
from pagein.events.entries import Body
from pagein.log.base import Entry, Verification
from pagein.log.codec import encode
from pagein.log.encryption import Key, held, seal_of
from pagein.log.erasure import Cut, Removal, cut_out, further, is_worth_keeping, refuse_erased, take_out
from pagein.log.paged_log import ByRows, checked_waits, whole_pages
from pagein.log.raw_rows import Row, Tip
from pagein.log.rows import Audit, checked_name, checked_time, relinked, seal, written
from pagein.log.snapshots import Shelf, Snapshot, sealed, unsealed

# One seek in the primary key for each session, however many entries it has.
_SESSIONS = """WITH RECURSIVE each(name) AS (
    SELECT min(session) FROM entries WHERE tenant = ?1
    UNION ALL SELECT (SELECT min(session) FROM entries WHERE tenant = ?1 AND session > name) FROM each
    WHERE name IS NOT NULL
) SELECT name FROM each WHERE name IS NOT NULL"""

_PAUSE = (0.0005, 0.003)


class SQLiteLog(ByRows):
    """A Log in a SQLite file, in WAL mode; ``append`` returns after the disk has it.

    ``timeout`` is how long, in seconds, to wait for another process. ``synchronous`` is SQLite's: with ``NORMAL`` a
    power cut may take the last appends, never the order or the whole. Threads may share one log; a forked process
    opens its own. With a ``key`` bodies, blobs and digests are encrypted; see ``pagein.log.encryption``.

    Raises LogUnreadable for a file that is not ours or is damaged, LogTooNew, LogBusy, LogUnwritable, and
    ConfigurationError for an option that does not exist.
    """

    joint = True
    """It reaches every session of its tenant in the file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        session: str = "default",
        tenant: str = "",
        timeout: float = 5.0,
        synchronous: str = "FULL",
        readonly: bool = False,
        key: Key | None = None,
    ) -> None:
        synchronous = checked_waits(timeout, synchronous)
        self.readonly = readonly
        self._timeout, self._synchronous = timeout, synchronous
        self.path = os.fspath(path)
        self.session = checked_name("session", session)
        self.tenant = checked_name("tenant", tenant)
        self._key = held(key)
        self._seal = seal_of(key, self.tenant, self.session)
        self._tip: Tip | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._database: sqlite3.Connection | None = open_database(
            self.path, timeout=timeout, synchronous=synchronous, readonly=readonly
        )

    def beside(self, session: str) -> Self:
        """Another session in the same file, opened as this one is, with its key."""
        return type(self)(
            self.path,
            session=session,
            tenant=self.tenant,
            timeout=self._timeout,
            synchronous=self._synchronous,
            readonly=self.readonly,
            key=self._key,
        )

    def head(self) -> int:
        """The number of entries, which is the next position; a look at the last one, not a count."""
        return self.head_of(self.session)

    def head_of(self, session: str) -> int:
        """The number of entries of another session beside this one, without opening it."""
        with self._using(writing=False) as database:
            return self._in(database, session).head()

    @property
    def is_sealed(self) -> bool:
        """Whether bodies, blobs and digests are encrypted."""
        return self._seal.is_sealed

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """All bodies durably at positions ``after`` and on, or none; ``at`` in seconds since the epoch.

        Raises Conflict when the head is no longer ``after``, LogError for a body that could not be read back, LogBusy,
        LogUnwritable, LogErased; nothing is written then, and the log may be used on.
        """
        records = [encode(body) for body in bodies]
        at = checked_time(at)
        with self._writing(after) as (stored, previous):
            rows = seal(records, after=after, at=at, previous=previous)
            stored.keep(rows, ((blob.name, blob.data) for record in records for blob in record.blobs))
        if rows:
            self._tip = Tip(after + len(rows), rows[-1].digest)
        return written(rows, records)

    def adopt(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """See ``pagein.log.raw_rows.RowLog.adopt``."""
        with self._writing(0) as (stored, previous):
            stored.keep(relinked(rows, previous), blobs.items())

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """Make all cuts, in whatever sessions of the tenant, in one transaction. See ``pagein.log.erasure``."""
        at = checked_time(at)
        with self._using(writing=True) as database:
            # So that what is deleted is overwritten with zeros where it lies.
            database.execute("PRAGMA secure_delete = ON")
            with self._transaction(database):
                for each in cuts:
                    traced = isinstance(each, Cut) or each.trace
                    sqlite_snapshots.drop(database, (self.tenant, each.session), trace=traced)
                    stored = self._in(database, each.session)
                    if isinstance(each, Cut):
                        cut_out(stored, each, at)
                    else:
                        take_out(stored, each, at)
        self._tip = None

    def scrub(self) -> bool:
        """Write the file anew, so that nothing erased is in it; False where another connection was in the way."""
        with self._using(writing=True) as database:
            return scrub(database)

    def verify(self) -> Verification:
        """Derive every hash again, and say what is wrong and where; a damaged page hides its own entries only."""
        audit = Audit(self.tenant, self.session, self._find_blob)
        try:
            head = self.head()
        except LogUnreadable as error:
            audit.whole(f"the last entry cannot be read: {error}")
            head = None
        position = 0
        while head is None or position < head:
            try:
                rows = self._rows(position, position + ROWS_AT_ONCE if head is None else head)
            except LogUnreadable as error:
                if head is None:
                    audit.unreadable(position, str(error))
                    break
                position = self._one_by_one(audit, position, min(position + ROWS_AT_ONCE, head))
                continue
            if not rows:
                break
            for row in rows:
                audit.row(row)
            position = rows[-1].position + 1
        for fault in self._faults():
            audit.whole(fault)
        return audit.result()

    def _faults(self) -> list[str]:
        """What SQLite itself finds wrong with the file, sound entries or not."""
        try:
            with self._using(writing=False) as database:
                found = database.execute("PRAGMA quick_check(8)").fetchall()
        except LogUnreadable as error:
            return [f"the file cannot be checked: {error}"]
        return [f"SQLite: {' '.join(said.split())}" for (said,) in found if said != "ok"]

    def sessions(self) -> tuple[str, ...]:
        """The names of this tenant's sessions in the file that have an entry, sorted."""
        with self._using(writing=False) as database:
            return tuple(name for (name,) in database.execute(_SESSIONS, (self.tenant,)))

    def shelf(self) -> Shelf:
        """The snapshot of this session, if one is there and whole."""
        with self._using(writing=False) as database:
            found = sqlite_snapshots.shelf(database, (self.tenant, self.session))
        return replace(unsealed(found, self._seal), is_open=not self.readonly)

    def keep(self, snapshot: Snapshot, dropped: int) -> None:
        """See ``pagein.log.snapshots.SnapshotLog``. Raises LogErased for a session that is not there any more."""
        with self._using(writing=True) as database, self._transaction(database):
            if is_worth_keeping(self._tip, self._in(database).tip()):
                key = (self.tenant, self.session)
                sqlite_snapshots.keep(database, key, sealed(snapshot, self._seal), dropped)

    def drop_snapshots(self) -> None:
        """See ``pagein.log.snapshots.SnapshotLog``; durable before it returns."""
        with self._using(writing=True) as database, self._transaction(database):
            sqlite_snapshots.drop(database, (self.tenant, self.session))

    def close(self) -> None:
        """Bring the WAL into the file and release it; a second call does nothing."""
        if os.getpid() != self._process:
            return  # the connection is the parent's
        with self._lock:
            database, self._database = self._database, None
            if database is None:
                return
            # Passive: it does not wait for others. Nothing is lost where it fails, the WAL is read at the next opening.
            # A damaged file's errors may not even be text.
            with contextlib.suppress(sqlite3.Error, ValueError):
                database.execute("PRAGMA wal_checkpoint(PASSIVE)")
            with translated(self.path, writing=True):
                database.close()

    @contextlib.contextmanager
    def _using(self, *, writing: bool) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone, its errors in our words."""
        if os.getpid() != self._process:
            # SQLite's locks do not survive a fork; writing through the copy would damage the file.
            raise LogClosed(f"{self.path}: opened before this process was forked; open it again in here")
        with self._lock:
            if self._database is None:
                raise LogClosed(f"{self.path}: this log was closed; open it again")
            with translated(self.path, writing=writing):
                yield self._database

    def _in(self, database: sqlite3.Connection, session: str | None = None) -> SQLiteRows:
        """The rows of this session, or of another."""
        if session is None or session == self.session:
            return SQLiteRows(database, self.tenant, self.session, self._seal)
        return SQLiteRows(database, self.tenant, session, seal_of(self._key, self.tenant, session))

    @contextlib.contextmanager
    def _writing(self, after: int) -> Iterator[tuple[SQLiteRows, str]]:
        """A transaction behind position ``after``, with the digest to chain to; all of it is durable then, or nothing."""
        with self._using(writing=True) as database, self._transaction(database):
            stored = self._in(database)
            tip = stored.tip()
            refuse_erased(self._tip, tip, after)
            if tip.head != after:
                raise Conflict(after, tip.head)
            yield stored, tip.digest

    @contextlib.contextmanager
    def _transaction(self, database: sqlite3.Connection) -> Iterator[None]:
        try:
            self._begin(database)
            yield
            database.execute("COMMIT")
        finally:
            # Some errors have rolled back already, as a full disk.
            if database.in_transaction:
                database.execute("ROLLBACK")

    def _begin(self, database: sqlite3.Connection) -> None:
        """Begins to write, within the timeout.

        SQLite's own waiting sleeps longer and longer, up to a tenth of a second, and has no queue: beside busy writers
        it can miss every gap for seconds. Here the pauses are short and of chance length.
        """
        deadline = time.monotonic() + self._timeout
        database.execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    database.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(random.uniform(*_PAUSE))  # noqa: S311 - when to look again
                else:
                    return
        finally:
            database.execute(f"PRAGMA busy_timeout = {min(round(self._timeout * 1000), 2**31 - 1)}")

    def _whole_rows(self, start: int, stop: int) -> Iterator[Row]:
        for rows in whole_pages(self._rows, start, stop, self.path):
            yield from rows
            self._tip = further(self._tip, rows[-1].position + 1, rows[-1].digest)

    def _rows(self, start: int, stop: int) -> list[Row]:
        """The first rows of ``[start, stop)``, at most a hundred."""
        with self._using(writing=False) as database:
            found = self._in(database).stored(start, stop)
        return [self._seal.row_in(each) for each in found]

    def _one_by_one(self, audit: Audit, start: int, stop: int) -> int:
        for position in range(start, stop):
            try:
                rows = self._rows(position, position + 1)
            except LogUnreadable as error:
                audit.unreadable(position, str(error))
            else:
                for row in rows:
                    audit.row(row)
        return stop

    def _find_blob(self, name: str) -> bytes | None:
        with self._using(writing=False) as database:
            return self._in(database).blob(name)
