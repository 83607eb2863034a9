"""What the archive says to PostgreSQL, over a connection whose transaction is the caller's."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import tuple_row

from pagein.backends.postgres.connection import Connection
from pagein.backends.postgres.migrations import key_of
from pagein.backends.postgres.search_schema import WORDS, lock
from pagein.search.index_store import Indexed, Kept, Row, Scope, grown
from pagein.search.passage_ids import passage_id, session_of

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
# What holds a group is asked for whole and lazily, behind a fence: with the limit inside, the planner would rather read
# the table from its start.
# The query says the tenant, too; the column is not to be looked up beside it.
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

_BEGIN: LiteralString = """INSERT INTO {0}.archive_sessions
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
_REMOVE: LiteralString = (
    "DELETE FROM {0}.archive_passages WHERE {mine} AND id = ANY(%(ids)s) RETURNING role, size"
)
_REMOVE_SESSION: tuple[LiteralString, ...] = (
    "DELETE FROM {0}.archive_passages WHERE {mine}",
    "DELETE FROM {0}.archive_own WHERE {mine}",
    "DELETE FROM {0}.archive_sizes WHERE {mine}",
    "DELETE FROM {0}.archive_sessions WHERE {mine}",
)


class Statements:
    """What is said, for the tables of one ``schema``, and with pgvector in the schema ``vector`` where it is there."""

    def __init__(self, schema: str, vector: str | None = None) -> None:
        self.schema = schema
        place = sql.Identifier(schema)
        self._place = place
        self._parts = {
            "mine": sql.SQL(_MINE),
            "sums": sql.SQL(_SUMS).format(place),
            "wanted": sql.SQL(_WANTED).format(place),
            "holding": sql.SQL(_HOLDING).format(place, words=sql.SQL(WORDS)),
            "vector": sql.Identifier(vector or schema),
        }
        self._made: dict[str, bytes] = {}

    def __call__(self, statement: LiteralString) -> bytes:
        """A statement as the server takes it: ``{0}`` is our schema, ``{mine}`` one session, ``{vector}`` pgvector's."""
        if statement not in self._made:
            self._made[statement] = sql.SQL(statement).format(self._place, **self._parts).as_bytes()
        return self._made[statement]


class PostgresReading:
    """A Reading of one tenant's index in a PostgreSQL schema."""

    def __init__(self, connection: Connection, statements: Statements, tenant: str) -> None:
        self.connection, self._statements = connection, statements
        self._tenant = key_of(tenant)
        # What the words of the tenant begin with, as ``WORDS`` has it.
        self._mark = f"={hashlib.md5(self._tenant.encode(), usedforsecurity=False).hexdigest()[:8]}"

    @cached_property
    def _every(self) -> list[Indexed]:
        return [Indexed(*row) for row in self.fetch(_EVERY + "tenant = %(tenant)s")]

    @cached_property
    def _names(self) -> dict[int, str]:
        """The sessions' keys in the tables, by what leads their ids."""
        return {each.key: key_of(each.name) for each in self._every}

    def every(self) -> list[Indexed]:
        """The tenant's sessions."""
        return self._every

    def indexed(self, session: str) -> Indexed | None:
        """What the index knows of a session, or None."""
        found = self.fetch(_EVERY + "{mine}", session=key_of(session))
        return Indexed(*found[0]) if found else None

    def range_of_all(self) -> tuple[int, int]:
        """The first and the last id that any passage of the tenant may have."""
        return _ALL

    def within(self, sessions: Collection[int], early: float, late: float) -> list[tuple[int, int]]:
        """The ids of what was recorded from ``early`` to ``late``: a range for each of the sessions that has any."""
        found = self.fetch(_WITHIN, numbers=list(sessions), early=early, late=late)
        return [(first, last) for first, last in found]

    def places(self, known: Indexed, positions: Collection[int]) -> list[int]:
        """The ids of the passages that stand at these positions of a session."""
        # Positions are the caller's: one that no column holds stands nowhere.
        wanted = [each for each in positions if 0 <= each < 2**63]
        return [id for (id,) in self.fetch(_PLACES, number=known.key, positions=wanted)]

    def totals(self, scope: Scope) -> tuple[int, int]:
        """How many passages, and terms in them, the scope's sessions hold in its roles."""
        ((passages, size),) = self.fetch(_TOTALS, **self.summed(scope))
        return passages, size

    def sizes(self, scope: Scope) -> Mapping[int, int]:
        """How many terms each session of the scope holds in its roles, by what leads its ids."""
        return dict(self.fetch(_SIZES, **self.summed(scope)))

    def summed(self, scope: Scope) -> dict[str, Any]:
        """The sessions and roles of a scope, None for all."""
        sessions = None if scope.sessions is None else self._named(scope.sessions)
        return {"sessions": sessions, "roles": list(scope.roles) or None}

    def holders(self, groups: Sequence[Sequence[str]], scope: Scope, most: int) -> list[set[int]]:
        """For each group of terms the passages of the scope that hold all of them: the newest, at most ``most``.

        First any are asked for: of a rare group these are all. Of the others the newest, in more and more blocks.
        """
        found: list[set[int]] = [set() for _ in groups]
        if not groups or not scope.ranges:
            return found
        common = self._held(_SOME, found, range(len(groups)), groups, scope, most)
        for blocks in self._blocks(scope, most):
            if not common:
                break
            for each in common:
                found[each] = set()
            full = self._held(_NEWEST, found, common, groups, scope, most, blocks)
            common = [each for each in common if each not in full]
        return found

    @staticmethod
    def spans(scope: Scope) -> dict[str, Any]:
        """The ranges of a scope; None where all of the tenant is looked at."""
        if scope.sessions is None and scope.ranges == (_ALL,):
            return {"first": None, "last": None}
        return {"first": [first for first, _ in scope.ranges], "last": [last for _, last in scope.ranges]}

    def _held(
        self,
        statement: LiteralString,
        found: list[set[int]],
        wanted: Sequence[int],
        groups: Sequence[Sequence[str]],
        scope: Scope,
        most: int,
        blocks: Sequence[str] = (),
    ) -> list[int]:
        """Put into ``found`` who holds each of the wanted groups; gives those of which there may be more."""
        queries = [self._query(groups[each], scope, blocks) for each in wanted]
        for number, id in self.fetch(statement, queries=queries, most=most, **self.spans(scope)):
            found[wanted[number]].add(id)
        return [each for each in wanted if len(found[each]) >= most]

    def _blocks(self, scope: Scope, most: int) -> Iterator[tuple[str, ...]]:
        """What the newest passages of the scope are found by: of some, of more, and last of all."""
        ends = {each.key: passage_id(each.key, each.next) - 1 for each in self._every}
        spans = (
            scope.ranges
            if scope.sessions is not None
            else [(passage_id(key, 0), end) for key, end in ends.items()]
        )
        newest: list[int] = []
        for first, last in sorted(spans, reverse=True):
            end = min(last, ends.get(session_of(first), last))
            newest.extend(range(end // _BLOCK, first // _BLOCK - 1, -1))
        several = max(1, 4 * most // _BLOCK)
        while several < len(newest) and several <= _MANY:
            yield tuple(f"{self._mark}:{each}" for each in newest[:several])
            several *= 4
        yield ()

    def counts(self, terms: Sequence[str], scope: Scope) -> list[int]:
        """How many passages of the scope hold each of the terms."""
        queries = [self._query((term,), scope) for term in terms]
        return [count for (count,) in self.fetch(_COUNTS, queries=queries, **self.spans(scope))]

    def _query(self, terms: Sequence[str], scope: Scope, blocks: Sequence[str] = ()) -> str:
        """What is asked of the index: all the terms, and one of each of the rest. Any term is data: it is quoted."""
        parts = [*map(_quoted, terms), _any(f"={role}" for role in scope.roles)]
        if blocks:
            parts.append(_any(blocks))
        elif scope.sessions is not None and len(scope.sessions) <= _MANY:
            parts.append(_any(f"{self._mark}.{key}" for key in scope.sessions))
        else:
            parts.append(_quoted(self._mark))
        return " & ".join(filter(None, parts))

    def rows(self, ids: Collection[int]) -> Iterator[Row]:
        """These passages, those that are there, in no order."""
        return map(Row._make, self.fetch(_ROWS, **self.wanted(ids)))

    def terms(self, ids: Collection[int]) -> Iterable[tuple[int, int, str]]:
        """The id, the size and the terms of these."""
        return self.fetch(_TERMS, **self.wanted(ids))

    def texts(self, ids: Collection[int]) -> Iterable[tuple[int, str, bool, str]]:
        """The id, the text, whether it is a whole one, and the terms of these."""
        return self.fetch(_TEXTS, **self.wanted(ids))

    def wanted(self, ids: Iterable[int]) -> dict[str, Any]:
        """The ids, and the sessions they are of, as ``_WANTED`` takes them."""
        known = [(id, self._names[session_of(id)]) for id in ids if session_of(id) in self._names]
        return {"ids": [id for id, _ in known], "sessions": [session for _, session in known]}

    def _named(self, keys: Iterable[int]) -> list[str]:
        return [self._names[key] for key in keys if key in self._names]

    def fetch(self, statement: LiteralString, /, **values: Any) -> list[Any]:
        """The rows of a statement, for the tenant."""
        with self.connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(self._statements(statement), {"tenant": self._tenant, **values}).fetchall()

    def run(self, statement: LiteralString, /, **values: Any) -> None:
        """The same of a statement that gives none."""
        self.connection.execute(self._statements(statement), {"tenant": self._tenant, **values})


class PostgresWriting(PostgresReading):
    """A Writing to one tenant's index in a PostgreSQL schema; whoever writes holds the session's row."""

    def begun(self, session: str) -> Indexed:
        """What the index knows of a session, made where it is new; nobody else writes to it until the end of this."""
        found = self._taken(session)
        if found is None:
            # Numbers are counted by one at a time.
            lock(self.connection, f"archive of {self._tenant}")
            self.run(_BEGIN, session=key_of(session), name=session)
            found = self._taken(session)
        assert found is not None, "it was written in this transaction"
        return found

    def _taken(self, session: str) -> Indexed | None:
        found = self.fetch(_EVERY + "{mine} FOR UPDATE", session=key_of(session))
        return Indexed(*found[0]) if found else None

    def note_own(self, known: Indexed, calls: Collection[tuple[int, int]]) -> None:
        """Keep in mind that these calls, (position, index), are to tools of our own."""
        positions, parts = zip(*calls, strict=True)
        self.run(_NOTE, session=key_of(known.name), positions=list(positions), parts=list(parts))

    def own(self, known: Indexed, action: int) -> list[tuple[int, int]]:
        """Those of an action."""
        return self.fetch(_OWN, session=key_of(known.name), action=action)

    def keep(self, known: Indexed, found: Sequence[Kept]) -> None:
        """Take in passages of a session."""
        if not found:
            return
        rows = [each.row for each in found]
        self.run(
            _KEEP, session=key_of(known.name), ids=[each.id for each in rows],
            positions=[each.position for each in rows], parts=[each.part for each in rows],
            roles=[each.role for each in rows], at=[each.at for each in rows], said=[each.said for each in rows],
            same=[each.same for each in rows], starts=[each.start for each in found],
            whole=[each.whole for each in found], sizes=[each.size for each in found],
            # A NUL is no character to PostgreSQL.
            terms=[each.terms for each in found], texts=[each.text.replace("\0", "\ufffd") for each in found],
        )  # fmt: skip
        self._grow(known, grown((each.row.role, each.size) for each in found), 1)

    def move(self, known: Indexed, position: int, digest: str, following: int) -> None:
        """Say how far a session is indexed."""
        self.run(_MOVE, session=key_of(known.name), position=position, digest=digest, next=following)

    def remove(self, known: Indexed, ids: Sequence[int]) -> int:
        """Take passages of a session out of every table; how many there were."""
        session = key_of(known.name)
        self._taken(known.name)
        gone = self.fetch(_REMOVE, session=session, ids=list(ids))
        if gone:
            self._grow(known, grown(gone), -1)
            self._remove_vectors(session, list(ids))
        return len(gone)

    def remove_session(self, known: Indexed) -> None:
        """Take a whole session out, and how far it was indexed."""
        self._taken(known.name)
        session = key_of(known.name)
        self._remove_vectors(session, None)
        for statement in _REMOVE_SESSION:
            self.run(statement, session=session)

    def empty(self) -> None:
        """Take everything of the tenant out."""
        for each in self._every:
            self.remove_session(each)

    def _remove_vectors(self, session: str, ids: list[int] | None) -> None:
        if self.has_vectors:
            self.run(
                "DELETE FROM {0}.archive_vectors WHERE {mine} AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s))",
                session=session, ids=ids,
            )  # fmt: skip

    @cached_property
    def has_vectors(self) -> bool:
        """Whether there is a table for vectors."""
        ((there,),) = self.fetch(
            "SELECT to_regclass(quote_ident(%(schema)s) || '.archive_vectors') IS NOT NULL",
            schema=self._statements.schema,
        )
        return bool(there)

    def _grow(self, known: Indexed, sums: Mapping[Any, tuple[int, int]], sign: int) -> None:
        """Count passages and their terms for the session."""
        self.run(
            _GROW, session=key_of(known.name), number=known.key, roles=list(sums),
            passages=[sign * count for count, _ in sums.values()], sizes=[sign * size for _, size in sums.values()],
        )  # fmt: skip


def _quoted(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _any(terms: Iterable[str]) -> str:
    told = " | ".join(map(_quoted, terms))
    return f"({told})" if told else ""
