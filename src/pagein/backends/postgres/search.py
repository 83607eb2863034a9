"""The search index in a PostgreSQL schema, beside the log: words by full-text search, meaning by pgvector."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from pagein.errors import ConfigurationError, LogUnreadable
from pagein.log.hash_chain import check_name
from pagein.search.base import Embedder
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
from pagein.search.passages import passage_id, session_of

try:
    import psycopg
    from psycopg import sql
    from psycopg.rows import tuple_row

    from pagein.backends.postgres import migrations as log_schema
    from pagein.backends.postgres.connection import Connection, Pool, RetryingConnection, Source, source_of
    from pagein.backends.postgres.migrations import (
        WORDS,
        create_vector_table,
        key_of,
        prepare_index,
        recreate_index,
        take_lock,
    )
except ImportError as error:
    raise ConfigurationError("search indexes in PostgreSQL need psycopg: pip install 'pagein[postgres]'") from error

if TYPE_CHECKING:
    from pagein.search.vectors import VectorStore

T = TypeVar("T")

# JIT compilation takes longer than these queries run.
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL jit = off"

_DAMAGE = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedObject,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UniqueViolation,
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
)
_NO_VECTORS = (
    "the server has no pgvector 0.7 or later that this user may use: recall goes on by words. Have an administrator "
    "install it, and run CREATE EXTENSION vector in the database"
)


_ALL = (0, 2**63 - 1)
_BLOCK = 2_048
_MANY = 64
"""Sessions that are named one by one in a query; of more the whole tenant is read, and the rest left out."""

_MINE: LiteralString = "tenant = %(tenant)s AND session = %(session)s"
_EVERY: LiteralString = "SELECT name, number, position, digest, next FROM {0}.archive_sessions WHERE "
_WITHIN: LiteralString = """SELECT min(id), max(id) FROM {0}.archive_passages
    WHERE id >> 24 = ANY(%(numbers)s) AND tenant = %(tenant)s AND at BETWEEN %(early)s AND %(late)s GROUP BY id >> 24"""
_PLACES: LiteralString = """SELECT id FROM {0}.archive_passages
    WHERE id >> 24 = %(number)s AND tenant = %(tenant)s AND position = ANY(%(positions)s)"""
_SUMS: LiteralString = """FROM {0}.archive_sizes WHERE tenant = %(tenant)s
    AND (%(sessions)s::text[] IS NULL OR session = ANY(%(sessions)s))
    AND (%(roles)s::text[] IS NULL OR role = ANY(%(roles)s))"""
_TOTALS: LiteralString = "SELECT coalesce(sum(passages), 0)::bigint, coalesce(sum(size), 0)::bigint {sums}"
_SIZES: LiteralString = "SELECT number, sum(size)::bigint {sums} GROUP BY number"
# The holders of a group are read whole, behind a fence: with the limit inside, the planner would rather read the table from
# its start. The query says the tenant, too; the column is not to be looked up beside it.
_HOLDING: LiteralString = """FROM {0}.archive_passages
    WHERE {words} @@ wanted.query::tsquery AND tenant || '' = %(tenant)s
    AND (%(first)s::bigint[] IS NULL OR EXISTS (SELECT FROM unnest(%(first)s::bigint[], %(last)s::bigint[])
        AS span(first, last) WHERE id BETWEEN span.first AND span.last))"""
_SOME: LiteralString = """SELECT wanted.number - 1, found.id
    FROM unnest(%(queries)s::text[]) WITH ORDINALITY AS wanted(query, number),
    LATERAL (WITH held AS MATERIALIZED (SELECT id {holding}) SELECT id FROM held LIMIT %(most)s) AS found"""
_NEWEST: LiteralString = """SELECT wanted.number - 1, found.id
    FROM unnest(%(queries)s::text[]) WITH ORDINALITY AS wanted(query, number),
    LATERAL (WITH held AS MATERIALIZED (SELECT id {holding})
        SELECT id FROM held ORDER BY id DESC LIMIT %(most)s) AS found"""
_COUNTS: LiteralString = """SELECT (SELECT count(*) {holding})
    FROM unnest(%(queries)s::text[]) WITH ORDINALITY AS wanted(query, number) ORDER BY wanted.number"""
# One row after the other by its key, whatever the planner takes the table to hold.
_WANTED: LiteralString = """unnest(%(ids)s::bigint[], %(sessions)s::text[]) AS wanted(id, session), LATERAL (SELECT *
    FROM {0}.archive_passages WHERE tenant = %(tenant)s AND session = wanted.session AND id = wanted.id LIMIT 1) AS p"""
_ROWS: LiteralString = "SELECT p.id, p.position, p.part, p.role, p.at, p.said, p.same FROM {wanted}"
_TERMS: LiteralString = "SELECT p.id, p.size, p.terms FROM {wanted}"
_TEXTS: LiteralString = "SELECT p.id, p.text, p.whole, p.terms FROM {wanted}"

_ADD_SESSION: LiteralString = """INSERT INTO {0}.archive_sessions
    SELECT %(tenant)s, %(session)s, %(name)s, coalesce(max(number) + 1, 0), 0, '', 0
    FROM {0}.archive_sessions WHERE tenant = %(tenant)s ON CONFLICT DO NOTHING"""
_NOTE: LiteralString = """INSERT INTO {0}.archive_own
    SELECT %(tenant)s, %(session)s, each.position, each.part
    FROM unnest(%(positions)s::bigint[], %(parts)s::int[]) AS each(position, part) ON CONFLICT DO NOTHING"""
_OWN: LiteralString = "SELECT position, part FROM {0}.archive_own WHERE {mine} AND position = %(action)s"
_KEEP: LiteralString = """INSERT INTO {0}.archive_passages SELECT %(tenant)s, %(session)s, each.*
    FROM unnest(%(ids)s::bigint[], %(positions)s::bigint[], %(parts)s::int[], %(roles)s::text[], %(at)s::float8[],
    %(said)s::float8[], %(starts)s::int[], %(whole)s::bool[], %(sizes)s::int[], %(same)s::bigint[], %(terms)s::text[],
    %(texts)s::text[]) AS each"""
_GROW: LiteralString = """INSERT INTO {0}.archive_sizes AS known
    SELECT %(tenant)s, %(session)s, each.role, %(number)s, each.passages, each.size
    FROM unnest(%(roles)s::text[], %(passages)s::bigint[], %(sizes)s::bigint[]) AS each(role, passages, size)
    ON CONFLICT (tenant, session, role)
    DO UPDATE SET passages = known.passages + excluded.passages, size = known.size + excluded.size"""
_MOVE: LiteralString = """UPDATE {0}.archive_sessions
    SET position = %(position)s, digest = %(digest)s, next = %(next)s WHERE {mine}"""
_REMOVE: LiteralString = "DELETE FROM {0}.archive_passages WHERE {mine} AND id = ANY(%(ids)s) RETURNING role, size"
_REMOVE_SESSION: tuple[LiteralString, ...] = (
    "DELETE FROM {0}.archive_passages WHERE {mine}",
    "DELETE FROM {0}.archive_own WHERE {mine}",
    "DELETE FROM {0}.archive_sizes WHERE {mine}",
    "DELETE FROM {0}.archive_sessions WHERE {mine}",
)


@lru_cache(maxsize=256)
def index_statement(statement: LiteralString, schema: str, vector: str | None) -> bytes:
    """Format a statement: ``{0}`` is the index's schema, ``{mine}`` one session, ``{vector}`` pgvector's schema."""
    place = sql.Identifier(schema)
    parts = {
        "mine": sql.SQL(_MINE),
        "sums": sql.SQL(_SUMS).format(place),
        "wanted": sql.SQL(_WANTED).format(place),
        "holding": sql.SQL(_HOLDING).format(place, words=sql.SQL(WORDS)),
        "vector": sql.Identifier(vector or schema),
    }
    return sql.SQL(statement).format(place, **parts).as_bytes()


class PostgresIndexReader(IndexReader):
    """The IndexReader of one tenant in a PostgreSQL schema."""

    def __init__(self, connection: Connection, schema: str, vector: str | None, tenant: str) -> None:
        self.connection, self._schema, self._vector = connection, schema, vector
        self._tenant = key_of(tenant)
        # What the words of the tenant begin with, as ``WORDS`` has it.
        self._mark = f"={hashlib.md5(self._tenant.encode(), usedforsecurity=False).hexdigest()[:8]}"

    @cached_property
    def _every(self) -> list[IndexedSession]:
        return [IndexedSession(*row) for row in self.fetch(_EVERY + "tenant = %(tenant)s")]

    @cached_property
    def _names(self) -> dict[int, str]:
        """The sessions' keys in the tables, by the prefix of their ids."""
        return {indexed.key: key_of(indexed.name) for indexed in self._every}

    def sessions(self) -> list[IndexedSession]:
        return self._every

    def find_session(self, session: str) -> IndexedSession | None:
        rows = self.fetch(_EVERY + "{mine}", session=key_of(session))
        return IndexedSession(*rows[0]) if rows else None

    def range_of_all(self) -> tuple[int, int]:
        return _ALL

    def ranges_between(self, sessions: Collection[int], early: float, late: float) -> list[tuple[int, int]]:
        ranges = self.fetch(_WITHIN, numbers=list(sessions), early=early, late=late)
        return [(first, last) for first, last in ranges]

    def ids_at(self, indexed: IndexedSession, positions: Collection[int]) -> list[int]:
        # Positions are the caller's: one that no column holds stands nowhere.
        storable = [position for position in positions if 0 <= position < 2**63]
        return [id for (id,) in self.fetch(_PLACES, number=indexed.key, positions=storable)]

    def totals(self, scope: Scope) -> tuple[int, int]:
        ((passages, size),) = self.fetch(_TOTALS, **self.scope_filter(scope))
        return passages, size

    def sizes(self, scope: Scope) -> Mapping[int, int]:
        return dict(self.fetch(_SIZES, **self.scope_filter(scope)))

    def scope_filter(self, scope: Scope) -> dict[str, Any]:
        """The sessions and roles of a scope, None for all."""
        sessions = (
            None if scope.sessions is None else [self._names[key] for key in scope.sessions if key in self._names]
        )
        return {"sessions": sessions, "roles": list(scope.roles) or None}

    def holders(self, groups: Sequence[Sequence[str]], scope: Scope, limit: int) -> list[set[int]]:
        """For each group of terms the passages of the scope with all of them: the newest, at most ``most``.

        First any passages are read: for a rare group these are all. For the others the newest, in more and more
        blocks.
        """
        holders: list[set[int]] = [set() for _ in groups]
        if not groups or not scope.ranges:
            return holders
        common = self._add_holders(_SOME, holders, range(len(groups)), groups, scope, limit)
        for blocks in self._blocks(scope, limit):
            if not common:
                break
            for number in common:
                holders[number] = set()
            full = self._add_holders(_NEWEST, holders, common, groups, scope, limit, blocks)
            common = [number for number in common if number not in full]
        return holders

    @staticmethod
    def spans(scope: Scope) -> dict[str, Any]:
        """The ranges of a scope; None for all of the tenant."""
        if scope.sessions is None and scope.ranges == (_ALL,):
            return {"first": None, "last": None}
        return {"first": [first for first, _ in scope.ranges], "last": [last for _, last in scope.ranges]}

    def _add_holders(
        self,
        statement: LiteralString,
        holders: list[set[int]],
        numbers: Sequence[int],
        groups: Sequence[Sequence[str]],
        scope: Scope,
        most: int,
        blocks: Sequence[str] = (),
    ) -> list[int]:
        """Add the holders of these groups; return the groups that may have more."""
        queries = [self._query(groups[number], scope, blocks) for number in numbers]
        for place, id in self.fetch(statement, queries=queries, most=most, **self.spans(scope)):
            holders[numbers[place]].add(id)
        return [number for number in numbers if len(holders[number]) >= most]

    def _blocks(self, scope: Scope, most: int) -> Iterator[tuple[str, ...]]:
        """The keys of the blocks with the newest passages of the scope: of some blocks, then of more, at last none, for all."""
        ends = {indexed.key: passage_id(indexed.key, indexed.next) - 1 for indexed in self._every}
        spans = scope.ranges if scope.sessions is not None else [(passage_id(key, 0), end) for key, end in ends.items()]
        newest: list[int] = []
        for first, last in sorted(spans, reverse=True):
            end = min(last, ends.get(session_of(first), last))
            newest.extend(range(end // _BLOCK, first // _BLOCK - 1, -1))
        several = max(1, 4 * most // _BLOCK)
        while several < len(newest) and several <= _MANY:
            yield tuple(f"{self._mark}:{indexed}" for indexed in newest[:several])
            several *= 4
        yield ()

    def counts(self, terms: Sequence[str], scope: Scope) -> list[int]:
        queries = [self._query((term,), scope) for term in terms]
        return [count for (count,) in self.fetch(_COUNTS, queries=queries, **self.spans(scope))]

    def _query(self, terms: Sequence[str], scope: Scope, blocks: Sequence[str] = ()) -> str:
        """The tsquery for all the terms within the scope. Terms are data, and quoted."""
        alternatives = (_any_term(term.split(ALTERNATIVE)) for term in terms)
        parts = [*alternatives, _any_term(f"={role}" for role in scope.roles)]
        if blocks:
            parts.append(_any_term(blocks))
        elif scope.sessions is not None and len(scope.sessions) <= _MANY:
            parts.append(_any_term(f"{self._mark}.{key}" for key in scope.sessions))
        else:
            parts.append(_quote(self._mark))
        return " & ".join(filter(None, parts))

    def rows(self, ids: Collection[int]) -> Iterator[PassageRow]:
        return map(PassageRow._make, self.fetch(_ROWS, **self.keys_of(ids)))

    def terms(self, ids: Collection[int]) -> Iterable[tuple[int, int, str]]:
        return self.fetch(_TERMS, **self.keys_of(ids))

    def texts(self, ids: Collection[int]) -> Iterable[tuple[int, str, bool, str]]:
        return self.fetch(_TEXTS, **self.keys_of(ids))

    def keys_of(self, ids: Iterable[int]) -> dict[str, Any]:
        """The ids and their sessions, as ``_WANTED`` takes them."""
        keys = [(id, self._names[session_of(id)]) for id in ids if session_of(id) in self._names]
        return {"ids": [id for id, _ in keys], "sessions": [session for _, session in keys]}

    def fetch(self, statement: LiteralString, /, **values: Any) -> list[Any]:
        """The rows of a statement, for the tenant."""
        formatted = index_statement(statement, self._schema, self._vector)
        with self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(formatted, {"tenant": self._tenant, **values}).fetchall()

    def execute(self, statement: LiteralString, /, **values: Any) -> None:
        """The same of a statement that gives none."""
        formatted = index_statement(statement, self._schema, self._vector)
        self.connection.execute(formatted, {"tenant": self._tenant, **values})


class PostgresIndexWriter(PostgresIndexReader, IndexWriter):
    """The IndexWriter of one tenant in a PostgreSQL schema; it locks the row of the session it writes to."""

    def open_session(self, session: str) -> IndexedSession:
        indexed = self._lock_session(session)
        if indexed is None:
            # Numbers are counted by one at a time.
            take_lock(self.connection, f"archive of {self._tenant}")
            self.execute(_ADD_SESSION, session=key_of(session), name=session)
            indexed = self._lock_session(session)
        assert indexed is not None, "it was written in this transaction"
        return indexed

    def _lock_session(self, session: str) -> IndexedSession | None:
        rows = self.fetch(_EVERY + "{mine} FOR UPDATE", session=key_of(session))
        return IndexedSession(*rows[0]) if rows else None

    def note_own_calls(self, indexed: IndexedSession, calls: Collection[tuple[int, int]]) -> None:
        positions, parts = zip(*calls, strict=True)
        self.execute(_NOTE, session=key_of(indexed.name), positions=list(positions), parts=list(parts))

    def own_calls(self, indexed: IndexedSession, action: int) -> list[tuple[int, int]]:
        return self.fetch(_OWN, session=key_of(indexed.name), action=action)

    def add_passages(self, indexed: IndexedSession, passages: Sequence[StoredPassage]) -> None:
        if not passages:
            return
        rows = [passage.row for passage in passages]
        self.execute(
            _KEEP, session=key_of(indexed.name), ids=[row.id for row in rows],
            positions=[row.position for row in rows], parts=[row.part for row in rows],
            roles=[row.role for row in rows], at=[row.at for row in rows], said=[row.mentioned_at for row in rows],
            same=[row.text_hash for row in rows], starts=[passage.start for passage in passages],
            whole=[passage.whole for passage in passages], sizes=[passage.size for passage in passages],
            # A NUL is no character to PostgreSQL.
            terms=[passage.terms for passage in passages], texts=[passage.text.replace("\0", "\ufffd") for passage in passages],
        )  # fmt: skip
        self._grow(indexed, count_by_role((passage.row.role, passage.size) for passage in passages), 1)

    def set_watermark(self, indexed: IndexedSession, position: int, digest: str, following: int) -> None:
        self.execute(_MOVE, session=key_of(indexed.name), position=position, digest=digest, next=following)

    def remove_passages(self, indexed: IndexedSession, ids: Sequence[int]) -> int:
        session = key_of(indexed.name)
        self._lock_session(indexed.name)
        removed = self.fetch(_REMOVE, session=session, ids=list(ids))
        if removed:
            self._grow(indexed, count_by_role(removed), -1)
            self._remove_vectors(session, list(ids))
        return len(removed)

    def remove_session(self, indexed: IndexedSession) -> None:
        self._lock_session(indexed.name)
        session = key_of(indexed.name)
        self._remove_vectors(session, None)
        for statement in _REMOVE_SESSION:
            self.execute(statement, session=session)

    def empty(self) -> None:
        """Remove every session of the tenant."""
        for indexed in self._every:
            self.remove_session(indexed)

    def _remove_vectors(self, session: str, ids: list[int] | None) -> None:
        if self.has_vectors:
            self.execute(
                "DELETE FROM {0}.archive_vectors WHERE {mine} AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s))",
                session=session, ids=ids,
            )  # fmt: skip

    @cached_property
    def has_vectors(self) -> bool:
        """True where the table for vectors exists."""
        ((there,),) = self.fetch(
            "SELECT to_regclass(quote_ident(%(schema)s) || '.archive_vectors') IS NOT NULL", schema=self._schema
        )
        return bool(there)

    def _grow(self, indexed: IndexedSession, sums: Mapping[Any, tuple[int, int]], sign: int) -> None:
        """Add passages and their terms to the session's counts."""
        self.execute(
            _GROW, session=key_of(indexed.name), number=indexed.key, roles=list(sums),
            passages=[sign * count for count, _ in sums.values()], sizes=[sign * size for _, size in sums.values()],
        )  # fmt: skip


def _quote(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _any_term(terms: Iterable[str]) -> str:
    alternatives = " | ".join(map(_quote, terms))
    return f"({alternatives})" if alternatives else ""


_NO_WAIT = "SELECT set_config('synchronous_commit', 'off', true)"
"""An index is derived: its transactions do not wait for the disk, those of the log on the same connection do."""


class PostgresSearchIndex(SearchIndex):
    """A search index in a PostgreSQL schema, by words, and with an ``embedder`` and pgvector by meaning.

    ``where``, ``schema`` and ``timeout`` are a ``PostgresLog``'s; ``where`` may be a store's connection, too. The tables lie beside the log's and are
    derived: an index of an earlier release, or an incomplete one, is dropped, and built again from the logs
    given to ``catch_up``. Many processes may share one; a lost connection is opened again. ``problems`` says
    where pgvector is missing.

    Raises LogUnreachable, LogTooNew, LogBusy, LogUnwritable, ConfigurationError.
    """

    def __init__(
        self,
        where: str | Pool | Source,
        *,
        session: str = "default",
        tenant: str = "",
        embedder: Embedder | None = None,
        own_tools: Collection[str] = (),
        timeout: float = 5.0,
        schema: str = "pagein",
    ) -> None:
        session, self.tenant = check_name("session", session), check_name("tenant", tenant)
        schema = log_schema.checked_schema(schema)
        server = RetryingConnection(source_of(where, timeout=timeout), timeout=timeout)
        store = PostgresIndexStore(server, schema=schema, tenant=tenant, embedder=embedder)
        super().__init__(store, session=session, own_tools=own_tools)


class PostgresIndexStore(IndexStore):
    """The IndexStore in a PostgreSQL schema."""

    def __init__(self, server: RetryingConnection, *, schema: str, tenant: str, embedder: Embedder | None) -> None:
        self._server, self._schema, self._tenant = server, schema, tenant
        self._vector: str | None = None
        self.path = server.path
        self.problems: tuple[str, ...] = ()
        try:
            self.vectors: VectorStore | None = None if embedder is None else self._vectors(embedder)
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """Create the tables; those for vectors where there is an embedder."""

        def prepare(using: Connection, _: bool) -> str | None:
            log_schema.prepare(using, self._schema, self.path, readonly=False)
            prepare_index(using, self._schema, self.path)
            return create_vector_table(using, self._schema) if self.vectors is not None else None

        self._vector = self._server.call(prepare, writing=True)
        if self.vectors is not None and self._vector is None:
            self.vectors, self.problems = None, (_NO_VECTORS,)

    @staticmethod
    def _vectors(embedder: Embedder) -> VectorStore:
        try:
            from pagein.backends.postgres.vectors import PostgresVectors  # noqa: PLC0415 - brings NumPy
        except ImportError:
            raise ConfigurationError("vectors need NumPy: pip install 'pagein[vectors]'") from None
        return PostgresVectors(embedder)

    def run_read(self, work: Callable[[PostgresIndexReader], T]) -> T:

        def reading(using: Connection) -> T:
            using.execute(_BEGIN_READ)
            try:
                return work(PostgresIndexReader(using, self._schema, self._vector, self._tenant))
            finally:
                if not using.closed:
                    using.execute("ROLLBACK")

        return self._server.call(lambda using, _: self._detect_damage(lambda: reading(using)))

    def run_write(self, work: Callable[[PostgresIndexWriter], T]) -> T:
        """Run the work in one transaction; where the answer was lost, it is run again on what is there."""

        def writing(using: Connection) -> T:
            with using.transaction():
                using.execute(_NO_WAIT)
                return work(PostgresIndexWriter(using, self._schema, self._vector, self._tenant))

        return self._server.call(lambda using, _: self._detect_damage(lambda: writing(using)), writing=True)

    def _detect_damage(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except _DAMAGE as error:
            message = str(error).splitlines()[0]
        raise IndexDamaged(f"{self.path}: the index is damaged: {message}")

    def is_damage(self, error: Exception) -> bool:
        return isinstance(error, IndexDamaged)

    def empty(self) -> None:
        """Remove everything of this tenant."""
        self.run_write(lambda writing: writing.empty())

    def recreate(self) -> None:

        def recreate(using: Connection, _: bool) -> None:
            with using.transaction():
                take_lock(using, self._schema)
                recreate_index(using, self._schema)

        self._server.call(recreate, writing=True)
        self._prepare()

    def close(self) -> None:
        """Close the connection; a second call does nothing. A pool stays open."""
        self._server.close()


class IndexDamaged(LogUnreadable):
    """The tables of an index are missing or damaged. They are derived, so they are created again."""
