"""One search, from the query to the hits, over an index that it only reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pagein.search.base import Hit, Query
from pagein.search.candidates import LOOKED_AT, Counts, Looked, look_up
from pagein.search.dates import Window, windows
from pagein.search.fusion import Candidate, Fused, chosen, fuse
from pagein.search.index_store import Meanings, Reading, Row, Scope
from pagein.search.passage_ids import session_of
from pagein.search.passages import handle_of
from pagein.search.ranking import AROUND, best_of, by_presence, occurrences, scores
from pagein.search.tokenizer import query_terms, surfaces

TERMS = 64
"""Terms of a query that are looked up."""

_BESIDE = (24, 64)
"""Of the best passages, how many have their neighbours looked at: for ten hits, and at most."""

_LEAST = 64
"""Passages that are scored whole, however few hits are wanted: on LoCoMo ten hits are the same as of 256."""

_NEAR = (-2, -1, 1, 2)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found before any choice: every candidate with its score, best first."""

    fused: tuple[Fused, ...]
    rows: Mapping[int, Row]
    terms: tuple[str, ...]


NEAREST = 100
"""Passages that the arm of meaning brings."""


def find(
    reading: Reading,
    query: Query,
    scope: Scope,
    hidden: frozenset[int],
    counts: Counts,
    meanings: Meanings | None,
) -> Found:
    """Every candidate for the query within the scope, scored, best first."""
    terms = query_terms(query.text, TERMS)
    looked = look_up(reading, terms, scope, counts)
    ids = _by_words(looked, query.limit, scope, hidden)
    if meanings is not None:
        ids.update(meanings.nearest(NEAREST))
    ids -= hidden
    rows = {row.id: row for row in reading.rows(ids) if _admitted(row, query)}
    near = {} if meanings is None else meanings.of(rows)
    scored = _words(reading, rows, looked)
    candidates = [_candidate(row, scored[row.id], near.get(row.id)) for row in rows.values()]
    times = windows(query.text, query.now)
    return Found(tuple(fuse(candidates, times)), rows, terms)


def hits(reading: Reading, query: Query, found: Found, names: Mapping[int, str]) -> tuple[Hit, ...]:
    """The hits to give of what was found; ``names`` are the sessions' by what leads their ids."""
    kept = chosen(found.fused, query.limit)
    texts = {row[0]: row[1:] for row in reading.texts([each.candidate.id for each in kept])}
    said = surfaces(query.text, found.terms)
    times = windows(query.text, query.now)
    given = []
    for each in kept:
        row = found.rows[each.candidate.id]
        if row.id not in texts:
            continue
        text, whole, stored = texts[row.id]
        given.append(
            Hit(
                handle_of(row.position, row.part),
                text,
                each.score,
                _why(each, row, frozenset(stored.split()), said, times),
                names.get(session_of(row.id), ""),
                row.position,
                row.at,
                row.role,
                whole,
                dict(each.arms),
            )
        )
    return tuple(given)


def _by_words(looked: Looked, limit: int, scope: Scope, hidden: frozenset[int]) -> set[int]:
    """The passages worth a whole look: those that hold most, and what stands beside the best of them.

    What answers a question need not repeat its words; and what stands beside the hidden is not hidden itself.
    """
    sums = by_presence(looked.present, looked.statistics.rarity)
    best = best_of(sums, min(_BESIDE[1], max(_BESIDE[0], 2 * limit)))
    beside = {each + far for each in best for far in _NEAR}
    within = {each for each in beside if any(first <= each <= last for first, last in scope.ranges)}
    for each in hidden:
        sums.pop(each, None)
    return within.union(best_of(sums, min(LOOKED_AT, max(_LEAST, 8 * limit))))


def _admitted(row: Row, query: Query) -> bool:
    early = query.since is not None and row.at < query.since
    late = query.until is not None and row.at > query.until
    return not early and not late and (not query.roles or row.role in query.roles)


def _words(reading: Reading, rows: Mapping[int, Row], looked: Looked) -> dict[int, float]:
    """How well each matches by words, its neighbours in the session counted in."""
    near = {each + far for each in rows for far in (0, *AROUND)}
    # Who holds a term that was read whole is known; of a common one, whether a passage does is seen in its text.
    common = looked.present.keys() - looked.complete
    holding = near if common else near & set().union(*looked.present.values())
    found = tuple(reading.terms(holding))
    sizes = {each: size for each, size, _ in found}
    held = dict(
        zip(sizes, occurrences([terms for _, _, terms in found], frozenset(looked.present)), strict=True)
    )
    counts = {
        term: {
            each: count
            for each in (holders & held.keys() if term in looked.complete else held)
            if (count := held[each].get(term))
        }
        for term, holders in looked.present.items()
    }
    return scores(rows, sizes, counts, looked.statistics)


def _candidate(row: Row, words: float, meaning: float | None) -> Candidate:
    handle = (session_of(row.id), row.position, row.part)
    return Candidate(row.id, handle, row.role, row.at, row.said, words, meaning, row.same)


def _why(
    each: Fused, row: Row, held: frozenset[str], said: Mapping[str, str], times: Sequence[Window]
) -> str:
    words = ", ".join(dict.fromkeys(said[term] for term in said if term in held))
    parts = [f"words: {words}" if words else "words around it"] if each.arms["words"] > 0 else []
    if each.arms.get("meaning", 0.0) > 0:
        parts.append(f"meaning {each.arms['meaning']:.2f}")
    if each.arms["time"] > 1:
        ours = (row.at,) if row.said is None else (row.at, row.said)
        parts.append(next(window.said for window in times if any(map(window.holds, ours))))
    return "; ".join(parts)
