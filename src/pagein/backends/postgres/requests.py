"""The table of requests in PostgreSQL; it is created with the first row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg.rows import tuple_row

from pagein.backends.postgres.connection import Connection, for_schema
from pagein.backends.postgres.migrations import OWNER, key_of, take_lock
from pagein.log.encryption import Encryption
from pagein.log.requests import RequestRow, RequestTable

_CREATE: LiteralString = f"""CREATE TABLE IF NOT EXISTS {{0}}.requests ({OWNER}, number bigint NOT NULL,
    head bigint NOT NULL, at double precision NOT NULL, body bytea NOT NULL, PRIMARY KEY (tenant, session, number))"""
# A row may be lost in a crash of the server, so nothing waits for its disk.
_ADD: LiteralString = """INSERT INTO {0}.requests
    SELECT %(tenant)s, %(session)s, (SELECT coalesce(max(number), 0) + 1 FROM {0}.requests WHERE {mine}),
        %(head)s, %(at)s, %(body)s
    FROM (SELECT set_config('synchronous_commit', 'off', true)) AS quick RETURNING number"""
_REPLACE: LiteralString = """UPDATE {0}.requests SET body = %(body)s
    FROM (SELECT set_config('synchronous_commit', 'off', true)) AS quick WHERE {mine} AND number = %(number)s"""
_READ: LiteralString = """SELECT number, head, at, body FROM {0}.requests WHERE {mine} AND number > %(after)s
    ORDER BY number LIMIT %(limit)s"""
_LAST: LiteralString = "SELECT max(number) FROM {0}.requests WHERE {mine}"
_FORGET: LiteralString = "DELETE FROM {0}.requests WHERE {mine}"

_NAME = "request"
_ATTEMPTS = 8
"""Times that a number is taken anew where another writer was first."""


class PostgresRequests(RequestTable):
    """The RequestTable of one run; ``call`` runs work on a connection."""

    def __init__(self, call: Callable[..., Any], schema: str, tenant: str, run: str, encryption: Encryption) -> None:
        self._call, self._schema, self._encryption = call, schema, encryption
        self._key = {"tenant": key_of(tenant), "session": key_of(run)}

    def add(self, head: int, at: float, body: bytes) -> int:
        stored = self._encryption.encrypt_blob(_NAME, body)
        return int(self._call(lambda using, _: self._add(using, head, at, stored), writing=True))

    def replace(self, number: int, body: bytes) -> None:
        values = {"number": number, "body": self._encryption.encrypt_blob(_NAME, body)}
        self._call(
            lambda using, _: using.execute(for_schema(_REPLACE, self._schema), {**self._key, **values}), writing=True
        )

    def rows(self, after: int = 0, limit: int | None = None) -> Sequence[RequestRow]:
        rows = self._call(lambda using, _: self._fetch(using, _READ, {"after": after, "limit": limit}))
        return [RequestRow(row[0], row[1], row[2], self._encryption.decrypt_blob(_NAME, bytes(row[3]))) for row in rows]

    def last(self) -> int:
        rows = self._call(lambda using, _: self._fetch(using, _LAST, {}))
        return rows[0][0] or 0 if rows else 0

    def _add(self, using: Connection, head: int, at: float, body: bytes) -> int:
        values = {"head": head, "at": at, "body": body}
        for _ in range(_ATTEMPTS):
            try:
                return int(self._rows(using, _ADD, values)[0][0])
            except psycopg.errors.UndefinedTable:
                with using.transaction():
                    take_lock(using, f"{self._schema} requests")
                    using.execute(for_schema(_CREATE, self._schema))
            except psycopg.errors.UniqueViolation:
                pass  # another writer took the number first
        return int(self._rows(using, _ADD, values)[0][0])

    def _fetch(self, using: Connection, statement: LiteralString, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return self._rows(using, statement, values)
        except psycopg.errors.UndefinedTable:
            return []

    def _rows(self, using: Connection, statement: LiteralString, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        with using.cursor(binary=True, row_factory=tuple_row) as cursor:
            return cursor.execute(for_schema(statement, self._schema), {**self._key, **values}).fetchall()


def forget_requests(using: Connection, schema: str, tenant: str, run: str) -> None:
    """Delete every row of a run, within the caller's transaction."""
    (is_there,) = using.execute("SELECT to_regclass(%s)", (f'"{schema}".requests',)).fetchone() or (None,)
    if is_there is not None:
        using.execute(for_schema(_FORGET, schema), {"tenant": key_of(tenant), "session": key_of(run)})
