"""The statements of a log in PostgreSQL. Each is complete: one that fails, or has nothing to do, changes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

from psycopg.rows import tuple_row

from pagein.backends.postgres.connection import Connection, for_schema
from pagein.backends.postgres.migrations import key_of
from pagein.log.encryption import Encryption
from pagein.log.hash_chain import SessionRows
from pagein.log.raw_rows import Row, Tip

_TIP: LiteralString = "SELECT position, digest FROM {0}.entries WHERE {mine} ORDER BY position DESC LIMIT 1"
_READ: LiteralString = """SELECT {row} FROM {0}.entries
    WHERE {mine} AND position >= %(start)s AND position < %(stop)s ORDER BY position LIMIT %(limit)s"""
BATCH: LiteralString = """SELECT {row} FROM {0}.entries
    WHERE {mine} AND position >= %(after)s AND batch = %(batch)s ORDER BY position"""
_BLOB: LiteralString = "SELECT data FROM {0}.blobs WHERE {mine} AND digest = %(name)s"
SESSIONS: LiteralString = "SELECT session_name FROM {0}.sessions WHERE tenant = %(tenant)s"

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
ONE: LiteralString = """INSERT INTO {0}.entries
    (tenant, session, position, at, kind, version, body, digest, batch)
    SELECT %(tenant)s, %(session)s, %(after)s::bigint, %(at)s::float8, %(kind)s::text, %(number)s::int, %(body)s::text,
        %(digest)s::text, %(batch)s::uuid
    WHERE EXISTS (SELECT FROM {0}.entries
        WHERE {mine} AND position = %(after)s::bigint - 1 AND digest = %(previous)s)"""


def append_statement(schema: str, *, first: bool, blobs: bool) -> bytes:
    """The statement that writes a batch: the ``first`` of a session or a later one, with blobs or without."""
    return for_schema((_FIRST if first else _BEHIND) + (_BLOBS if blobs else "") + _ENTRIES, schema)


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
    connection.execute(for_schema(_LOCK, schema))


class PostgresRows(SessionRows):
    """The SessionRows in PostgreSQL, decrypted."""

    def __init__(self, connection: Connection, schema: str, tenant: str, session: str, encryption: Encryption) -> None:
        self.key, self.encryption = (tenant, session), encryption
        self._connection, self._schema = connection, schema
        self._mine = {"tenant": key_of(tenant), "session": key_of(session)}

    def stored_tip(self) -> Tip:
        last = next(iter(self.fetch(_TIP)), None)
        return Tip(0, "") if last is None else Tip(last[0] + 1, last[1])

    def read_stored(self, start: int, stop: int) -> Sequence[Row]:
        return [Row(*row) for row in self.fetch(_READ, start=start, stop=stop, limit=ROWS_AT_ONCE)]

    def blob(self, name: str) -> bytes | None:
        """The bytes stored under their hash, or None."""
        rows = self.fetch(_BLOB, name=self.encryption.encrypt_digest(name))
        return self.encryption.decrypt_blob(name, rows[0][0]) if rows else None

    def add(self, rows: Sequence[Row], blobs: Iterable[tuple[str, bytes]]) -> None:
        for name, data in blobs:
            self._execute(
                _KEEP_BLOB, name=self.encryption.encrypt_digest(name), data=self.encryption.encrypt_blob(name, data)
            )
        for row in rows:
            self._execute(
                _KEEP,
                at=row.at,
                digest=self.encryption.encrypt_digest(row.digest),
                batch=uuid.uuid4(),
                **self._body(row),
            )

    def replace(self, row: Row) -> None:
        self._execute(_REPLACE, **self._body(row))

    def drop_blobs(self, names: Iterable[str]) -> None:
        for name in names:
            self._execute(_DROP_BLOB, name=self.encryption.encrypt_digest(name))

    def clear(self) -> None:
        for statement in _CLEAR:
            self._execute(statement)

    def forget(self) -> None:
        """Delete the session's name where it has no entries."""
        if not self.stored_tip().head:
            self._execute(_FORGET)

    def _body(self, row: Row) -> dict[str, Any]:
        body = self.encryption.encrypt_row(row).body.decode()
        return {"position": row.position, "kind": row.kind, "number": row.version, "body": body}

    def fetch(self, statement: LiteralString, **values: Any) -> list[Any]:
        """The rows of a statement, for the session."""
        with self._connection.cursor(binary=True, row_factory=tuple_row) as cursor:
            return cursor.execute(for_schema(statement, self._schema), {**self._mine, **values}).fetchall()

    def _execute(self, statement: LiteralString, **values: Any) -> None:
        self._connection.execute(for_schema(statement, self._schema), {**self._mine, **values})
