"""The default log and store: one SQLite file, many sessions, durable before ``append`` returns."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack
from weakref import WeakValueDictionary

from pagein.backends.base import Store
from pagein.backends.database_store import DatabaseStore, RowLogBase, StoreOptions
from pagein.backends.sqlite import snapshots as sqlite_snapshots
from pagein.backends.sqlite.connection import (
    MEMORY,
    FileMark,
    SharedDatabase,
    has_residue,
    is_busy,
    set_wait,
    translate_errors,
)
from pagein.backends.sqlite.migrations import MERGE_INDEX, has_index
from pagein.backends.sqlite.requests import RunKey, SQLiteRequests, forget_requests
from pagein.errors import Conflict, LogUnreadable
from pagein.events.entries import Body
from pagein.log import hash_chain
from pagein.log.base import Entry, Verification
from pagein.log.codec import encode
from pagein.log.encryption import Encryption
from pagein.log.erasure import Cut, Removal, make_cut, remove_session
from pagein.log.hash_chain import SessionRows
from pagein.log.raw_rows import Row, Tip
from pagein.log.snapshots import Snapshot, SnapshotSlot, decrypt_slot, encrypt_snapshot
from pagein.search.base import Embedder
from pagein.search.index import SearchIndex

# One seek in the primary key for each session, however many entries it has.
_SESSIONS = """WITH RECURSIVE each(name) AS (
    SELECT min(session) FROM entries WHERE tenant = ?1
    UNION ALL SELECT (SELECT min(session) FROM entries WHERE tenant = ?1 AND session > name) FROM each
    WHERE name IS NOT NULL
) SELECT name FROM each WHERE name IS NOT NULL"""

_WAIT = 0.02
"""Seconds that SQLite itself waits for another writer: a row of the table of requests, which can wait, gives up then."""

_PAUSE = (0.0005, 0.003)
"""Seconds between two tries to begin a transaction, at least and at most."""

_HEAD = "SELECT position, digest FROM entries WHERE tenant = ? AND session = ? ORDER BY position DESC LIMIT 1"
_APPEND = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, CAST(? AS TEXT), ?)"
_REPLACE = """UPDATE entries SET version = ?, body = CAST(? AS TEXT)
    WHERE tenant = ? AND session = ? AND position = ?"""
# Bodies are read as bytes: a damaged one must reach verify() even where it is no UTF-8 any more.
_READ = """SELECT position, at, kind, version, CAST(body AS BLOB), digest FROM entries
    WHERE tenant = ? AND session = ? AND position >= ? AND position < ? ORDER BY position LIMIT ?"""
_KEEP_BLOB = "INSERT INTO blobs VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_BLOB = "SELECT data FROM blobs WHERE tenant = ? AND session = ? AND digest = ?"
_DROP_BLOB = "DELETE FROM blobs WHERE tenant = ? AND session = ? AND digest = ?"

_turns = WeakValueDictionary[tuple[int, str], threading.Lock]()
"""The lock of each file by process: its threads write in turn, where SQLite would let chance say who comes next."""

ROWS_AT_ONCE = 100
_TYPES = (int, float, str, int, bytes, str)


class SQLiteLog(SharedDatabase, RowLogBase):
    """A StoredLog in a SQLite file, in WAL mode; ``append`` returns after the disk has it.

    ``timeout`` is how long, in seconds, to wait for another process. ``synchronous`` is SQLite's: with
    ``NORMAL`` a power cut may lose the last appends, never their order or part of one. Threads may share one
    log; a forked process opens its own. With a ``key`` bodies, blobs and digests are encrypted; see
    ``pagein.log.encryption``.

    Raises LogUnreadable for a foreign or damaged file, LogTooNew, LogBusy, LogUnwritable, and
    ConfigurationError for an invalid option.
    """

    page_rows = ROWS_AT_ONCE

    def __init__(
        self, path: str | os.PathLike[str], *, session: str = "default", **options: Unpack[StoreOptions]
    ) -> None:
        self.store = SQLiteStore(path, **options)
        self.tenant, self.readonly = self.store.tenant, self.store.readonly
        self.session = hash_chain.check_name("session", session)
        self._timeout, self._encryption = self.store.timeout, self.store.encryption(self.session)
        self._tip: Tip | None = None
        self._turn, self._has_turn = threading.Lock(), False
        self._connect(
            self.store.path, timeout=self._timeout, synchronous=self.store.synchronous, readonly=self.readonly
        )
        self.file = self.store.file = FileMark(self.path)
        if self.path != MEMORY:
            self._turn = _turns.setdefault((self._process, os.path.realpath(self.path)), self._turn)
        with self._using(writing=True) as database:
            # With a WAL only who begins to write has to wait, and _begin sees to that.
            has_wal = database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            self._wait = min(_WAIT, self._timeout) if has_wal else self._timeout
            set_wait(database, self._wait)
        self.store.borrow(self)

    def head(self) -> int:
        return self._head_of(self.session)

    def _head_of(self, session: str) -> int:
        with self._using(writing=False) as database:
            return self._in(database, session).stored_tip().head

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """Append all bodies durably at positions ``after`` and on, or none; ``at`` in seconds since the epoch.

        Raises Conflict when the head is no longer ``after``, LogError for a body that could not be read back,
        LogBusy, LogUnwritable, LogErased; nothing is written then, and the log stays usable.
        """
        records = [encode(body) for body in bodies]
        at = hash_chain.check_time(at)
        with self._writing(after) as (stored, previous):
            rows = hash_chain.chain_rows(records, after=after, at=at, previous=previous)
            stored.add(rows, ((blob.name, blob.data) for record in records for blob in record.blobs))
        if rows:
            self._tip = Tip(after + len(rows), rows[-1].digest)
        return hash_chain.make_entries(rows, records)

    def import_rows(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """See ``StoredLog``."""
        with self._writing(0) as (stored, previous):
            stored.add(hash_chain.rechain_rows(rows, previous), blobs.items())

    def import_sessions(self, sessions: Mapping[str, tuple[Sequence[Row], Mapping[str, bytes]]]) -> None:
        """See ``LogStore``; all in one transaction: to wait for the disk takes longer than to write most sessions."""
        with self._using(writing=True) as database, self._transaction(database):
            for session, (rows, blobs) in sessions.items():
                stored = self._in(database, session)
                tip = stored.tip()
                if tip.head:
                    raise Conflict(0, tip.head)
                stored.add(hash_chain.rechain_rows(rows, tip.digest), blobs.items())

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """See ``StoredLog``; any session of the tenant in the file may be named."""
        at = hash_chain.check_time(at)
        with self._using(writing=True) as database:
            # So that what is deleted is overwritten with zeros where it lies.
            database.execute("PRAGMA secure_delete = ON")
            with self._transaction(database):
                for cut in cuts:
                    traced = isinstance(cut, Cut) or cut.trace
                    sqlite_snapshots.drop_snapshots(database, (self.tenant, cut.session), trace=traced)
                    stored = self._in(database, cut.session)
                    if isinstance(cut, Cut):
                        make_cut(stored, cut, at)
                    else:
                        remove_session(stored, cut, at)
                        forget_requests(database, RunKey(self.tenant, cut.session))
        self._tip = None

    def verify(self) -> Verification:
        """Derive every hash again, and report each fault with its position; a damaged page hides its own entries only."""
        audit = hash_chain.ChainVerifier(self.tenant, self.session, self._find_blob)
        try:
            head = self.head()
        except LogUnreadable as error:
            audit.add_problem(f"the last entry cannot be read: {error}")
            head = None
        self._verify_rows(audit, head)
        problems = self.store.file_problems
        for fault in self.find_file_problems() if problems is None else problems:
            audit.add_problem(fault)
        return audit.result()

    def find_file_problems(self) -> list[str]:
        """The fault that the file is not there any more, or those that SQLite itself reports of it."""
        if problem := self.file.problem:
            return [problem]
        try:
            with self._using(writing=False) as database:
                rows = database.execute("PRAGMA quick_check(8)").fetchall()
        except LogUnreadable as error:
            return [f"the file cannot be checked: {error}"]
        return [f"SQLite: {' '.join(message.split())}" for (message,) in rows if message != "ok"]

    def snapshot_slot(self, before: int | None = None) -> SnapshotSlot:
        """See ``StoredLog``."""
        with self._using(writing=False) as database:
            slot = sqlite_snapshots.read_slot(database, (self.tenant, self.session), before)
        return replace(decrypt_slot(slot, self._encryption), is_open=not self.readonly)

    def keep_snapshot(self, snapshot: Snapshot, dropped: int, *, is_past: bool = False) -> None:
        """See ``StoredLog``. Raises LogErased for a session that was erased."""
        with self._using(writing=True) as database, self._transaction(database):
            if hash_chain.may_keep_snapshot(self._tip, self._in(database).tip()):
                key, encrypted = (self.tenant, self.session), encrypt_snapshot(snapshot, self._encryption)
                sqlite_snapshots.keep_snapshot(database, key, encrypted, dropped, is_past=is_past)

    def drop_snapshots(self) -> None:
        """See ``StoredLog``; durable before it returns."""
        with self._using(writing=True) as database, self._transaction(database):
            sqlite_snapshots.drop_snapshots(database, (self.tenant, self.session))

    def _release(self, database: sqlite3.Connection) -> None:
        """Bring the WAL into the file and release it."""
        # Passive: it does not wait for others. Nothing is lost where it fails, the WAL is read at the next opening.
        # A damaged file's errors may not even be text.
        with contextlib.suppress(sqlite3.Error, ValueError):
            database.execute("PRAGMA wal_checkpoint(PASSIVE)")
        with translate_errors(self.path, writing=True):
            database.close()

    def _in(self, database: sqlite3.Connection, session: str | None = None) -> SQLiteRows:
        """The rows of this session, or of another."""
        if session is None or session == self.session:
            return SQLiteRows(database, self.tenant, self.session, self._encryption)
        return SQLiteRows(database, self.tenant, session, self.store.encryption(session))

    @contextlib.contextmanager
    def _writing(self, after: int) -> Iterator[tuple[SQLiteRows, str]]:
        """A transaction after position ``after``, with the digest to chain to: durable as a whole, or not made."""
        with self._using(writing=True) as database, self._transaction(database):
            stored = self._in(database)
            tip = stored.tip()
            hash_chain.refuse_erased(self._tip, tip, after)
            if tip.head != after:
                raise Conflict(after, tip.head)
            yield stored, tip.digest

    @contextlib.contextmanager
    def _transaction(self, database: sqlite3.Connection) -> Iterator[None]:
        deadline = time.monotonic() + self._timeout
        self._end_turn()  # that of a transaction that Ctrl-C cut off
        self._has_turn = self._turn.acquire(timeout=min(max(0, self._timeout), threading.TIMEOUT_MAX))
        try:
            self._begin(database, deadline)
            self.file.check()
            yield
            database.execute("COMMIT")
        finally:
            # Some errors have rolled back already, as a full disk.
            if database.in_transaction:
                database.execute("ROLLBACK")
            self._end_turn()

    def _end_turn(self) -> None:
        if self._has_turn:
            with contextlib.suppress(RuntimeError):
                self._turn.release()
            self._has_turn = False

    def _begin(self, database: sqlite3.Connection, deadline: float) -> None:
        """Begin to write, until the deadline.

        SQLite's own waiting sleeps longer and longer, up to a tenth of a second, and has no queue: beside busy
        writers it can miss every gap for seconds. So it gives up early, and the pauses here are short and random.
        """
        while True:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(*_PAUSE))  # noqa: S311 - when to look again
            else:
                return

    def _page(self, start: int, stop: int) -> list[Row]:
        with self._using(writing=False) as database:
            rows = self._in(database).read_stored(start, stop)
        return [self._encryption.decrypt_row(row) for row in rows]

    def _find_blob(self, name: str) -> bytes | None:
        with self._using(writing=False) as database:
            return self._in(database).blob(name)


class SQLiteRows(SessionRows):
    """The SessionRows in a SQLite file, decrypted."""

    def __init__(self, database: sqlite3.Connection, tenant: str, session: str, encryption: Encryption) -> None:
        self.key, self.encryption = (tenant, session), encryption
        self._database = database

    def stored_tip(self) -> Tip:
        last = self._database.execute(_HEAD, self.key).fetchone()
        return Tip(0, "") if last is None else Tip(last[0] + 1, last[1])

    def read_stored(self, start: int, stop: int) -> list[Row]:
        """The first rows of ``[start, stop)`` as they are stored. Raises LogUnreadable for a row of another shape."""
        rows = self._database.execute(_READ, (*self.key, start, stop, ROWS_AT_ONCE)).fetchall()
        # SQLite checks types where it writes; a damaged page may hold any.
        if any(tuple(map(type, row)) != _TYPES for row in rows):
            raise LogUnreadable("an entry's row is not of its shape; the file is damaged")
        return [Row(*row) for row in rows]

    def blob(self, name: str) -> bytes | None:
        """The bytes stored under their hash, or None."""
        stored = self._database.execute(_BLOB, (*self.key, self.encryption.encrypt_digest(name))).fetchone()
        return None if stored is None else self.encryption.decrypt_blob(name, stored[0])

    def add(self, rows: Sequence[Row], blobs: Iterable[tuple[str, bytes]]) -> None:
        for name, data in blobs:
            stored = (self.encryption.encrypt_digest(name), self.encryption.encrypt_blob(name, data))
            self._database.execute(_KEEP_BLOB, (*self.key, *stored))
        for row in map(self.encryption.encrypt_row, rows):
            self._database.execute(
                _APPEND, (*self.key, row.position, row.at, row.kind, row.version, row.body, row.digest)
            )

    def replace(self, stored: Row) -> None:
        row = self.encryption.encrypt_row(stored)
        self._database.execute(_REPLACE, (row.version, row.body, *self.key, row.position))

    def drop_blobs(self, names: Iterable[str]) -> None:
        for name in names:
            self._database.execute(_DROP_BLOB, (*self.key, self.encryption.encrypt_digest(name)))

    def clear(self) -> None:
        for table in ("entries", "blobs"):
            self._database.execute(f"DELETE FROM {table} WHERE tenant = ? AND session = ?", self.key)  # noqa: S608 - constants


class SQLiteStore(DatabaseStore[SQLiteLog], Store):
    """The Store in a SQLite file; see ``SQLiteLog`` for the options. Each log has a connection of its own."""

    file_problems: Sequence[str] | None = None
    """The faults of the file, while its logs are verified together."""

    file: FileMark | None = None
    """The mark of the file that was opened first."""

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[StoreOptions]) -> None:
        name = os.fspath(path)
        self.path = name if name == MEMORY else str(Path(name).absolute())  # the working folder may change
        super().__init__(**options)

    def __repr__(self) -> str:
        return f"SQLiteStore({self.path!r}, tenant={self.tenant!r})"

    @property
    def is_durable(self) -> bool:
        """True for a file."""
        return self.path != MEMORY

    def _open(self, session: str) -> SQLiteLog:
        self._check_file()
        log = SQLiteLog(
            self.path, session=session, tenant=self.tenant, timeout=self.timeout, synchronous=self.synchronous,
            readonly=self.readonly, key=self._key,
        )  # fmt: skip
        self.file = self.file or log.file
        return log

    def _check_file(self) -> None:
        """Raise LogUnwritable where the file that was opened first is gone: another would be made in its place."""
        if self.file is not None:
            self.file.check()

    def sessions(self) -> tuple[str, ...]:
        with self._any_log()._using(writing=False) as database:  # noqa: SLF001 - its own log
            return tuple(name for (name,) in database.execute(_SESSIONS, (self.tenant,)))

    def head(self, session: str) -> int:
        return self._any_log()._head_of(session)  # noqa: SLF001 - its own log

    def import_sessions(self, sessions: Mapping[str, tuple[Sequence[Row], Mapping[str, bytes]]]) -> None:
        self._any_log().import_sessions(sessions)

    def search_index(
        self, session: str = "default", *, embedder: Embedder | None = None, own_tools: Collection[str] = ()
    ) -> SearchIndex:
        """The index in tables beside the log's; in memory where the store is readonly, encrypted or in memory."""
        self._check_file()
        path = MEMORY if self.readonly or self.encrypted else self.path
        from pagein.backends.sqlite.search import SqliteSearchIndex  # noqa: PLC0415 - loads where a search is made

        return SqliteSearchIndex(path, session=session, tenant=self.tenant, embedder=embedder, own_tools=own_tools)

    def verify(self, sessions: Iterable[str]) -> Iterator[tuple[str, Verification]]:
        """See ``Store``: the file is checked once, which takes as long as it is large."""
        self.file_problems = self._any_log().find_file_problems()
        try:
            yield from super().verify(sessions)
        finally:
            self.file_problems = None

    def request_table(self, run: str) -> SQLiteRequests:
        return SQLiteRequests(self._using_any, RunKey(self.tenant, run), self.encryption(run), self.synchronous)

    def _using_any(self, *, writing: bool) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        return self._any_log()._using(writing=writing)  # noqa: SLF001 - its own log

    def scrub(self, erased: Collection[str] = ()) -> bool:
        """Write the file anew and empty its WAL, so that no free page and no old frame holds what was erased; search it.

        False where another connection blocked that, the disk was full, or the file has one of these words in a place
        that is no entry's: another session may say it in its own right. The erasure itself has overwritten
        the pages with zeros then, and the WAL is emptied when the last connection closes.
        """
        is_whole = True
        log = self._any_log()
        with log._using(writing=True) as database:  # noqa: SLF001 - its own log
            set_wait(database, self.timeout)
            merge = (MERGE_INDEX,) if has_index(database) else ()  # its segments have the words of rows that are gone
            for statement in (*merge, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                try:
                    row = database.execute(statement).fetchone()
                except sqlite3.DatabaseError:
                    is_whole = False
                else:
                    is_whole = is_whole and not (row and row[0])
            set_wait(database, log._wait)  # noqa: SLF001
            return is_whole and not has_residue(database, self.path, erased)
