"""A SQLite file written anew, without what was erased from it."""

from __future__ import annotations

import sqlite3


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
