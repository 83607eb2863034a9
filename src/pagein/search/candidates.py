"""One search: the candidates for a query are found and scored, then the hits are selected, read and explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pagein.search import ranking, spelling
from pagein.search.base import Hit, Query
from pagein.search.dates import DateWindow, date_windows
from pagein.search.index_store import ALTERNATIVE, IndexReader, PassageRow, Scope
from pagein.search.passages import handle_of, session_of
from pagein.search.tokenizer import BEGINNING, form_finder, query_terms, surface_forms

if TYPE_CHECKING:
    from pagein.search.vectors import VectorScores

_NEIGHBOUR_SEEDS = (24, 64)
"""Best passages whose neighbours are scored too: for ten hits, and at most."""

_MIN_SCORED = 64
"""Passages scored for any limit; on LoCoMo ten hits are the same as with 256."""

_NEIGHBOUR_OFFSETS = (-2, -1, 1, 2)

VECTOR_CANDIDATES = 100
"""Candidates taken from the vectors."""


@dataclass(frozen=True, slots=True)
class SearchCandidates:
    """Every scored candidate of a search, best first, with their rows and the query's terms."""

    scored: tuple[ranking.ScoredCandidate, ...]
    rows: Mapping[int, PassageRow]
    terms: tuple[str, ...]
    spelled: Mapping[str, str]
    """The words of the query that are spelled otherwise, by the terms that were found for them."""


def find_candidates(
    reader: IndexReader,
    query: Query,
    scope: Scope,
    excluded: frozenset[int],
    asking: frozenset[int],
    counts: ranking.TermCounts,
    vector_scores: VectorScores | None,
) -> SearchCandidates:
    """Score every candidate for the query within the scope, best first."""
    query_words, hidden = query_terms(query.text, ranking.QUERY_TERMS), excluded | asking
    matches = ranking.match_terms(reader, query_words, scope, counts)
    spelled = _find_spellings(reader, query.text, query_words, matches, scope, hidden)
    if spelled:
        query_words = tuple(dict.fromkeys((*query_words, *spelled)))
        matches = ranking.match_terms(reader, query_words, scope, counts)
    ids = _select_ids(matches, query.limit, scope, hidden)
    times = date_windows(query.text, query.now)
    days = _find_days(reader, times, scope)
    ids.update(*(newest for newest, _ in days.values()))
    if vector_scores is not None:
        ids.update(vector_scores.nearest(VECTOR_CANDIDATES))
    ids -= hidden
    rows = {row.id: row for row in reader.rows(ids) if _matches_filters(row, query)}
    similarities = {} if vector_scores is None else dict(vector_scores.similarities(rows))
    word_scores, sizes, questions = _word_scores(reader, rows, matches, query_words, asking)
    _raise_answers(similarities, questions)
    for window, (_, worth) in days.items():
        for row in rows.values():
            word_scores[row.id] += worth * any(map(window.contains, _times_of(row)))
    candidates = [
        _build_candidate(row, word_scores[row.id], similarities.get(row.id), sizes.get(row.id, 0))
        for row in rows.values()
    ]
    return SearchCandidates(tuple(ranking.fuse(candidates, times)), rows, query_words, spelled)


def _find_spellings(
    reader: IndexReader,
    text: str,
    terms: Sequence[str],
    matches: ranking.TermMatches,
    scope: Scope,
    hidden: frozenset[int],
) -> dict[str, str]:
    """Find the stored term that is nearest to each word of a question that nothing has, of several the most frequent one; return the word by it."""
    if len(terms) > spelling.MAX_TERMS or "\n" in text:  # a text, or what an agent does, is no question
        return {}
    missing = [term for term in terms if not matches.present.get(term, set()) - hidden]
    spelled = {}
    for word in surface_forms(text, missing).values():
        if others := spelling.other_spellings(word):
            (holders,) = reader.holders([(ALTERNATIVE.join(sorted(others)),)], scope, ranking.MAX_SCORED)
            stored = (others.intersection(terms.split()) for _, _, terms in reader.terms(holders - hidden))
            if found := Counter(chain.from_iterable(stored)).most_common(1):
                spelled[found[0][0]] = word
    return spelled


def _find_days(
    reader: IndexReader, windows: Sequence[DateWindow], scope: Scope
) -> dict[DateWindow, tuple[range, float]]:
    """The newest passages that were recorded within each date of the query, and what a date is worth as a term that they have.

    "What did we talk about on 3 May?" has no word that they have. A date that most of them are within says nothing.
    """
    if not windows:
        return {}
    keys = [indexed.key for indexed in reader.sessions()] if scope.sessions is None else scope.sessions
    passages, _ = reader.totals(scope)
    days = {}
    for window in windows:
        found = [range(first, last + 1) for first, last in reader.ranges_between(keys, window.first, window.last)]
        if found:
            newest = max(found, key=lambda ids: ids.stop)[-ranking.MAX_SCORED :]
            days[window] = newest, ranking.rarity(passages, min(passages, sum(map(len, found))))
    return days


def _times_of(row: PassageRow) -> tuple[float, ...]:
    return (row.at,) if row.mentioned_at is None else (row.at, row.mentioned_at)


def _raise_answers(similarities: dict[int, float], questions: set[int]) -> None:
    """Raise what follows a question by a part of the question's similarity: an answer need not repeat its words."""
    for id in questions & similarities.keys():
        if id + 1 in similarities:
            similarities[id + 1] = max(similarities[id + 1], ranking.ANSWER_MEANING * similarities[id])


def build_hits(
    reader: IndexReader, query: Query, candidates: SearchCandidates, names: Mapping[int, str]
) -> tuple[Hit, ...]:
    """Select the hits and read their texts. ``names`` maps session keys to names."""
    selected = ranking.select_hits(candidates.scored, query.limit)
    texts = {row[0]: row[1:] for row in reader.texts([scored.candidate.id for scored in selected])}
    surfaces = {**surface_forms(query.text, candidates.terms), **candidates.spelled}
    times = date_windows(query.text, query.now)
    built = []
    for scored in selected:
        row = candidates.rows[scored.candidate.id]
        if row.id not in texts:
            continue
        text, whole, stored = texts[row.id]
        built.append(
            Hit(
                handle_of(row.position, row.part),
                text,
                scored.score,
                _explain(scored, row, frozenset(stored.split()), surfaces, times),
                names.get(session_of(row.id), ""),
                row.position,
                row.at,
                row.role,
                whole,
                dict(scored.scores),
            )
        )
    return tuple(built)


def _select_ids(matches: ranking.TermMatches, limit: int, scope: Scope, hidden: frozenset[int]) -> set[int]:
    """Passages to score: those with the rarest terms, and the neighbours of the best of them.

    An answer need not repeat the words of its question. Neighbours of a hidden passage may be found.
    """
    sums = ranking.sum_rarities(matches.present, matches.statistics.rarity)
    best = ranking.top_ids(sums, min(_NEIGHBOUR_SEEDS[1], max(_NEIGHBOUR_SEEDS[0], 2 * limit)))
    neighbours = {id + offset for id in best for offset in _NEIGHBOUR_OFFSETS}
    within = {id for id in neighbours if any(first <= id <= last for first, last in scope.ranges)}
    for id in hidden:
        sums.pop(id, None)
    scored = max(limit, min(ranking.MAX_SCORED, max(_MIN_SCORED, 8 * limit)))
    return within.union(ranking.top_ids(sums, scored))


def _matches_filters(row: PassageRow, query: Query) -> bool:
    early = query.since is not None and row.at < query.since
    late = query.until is not None and row.at > query.until
    return not early and not late and (not query.roles or row.role in query.roles)


def _word_scores(
    reader: IndexReader,
    rows: Mapping[int, PassageRow],
    matches: ranking.TermMatches,
    query_words: Sequence[str],
    asking: frozenset[int],
) -> tuple[dict[int, float], dict[int, int], set[int]]:
    """BM25F of each passage, with its neighbours in the session; the numbers of terms; and what ends with a question.

    The question that is asked counts for none: it would raise what was said right before it.
    """
    ids = {id + offset for id in rows for offset in (0, *ranking.NEIGHBOUR_WEIGHTS)} - asking
    # The postings of a rare term are complete. Those of a common one are not, so it is counted in every text.
    common = matches.present.keys() - matches.complete
    holding = ids if common else rows.keys() | (ids & set().union(*matches.present.values()))
    stored = tuple(reader.terms(holding))
    sizes = {id: size for id, size, _ in stored}
    texts = {id: ranking.pad_terms(terms) for id, _, terms in stored}
    counts: dict[str, dict[int, int]] = {}
    for term, holders in matches.present.items():
        counted = holders & texts.keys() if term in matches.complete else texts.keys()
        padded = f" {term} "
        counts[term] = {id: times for id in counted if (times := texts[id].count(padded))}
        if term.endswith(BEGINNING):
            has_form = form_finder(term, query_words)
            counts[term] = {id: times for id, times in counts[term].items() if has_form(texts[id])}
    questions = {id for id, _, terms in stored if terms.endswith(ranking.QUESTION_END)}
    return ranking.bm25f_scores(rows, sizes, counts, matches.statistics, questions), sizes, questions


def _build_candidate(row: PassageRow, words: float, meaning: float | None, size: int) -> ranking.PassageCandidate:
    handle = (session_of(row.id), row.position, row.part)
    return ranking.PassageCandidate(
        row.id, handle, row.role, row.at, row.mentioned_at, words, meaning, row.text_hash, size
    )


def _explain(
    candidate: ranking.ScoredCandidate,
    row: PassageRow,
    terms: frozenset[str],
    surfaces: Mapping[str, str],
    times: Sequence[DateWindow],
) -> str:
    words = ", ".join(dict.fromkeys(surfaces[term] for term in surfaces if term in terms))
    is_dated = candidate.scores["time"] > 1
    about = [f"words: {words}"] if words else [] if is_dated else ["words around it"]
    parts = about if candidate.scores["words"] > 0 else []
    if candidate.scores.get("meaning", 0.0) > 0:
        parts.append(f"meaning {candidate.scores['meaning']:.2f}")
    if is_dated:
        parts.append(next(window.phrase for window in times if any(map(window.contains, _times_of(row)))))
    return "; ".join(parts)
