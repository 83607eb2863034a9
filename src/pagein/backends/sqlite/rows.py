"""The rows of one session in a SQLite file, each within the caller's transaction; sealed where there is a key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from pagein.errors import LogUnreadable
from pagein.log.encryption import Seal
from pagein.log.hash_chain import origin
from pagein.log.raw_rows import Row, Tip

_HEAD = "SELECT position, digest FROM entries WHERE tenant = ? AND session = ? ORDER BY position DESC LIMIT 1"
_APPEND = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, CAST(? AS TEXT), ?)"
_REPLACE = """UPDATE entries SET version = ?, body = CAST(? AS TEXT)
    WHERE tenant = ? AND session = ? AND position = ?"""
# Bodies are read as bytes: a damaged one must reach verify() even where it is no UTF-8 any more.
_READ = """SELECT position, at, kind, version, CAST(body AS BLOB), digest FROM entries
    WHERE tenant = ? AND session = ? AND position >= ? AND position < ? ORDER BY position LIMIT ?"""
_KEEP_BLOB = "INSERT INTO blobs VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_BLOB = "SELECT data FROM blobs WHERE tenant = ? AND session = ? AND digest = ?"
_DROP_BLOB = "DELETE FROM blobs WHERE tenant = ? AND session = ? AND digest = ?"

ROWS_AT_ONCE = 100
_TYPES = (int, float, str, int, bytes, str)


class SQLiteRows:
    """The rows of one session, as they were written; what is stored is the ``seal``'s."""

    def __init__(self, database: sqlite3.Connection, tenant: str, session: str, seal: Seal) -> None:
        self._database, self._seal = database, seal
        self.key = (tenant, session)

    def head(self) -> int:
        """The number of entries; a look at the last one, not a count."""
        last = self._database.execute(_HEAD, self.key).fetchone()
        return 0 if last is None else int(last[0]) + 1

    def tip(self) -> Tip:
        """The head, and what the next row is chained to. Raises LogSealed."""
        last = self._database.execute(_HEAD, self.key).fetchone()
        return Tip(0, origin(*self.key)) if last is None else Tip(last[0] + 1, self._seal.digest_in(last[1]))

    def stored(self, start: int, stop: int, limit: int = ROWS_AT_ONCE) -> list[Row]:
        """The first rows of ``[start, stop)`` as they are stored. Raises LogUnreadable for a row of another shape."""
        found = self._database.execute(_READ, (*self.key, start, stop, limit)).fetchall()
        # SQLite checks types where it writes; a damaged page may hold any.
        if any(tuple(map(type, each)) != _TYPES for each in found):
            raise LogUnreadable("an entry's row is not of its shape; the file is damaged")
        return [Row(*each) for each in found]

    def between(self, start: int, stop: int) -> Iterator[Row]:
        """The rows ``[start, stop)``, a hundred at a time."""
        while found := self.stored(start, stop):
            yield from map(self._seal.row_in, found)
            start = found[-1].position + 1

    def blob(self, name: str) -> bytes | None:
        """The bytes stored under their hash, or None."""
        found = self._database.execute(_BLOB, (*self.key, self._seal.digest_out(name))).fetchone()
        return None if found is None else self._seal.blob_in(name, found[0])

    def keep(self, rows: Sequence[Row], blobs: Iterable[tuple[str, bytes]]) -> None:
        """Write rows, and the blobs they name."""
        for name, data in blobs:
            self._keep_blob(name, data)
        for each in rows:
            row = self._seal.row_out(each)
            self._database.execute(
                _APPEND, (*self.key, row.position, row.at, row.kind, row.version, row.body, row.digest)
            )

    def replace(self, each: Row) -> None:
        """Write another body where a row stands; its digest stays."""
        row = self._seal.row_out(each)
        self._database.execute(_REPLACE, (row.version, row.body, *self.key, row.position))

    def drop_blobs(self, names: Iterable[str]) -> None:
        """Delete blobs."""
        for name in names:
            self._database.execute(_DROP_BLOB, (*self.key, self._seal.digest_out(name)))

    def clear(self) -> None:
        """Delete every row and every blob of the session."""
        for table in ("entries", "blobs"):
            self._database.execute(f"DELETE FROM {table} WHERE tenant = ? AND session = ?", self.key)  # noqa: S608 - names of ours

    def _keep_blob(self, name: str, data: bytes) -> None:
        stored = (self._seal.digest_out(name), self._seal.blob_out(name, data))
        self._database.execute(_KEEP_BLOB, (*self.key, *stored))
