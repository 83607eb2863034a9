"""The search index in a SQLite file: in tables beside the log's, or in another file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pagein.backends.sqlite import migrations as schema
from pagein.backends.sqlite.connection import SharedDatabase
from pagein.errors import ConfigurationError, LogError
from pagein.log.hash_chain import check_name
from pagein.search.base import Embedder, Role
from pagein.search.index import SearchIndex
from pagein.search.index_store import (
    ALTERNATIVE,
    IndexedSession,
    IndexReader,
    IndexStore,
    IndexWriter,
    PassageRow,
    Scope,
    StoredPassage,
    count_by_role,
)
from pagein.search.passages import passage_id, range_of_session, session_of

if TYPE_CHECKING:
    from pagein.search.vectors import VectorStore

T = TypeVar("T")

_NUMBER_BITS = 22
MAX_SESSIONS = 1 << _NUMBER_BITS
"""Sessions of one tenant."""
MAX_TENANTS = 1 << 16


def session_key(holder: int, number: int) -> int:
    """The prefix of a session's passage ids: the tenant's number, then the session's."""
    return holder << _NUMBER_BITS | number


def tenant_totals_key(holder: int) -> int:
    """The key of a tenant's totals."""
    return -holder - 1


def tenant_range(holder: int) -> tuple[int, int]:
    """The first and the last id that a tenant's passages may have."""
    return passage_id(session_key(holder, 0), 0), passage_id(session_key(holder + 1, 0), 0) - 1


_SESSIONS = "SELECT session, holder, number, position, digest, next FROM archive_sessions WHERE tenant = ?"
_ADD_SESSION = "INSERT INTO archive_sessions VALUES (?, ?, ?, ?, 0, '', 0)"
_MOVE = """UPDATE archive_sessions SET position = ?, digest = ?, next = ?
    WHERE tenant = ? AND session = ?"""
_ADD = "INSERT INTO archive_passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_WORDS = "INSERT INTO archive_words (rowid, terms) VALUES (?, ?)"
_DROP_WORDS = """INSERT INTO archive_words (archive_words, rowid, terms)
    SELECT 'delete', id, terms || ' =' || role FROM archive_passages WHERE id = ?"""
_GROW = """INSERT INTO archive_sizes VALUES (?, ?, ?, ?) ON CONFLICT (session, role)
    DO UPDATE SET passages = passages + excluded.passages, size = size + excluded.size"""
_PLACES = "SELECT id FROM archive_passages WHERE id >> 24 = ? AND position = ?"
_WITHIN = "SELECT min(id), max(id) FROM archive_passages WHERE id >> 24 = ? AND at BETWEEN ? AND ?"
_WANTED = "FROM json_each(?) AS wanted JOIN archive_passages AS p ON p.id = wanted.value"
_HOLDERS = """SELECT rowid FROM archive_words WHERE archive_words MATCH ? AND rowid BETWEEN ? AND ?
    ORDER BY rowid DESC LIMIT ?"""
_COUNT = "SELECT count(*) FROM archive_words WHERE archive_words MATCH ? AND rowid BETWEEN ? AND ?"


class SqliteIndexReader(IndexReader):
    """The IndexReader of one tenant in a SQLite file."""

    def __init__(self, database: sqlite3.Connection, tenant: str) -> None:
        self.database, self.tenant = database, tenant

    def sessions(self) -> list[IndexedSession]:
        return [_to_indexed_session(row) for row in self.database.execute(_SESSIONS, (self.tenant,))]

    def find_session(self, session: str) -> IndexedSession | None:
        row = self.database.execute(f"{_SESSIONS} AND session = ?", (self.tenant, session)).fetchone()
        return None if row is None else _to_indexed_session(row)

    @property
    def holder(self) -> int | None:
        """The tenant's number, where it has any session."""
        row = self.database.execute(f"{_SESSIONS} LIMIT 1", (self.tenant,)).fetchone()
        return None if row is None else row[1]

    def range_of_all(self) -> tuple[int, int]:
        holder = self.holder
        return (0, -1) if holder is None else tenant_range(holder)

    def ranges_between(self, sessions: Collection[int], early: float, late: float) -> list[tuple[int, int]]:
        ranges = (self.database.execute(_WITHIN, (key, early, late)).fetchone() for key in sessions)
        return [(first, last) for first, last in ranges if first is not None]

    def ids_at(self, indexed: IndexedSession, positions: Collection[int]) -> list[int]:
        return [row[0] for position in positions for row in self.database.execute(_PLACES, (indexed.key, position))]

    def totals(self, scope: Scope) -> tuple[int, int]:
        roles = f" AND role IN ({_marks(scope.roles)})" if scope.roles else ""
        sql = f"SELECT coalesce(sum(passages), 0), coalesce(sum(size), 0) FROM archive_sizes WHERE session = ?{roles}"  # noqa: S608 - marks
        rows = [self.database.execute(sql, (number, *scope.roles)).fetchone() for number in self._total_keys(scope)]
        return sum(row[0] for row in rows), sum(row[1] for row in rows)

    def _total_keys(self, scope: Scope) -> tuple[int, ...]:
        if scope.sessions is not None:
            return scope.sessions
        holder = self.holder
        return () if holder is None else (tenant_totals_key(holder),)

    def sizes(self, scope: Scope) -> dict[int, int]:
        roles = f" AND role IN ({_marks(scope.roles)})" if scope.roles else ""
        sizes: dict[int, int] = {}
        for first, last in scope.ranges:
            rows = self.database.execute(
                f"SELECT session, sum(size) FROM archive_sizes WHERE session BETWEEN ? AND ?{roles} GROUP BY session",  # noqa: S608 - marks
                (session_of(first), session_of(last), *scope.roles),
            )
            sizes.update(rows)
        return sizes

    def holders(self, groups: Sequence[Sequence[str]], scope: Scope, limit: int) -> list[set[int]]:
        run, matches = self.database.execute, [_match(group, scope.roles) for group in groups]
        return [
            {id for bounds in scope.ranges for (id,) in run(_HOLDERS, (match, *bounds, limit))} for match in matches
        ]

    def counts(self, terms: Sequence[str], scope: Scope) -> list[int]:
        return [
            sum(
                self.database.execute(_COUNT, (_match((term,), scope.roles), *bounds)).fetchone()[0]
                for bounds in scope.ranges
            )
            for term in terms
        ]

    def rows(self, ids: Collection[int]) -> Iterator[PassageRow]:
        columns = "SELECT p.id, p.position, p.part, p.role, p.at, p.said, p.same"
        return map(PassageRow._make, self._select_passages(columns, ids))

    def terms(self, ids: Collection[int]) -> Iterable[tuple[int, int, str]]:
        return self._select_passages("SELECT p.id, p.size, p.terms", ids)

    def texts(self, ids: Collection[int]) -> Iterator[tuple[int, str, bool, str]]:
        rows = self._select_passages("SELECT p.id, p.text, p.whole, p.terms", ids)
        return ((id, text, bool(whole), terms) for id, text, whole, terms in rows)

    def _select_passages(self, columns: str, ids: Collection[int]) -> sqlite3.Cursor:
        return self.database.execute(f"{columns} {_WANTED}", (json.dumps(sorted(ids)),))


class SqliteIndexWriter(SqliteIndexReader, IndexWriter):
    """The IndexWriter of one tenant in a SQLite file; the caller's transaction excludes every other writer."""

    def open_session(self, session: str) -> IndexedSession:
        return self.find_session(session) or self._add_session(session)

    def _add_session(self, session: str) -> IndexedSession:
        holder = self.holder
        if holder is None:
            holder = self._number("SELECT coalesce(max(holder) + 1, 0) FROM archive_sessions")
        number = self._number("SELECT coalesce(max(number) + 1, 0) FROM archive_sessions WHERE holder = ?", holder)
        if number >= MAX_SESSIONS or holder >= MAX_TENANTS:
            raise LogError(f"the index holds {MAX_SESSIONS:,} sessions of a tenant and {MAX_TENANTS:,} tenants at most")
        self.database.execute(_ADD_SESSION, (self.tenant, session, holder, number))
        return IndexedSession(session, session_key(holder, number), 0, "", 0)

    def note_own_calls(self, indexed: IndexedSession, calls: Collection[tuple[int, int]]) -> None:
        self.database.executemany(
            "INSERT OR IGNORE INTO archive_own VALUES (?, ?, ?)", [(indexed.key, *call) for call in calls]
        )

    def own_calls(self, indexed: IndexedSession, action: int) -> list[tuple[int, int]]:
        return self.database.execute(
            "SELECT position, part FROM archive_own WHERE session = ? AND position = ?", (indexed.key, action)
        ).fetchall()

    def add_passages(self, indexed: IndexedSession, passages: Sequence[StoredPassage]) -> None:
        self.database.executemany(_ADD, map(_values, passages))
        self.database.executemany(
            _ADD_WORDS, [(passage.row.id, f"{passage.terms} ={passage.row.role}") for passage in passages]
        )
        for role, (count, size) in count_by_role((passage.row.role, passage.size) for passage in passages).items():
            self._grow(indexed, role, count, size)

    def set_watermark(self, indexed: IndexedSession, position: int, digest: str, following: int) -> None:
        self.database.execute(_MOVE, (position, digest, following, self.tenant, indexed.name))

    def remove_passages(self, indexed: IndexedSession, ids: Sequence[int]) -> int:
        removed = [id for id in ids if self._remove(indexed, id)]
        if removed:
            self.database.execute(schema.MERGE_INDEX)
        return len(removed)

    def _remove(self, indexed: IndexedSession, id: int) -> bool:
        row = self.database.execute("SELECT role, size FROM archive_passages WHERE id = ?", (id,)).fetchone()
        if row is None:
            return False
        self.database.execute(_DROP_WORDS, (id,))
        for table in ("archive_passages", "archive_signs", "archive_vectors"):
            self.database.execute(f"DELETE FROM {table} WHERE id = ?", (id,))  # noqa: S608 - constants
        self._grow(indexed, row[0], -1, -row[1])
        return True

    def remove_session(self, indexed: IndexedSession) -> None:
        ids = self.database.execute(
            "SELECT id FROM archive_passages WHERE id BETWEEN ? AND ?", range_of_session(indexed.key)
        )
        for (id,) in ids.fetchall():
            self._remove(indexed, id)
        for table in ("archive_own", "archive_sizes"):
            self.database.execute(f"DELETE FROM {table} WHERE session = ?", (indexed.key,))  # noqa: S608 - constants
        self.database.execute(
            "DELETE FROM archive_sessions WHERE tenant = ? AND session = ?", (self.tenant, indexed.name)
        )

    def _grow(self, indexed: IndexedSession, role: Role, count: int, size: int) -> None:
        """Add passages and their terms to the counts of the session and of its tenant."""
        for number in (indexed.key, *self._total_keys(Scope((), None))):
            self.database.execute(_GROW, (number, role, count, size))

    def _number(self, statement: str, *values: object) -> int:
        number: int = self.database.execute(statement, values).fetchone()[0]
        return number


def _to_indexed_session(row: tuple[str, int, int, int, str, int]) -> IndexedSession:
    session, holder, number, position, digest, following = row
    return IndexedSession(session, session_key(holder, number), position, digest, following)


def _values(passage: StoredPassage) -> tuple[object, ...]:
    row = passage.row
    where = (row.position, row.part, row.role, row.at, row.mentioned_at, passage.start, passage.whole)
    return (row.id, *where, passage.size, row.text_hash, passage.terms, passage.text)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _quote(term: str) -> str:
    alternatives = " OR ".join(f'"{one}"' for one in term.split(ALTERNATIVE))
    return f"({alternatives})" if ALTERNATIVE in term else alternatives


def _match(terms: Sequence[str], roles: Sequence[Role]) -> str:
    """The FTS5 query for all the terms, each quoted; none holds a quote: names have word characters and few marks."""
    match = " AND ".join(map(_quote, terms))
    if not roles:
        return match
    alternatives = " OR ".join(f'"={role}"' for role in roles)
    return f"{match} AND ({alternatives})"


class SqliteSearchIndex(SearchIndex):
    """A search index in a SQLite file, by words, and with an ``embedder`` by meaning.

    The tables lie beside the log's in its file, or in a file of their own, or in ``:memory:``. They are
    derived: an index of another release, a damaged or a foreign one is dropped, and built again from the logs
    given to ``catch_up``. ``session`` is the one that calls without a session mean. ``own_tools`` names the
    tools whose results are not indexed because they repeat what was recalled. Threads may share one index, and
    processes one file.

    Raises LogUnreadable for a foreign file, LogBusy, LogUnwritable, LogTooNew.
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
        session, self.tenant = check_name("session", session), check_name("tenant", tenant)
        store = SqliteIndexStore(os.fspath(path), tenant=tenant, embedder=embedder, timeout=timeout)
        super().__init__(store, session=session, own_tools=own_tools)


class SqliteIndexStore(SharedDatabase, IndexStore):
    """The IndexStore in a SQLite file, over a connection of its own."""

    what = "index"
    problems: tuple[str, ...] = ()

    def __init__(self, path: str, *, tenant: str, embedder: Embedder | None, timeout: float) -> None:
        self._tenant = tenant
        self._connect(path, timeout=timeout, synchronous="NORMAL")
        try:
            self._prepare()
            self.vectors: VectorStore | None = None if embedder is None else vectors_of(embedder)
        except BaseException:
            self.close()
            raise

    def run_read(self, work: Callable[[SqliteIndexReader], T]) -> T:
        with self._within("BEGIN", writing=False) as database:
            return work(SqliteIndexReader(database, self._tenant))

    def run_write(self, work: Callable[[SqliteIndexWriter], T]) -> T:
        with self._within("BEGIN IMMEDIATE", writing=False) as database:
            result = work(SqliteIndexWriter(database, self._tenant))
            database.execute("COMMIT")
            return result

    def is_damage(self, error: Exception) -> bool:
        return _is_damage(error.__cause__)

    def empty(self) -> None:
        """Drop and create the tables, as ``recreate`` does."""
        self.recreate()

    def recreate(self) -> None:
        self.run_write(lambda writing: schema.recreate_index(writing.database))

    def _prepare(self) -> None:
        with self._using(writing=False) as database:
            database.execute("PRAGMA secure_delete = ON")
            trusted = _is_current(database)
        if not trusted:
            self.run_write(_make_current)


def vectors_of(embedder: Embedder) -> VectorStore:
    """The vectors of an embedder in a file. Raises ConfigurationError."""
    try:
        from pagein.backends.sqlite.vectors import SqliteVectors  # noqa: PLC0415 - brings NumPy
    except ImportError:
        raise ConfigurationError("vectors need NumPy: pip install 'pagein[vectors]'") from None
    return SqliteVectors(embedder)


def _make_current(writing: SqliteIndexWriter) -> None:
    if not _is_current(writing.database):  # another process may have been first
        schema.recreate_index(writing.database)


def _is_current(database: sqlite3.Connection) -> bool:
    try:
        return schema.is_index_current(database)
    except sqlite3.DatabaseError as error:
        if _is_damage(error):
            return False
        raise


def _is_damage(error: BaseException | None) -> bool:
    """True where SQLite's error says that the tables are missing or damaged."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    missing = isinstance(error, sqlite3.OperationalError) and any(
        message in str(error)
        for message in ("no such table", "no such column", "has no column", "vtable constructor", "invalid fts5")
    )
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT) or missing
