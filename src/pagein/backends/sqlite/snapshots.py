"""Snapshots in a SQLite file: one row for each session, in a table that is made when the first one is kept."""

from __future__ import annotations

import sqlite3

from pagein.log.branch_log import run_of
from pagein.log.snapshots import Shelf, Snapshot

# No migration: a file without it is whole, and an earlier release passes it over. The row of no session counts.
_TABLE = """CREATE TABLE IF NOT EXISTS snapshots (
    tenant TEXT NOT NULL, run TEXT NOT NULL, session TEXT NOT NULL,
    position INTEGER NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, "check" TEXT NOT NULL,
    PRIMARY KEY (tenant, run, session)
) STRICT"""
_IS_THERE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'snapshots'"
_FIND = """SELECT position, digest, key, body, "check" FROM snapshots
    WHERE tenant = ? AND run = ? AND session = ?"""
_KEEP = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_DROP = "DELETE FROM snapshots WHERE tenant = ? AND run = ? AND session <> ''"
_FORGET = "DELETE FROM snapshots WHERE tenant = ? AND run = ?"
_COUNT = """INSERT INTO snapshots VALUES (?, ?, '', 1, '', '', x'', '')
    ON CONFLICT DO UPDATE SET position = position + 1"""
_DROPPED = "SELECT position FROM snapshots WHERE tenant = ? AND run = ? AND session = ''"

Key = tuple[str, str]
"""A tenant and a session."""


def _row(key: Key) -> tuple[str, str, str]:
    tenant, session = key
    # A session may have the empty name.
    return tenant, run_of(session), f"={session}"


def shelf(database: sqlite3.Connection, key: Key) -> Shelf:
    """The snapshot of a session, if one is there and whole."""
    if database.execute(_IS_THERE).fetchone() is None:
        return Shelf(None)
    row = _row(key)
    return Shelf(Snapshot.of(database.execute(_FIND, row).fetchone()), _dropped(database, row[:2]))


def keep(database: sqlite3.Connection, key: Key, snapshot: Snapshot, dropped: int) -> None:
    """Keep a snapshot, in a transaction of the caller's; not where they were dropped since."""
    database.execute(_TABLE)
    row = _row(key)
    if _dropped(database, row[:2]) == dropped:
        database.execute(_KEEP, (*row, *snapshot.row))


def drop(database: sqlite3.Connection, key: Key, *, trace: bool = True) -> None:
    """Drop every snapshot of a session's run, in a transaction of the caller's, and count that; not so without a trace."""
    run = _row(key)[:2]
    if trace:
        database.execute(_TABLE)
        database.execute(_DROP, run)
        database.execute(_COUNT, run)
    elif database.execute(_IS_THERE).fetchone() is not None:
        database.execute(_FORGET, run)


def _dropped(database: sqlite3.Connection, run: Key) -> int:
    found = database.execute(_DROPPED, run).fetchone()
    return 0 if found is None else int(found[0])
