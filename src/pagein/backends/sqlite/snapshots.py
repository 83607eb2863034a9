"""Snapshots in a SQLite file: one row for each session, in a table that is created with the first one."""

from __future__ import annotations

import sqlite3

from pagein.backends.sqlite.migrations import SNAPSHOTS_TABLE
from pagein.log.branch_log import run_of
from pagein.log.snapshots import Snapshot, SnapshotSlot

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


def read_slot(database: sqlite3.Connection, key: Key) -> SnapshotSlot:
    """The snapshot of a session, if one is there and whole."""
    if database.execute(_IS_THERE).fetchone() is None:
        return SnapshotSlot(None)
    row = _row(key)
    return SnapshotSlot(Snapshot.of(database.execute(_FIND, row).fetchone()), _times_dropped(database, row[:2]))


def keep_snapshot(database: sqlite3.Connection, key: Key, snapshot: Snapshot, dropped: int) -> None:
    """Keep a snapshot, within the caller's transaction; not where snapshots were dropped since."""
    database.execute(SNAPSHOTS_TABLE)
    row = _row(key)
    if _times_dropped(database, row[:2]) == dropped:
        database.execute(_KEEP, (*row, *snapshot.row))


def drop_snapshots(database: sqlite3.Connection, key: Key, *, trace: bool = True) -> None:
    """Drop every snapshot of a session's run and, with a ``trace``, count that, within the caller's
    transaction.
    """
    run = _row(key)[:2]
    if trace:
        database.execute(SNAPSHOTS_TABLE)
        database.execute(_DROP, run)
        database.execute(_COUNT, run)
    elif database.execute(_IS_THERE).fetchone() is not None:
        database.execute(_FORGET, run)


def _times_dropped(database: sqlite3.Connection, run: Key) -> int:
    row = database.execute(_DROPPED, run).fetchone()
    return 0 if row is None else int(row[0])
