"""What a log says to PostgreSQL. Each statement is whole: one that fails, or finds nothing to do, leaves no trace."""

from __future__ import annotations

from typing import LiteralString

from psycopg import sql

_MINE = sql.SQL("tenant = %(tenant)s AND session = %(session)s")
_ROW = sql.SQL("position, at, kind, version, convert_to(body, 'UTF8'), digest")

_TIP: LiteralString = "SELECT position, digest FROM {0}.entries WHERE {mine} ORDER BY position DESC LIMIT 1"
_READ: LiteralString = """SELECT {row} FROM {0}.entries
    WHERE {mine} AND position >= %(start)s AND position < %(stop)s ORDER BY position LIMIT %(limit)s"""
_BATCH: LiteralString = """SELECT {row} FROM {0}.entries
    WHERE {mine} AND position >= %(after)s AND batch = %(batch)s ORDER BY position"""
_BLOB: LiteralString = "SELECT data FROM {0}.blobs WHERE {mine} AND digest = %(name)s"
_SESSIONS: LiteralString = "SELECT session_name FROM {0}.sessions WHERE tenant = %(tenant)s"

# Compare-and-swap in one statement: nothing is inserted unless the entry before is the one that was chained to, and
# the primary key refuses a position that somebody else has taken meanwhile.
_BEHIND: LiteralString = """WITH behind AS (SELECT FROM {0}.entries
    WHERE {mine} AND position = %(after)s::bigint - 1 AND digest = %(previous)s)"""
_FIRST: LiteralString = """WITH behind AS (SELECT), named AS (INSERT INTO {0}.sessions
    VALUES (%(tenant)s, %(session)s, %(tenant_name)s, %(session_name)s) ON CONFLICT DO NOTHING)"""
_BLOBS: LiteralString = """, kept AS (INSERT INTO {0}.blobs (tenant, session, digest, data)
    SELECT %(tenant)s, %(session)s, each.name, each.data
    FROM behind, unnest(%(names)s::text[], %(data)s::bytea[]) AS each(name, data) ON CONFLICT DO NOTHING)"""
_ENTRIES: LiteralString = """
    INSERT INTO {0}.entries (tenant, session, position, at, kind, version, body, digest, batch)
    SELECT %(tenant)s, %(session)s, %(after)s::bigint + each.n - 1, each.at, each.kind, each.version,
        each.body, each.digest, %(batch)s
    FROM behind, unnest(%(times)s::float8[], %(kinds)s::text[], %(versions)s::int[], %(bodies)s::text[],
        %(digests)s::text[]) WITH ORDINALITY AS each(at, kind, version, body, digest, n)"""
# The same of one row, as most appends are: without the detour over arrays it costs both sides less.
_ONE: LiteralString = """INSERT INTO {0}.entries
    (tenant, session, position, at, kind, version, body, digest, batch)
    SELECT %(tenant)s, %(session)s, %(after)s::bigint, %(at)s::float8, %(kind)s::text, %(number)s::int, %(body)s::text,
        %(digest)s::text, %(batch)s::uuid
    WHERE EXISTS (SELECT FROM {0}.entries
        WHERE {mine} AND position = %(after)s::bigint - 1 AND digest = %(previous)s)"""


class Statements:
    """The statements, for the tables of one schema."""

    def __init__(self, schema: str) -> None:
        self._name = sql.Identifier(schema)
        self.tip = self._made(_TIP)
        self.read = self._made(_READ)
        self.batch = self._made(_BATCH)
        self.blob = self._made(_BLOB)
        self.sessions = self._made(_SESSIONS)
        self.one = self._made(_ONE)
        self._appends = {
            (first, blobs): self._made((_FIRST if first else _BEHIND) + (_BLOBS if blobs else "") + _ENTRIES)
            for first in (False, True)
            for blobs in (False, True)
        }

    def append(self, *, first: bool, blobs: bool) -> bytes:
        """The statement that writes a batch: the ``first`` of a session, or one behind another; with blobs or none."""
        return self._appends[first, blobs]

    def _made(self, text: LiteralString) -> bytes:
        return sql.SQL(text).format(self._name, mine=_MINE, row=_ROW).as_bytes()
