"""What the archive says to SQLite, over a connection whose transaction is the caller's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from pagein.backends.sqlite.search_schema import (
    MOST_SESSIONS,
    MOST_TENANTS,
    range_of_tenant,
    session_key,
    totals_of_tenant,
)
from pagein.errors import LogError
from pagein.search.base import Role
from pagein.search.index_store import Indexed, Kept, Row, Scope, grown
from pagein.search.passage_ids import range_of_session, session_of

_SESSIONS = "SELECT session, holder, number, position, digest, next FROM archive_sessions WHERE tenant = ?"
_ADD_SESSION = "INSERT INTO archive_sessions VALUES (?, ?, ?, ?, 0, '', 0)"
_MOVE = """UPDATE archive_sessions SET position = ?, digest = ?, next = ?
    WHERE tenant = ? AND session = ?"""
_ADD = "INSERT INTO archive_passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_WORDS = "INSERT INTO archive_words (rowid, terms) VALUES (?, ?)"
_DROP_WORDS = """INSERT INTO archive_words (archive_words, rowid, terms)
    SELECT 'delete', id, terms || ' =' || role FROM archive_passages WHERE id = ?"""
_GROW = """INSERT INTO archive_sizes VALUES (?, ?, ?, ?) ON CONFLICT (session, role)
    DO UPDATE SET passages = passages + excluded.passages, size = size + excluded.size"""
_PLACES = "SELECT id FROM archive_passages WHERE id >> 24 = ? AND position = ?"
_WITHIN = "SELECT min(id), max(id) FROM archive_passages WHERE id >> 24 = ? AND at BETWEEN ? AND ?"
_WANTED = "FROM json_each(?) AS wanted JOIN archive_passages AS p ON p.id = wanted.value"
_HOLDERS = """SELECT rowid FROM archive_words WHERE archive_words MATCH ? AND rowid BETWEEN ? AND ?
    ORDER BY rowid DESC LIMIT ?"""
_COUNT = "SELECT count(*) FROM archive_words WHERE archive_words MATCH ? AND rowid BETWEEN ? AND ?"


class SqliteReading:
    """A Reading of one tenant's index in a SQLite file."""

    def __init__(self, database: sqlite3.Connection, tenant: str) -> None:
        self.database, self.tenant = database, tenant

    def every(self) -> list[Indexed]:
        """The tenant's sessions."""
        return [_indexed(row) for row in self.database.execute(_SESSIONS, (self.tenant,))]

    def indexed(self, session: str) -> Indexed | None:
        """What the index knows of a session, or None."""
        row = self.database.execute(f"{_SESSIONS} AND session = ?", (self.tenant, session)).fetchone()
        return None if row is None else _indexed(row)

    @property
    def holder(self) -> int | None:
        """The tenant's number, where it has any session."""
        row = self.database.execute(f"{_SESSIONS} LIMIT 1", (self.tenant,)).fetchone()
        return None if row is None else row[1]

    def range_of_all(self) -> tuple[int, int]:
        """The first and the last id that any passage of the tenant may have."""
        holder = self.holder
        return (0, -1) if holder is None else range_of_tenant(holder)

    def within(self, sessions: Collection[int], early: float, late: float) -> list[tuple[int, int]]:
        """The ids of what was recorded from ``early`` to ``late``: a range for each of the sessions that has any."""
        found = (self.database.execute(_WITHIN, (key, early, late)).fetchone() for key in sessions)
        return [(first, last) for first, last in found if first is not None]

    def places(self, known: Indexed, positions: Collection[int]) -> list[int]:
        """The ids of the passages that stand at these positions of a session."""
        return [
            row[0] for position in positions for row in self.database.execute(_PLACES, (known.key, position))
        ]

    def totals(self, scope: Scope) -> tuple[int, int]:
        """How many passages, and terms in them, the scope's sessions hold in its roles."""
        roles = f" AND role IN ({_marks(scope.roles)})" if scope.roles else ""
        sql = f"SELECT coalesce(sum(passages), 0), coalesce(sum(size), 0) FROM archive_sizes WHERE session = ?{roles}"  # noqa: S608 - marks
        rows = [
            self.database.execute(sql, (number, *scope.roles)).fetchone() for number in self._summed(scope)
        ]
        return sum(row[0] for row in rows), sum(row[1] for row in rows)

    def _summed(self, scope: Scope) -> tuple[int, ...]:
        """The numbers that the scope's totals are kept under."""
        if scope.sessions is not None:
            return scope.sessions
        holder = self.holder
        return () if holder is None else (totals_of_tenant(holder),)

    def sizes(self, scope: Scope) -> dict[int, int]:
        """How many terms each session of the scope holds in its roles, by what leads its ids."""
        roles = f" AND role IN ({_marks(scope.roles)})" if scope.roles else ""
        sizes: dict[int, int] = {}
        for first, last in scope.ranges:
            rows = self.database.execute(
                f"SELECT session, sum(size) FROM archive_sizes WHERE session BETWEEN ? AND ?{roles} GROUP BY session",  # noqa: S608 - marks
                (session_of(first), session_of(last), *scope.roles),
            )
            sizes.update(rows)
        return sizes

    def holders(self, groups: Sequence[Sequence[str]], scope: Scope, most: int) -> list[set[int]]:
        """For each group of terms the passages of the scope that hold all of them: the newest, at most ``most``."""
        return [self._holders(_match(group, scope.roles), scope, most) for group in groups]

    def _holders(self, match: str, scope: Scope, most: int) -> set[int]:
        rows = (self.database.execute(_HOLDERS, (match, *each, most)) for each in scope.ranges)
        return {id for (id,) in chain.from_iterable(rows)}

    def counts(self, terms: Sequence[str], scope: Scope) -> list[int]:
        """How many passages of the scope hold each of the terms."""
        return [
            sum(
                self.database.execute(_COUNT, (_match((term,), scope.roles), *each)).fetchone()[0]
                for each in scope.ranges
            )
            for term in terms
        ]

    def rows(self, ids: Collection[int]) -> Iterator[Row]:
        """These passages, those that are there, in no order."""
        columns = "SELECT p.id, p.position, p.part, p.role, p.at, p.said, p.same"
        return map(Row._make, self._wanted(columns, ids))

    def terms(self, ids: Collection[int]) -> Iterable[tuple[int, int, str]]:
        """The id, the size and the terms of these."""
        return self._wanted("SELECT p.id, p.size, p.terms", ids)

    def texts(self, ids: Collection[int]) -> Iterator[tuple[int, str, bool, str]]:
        """The id, the text, whether it is a whole one, and the terms of these."""
        found = self._wanted("SELECT p.id, p.text, p.whole, p.terms", ids)
        return ((id, text, bool(whole), terms) for id, text, whole, terms in found)

    def _wanted(self, columns: str, ids: Collection[int]) -> sqlite3.Cursor:
        return self.database.execute(f"{columns} {_WANTED}", (json.dumps(sorted(ids)),))


class SqliteWriting(SqliteReading):
    """A Writing to one tenant's index in a SQLite file; the caller's transaction keeps every other writer out."""

    def begun(self, session: str) -> Indexed:
        """What the index knows of a session, made where it is new."""
        return self.indexed(session) or self._begun(session)

    def _begun(self, session: str) -> Indexed:
        holder = self.holder
        if holder is None:
            holder = self._number("SELECT coalesce(max(holder) + 1, 0) FROM archive_sessions")
        number = self._number(
            "SELECT coalesce(max(number) + 1, 0) FROM archive_sessions WHERE holder = ?", holder
        )
        if number >= MOST_SESSIONS or holder >= MOST_TENANTS:
            raise LogError(
                f"the index holds {MOST_SESSIONS:,} sessions of a tenant and {MOST_TENANTS:,} tenants at most"
            )
        self.database.execute(_ADD_SESSION, (self.tenant, session, holder, number))
        return Indexed(session, session_key(holder, number), 0, "", 0)

    def note_own(self, known: Indexed, calls: Collection[tuple[int, int]]) -> None:
        """Keep in mind that these calls, (position, index), are to tools of our own."""
        self.database.executemany(
            "INSERT OR IGNORE INTO archive_own VALUES (?, ?, ?)", [(known.key, *each) for each in calls]
        )

    def own(self, known: Indexed, action: int) -> list[tuple[int, int]]:
        """Those of an action."""
        return self.database.execute(
            "SELECT position, part FROM archive_own WHERE session = ? AND position = ?", (known.key, action)
        ).fetchall()

    def keep(self, known: Indexed, found: Sequence[Kept]) -> None:
        """Take in passages of a session."""
        self.database.executemany(_ADD, map(_values, found))
        self.database.executemany(
            _ADD_WORDS, [(each.row.id, f"{each.terms} ={each.row.role}") for each in found]
        )
        for role, (count, size) in grown((each.row.role, each.size) for each in found).items():
            self._grow(known, role, count, size)

    def move(self, known: Indexed, position: int, digest: str, following: int) -> None:
        """Say how far a session is indexed."""
        self.database.execute(_MOVE, (position, digest, following, self.tenant, known.name))

    def remove(self, known: Indexed, ids: Sequence[int]) -> int:
        """Take passages of a session out of every table; how many there were."""
        gone = [each for each in ids if self._remove(known, each)]
        if gone:
            # Until segments are merged they still hold the words.
            self.database.execute("INSERT INTO archive_words (archive_words) VALUES ('optimize')")
        return len(gone)

    def _remove(self, known: Indexed, id: int) -> bool:
        row = self.database.execute("SELECT role, size FROM archive_passages WHERE id = ?", (id,)).fetchone()
        if row is None:
            return False
        self.database.execute(_DROP_WORDS, (id,))
        for table in ("archive_passages", "archive_signs", "archive_vectors"):
            self.database.execute(f"DELETE FROM {table} WHERE id = ?", (id,))  # noqa: S608 - names of ours
        self._grow(known, row[0], -1, -row[1])
        return True

    def remove_session(self, known: Indexed) -> None:
        """Take a whole session out, and how far it was indexed."""
        ids = self.database.execute(
            "SELECT id FROM archive_passages WHERE id BETWEEN ? AND ?", range_of_session(known.key)
        )
        for (each,) in ids.fetchall():
            self._remove(known, each)
        for table in ("archive_own", "archive_sizes"):
            self.database.execute(f"DELETE FROM {table} WHERE session = ?", (known.key,))  # noqa: S608 - names of ours
        self.database.execute(
            "DELETE FROM archive_sessions WHERE tenant = ? AND session = ?", (self.tenant, known.name)
        )

    def _grow(self, known: Indexed, role: Role, count: int, size: int) -> None:
        """Count passages and their terms for the session and for its tenant."""
        for number in (known.key, *self._summed(Scope((), None))):
            self.database.execute(_GROW, (number, role, count, size))

    def _number(self, statement: str, *values: object) -> int:
        found: int = self.database.execute(statement, values).fetchone()[0]
        return found


def _indexed(row: tuple[str, int, int, int, str, int]) -> Indexed:
    session, holder, number, position, digest, following = row
    return Indexed(session, session_key(holder, number), position, digest, following)


def _values(each: Kept) -> tuple[object, ...]:
    row = each.row
    where = (row.position, row.part, row.role, row.at, row.said, each.start, each.whole)
    return (row.id, *where, each.size, row.same, each.terms, each.text)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _match(terms: Sequence[str], roles: Sequence[Role]) -> str:
    """What FTS5 is asked. A term is quoted, and holds no quote: names are made of word characters and few marks."""
    wanted = " AND ".join(f'"{term}"' for term in terms)
    if not roles:
        return wanted
    said = " OR ".join(f'"={role}"' for role in roles)
    return f"{wanted} AND ({said})"
