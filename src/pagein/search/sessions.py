"""Ranking of sessions: by the words of a whole session, and by its best passage.

On LongMemEval's development questions (44, haystacks of 50, 500 and all 940 sessions) all@5 is .909 / .864 / .750 with
the sum of the two, in the prototype; by the words of whole sessions .909 / .841 / .773, by the best passage .909 / .864 /
.705. Two points are one question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pagein.search.base import Query
from pagein.search.index_store import IndexReader, Scope
from pagein.search.passages import session_of
from pagein.search.ranking import QUERY_TERMS, ScoredCandidate, TermCounts, match_terms, pad_terms, rarity
from pagein.search.tokenizer import query_terms

BM25_B = 0.75
BM25_K1 = 1.2
"""BM25's b and k1 for whole sessions, the usual values: others differ by one question in 44."""

_MAX_POSTINGS = 200_000
_MAX_HOLDERS = 20_000
"""Passages whose words are counted, newest first."""


def rank_sessions(
    reader: IndexReader, query: Query, scope: Scope, counts: TermCounts, candidates: Iterable[ScoredCandidate]
) -> list[tuple[int, float]]:
    """The sessions that match the query, as session key and score, best first."""
    terms = query_terms(query.text, QUERY_TERMS)
    word_scores = _session_word_scores(reader, scope, counts, terms)
    passage_scores: dict[int, float] = {}
    for scored in candidates:
        key = session_of(scored.candidate.id)
        passage_scores[key] = max(passage_scores.get(key, 0.0), scored.score)
    scores = combine_scores(word_scores, passage_scores)
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))


def combine_scores(by_words: Mapping[int, float], by_passage: Mapping[int, float]) -> dict[int, float]:
    """The sum of both scores, each divided by its best."""
    parts = [(part, max(part.values(), default=0.0)) for part in (by_words, by_passage)]
    keys = by_words.keys() | by_passage.keys()
    return {key: sum(part.get(key, 0.0) / best for part, best in parts if best > 0) for key in keys}


def _session_word_scores(
    reader: IndexReader, scope: Scope, counts: TermCounts, terms: Sequence[str]
) -> dict[int, float]:
    matches = match_terms(reader, terms, scope, counts, postings=_MAX_POSTINGS, term_postings=_MAX_HOLDERS)
    holders = sorted({passage for ids in matches.present.values() for passage in ids}, reverse=True)[:_MAX_HOLDERS]
    occurrences: dict[int, dict[str, int]] = {}
    for id, _, stored in reader.terms(holders):
        session = occurrences.setdefault(session_of(id), {})
        text = pad_terms(stored)
        for term, holding in matches.present.items():
            if id in holding:
                session[term] = session.get(term, 0) + text.count(f" {term} ")
    sizes = reader.sizes(scope)
    return bm25(occurrences, {**dict.fromkeys(occurrences, 1), **sizes})


def bm25(occurrences: Mapping[int, Mapping[str, int]], sizes: Mapping[int, int]) -> dict[int, float]:
    """BM25 of each session. ``occurrences`` counts its terms, ``sizes`` is its length."""
    if not sizes:
        return {}
    average = sum(sizes.values()) / len(sizes) or 1.0
    holding: dict[str, int] = {}
    for counts in occurrences.values():
        for term in counts:
            holding[term] = holding.get(term, 0) + 1
    worth = {term: rarity(len(sizes), count) for term, count in holding.items()}
    scores = {}
    for key, counts in occurrences.items():
        norm = BM25_K1 * (1 - BM25_B + BM25_B * sizes[key] / average)
        scores[key] = sum(worth[term] * count * (BM25_K1 + 1) / (count + norm) for term, count in counts.items())
    return scores
