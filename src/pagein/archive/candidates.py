"""Which passages are worth a look: read from the index, term by term, never more than a bounded number of postings."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from pagein.archive.contract import Role
from pagein.archive.words import Statistics, rarity

POSTINGS = 24_000
"""Postings read for a query, about; a term is read up to its share of them, newest first."""

A_TERM = 2_000
"""Postings read of one term at most; of a million passages that is the newest that hold a common word."""

LOOKED_AT = 400
"""Passages that are scored whole, at most."""

_TOGETHER = 4
"""Of terms too common to be read whole, how many rarest are asked for together."""

_HOLDERS = """SELECT rowid FROM archive_words WHERE archive_words MATCH ? AND rowid BETWEEN ? AND ?
    ORDER BY rowid DESC LIMIT ?"""
_COUNT = "SELECT count(*) FROM archive_words WHERE archive_words MATCH ? AND rowid BETWEEN ? AND ?"
_SIZES = "SELECT coalesce(sum(passages), 0), coalesce(sum(size), 0) FROM archive_sizes WHERE session = ?"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where is looked: ranges of ids, the numbers their totals are kept under, and the roles that may be found."""

    ranges: tuple[tuple[int, int], ...]
    totals: tuple[int, ...]
    roles: tuple[Role, ...] = ()


@dataclass(slots=True)
class Looked:
    """What the index said: who holds each term, which of these lists are whole, and the statistics."""

    statistics: Statistics
    present: dict[str, set[int]] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)


Counts = dict[tuple[str, Scope], tuple[int, int]]
"""How many passages hold a common term, with how many passages there were when it was counted."""


def look_up(
    database: sqlite3.Connection,
    terms: Sequence[str],
    scope: Scope,
    counts: Counts,
    *,
    postings: int = POSTINGS,
    a_term: int = A_TERM,
) -> Looked:
    """Who holds the terms within the scope, of common ones the newest; and how rare each is there."""
    passages, size = totals(database, scope)
    share = max(a_term // 8, min(a_term, postings // max(len(terms), 1)))
    present: dict[str, set[int]] = {}
    complete: set[str] = set()
    worth: dict[str, float] = {}
    for term in terms:
        holders = _holders(database, (term,), scope, share + 1)
        if not holders:
            continue
        known = len(holders)
        if known > share:
            known = _counted(database, term, scope, counts, passages)
        else:
            complete.add(term)
        present[term] = holders
        worth[term] = rarity(passages, min(known, passages))
    found = Looked(Statistics(passages, size / passages if passages else 0.0, worth), present, complete)
    _look_up_together(database, scope, found, share)
    return found


def _look_up_together(database: sqlite3.Connection, scope: Scope, found: Looked, share: int) -> None:
    """Where terms are too common to be read whole: who holds several of them."""
    common = sorted(found.present.keys() - found.complete, key=lambda term: -found.statistics.rarity[term])
    groups = {tuple(common[:2]), tuple(common[:_TOGETHER])}
    for group in groups:
        if len(group) > 1:
            holders = _holders(database, group, scope, share)
            for term in group:
                found.present[term] |= holders


def totals(database: sqlite3.Connection, scope: Scope) -> tuple[int, int]:
    """Passages and terms within the scope."""
    sql, roles = _SIZES, scope.roles
    if roles:
        sql = f"{sql} AND role IN ({', '.join('?' * len(roles))})"
    rows = [database.execute(sql, (number, *roles)).fetchone() for number in scope.totals]
    return sum(row[0] for row in rows), sum(row[1] for row in rows)


def _holders(database: sqlite3.Connection, terms: Sequence[str], scope: Scope, most: int) -> set[int]:
    match = _match(terms, scope.roles)
    found: set[int] = set()
    for first, last in scope.ranges:
        found.update(chain.from_iterable(database.execute(_HOLDERS, (match, first, last, most))))
    return found


def _counted(database: sqlite3.Connection, term: str, scope: Scope, counts: Counts, passages: int) -> int:
    known = counts.get((term, scope))
    if known is not None and known[1] <= passages <= known[1] * 1.1:
        return known[0]
    match = _match((term,), scope.roles)
    count: int = sum(database.execute(_COUNT, (match, *each)).fetchone()[0] for each in scope.ranges)
    if len(counts) >= _KEPT_COUNTS:
        counts.clear()
    counts[term, scope] = (count, passages)
    return count


_KEPT_COUNTS = 10_000


def _match(terms: Sequence[str], roles: Sequence[Role]) -> str:
    """What FTS5 is asked. A term is quoted, and holds no quote: names are made of word characters and few marks."""
    wanted = " AND ".join(f'"{term}"' for term in terms)
    if not roles:
        return wanted
    said = " OR ".join(f'"={role}"' for role in roles)
    return f"{wanted} AND ({said})"
