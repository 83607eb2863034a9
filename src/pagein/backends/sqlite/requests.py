"""The table of requests in a SQLite file; it is created with the first row.

A row is no part of the record, so writing one waits for no disk: the commit is in the WAL, and the next append syncs it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import NamedTuple

from pagein.backends.sqlite.migrations import REQUESTS_TABLE
from pagein.errors import LogBusy
from pagein.log.encryption import Encryption
from pagein.log.requests import RequestRow, RequestTable

_IS_THERE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'requests'"
_ADD = """INSERT INTO requests SELECT ?1, ?2, coalesce(max(number), 0) + 1, ?3, ?4, ?5 FROM requests
    WHERE tenant = ?1 AND run = ?2 RETURNING number"""
_ADD_NEXT = "INSERT INTO requests VALUES (?1, ?2, ?6, ?3, ?4, ?5)"
_REPLACE = "UPDATE requests SET body = ? WHERE tenant = ? AND run = ? AND number = ?"
_READ = """SELECT number, head, at, body FROM requests WHERE tenant = ? AND run = ? AND number > ?
    ORDER BY number LIMIT ?"""
_LAST = "SELECT max(number) FROM requests WHERE tenant = ? AND run = ?"
_FORGET = "DELETE FROM requests WHERE tenant = ? AND run = ?"

_NAME = "request"

Using = Callable[..., AbstractContextManager[sqlite3.Connection]]
"""Lends the connection of a log; ``writing`` says what for."""


class RunKey(NamedTuple):
    """A tenant and the session of a run."""

    tenant: str
    run: str


class SQLiteRequests(RequestTable):
    """The RequestTable of one run; ``synchronous`` is SQLite's, between two rows."""

    def __init__(self, using: Using, key: RunKey, encryption: Encryption, synchronous: str) -> None:
        self._using, self._key, self._encryption = using, key, encryption
        self._synchronous = "" if synchronous in ("OFF", "NORMAL") else synchronous  # "" where no commit waits anyway
        self._is_there = False
        self._number = 0
        """The number of the row that was added last; 0 before the first."""

    def add(self, head: int, at: float, body: bytes) -> int:
        """See ``RequestTable``. Raises LogBusy where another writes."""
        values = (*self._key, head, at, self._encryption.encrypt_blob(_NAME, body))
        with self._using(writing=True) as database:
            self._number = self._add_next(database, values) or int(self._write(database, _ADD, values)[0][0])
        return self._number

    def _add_next(self, database: sqlite3.Connection, values: tuple[object, ...]) -> int:
        """Add a row with the number behind the last one, which is cheaper than to ask for it; 0 where another has it."""
        if self._number:
            with suppress(sqlite3.IntegrityError):
                self._write(database, _ADD_NEXT, (*values, self._number + 1))
                return self._number + 1
        return 0

    def replace(self, number: int, body: bytes) -> None:
        """See ``RequestTable``. Raises LogBusy where another writes."""
        with self._using(writing=True) as database:
            self._write(database, _REPLACE, (self._encryption.encrypt_blob(_NAME, body), *self._key, number))

    def rows(self, after: int = 0, limit: int | None = None) -> Sequence[RequestRow]:
        with self._using(writing=False) as database:
            if not self._exists(database):
                return ()
            rows = database.execute(_READ, (*self._key, after, -1 if limit is None else limit)).fetchall()
        return [RequestRow(row[0], row[1], row[2], self._encryption.decrypt_blob(_NAME, row[3])) for row in rows]

    def last(self) -> int:
        with self._using(writing=False) as database:
            row = database.execute(_LAST, self._key).fetchone() if self._exists(database) else (None,)
        return row[0] or 0

    def _exists(self, database: sqlite3.Connection) -> bool:
        self._is_there = self._is_there or database.execute(_IS_THERE).fetchone() is not None
        return self._is_there

    def _write(self, database: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> list[tuple[int]]:
        if database.in_transaction:
            raise LogBusy("the connection is within a transaction")
        if self._synchronous:
            database.execute("PRAGMA synchronous = NORMAL")
        try:
            if not self._exists(database):
                database.execute(REQUESTS_TABLE)
            rows: list[tuple[int]] = database.execute(statement, values).fetchall()
            return rows
        finally:
            if self._synchronous:
                database.execute(f"PRAGMA synchronous = {self._synchronous}")


def forget_requests(database: sqlite3.Connection, key: RunKey) -> None:
    """Delete every row of a run, within the caller's transaction."""
    if database.execute(_IS_THERE).fetchone() is not None:
        database.execute(_FORGET, key)
