"""Which passages are worth a look: read from the index, term by term, never more than a bounded number of postings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pagein.search.index_store import Reading, Scope
from pagein.search.ranking import Statistics, rarity

POSTINGS = 24_000
"""Postings read for a query, about; a term is read up to its share of them, newest first."""

A_TERM = 2_000
"""Postings read of one term at most; of a million passages that is the newest that hold a common word."""

LOOKED_AT = 400
"""Passages that are scored whole, at most."""

_TOGETHER = 4
"""Of terms too common to be read whole, how many rarest are asked for together."""

_KEPT_COUNTS = 10_000


@dataclass(slots=True)
class Looked:
    """What the index said: who holds each term, which of these lists are whole, and the statistics."""

    statistics: Statistics
    present: dict[str, set[int]] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)


Counts = dict[tuple[str, Scope], tuple[int, int]]
"""How many passages hold a common term, with how many passages there were when it was counted."""


def look_up(
    reading: Reading,
    terms: Sequence[str],
    scope: Scope,
    counts: Counts,
    *,
    postings: int = POSTINGS,
    a_term: int = A_TERM,
) -> Looked:
    """Who holds the terms within the scope, of common ones the newest; and how rare each is there."""
    passages, size = reading.totals(scope)
    share = max(a_term // 8, min(a_term, postings // max(len(terms), 1)))
    held = reading.holders([(term,) for term in terms], scope, share + 1)
    present = {term: holders for term, holders in zip(terms, held, strict=True) if holders}
    complete = {term for term, holders in present.items() if len(holders) <= share}
    known = {term: len(present[term]) for term in complete}
    known |= _counted(reading, [term for term in present if term not in complete], scope, counts, passages)
    worth = {term: rarity(passages, min(known[term], passages)) for term in present}
    found = Looked(Statistics(passages, size / passages if passages else 0.0, worth), present, complete)
    _look_up_together(reading, scope, found, share)
    return found


def _look_up_together(reading: Reading, scope: Scope, found: Looked, share: int) -> None:
    """Where terms are too common to be read whole: who holds several of them."""
    common = sorted(found.present.keys() - found.complete, key=lambda term: -found.statistics.rarity[term])
    groups = [each for each in {tuple(common[:2]), tuple(common[:_TOGETHER])} if len(each) > 1]
    if not groups:
        return
    for group, holders in zip(groups, reading.holders(groups, scope, share), strict=True):
        for term in group:
            found.present[term] |= holders


def _counted(
    reading: Reading, terms: Sequence[str], scope: Scope, counts: Counts, passages: int
) -> dict[str, int]:
    """How many passages hold each of these common terms; what was counted when there were about as many still serves."""
    known = {}
    for term in terms:
        count, then = counts.get((term, scope), (0, -1))
        if then <= passages <= then * 1.1:
            known[term] = count
    missing = [term for term in terms if term not in known]
    if missing:
        if len(counts) >= _KEPT_COUNTS:
            counts.clear()
        for term, count in zip(missing, reading.counts(missing, scope), strict=True):
            counts[term, scope] = (count, passages)
            known[term] = count
    return known
