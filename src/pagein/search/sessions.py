"""In which session it was: a session's words taken together, and the best of its passages.

On LongMemEval's development questions (44, haystacks of 50, 500 and all 940 sessions) all@5 is .909 / .864 / .750 with
the two summed, in the prototype; by the words of whole sessions .909 / .841 / .773, by the best passage .909 / .864 /
.705. Two points are one question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pagein.search.base import Query
from pagein.search.candidates import Counts, look_up
from pagein.search.index_store import Reading, Scope
from pagein.search.passage_ids import session_of
from pagein.search.query import TERMS, Found
from pagein.search.ranking import padded, rarity
from pagein.search.tokenizer import query_terms

LENGTH = 0.75
SATURATION = 1.2
"""BM25's b and k1 for whole sessions, as usual: others differ by one question in 44."""

_POSTINGS = 200_000
_HOLDERS = 20_000
"""Passages whose words are counted, newest first."""


def rank_sessions(
    reading: Reading, query: Query, scope: Scope, counts: Counts, found: Found
) -> list[tuple[int, float]]:
    """The sessions that hold anything of the query, by what leads their ids, with their scores, best first."""
    terms = query_terms(query.text, TERMS)
    by_words = _by_words(reading, scope, counts, terms)
    by_passage: dict[int, float] = {}
    for each in found.fused:
        key = session_of(each.candidate.id)
        by_passage[key] = max(by_passage.get(key, 0.0), each.score)
    scores = fused(by_words, by_passage)
    return sorted(scores.items(), key=lambda item: (-item[1], -item[0]))


def fused(by_words: Mapping[int, float], by_passage: Mapping[int, float]) -> dict[int, float]:
    """The two arms, each divided by its best, summed."""
    arms = [(arm, max(arm.values(), default=0.0)) for arm in (by_words, by_passage)]
    keys = by_words.keys() | by_passage.keys()
    return {key: sum(arm.get(key, 0.0) / best for arm, best in arms if best > 0) for key in keys}


def _by_words(reading: Reading, scope: Scope, counts: Counts, terms: Sequence[str]) -> dict[int, float]:
    looked = look_up(reading, terms, scope, counts, postings=_POSTINGS, a_term=_HOLDERS)
    holders = sorted({each for ids in looked.present.values() for each in ids}, reverse=True)[:_HOLDERS]
    held: dict[int, dict[str, int]] = {}
    for id, _, stored in reading.terms(holders):
        session = held.setdefault(session_of(id), {})
        text = padded(stored)
        for term, holding in looked.present.items():
            if id in holding:
                session[term] = session.get(term, 0) + text.count(f" {term} ")
    sizes = reading.sizes(scope)
    return bm25(held, {**dict.fromkeys(held, 1), **sizes})


def bm25(held: Mapping[int, Mapping[str, int]], sizes: Mapping[int, int]) -> dict[int, float]:
    """BM25 of each session's words taken together; ``held`` says how often it holds each term, ``sizes`` its length."""
    if not sizes:
        return {}
    average = sum(sizes.values()) / len(sizes) or 1.0
    holding: dict[str, int] = {}
    for counts in held.values():
        for term in counts:
            holding[term] = holding.get(term, 0) + 1
    worth = {term: rarity(len(sizes), count) for term, count in holding.items()}
    scores = {}
    for key, counts in held.items():
        norm = SATURATION * (1 - LENGTH + LENGTH * sizes[key] / average)
        scores[key] = sum(
            worth[term] * count * (SATURATION + 1) / (count + norm) for term, count in counts.items()
        )
    return scores
