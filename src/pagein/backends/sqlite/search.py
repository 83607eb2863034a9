"""The archive in a SQLite file: the log's own, in tables beside it, or another."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from pagein.backends.sqlite import search_schema as schema
from pagein.backends.sqlite.connection import open_database, translated
from pagein.backends.sqlite.search_tables import SqliteReading, SqliteWriting
from pagein.errors import ConfigurationError, LogClosed
from pagein.log.rows import checked_name
from pagein.search.base import Embedder
from pagein.search.index import DerivedArchive
from pagein.search.index_store import VectorStore

T = TypeVar("T")


class SqliteArchive(DerivedArchive):
    """An Archive in a SQLite file, by words, and by meaning where an ``embedder`` is given.

    The tables lie beside the log's in its file, or in a file of their own, or in ``:memory:``. They are derived: an
    index of another release, a damaged or a foreign one is dropped, and built again from the logs that ``catch_up``
    was given. ``session`` is what calls without one mean. ``own_tools`` names the tools whose results are not taken in
    because they repeat what was recalled. Threads may share one archive, and processes one file.

    Raises LogUnreadable for a file that is not ours, LogBusy, LogUnwritable, LogTooNew.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        session: str = "default",
        tenant: str = "",
        embedder: Embedder | None = None,
        own_tools: Collection[str] = (),
        timeout: float = 5.0,
    ) -> None:
        session, self.tenant = checked_name("session", session), checked_name("tenant", tenant)
        store = SqliteStore(os.fspath(path), tenant=tenant, embedder=embedder, timeout=timeout)
        super().__init__(store, session=session, own_tools=own_tools)


class SqliteStore:
    """A Store in a SQLite file, over a connection of its own."""

    def __init__(self, path: str, *, tenant: str, embedder: Embedder | None, timeout: float) -> None:
        self.path, self._tenant = path, tenant
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._database: sqlite3.Connection | None = open_database(
            path, timeout=timeout, synchronous="NORMAL", readonly=False
        )
        try:
            self._prepare()
            self.vectors: VectorStore | None = None if embedder is None else vectors_of(embedder)
        except BaseException:
            self.close()
            raise

    def read(self, work: Callable[[SqliteReading], T]) -> T:
        """What the work reads, within one state of the file, whatever others write meanwhile."""
        with self._within("BEGIN") as database:
            return work(SqliteReading(database, self._tenant))

    def write(self, work: Callable[[SqliteWriting], T]) -> T:
        """What the work writes, all or nothing."""
        with self._within("BEGIN IMMEDIATE") as database:
            done = work(SqliteWriting(database, self._tenant))
            database.execute("COMMIT")
            return done

    def is_damage(self, error: Exception) -> bool:
        """Whether what SQLite said means that the tables are not what they should be."""
        return _is_damage(error.__cause__)

    problems: tuple[str, ...] = ()

    def empty(self) -> None:
        """As ``make_anew``: to drop the tables is the surest."""
        self.make_anew()

    def make_anew(self) -> None:
        """Drop the index, of every tenant, and make it empty."""
        self.write(lambda writing: schema.make_anew(writing.database))

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if os.getpid() != self._process:
            return
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                with contextlib.suppress(sqlite3.Error):
                    database.close()

    def _prepare(self) -> None:
        with self._using() as database:
            database.execute("PRAGMA secure_delete = ON")
            trusted = _is_trusted(database)
        if not trusted:
            self.write(_make_trusted)

    @contextlib.contextmanager
    def _within(self, begin: str) -> Iterator[sqlite3.Connection]:
        """The connection within a transaction, which is rolled back unless it is committed."""
        with self._using() as database:
            database.execute(begin)
            try:
                yield database
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone, its errors in our words."""
        if os.getpid() != self._process:
            raise LogClosed(
                f"{self.path}: opened before this process was forked; open the archive again in here"
            )
        with self._lock:
            if self._database is None:
                raise LogClosed(f"{self.path}: this archive was closed; open it again")
            with translated(self.path, writing=False):
                yield self._database


def vectors_of(embedder: Embedder) -> VectorStore:
    """Where an embedder's vectors go in a file. Raises ConfigurationError."""
    try:
        from pagein.backends.sqlite.vectors import Vectors  # noqa: PLC0415 - brings NumPy
    except ImportError:
        raise ConfigurationError("vectors need NumPy: pip install 'pagein[vectors]'") from None
    return Vectors(embedder)


def _make_trusted(writing: SqliteWriting) -> None:
    if not _is_trusted(writing.database):  # another process may have been first
        schema.make_anew(writing.database)


def _is_trusted(database: sqlite3.Connection) -> bool:
    try:
        return schema.is_trusted(database)
    except sqlite3.DatabaseError as error:
        if _is_damage(error):
            return False
        raise


def _is_damage(error: BaseException | None) -> bool:
    """Whether what SQLite said means that the tables are not what they should be."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    missing = isinstance(error, sqlite3.OperationalError) and any(
        each in str(error)
        for each in ("no such table", "no such column", "has no column", "vtable constructor", "invalid fts5")
    )
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT) or missing
