"""One search, from the query to the hits, over a connection that it only reads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pagein.archive.candidates import Counts, Looked, Scope, best, look_up
from pagein.archive.contract import Hit, Query, Role
from pagein.archive.dates import Window, windows
from pagein.archive.fusion import Candidate, Fused, chosen, fuse
from pagein.archive.passages import handle_of
from pagein.archive.schema import session_of
from pagein.archive.terms import query_terms, surfaces
from pagein.archive.words import AROUND, Counted, Statistics, count_terms, score

TERMS = 64
"""Terms of a query that are looked up."""

_BESIDE = 64
"""Of the best passages, how many have their neighbours looked at."""

_NEAR = (-2, -1, 1, 2)

_ROWS = """SELECT p.id, p.position, p.part, p.role, p.at, p.said, p.size, p.terms
    FROM json_each(?) AS wanted JOIN archive_passages AS p ON p.id = wanted.value"""
_TEXTS = """SELECT p.id, p.text, p.whole FROM json_each(?) AS wanted
    JOIN archive_passages AS p ON p.id = wanted.value"""


class Meanings(Protocol):
    """The similarities of passages to one query."""

    def nearest(self, most: int) -> Sequence[int]:
        """The ids of the passages nearest to it."""
        ...

    def of(self, ids: Collection[int]) -> Mapping[int, float]:
        """How near these are, those that have a vector."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """A passage without its text."""

    id: int
    position: int
    part: int
    role: Role
    at: float
    said: float | None
    size: int
    terms: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found before any choice: every candidate with its score, best first."""

    fused: tuple[Fused, ...]
    rows: Mapping[int, Row]
    terms: tuple[str, ...]


NEAREST = 100
"""Passages that the arm of meaning brings."""


def find(
    database: sqlite3.Connection,
    query: Query,
    scope: Scope,
    hidden: frozenset[int],
    counts: Counts,
    meanings: Meanings | None,
) -> Found:
    """Every candidate for the query within the scope, scored, best first."""
    terms = query_terms(query.text, TERMS)
    looked = look_up(database, terms, scope, counts)
    ids = set(best(looked, hidden))
    ids |= _beside(looked, hidden, scope)
    if meanings is not None:
        ids.update(meanings.nearest(NEAREST))
    ids -= hidden
    rows = _rows(database, _with_neighbours(ids))
    wanted = [rows[each] for each in ids if each in rows and _admitted(rows[each], query)]
    near = {} if meanings is None else meanings.of([row.id for row in wanted])
    scored = _words(wanted, rows, looked, terms)
    candidates = [_candidate(row, scored[row.id], near.get(row.id)) for row in wanted]
    times = windows(query.text, query.now)
    return Found(tuple(fuse(candidates, times)), rows, terms)


def hits(
    database: sqlite3.Connection, query: Query, found: Found, names: Mapping[int, str]
) -> tuple[Hit, ...]:
    """The hits to give of what was found; ``names`` are the sessions' by what leads their ids."""
    kept = chosen(found.fused, query.limit)
    texts = _texts(database, [each.candidate.id for each in kept])
    said = surfaces(query.text, found.terms)
    times = windows(query.text, query.now)
    given = []
    for each in kept:
        row = found.rows[each.candidate.id]
        if row.id not in texts:
            continue
        text, whole = texts[row.id]
        given.append(
            Hit(
                handle_of(row.position, row.part),
                text,
                each.score,
                _why(each, row, said, times),
                names.get(session_of(row.id), ""),
                row.position,
                row.at,
                row.role,
                whole,
                dict(each.arms),
            )
        )
    return tuple(given)


def _beside(looked: Looked, hidden: frozenset[int], scope: Scope) -> set[int]:
    """The neighbours of the best passages: what answers a question need not repeat its words."""
    near = {each + far for each in best(looked, frozenset(), _BESIDE) for far in _NEAR}
    return {each for each in near if any(first <= each <= last for first, last in scope.ranges)} - hidden


def _with_neighbours(ids: Iterable[int]) -> list[int]:
    every = {each + far for each in ids for far in (0, *AROUND) if session_of(each + far) == session_of(each)}
    return sorted(every)


def _rows(database: sqlite3.Connection, ids: Sequence[int]) -> dict[int, Row]:
    return {row[0]: Row(*row) for row in database.execute(_ROWS, (json.dumps(ids),))}


def _texts(database: sqlite3.Connection, ids: Sequence[int]) -> dict[int, tuple[str, bool]]:
    return {row[0]: (row[1], bool(row[2])) for row in database.execute(_TEXTS, (json.dumps(ids),))}


def _admitted(row: Row, query: Query) -> bool:
    early = query.since is not None and row.at < query.since
    late = query.until is not None and row.at > query.until
    return not early and not late and (not query.roles or row.role in query.roles)


def _words(
    wanted: Sequence[Row], rows: Mapping[int, Row], looked: Looked, terms: Sequence[str]
) -> dict[int, float]:
    """How well each matches by words, its neighbours in the session counted in."""
    worth = looked.statistics.rarity
    asked = [term for term in terms if term in worth]
    statistics: Statistics = looked.statistics
    counted: dict[int, Counted] = {}
    for each, row in rows.items():
        held = [term for term in asked if term not in looked.complete or each in looked.present[term]]
        counted[each] = Counted(row.size, count_terms(row.terms, held) if held else {})
    found = {}
    for row in wanted:
        around = {0: counted[row.id]}
        for far in AROUND:
            beside = row.id + far
            if beside in counted and session_of(beside) == session_of(row.id):
                around[far] = counted[beside]
        found[row.id] = score(around, statistics, asked)
    return found


def _candidate(row: Row, words: float, meaning: float | None) -> Candidate:
    handle = (session_of(row.id), row.position, row.part)
    same = hash(row.terms) if row.terms else row.id
    return Candidate(row.id, handle, row.role, row.at, row.said, words, meaning, same)


def _why(each: Fused, row: Row, said: Mapping[str, str], times: Sequence[Window]) -> str:
    held = count_terms(row.terms, said)
    words = ", ".join(dict.fromkeys(said[term] for term in said if term in held))
    parts = [f"words: {words}" if words else "words around it"] if each.arms["words"] > 0 else []
    if each.arms.get("meaning", 0.0) > 0:
        parts.append(f"meaning {each.arms['meaning']:.2f}")
    if each.arms["time"] > 1:
        ours = (row.at,) if row.said is None else (row.at, row.said)
        parts.append(next(window.said for window in times if any(map(window.holds, ours))))
    return "; ".join(parts)
