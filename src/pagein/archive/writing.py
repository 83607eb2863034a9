"""What is written to the index, each within the caller's transaction."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pagein.archive.dates import day_said
from pagein.archive.passages import Passage, own_calls, passages
from pagein.archive.schema import (
    MOST_PASSAGES,
    MOST_SESSIONS,
    MOST_TENANTS,
    passage_id,
    range_of_session,
    session_key,
    totals_of_tenant,
)
from pagein.archive.terms import terms
from pagein.errors import LogError
from pagein.log import Entry

_SESSION = """SELECT holder, number, position, digest, next FROM archive_sessions
    WHERE tenant = ? AND session = ?"""
_ADD_SESSION = "INSERT INTO archive_sessions VALUES (?, ?, ?, ?, 0, '', 0)"
_MOVE = """UPDATE archive_sessions SET position = ?, digest = ?, next = ?
    WHERE tenant = ? AND session = ?"""
_ADD = "INSERT INTO archive_passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_WORDS = "INSERT INTO archive_words (rowid, terms) VALUES (?, ?)"
_DROP_WORDS = """INSERT INTO archive_words (archive_words, rowid, terms)
    SELECT 'delete', id, terms || ' =' || role FROM archive_passages WHERE id = ?"""
_GROW = """INSERT INTO archive_sizes VALUES (?, ?, ?, ?) ON CONFLICT (session, role)
    DO UPDATE SET passages = passages + excluded.passages, size = size + excluded.size"""


@dataclass(frozen=True, slots=True)
class Indexed:
    """One session as the index knows it: the numbers that lead its ids, and how far it is indexed."""

    holder: int
    number: int
    position: int
    digest: str
    next: int

    @property
    def key(self) -> int:
        """What leads the ids of its passages."""
        return session_key(self.holder, self.number)


def indexed(database: sqlite3.Connection, tenant: str, session: str) -> Indexed | None:
    """What the index knows of a session, or None."""
    row = database.execute(_SESSION, (tenant, session)).fetchone()
    return None if row is None else Indexed(*row)


def add(
    database: sqlite3.Connection, tenant: str, session: str, entries: Iterable[Entry], tools: Collection[str]
) -> int:
    """Take in the entries above the watermark, and move it; how many there were. Raises LogError for a gap."""
    known = indexed(database, tenant, session) or _begun(database, tenant, session)
    new = [each for each in entries if each.position >= known.position]
    if not new:
        return 0
    found: list[Passage] = []
    for expected, entry in enumerate(new, known.position):
        if entry.position != expected:
            raise LogError(
                f"entry {entry.position} of session {session!r} came where {expected} was expected; index the log in order"
            )
        found += passages(entry, _own(database, known, entry, tools))
    end = known.next + len(found)
    if end > MOST_PASSAGES:
        raise LogError(f"session {session!r} has more than {MOST_PASSAGES:,} passages; nothing was indexed")
    _add_passages(database, known, found)
    last = new[-1]
    database.execute(_MOVE, (last.position + 1, last.digest, end, tenant, session))
    return len(new)


def remove(database: sqlite3.Connection, known: Indexed, ids: Sequence[int]) -> int:
    """Take these passages of a session out of every table; how many there were."""
    gone = 0
    for each in ids:
        row = database.execute("SELECT role, size FROM archive_passages WHERE id = ?", (each,)).fetchone()
        if row is None:
            continue
        database.execute(_DROP_WORDS, (each,))
        for table in ("archive_passages", "archive_signs", "archive_vectors"):
            database.execute(f"DELETE FROM {table} WHERE id = ?", (each,))  # noqa: S608 - names of ours
        for number in (known.key, totals_of_tenant(known.holder)):
            database.execute(_GROW, (number, row[0], -1, -row[1]))
        gone += 1
    return gone


def remove_session(database: sqlite3.Connection, tenant: str, session: str) -> None:
    """Take a whole session out, its watermark too."""
    known = indexed(database, tenant, session)
    if known is None:
        return
    first, last = range_of_session(known.key)
    ids = database.execute(
        "SELECT id FROM archive_passages WHERE id BETWEEN ? AND ?", (first, last)
    ).fetchall()
    remove(database, known, [row[0] for row in ids])
    database.execute("DELETE FROM archive_own WHERE session = ?", (known.key,))
    database.execute("DELETE FROM archive_sizes WHERE session = ?", (known.key,))
    database.execute("DELETE FROM archive_sessions WHERE tenant = ? AND session = ?", (tenant, session))


def _begun(database: sqlite3.Connection, tenant: str, session: str) -> Indexed:
    row = database.execute(
        "SELECT holder FROM archive_sessions WHERE tenant = ? LIMIT 1", (tenant,)
    ).fetchone()
    if row is None:
        row = database.execute("SELECT coalesce(max(holder) + 1, 0) FROM archive_sessions").fetchone()
    holder: int = row[0]
    last = database.execute(
        "SELECT max(number) FROM archive_sessions WHERE holder = ?", (holder,)
    ).fetchone()[0]
    number = 0 if last is None else last + 1
    if number >= MOST_SESSIONS or holder >= MOST_TENANTS:
        raise LogError(
            f"the index holds {MOST_SESSIONS:,} sessions of a tenant and {MOST_TENANTS:,} tenants at most"
        )
    database.execute(_ADD_SESSION, (tenant, session, holder, number))
    return Indexed(holder, number, 0, "", 0)


def _own(
    database: sqlite3.Connection, known: Indexed, entry: Entry, tools: Collection[str]
) -> set[tuple[int, int]]:
    """The calls of our own tools whose results this entry may hold."""
    mine = set(own_calls(entry, tools))
    if not mine and not isinstance(getattr(entry.body, "action", None), int):
        return mine
    database.executemany(
        "INSERT OR IGNORE INTO archive_own VALUES (?, ?, ?)", [(known.key, *each) for each in mine]
    )
    action = getattr(entry.body, "action", None)
    if isinstance(action, int):
        rows = database.execute(
            "SELECT position, part FROM archive_own WHERE session = ? AND position = ?", (known.key, action)
        )
        mine.update((position, part) for position, part in rows)
    return mine


def _add_passages(database: sqlite3.Connection, known: Indexed, found: Sequence[Passage]) -> None:
    rows, words, sizes = [], [], dict[str, list[int]]()
    for id, each in enumerate(found, passage_id(known.key, known.next)):
        held = list(terms(each.text))
        joined = " ".join(held)
        rows.append(_row(id, each, len(held), joined))
        words.append((id, f"{joined} ={each.role}"))
        sizes.setdefault(each.role, []).append(len(held))
    database.executemany(_ADD, rows)
    database.executemany(_ADD_WORDS, words)
    for role, lengths in sizes.items():
        for number in (known.key, totals_of_tenant(known.holder)):
            database.execute(_GROW, (number, role, len(lengths), sum(lengths)))


def _row(id: int, each: Passage, size: int, joined: str) -> tuple[object, ...]:
    text = each.text.encode("utf-8", "replace").decode()
    # Equal for texts of equal terms: what says the same is shown once.
    digest = hashlib.blake2b((joined or text).encode("utf-8", "replace"), digest_size=7).digest()
    same = int.from_bytes(digest, "big")
    said = day_said(text, each.at)
    where = (each.position, each.part, each.role, each.at, said, each.start, each.whole)
    return (id, *where, size, same, joined, text)
