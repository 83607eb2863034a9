"""Snapshots in PostgreSQL: rows of each session; beside them, for each run, how often they were dropped."""

from __future__ import annotations

from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import tuple_row

from pagein.backends.postgres.connection import Connection
from pagein.backends.postgres.migrations import key_of
from pagein.log.branch_log import run_of
from pagein.log.snapshots import PAST_PREFIX, Snapshot, SnapshotSlot

_MINE = sql.SQL("tenant = %(tenant)s AND session = %(session)s")
_PAST = sql.SQL(
    """ctid = (SELECT ctid FROM {0}.snapshots WHERE tenant = %(tenant)s AND run = %(run)s
        AND session = {1} || position || ':' || %(session)s AND position <= %(before)s ORDER BY position DESC LIMIT 1)"""
)
_OF_RUN = sql.SQL("tenant = %(tenant)s AND run = %(run)s")
_DROPPED = sql.SQL("coalesce((SELECT dropped FROM {0}.runs WHERE tenant = %(tenant)s AND session = %(run)s), 0)")

_FIND: LiteralString = """SELECT position, digest, key, body, "check", {dropped}
    FROM (SELECT) AS always LEFT JOIN {0}.snapshots ON {mine}"""
# Keeping a snapshot locks the entries as a writer does. So an erasure, which excludes writers, is either done and
# counted, or waits and then drops the snapshot.
_LOCK: LiteralString = "LOCK TABLE {0}.entries IN ROW EXCLUSIVE MODE"
_KEEP: LiteralString = """INSERT INTO {0}.snapshots (tenant, session, run, position, digest, key, body, "check")
    SELECT %(tenant)s, %(session)s, %(run)s, %(position)s, %(digest)s, %(key)s, %(body)s, %(check)s
    WHERE {dropped} = %(dropped)s
    ON CONFLICT (tenant, session) DO UPDATE SET position = excluded.position, digest = excluded.digest,
        key = excluded.key, body = excluded.body, "check" = excluded."check" """
_DROP: LiteralString = "DELETE FROM {0}.snapshots WHERE {of_run}"
_COUNT: LiteralString = """INSERT INTO {0}.runs VALUES (%(tenant)s, %(run)s, 1)
    ON CONFLICT (tenant, session) DO UPDATE SET dropped = runs.dropped + 1"""
_FORGET: LiteralString = "DELETE FROM {0}.runs WHERE tenant = %(tenant)s AND session = %(run)s"

Key = tuple[str, str]
"""A tenant and a session."""


class PostgresSnapshots:
    """The snapshots of one schema, within the caller's transaction."""

    def __init__(self, using: Connection, schema: str) -> None:
        self._using, self._schema = using, sql.Identifier(schema)

    def read_slot(self, key: Key, before: int | None = None) -> SnapshotSlot:
        """The snapshot of a session, or the last past one of at most ``before`` entries, if one is there and whole."""
        mine = _MINE if before is None else _PAST.format(self._schema, sql.Literal(PAST_PREFIX))
        with self._using.cursor(binary=True, row_factory=tuple_row) as cursor:
            row = cursor.execute(self._format(_FIND, mine), {**_keys(key), "before": before}).fetchone()
        return SnapshotSlot(None) if row is None else SnapshotSlot(Snapshot.of(row[:5]), int(row[5]))

    def lock(self) -> None:
        """Exclude erasers, and no other writer, until the end of this transaction."""
        self._using.execute(self._format(_LOCK))

    def keep_snapshot(self, key: Key, snapshot: Snapshot, dropped: int, *, is_past: bool = False) -> None:
        """Keep a snapshot, after ``lock``; not where snapshots were dropped since."""
        named = zip(("position", "digest", "key", "body", "check"), snapshot.row, strict=True)
        session = _keys(key)["session"]
        self._execute(
            _KEEP, key, dropped=dropped, **dict(named), session=snapshot.past_key(session) if is_past else session
        )

    def drop_snapshots(self, key: Key, *, trace: bool = True) -> None:
        """Drop every snapshot of a session's run and, with a ``trace``, count that. All writers must be excluded."""
        self._execute(_DROP, key)
        self._execute(_COUNT if trace else _FORGET, key)

    def _execute(self, statement: LiteralString, owner: Key, /, **values: Any) -> None:
        self._using.execute(self._format(statement), {**_keys(owner), **values})

    def _format(self, statement: LiteralString, mine: sql.SQL | sql.Composed = _MINE) -> sql.Composed:
        dropped = _DROPPED.format(self._schema)
        return sql.SQL(statement).format(self._schema, mine=mine, of_run=_OF_RUN, dropped=dropped)


def _keys(key: Key) -> dict[str, str]:
    tenant, session = key
    return {"tenant": key_of(tenant), "session": key_of(session), "run": key_of(run_of(session))}
