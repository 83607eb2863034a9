"""The statements of a log in PostgreSQL. Each is complete: one that fails, or has nothing to do, changes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import tuple_row

from pagein.backends.postgres.connection import Connection
from pagein.backends.postgres.migrations import key_of
from pagein.log.encryption import Encryption
from pagein.log.hash_chain import origin
from pagein.log.raw_rows import Row, Tip

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
# the primary key refuses a position that another writer has taken meanwhile.
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


class LogStatements:
    """The statements, for the tables of one schema."""

    def __init__(self, schema: str) -> None:
        self._name = sql.Identifier(schema)
        self.tip = self._format(_TIP)
        self.read = self._format(_READ)
        self.batch = self._format(_BATCH)
        self.blob = self._format(_BLOB)
        self.sessions = self._format(_SESSIONS)
        self.one = self._format(_ONE)
        self._appends = {
            (first, blobs): self._format((_FIRST if first else _BEHIND) + (_BLOBS if blobs else "") + _ENTRIES)
            for first in (False, True)
            for blobs in (False, True)
        }

    def append(self, *, first: bool, blobs: bool) -> bytes:
        """The statement that writes a batch: the ``first`` of a session or a later one, with blobs or without."""
        return self._appends[first, blobs]

    def _format(self, text: LiteralString) -> bytes:
        return sql.SQL(text).format(self._name, mine=_MINE, row=_ROW).as_bytes()


ROWS_AT_ONCE = 250

_KEEP: LiteralString = """INSERT INTO {0}.entries (tenant, session, position, at, kind, version, body, digest, batch)
    VALUES (%(tenant)s, %(session)s, %(position)s, %(at)s, %(kind)s, %(number)s, %(body)s, %(digest)s, %(batch)s)"""
_KEEP_BLOB: LiteralString = """INSERT INTO {0}.blobs (tenant, session, digest, data)
    VALUES (%(tenant)s, %(session)s, %(name)s, %(data)s) ON CONFLICT DO NOTHING"""
_REPLACE: LiteralString = (
    "UPDATE {0}.entries SET version = %(number)s, body = %(body)s WHERE {mine} AND position = %(position)s"
)
_DROP_BLOB: LiteralString = "DELETE FROM {0}.blobs WHERE {mine} AND digest = %(name)s"
_CLEAR: tuple[LiteralString, ...] = (
    "DELETE FROM {0}.entries WHERE {mine}", "DELETE FROM {0}.blobs WHERE {mine}",
)  # fmt: skip
_FORGET: LiteralString = "DELETE FROM {0}.sessions WHERE {mine}"
# Writers wait, readers do not: an append behind deleted entries must see that they are deleted.
_LOCK: LiteralString = "LOCK TABLE {0}.entries IN SHARE ROW EXCLUSIVE MODE"


def lock_entries(connection: Connection, schema: str) -> None:
    """Exclude every other writer until the end of this transaction."""
    connection.execute(sql.SQL(_LOCK).format(sql.Identifier(schema)))


class PostgresRows:
    """The SessionRows in PostgreSQL, decrypted; ``encryption`` encrypts what is stored."""

    def __init__(self, connection: Connection, schema: str, tenant: str, session: str, encryption: Encryption) -> None:
        self._connection, self._schema, self._encryption = connection, sql.Identifier(schema), encryption
        self.key = (tenant, session)
        self._mine = {"tenant": key_of(tenant), "session": key_of(session)}

    def head(self) -> int:
        """The number of entries."""
        last = self._fetch(_TIP)
        return int(last[0][0]) + 1 if last else 0

    def tip(self) -> Tip:
        """The head, and the digest that the next row is chained to. Raises LogEncrypted."""
        last = self._fetch(_TIP)
        return Tip(last[0][0] + 1, self._encryption.decrypt_digest(last[0][1])) if last else Tip(0, origin(*self.key))

    def read_stored(self, start: int, stop: int) -> Sequence[Row]:
        """The first rows of ``[start, stop)`` as they are stored."""
        return [Row(*row) for row in self._fetch(_READ, start=start, stop=stop, limit=ROWS_AT_ONCE)]

    def read_range(self, start: int, stop: int) -> Iterator[Row]:
        """The rows ``[start, stop)``, some hundred at a time."""
        while rows := self.read_stored(start, stop):
            yield from map(self._encryption.decrypt_row, rows)
            start = rows[-1].position + 1

    def add(self, rows: Sequence[Row], blobs: Iterable[tuple[str, bytes]]) -> None:
        """Write rows, and the blobs they name."""
        for name, data in blobs:
            self._execute(
                _KEEP_BLOB, name=self._encryption.encrypt_digest(name), data=self._encryption.encrypt_blob(name, data)
            )
        for row in rows:
            self._execute(
                _KEEP,
                at=row.at,
                digest=self._encryption.encrypt_digest(row.digest),
                batch=uuid.uuid4(),
                **self._body(row),
            )

    def replace(self, row: Row) -> None:
        """Replace the body of a row; its digest stays."""
        self._execute(_REPLACE, **self._body(row))

    def drop_blobs(self, names: Iterable[str]) -> None:
        """Delete blobs."""
        for name in names:
            self._execute(_DROP_BLOB, name=self._encryption.encrypt_digest(name))

    def clear(self) -> None:
        """Delete every row and every blob of the session."""
        for statement in _CLEAR:
            self._execute(statement)

    def forget(self) -> None:
        """Delete the session's name where it has no entries."""
        if not self.head():
            self._execute(_FORGET)

    def _body(self, row: Row) -> dict[str, Any]:
        body = self._encryption.encrypt_row(row).body.decode()
        return {"position": row.position, "kind": row.kind, "number": row.version, "body": body}

    def _fetch(self, statement: LiteralString, **values: Any) -> list[tuple[Any, ...]]:
        with self._connection.cursor(binary=True, row_factory=tuple_row) as cursor:
            return cursor.execute(self._format(statement), {**self._mine, **values}).fetchall()

    def _execute(self, statement: LiteralString, **values: Any) -> None:
        self._connection.execute(self._format(statement), {**self._mine, **values})

    def _format(self, statement: LiteralString) -> sql.Composed:
        return sql.SQL(statement).format(self._schema, mine=_MINE, row=_ROW)
