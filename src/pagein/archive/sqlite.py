"""The archive in a SQLite file: the log's own, in tables beside it, or another."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Self, TypeVar

from pagein.archive import schema, writing
from pagein.archive.candidates import Counts, Scope
from pagein.archive.contract import Embedder, Hit, Query
from pagein.archive.searching import Found, find, hits
from pagein.archive.sessions import rank_sessions
from pagein.errors import ConfigurationError, LogClosed, LogUnreadable
from pagein.log import Entry, Log
from pagein.log.chain import checked_name
from pagein.log.database import open_database, translated

if TYPE_CHECKING:
    from pagein.archive.vectors import Nearness, Vectors

T = TypeVar("T")

_A_BATCH = 128
"""Entries indexed in one transaction: a writer of the log beside us never waits for more."""

_PLACES = "SELECT id FROM archive_passages WHERE id >> 24 = ? AND position = ?"


class SqliteArchive:
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
        self.path = os.fspath(path)
        self.session = checked_name("session", session)
        self.tenant = checked_name("tenant", tenant)
        self._own_tools = frozenset(own_tools)
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._counts: Counts = {}
        self._logs: dict[str, Log] = {}
        self._database: sqlite3.Connection | None = open_database(
            self.path, timeout=timeout, synchronous="NORMAL", readonly=False
        )
        self._vectors: Vectors | None = None
        try:
            self._prepare()
            self._vectors = None if embedder is None else _vectors(embedder, self.tenant)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def catch_up(self, log: Log, *, session: str | None = None) -> int:
        """Take in what the session's log holds beyond the watermark; the number of entries that were new.

        Each batch and the watermark behind it are one transaction. A log that is not the one indexed before, as after
        a restore, is indexed anew. Raises what reading the log raises, LogBusy, LogUnwritable.
        """
        session = self._named(session)
        self._logs[session] = log
        return self._trusting(lambda: self._catch_up(log, session))

    def index(self, entries: Iterable[Entry], *, session: str | None = None) -> int:
        """Take in entries in order, those below the watermark not again; the number that were new.

        Raises LogError where one is missing: what came before it is indexed.
        """
        session = self._named(session)
        every = tuple(entries)
        return self._trusting(lambda: self._index(iter(every), session))

    def watermark(self, session: str | None = None) -> int:
        """The position up to which the session is indexed."""
        session = self._named(session)
        with self._using() as database:
            known = writing.indexed(database, self.tenant, session)
        return 0 if known is None else known.position

    def search(self, query: Query | str) -> tuple[Hit, ...]:
        """The best hits, best first, at most ``limit``. Any text is data: no operator, no quote means anything.

        An embedder that fails is left out: the hits are then those by words.
        """
        asked = Query(query) if isinstance(query, str) else query
        return self._trusting(lambda: self._search(asked))

    def sessions(self, query: Query | str) -> tuple[tuple[str, float], ...]:
        """The sessions in which it may have been, with their scores, best first, at most ``limit``."""
        asked = Query(query) if isinstance(query, str) else query
        return self._trusting(lambda: self._sessions(asked))

    def forget(self, positions: Iterable[int], *, session: str | None = None) -> int:
        """Take what stands at these positions out of the index; the number of passages that went."""
        session = self._named(session)
        wanted = tuple(positions)
        return self._trusting(lambda: self._forget(wanted, session))

    def clear(self, session: str | None = None) -> None:
        """Drop the index of one session, so that the next ``catch_up`` builds it anew."""
        session = self._named(session)
        self._trusting(lambda: self._clear(session))

    def rebuild(self) -> None:
        """Drop the whole index, of every tenant in the file. The next ``catch_up`` of each session builds its own."""
        with self._writing() as database:
            schema.make_anew(database)

    def embed_pending(self, limit: int = 64) -> int:
        """Embed at most ``limit`` passages that have no vector yet, newest first; how many were still to do after.

        May run in a thread of its own: nothing is locked while the embedder works. Raises ConfigurationError for an
        embedder whose vectors are not of its dimension; what else it raises goes through, and nothing was written.
        """
        vectors = self._vectors
        if vectors is None:
            return 0
        with self._using() as database:
            todo, left = vectors.pending(database, limit)
        if not todo:
            return 0
        made = vectors.made([text for _, text in todo])
        with self._writing() as database:
            vectors.keep(database, [id for id, _ in todo], made)
        return max(0, left - len(todo))

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if os.getpid() != self._process:
            return
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                with contextlib.suppress(sqlite3.Error):
                    database.close()

    # What the verbs are made of

    def _catch_up(self, log: Log, session: str) -> int:
        head, start = log.head(), self.watermark(session)
        if start and not self._is_of(log, session, head, start):
            self._clear(session)
            start = 0
        return self._index(log.read(start, head), session) if start < head else 0

    def _is_of(self, log: Log, session: str, head: int, start: int) -> bool:
        """Whether what was indexed is the beginning of this log: its last entry's hash says so for all before it."""
        with self._using() as database:
            known = writing.indexed(database, self.tenant, session)
        if known is None or start > head:
            return False
        return next(iter(log.read(start - 1, start))).digest == known.digest

    def _index(self, entries: Iterator[Entry], session: str) -> int:
        new = 0
        while batch := tuple(islice(entries, _A_BATCH)):
            with self._writing() as database:
                new += writing.add(database, self.tenant, session, batch, self._own_tools)
        return new

    def _search(self, query: Query) -> tuple[Hit, ...]:
        meanings = None if self._vectors is None else self._vectors.query(query.text)
        with self._reading() as database:
            found, names = self._find(database, query, meanings)
            return hits(database, query, found, names)

    def _sessions(self, query: Query) -> tuple[tuple[str, float], ...]:
        meanings = None if self._vectors is None else self._vectors.query(query.text)
        with self._reading() as database:
            found, names = self._find(database, query, meanings)
            ranked = rank_sessions(database, query, self._scope(database, query)[0], self._counts, found)
        return tuple((names[key], score) for key, score in ranked[: query.limit] if key in names)

    def _find(
        self, database: sqlite3.Connection, query: Query, meanings: Nearness | None
    ) -> tuple[Found, dict[int, str]]:
        scope, names = self._scope(database, query)
        if meanings is not None:
            meanings.look(database, scope)
        hidden = self._hidden(database, query)
        return find(database, query, scope, hidden, self._counts, meanings), names

    def _scope(self, database: sqlite3.Connection, query: Query) -> tuple[Scope, dict[int, str]]:
        rows = database.execute(
            "SELECT session, holder, number FROM archive_sessions WHERE tenant = ?", (self.tenant,)
        ).fetchall()
        names = {schema.session_key(holder, number): session for session, holder, number in rows}
        if not rows:
            return Scope((), (), query.roles), names
        if query.sessions:
            keys = sorted(key for key, name in names.items() if name in frozenset(query.sessions))
            ranges, sums = tuple(map(schema.range_of_session, keys)), tuple(keys)
        else:
            holder = rows[0][1]
            ranges, sums = (schema.range_of_tenant(holder),), (schema.totals_of_tenant(holder),)
        if query.since is not None or query.until is not None:
            ranges = tuple(self._within(database, query, (query.sessions and sums) or sorted(names)))
        return Scope(ranges, sums, query.roles), names

    def _within(
        self, database: sqlite3.Connection, query: Query, keys: Iterable[int]
    ) -> Iterator[tuple[int, int]]:
        """The ids that were recorded within the query's bounds, a range for each session."""
        early = float("-inf") if query.since is None else query.since
        late = float("inf") if query.until is None else query.until
        for key in keys:
            first, last = database.execute(
                "SELECT min(id), max(id) FROM archive_passages WHERE id >> 24 = ? AND at BETWEEN ? AND ?",
                (key, early, late),
            ).fetchone()
            if first is not None:
                yield first, last

    def _hidden(self, database: sqlite3.Connection, query: Query) -> frozenset[int]:
        known = writing.indexed(database, self.tenant, self.session) if query.exclude else None
        if known is None:
            return frozenset()
        return frozenset(
            row[0] for position in query.exclude for row in database.execute(_PLACES, (known.key, position))
        )

    def _forget(self, positions: Iterable[int], session: str) -> int:
        with self._writing() as database:
            known = writing.indexed(database, self.tenant, session)
            if known is None:
                return 0
            ids = [row[0] for each in positions for row in database.execute(_PLACES, (known.key, each))]
            gone = writing.remove(database, known, ids)
            if gone:
                # Until segments are merged they still hold the words.
                database.execute("INSERT INTO archive_words (archive_words) VALUES ('optimize')")
            return gone

    def _clear(self, session: str) -> None:
        with self._writing() as database:
            writing.remove_session(database, self.tenant, session)

    def _named(self, session: str | None) -> str:
        return self.session if session is None else checked_name("session", session)

    # Trust

    def _prepare(self) -> None:
        with self._using() as database:
            database.execute("PRAGMA secure_delete = ON")
            trusted = self._is_trusted(database)
        if not trusted:
            self._make_anew()

    @staticmethod
    def _is_trusted(database: sqlite3.Connection) -> bool:
        try:
            return schema.is_trusted(database)
        except sqlite3.DatabaseError as error:
            if _is_damage(error):
                return False
            raise

    def _make_anew(self) -> None:
        self._counts.clear()
        with self._writing() as database:
            if not self._is_trusted(database):  # another process may have been first
                schema.make_anew(database)

    def _trusting(self, work: Callable[[], T]) -> T:
        """What the work gives; where the index turns out damaged or gone, it is made anew once, and the work done again.

        Raises LogUnreadable where the logs to build it from are not known: the index is then empty.
        """
        try:
            return work()
        except LogUnreadable as error:
            if not _is_damage(error.__cause__):
                raise
        with self._writing() as database:
            schema.make_anew(database)
        if not self._logs:
            raise LogUnreadable(
                f"{self.path}: the index was damaged, and is empty now; catch_up() builds it again from the log"
            )
        for session, log in self._logs.items():
            self._catch_up(log, session)
        return work()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._using() as database:
            try:
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """The connection within one state of the file, whatever others write meanwhile."""
        with self._using() as database:
            database.execute("BEGIN")
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


def _vectors(embedder: Embedder, tenant: str) -> Vectors:
    try:
        from pagein.archive.vectors import Vectors  # noqa: PLC0415 - brings NumPy
    except ImportError:
        raise ConfigurationError("vectors need NumPy: pip install 'pagein[vectors]'") from None
    return Vectors(embedder, tenant)


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
