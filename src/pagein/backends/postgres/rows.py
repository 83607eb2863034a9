"""The rows of one session in PostgreSQL, within a transaction that keeps every other writer out: for erasing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import tuple_row

from pagein.backends.postgres.connection import Connection
from pagein.backends.postgres.migrations import key_of
from pagein.log.encryption import Seal
from pagein.log.hash_chain import origin
from pagein.log.raw_rows import Row, Tip

ROWS_AT_ONCE = 250

_MINE = sql.SQL("tenant = %(tenant)s AND session = %(session)s")
_TIP: LiteralString = "SELECT position, digest FROM {0}.entries WHERE {mine} ORDER BY position DESC LIMIT 1"
_READ: LiteralString = """SELECT position, at, kind, version, convert_to(body, 'UTF8'), digest FROM {0}.entries
    WHERE {mine} AND position >= %(start)s AND position < %(stop)s ORDER BY position LIMIT %(most)s"""
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
# Writers wait, readers do not: whoever appends behind what is being deleted must see that it is.
_LOCK: LiteralString = "LOCK TABLE {0}.entries IN SHARE ROW EXCLUSIVE MODE"


def lock(connection: Connection, schema: str) -> None:
    """Keep every other writer out until the end of this transaction."""
    connection.execute(sql.SQL(_LOCK).format(sql.Identifier(schema)))


class PostgresRows:
    """The rows of one session, as they were written; what is stored is the ``seal``'s."""

    def __init__(self, connection: Connection, schema: str, tenant: str, session: str, seal: Seal) -> None:
        self._connection, self._schema, self._seal = connection, sql.Identifier(schema), seal
        self.key = (tenant, session)
        self._mine = {"tenant": key_of(tenant), "session": key_of(session)}

    def head(self) -> int:
        """The number of entries."""
        last = self._fetch(_TIP)
        return int(last[0][0]) + 1 if last else 0

    def tip(self) -> Tip:
        """The head, and what the next row is chained to. Raises LogSealed."""
        last = self._fetch(_TIP)
        return Tip(last[0][0] + 1, self._seal.digest_in(last[0][1])) if last else Tip(0, origin(*self.key))

    def stored(self, start: int, stop: int) -> Sequence[Row]:
        """The first rows of ``[start, stop)`` as they are stored."""
        return [Row(*each) for each in self._fetch(_READ, start=start, stop=stop, most=ROWS_AT_ONCE)]

    def between(self, start: int, stop: int) -> Iterator[Row]:
        """The rows ``[start, stop)``, some hundred at a time."""
        while found := self.stored(start, stop):
            yield from map(self._seal.row_in, found)
            start = found[-1].position + 1

    def keep(self, rows: Sequence[Row], blobs: Iterable[tuple[str, bytes]]) -> None:
        """Write rows, and the blobs they name."""
        for name, data in blobs:
            self._run(_KEEP_BLOB, name=self._seal.digest_out(name), data=self._seal.blob_out(name, data))
        for row in rows:
            self._run(
                _KEEP,
                at=row.at,
                digest=self._seal.digest_out(row.digest),
                batch=uuid.uuid4(),
                **self._body(row),
            )

    def replace(self, each: Row) -> None:
        """Write another body where a row stands; its digest stays."""
        self._run(_REPLACE, **self._body(each))

    def drop_blobs(self, names: Iterable[str]) -> None:
        """Delete blobs."""
        for name in names:
            self._run(_DROP_BLOB, name=self._seal.digest_out(name))

    def clear(self) -> None:
        """Delete every row and every blob of the session."""
        for statement in _CLEAR:
            self._run(statement)

    def forget(self) -> None:
        """Delete the session's name, where nothing of it is left."""
        if not self.head():
            self._run(_FORGET)

    def _body(self, row: Row) -> dict[str, Any]:
        body = self._seal.row_out(row).body.decode()
        return {"position": row.position, "kind": row.kind, "number": row.version, "body": body}

    def _fetch(self, statement: LiteralString, **values: Any) -> list[tuple[Any, ...]]:
        with self._connection.cursor(binary=True, row_factory=tuple_row) as cursor:
            return cursor.execute(self._made(statement), {**self._mine, **values}).fetchall()

    def _run(self, statement: LiteralString, **values: Any) -> None:
        self._connection.execute(self._made(statement), {**self._mine, **values})

    def _made(self, statement: LiteralString) -> sql.Composed:
        return sql.SQL(statement).format(self._schema, mine=_MINE)
