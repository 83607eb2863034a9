"""Snapshots in a SQLite file: rows of each session, in a table that is created with the first one."""

from __future__ import annotations

import sqlite3

from pagein.backends.sqlite.migrations import SNAPSHOTS_TABLE
from pagein.log.branch_log import run_of
from pagein.log.snapshots import PAST_PREFIX, Snapshot, SnapshotSlot

_IS_THERE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'snapshots'"
_FIND = """SELECT position, digest, key, body, "check" FROM snapshots
    WHERE tenant = ? AND run = ? AND session = ?"""
_FIND_PAST = f"""SELECT position, digest, key, body, "check" FROM snapshots
    WHERE tenant = ? AND run = ? AND session = '{PAST_PREFIX}' || position || ':' || ? AND position <= ?
    ORDER BY position DESC LIMIT 1"""  # noqa: S608 - the prefix is a constant
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


def read_slot(database: sqlite3.Connection, key: Key, before: int | None = None) -> SnapshotSlot:
    """The snapshot of a session, or the last past one of at most ``before`` entries, if one is there and whole."""
    if database.execute(_IS_THERE).fetchone() is None:
        return SnapshotSlot(None)
    row = _row(key)
    found = database.execute(_FIND, row) if before is None else database.execute(_FIND_PAST, (*row, before))
    return SnapshotSlot(Snapshot.of(found.fetchone()), _times_dropped(database, row[:2]))


def keep_snapshot(
    database: sqlite3.Connection, key: Key, snapshot: Snapshot, dropped: int, *, is_past: bool = False
) -> None:
    """Keep a snapshot, within the caller's transaction; not where snapshots were dropped since."""
    database.execute(SNAPSHOTS_TABLE)
    tenant, run, session = _row(key)
    if _times_dropped(database, (tenant, run)) == dropped:
        session = snapshot.past_key(session) if is_past else session
        database.execute(_KEEP, (tenant, run, session, *snapshot.row))


def drop_snapshots(database: sqlite3.Connection, key: Key, *, trace: bool = True) -> None:
    """Drop every snapshot of a session's run and, with a ``trace``, count that, within the caller's transaction."""
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
