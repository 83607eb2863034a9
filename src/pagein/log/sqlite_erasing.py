"""Erasing in a SQLite file: what is cut within one transaction, and the file written anew without what was there."""

from __future__ import annotations

import sqlite3

from pagein.errors import Conflict
from pagein.log.chain import seal
from pagein.log.codec import encode
from pagein.log.digests import origin
from pagein.log.erasing import TRACE, Cut, Removal, needed, remains, removed, unnamed
from pagein.log.sqlite_rows import SQLiteRows


def cut_out(rows: SQLiteRows, cut: Cut, at: float) -> None:
    """Put what is left of the entries in their place, and the note behind the last. Raises Conflict, LogError."""
    tip = rows.tip()
    if tip.head != cut.after:
        raise Conflict(cut.after, tip.head)
    before = {row.position: row for start, stop in needed(cut) for row in rows.between(start, stop)}
    made = remains(cut, before, origin(*rows.key))
    rows.keep(seal((made.note,), after=tip.head, at=at, previous=tip.digest), made.blobs.items())
    for row in made.rows:
        rows.replace(row)
    left = (row.body for row in rows.between(0, tip.head))
    rows.drop_blobs(unnamed((before[row.position] for row in made.rows), left))


def take_out(rows: SQLiteRows, removal: Removal, at: float) -> None:
    """Delete a session's entries and blobs, and leave the note of it where a trace is wanted."""
    there = rows.stored(0, 2)
    if not there or (removal.trace and [row.kind for row in there] == [TRACE]):
        return
    head = rows.head()
    rows.clear()
    if removal.trace:
        note = encode(removed(removal, head))
        rows.keep(seal((note,), after=0, at=at, previous=origin(*rows.key)), ())


def scrub(database: sqlite3.Connection) -> bool:
    """Write the file anew and empty its WAL, so that no free page and no old frame holds what was erased.

    False where another connection was in the way, or there was no room. The erasing itself has overwritten the pages
    with zeros then, and the WAL is emptied when the last connection closes.
    """
    done = True
    for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
        try:
            found = database.execute(statement).fetchone()
        except sqlite3.OperationalError:
            done = False
        else:
            done = done and not (found and found[0])
    return done
