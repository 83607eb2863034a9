"""Ranking: BM25 over a passage and its neighbours, the candidates of a search, and the score that combines words and vectors.

Answers follow questions: a turn is often found by the words of the turn before. So the neighbours' terms count into the
passage's own (BM25F, each neighbour a weaker field, normalized by its own length). Decisions 0014 and 0015 have the figures.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from pagein.search.dates import DateWindow
from pagein.search.index_store import IndexReader, Scope

NEIGHBOUR_WEIGHTS: Mapping[int, float] = {-3: 0.17, -2: 0.26, -1: 0.4, 1: 0.32, 2: 0.21, 3: 0.14}
"""The weight of a term in a neighbour, by distance; the neighbour before weighs a little more than the one after."""

ANSWER_WEIGHT = 0.8
"""The weight of the neighbour before if it ends with a question: its terms are what this one answers."""

ANSWER_MEANING = 0.9
"""The share of a question's similarity that its answer has at least."""

QUESTION_END = " ?"
"""The end of the stored terms of a passage that ends with a question."""

BM25_K1 = 1.2
BM25_B = 0.5
"""BM25's k1 and b. Between .8 and 2, and .3 and .75, R@10 on LoCoMo moves by less than a point."""


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """The average number of terms in the passages searched, and the rarity of each term."""

    average: float
    rarity: Mapping[str, float]


def rarity(passages: int, holding: int) -> float:
    """The weight (idf) of a term in ``holding`` of ``passages``; above 0 even if all contain it.

    >>> rarity(1, 1) > 0, rarity(1000, 1) > rarity(1000, 500)
    (True, True)
    """
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))


def sum_rarities(present: Mapping[str, Iterable[int]], worth: Mapping[str, float]) -> dict[int, float]:
    """The summed rarity of the terms in each passage."""
    sums: dict[int, float] = {}
    get = sums.get
    for term, holders in present.items():
        value = worth[term]
        for id in holders:
            sums[id] = get(id, 0.0) + value
    return sums


def top_ids(sums: Mapping[int, float], limit: int) -> list[int]:
    """The ``limit`` passages with the highest sums, newest first among equals; unordered if that is all of them."""
    if len(sums) <= limit:
        return list(sums)
    return [id for _, id in heapq.nlargest(limit, zip(sums.values(), sums, strict=True))]


def bm25f_scores(
    ids: Collection[int],
    sizes: Mapping[int, int],
    counts: Mapping[str, Mapping[int, int]],
    statistics: TermStatistics,
    questions: Collection[int] = (),
) -> dict[int, float]:
    """BM25F of each passage: its neighbours are weaker fields, each normalized by its own length.

    Neighbours have adjacent ids. ``counts`` are the occurrences of each term by passage, ``sizes`` the terms in each
    passage that has any, ``questions`` those that end with a question.
    """
    average = statistics.average or 1.0
    norms = {id: 1 - BM25_B + BM25_B * size / average for id, size in sizes.items()}
    totals = dict.fromkeys(ids, 0.0)
    around = ((0, 1.0), *NEIGHBOUR_WEIGHTS.items())
    # By passage, the passages that it counts in, with its weight there.
    neighbours = {id: [(id - offset, share) for offset, share in around if id - offset in totals] for id in norms}
    for id in questions:
        neighbours[id] = [(near, ANSWER_WEIGHT if near == id + 1 else share) for near, share in neighbours[id]]
    for term, holders in counts.items():
        worth = statistics.rarity[term] * (BM25_K1 + 1)
        for id, count in _weighted_counts(holders, norms, neighbours).items():
            totals[id] += worth * count / (count + BM25_K1)
    return totals


def _weighted_counts(
    holders: Mapping[int, int], norms: Mapping[int, float], neighbours: Mapping[int, Iterable[tuple[int, float]]]
) -> dict[int, float]:
    """The weighted count of one term in each passage: its own, and its neighbours'."""
    weighted: dict[int, float] = {}
    get = weighted.get
    for id, times in holders.items():
        count = times / norms[id]
        for neighbour, share in neighbours[id]:
            weighted[neighbour] = get(neighbour, 0.0) + share * count
    return weighted


def pad_terms(stored: str) -> str:
    """Double the spaces between stored terms, so that each term can be counted with a space on either side.

    >>> pad_terms("a b a").count(" a ")
    2
    """
    return f" {stored.replace(' ', '  ')} "


# Candidates

QUERY_TERMS = 64
"""Terms of a query that are searched."""

MAX_POSTINGS = 24_000
"""Postings read for a query, about. Each term has an equal share, newest first."""

MAX_TERM_POSTINGS = 2_000
"""Postings read of one term; in a million passages, the newest that contain a common word."""

MAX_SCORED = 160
"""Passages scored in one search, unless it asks for more. On LoCoMo (997 questions) R@50 is .904, with 400 .905, and the evidence in view is the same."""

_GROUP_TERMS = 4
"""The rarest of the common terms, which are looked up together."""

_MAX_CACHED_COUNTS = 10_000


@dataclass(slots=True)
class TermMatches:
    """The passages with each term, the terms whose list is ``complete``, and the statistics."""

    statistics: TermStatistics
    present: dict[str, set[int]] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)


TermCounts = dict[tuple[str, Scope], tuple[int, int]]
"""For a common term and scope, the passages that contain it and the number of all passages when they were counted."""


def match_terms(
    reader: IndexReader,
    terms: Sequence[str],
    scope: Scope,
    counts: TermCounts,
    *,
    postings: int = MAX_POSTINGS,
    term_postings: int = MAX_TERM_POSTINGS,
) -> TermMatches:
    """Find the passages with each term within the scope, of common terms the newest; and the rarity of each term."""
    passages, size = reader.totals(scope)
    share = max(term_postings // 8, min(term_postings, postings // max(len(terms), 1)))
    id_sets = reader.holders([(term,) for term in terms], scope, share + 1)
    present = {term: holders for term, holders in zip(terms, id_sets, strict=True) if holders}
    complete = {term for term, holders in present.items() if len(holders) <= share}
    frequencies = {term: len(present[term]) for term in complete}
    frequencies |= _count_common(reader, [term for term in present if term not in complete], scope, counts, passages)
    rarities = {term: rarity(passages, min(frequencies[term], passages)) for term in present}
    matches = TermMatches(TermStatistics(size / passages if passages else 0.0, rarities), present, complete)
    _match_groups(reader, scope, matches, share)
    return matches


def _match_groups(reader: IndexReader, scope: Scope, matches: TermMatches, share: int) -> None:
    """Add the passages that contain several of the terms whose lists are not complete."""
    rarities = matches.statistics.rarity
    common = sorted(matches.present.keys() - matches.complete, key=lambda term: -rarities[term])
    groups = [terms for terms in {tuple(common[:2]), tuple(common[:_GROUP_TERMS])} if len(terms) > 1]
    if not groups:
        return
    for group, holders in zip(groups, reader.holders(groups, scope, share), strict=True):
        for term in group:
            matches.present[term] |= holders


def _count_common(
    reader: IndexReader, terms: Sequence[str], scope: Scope, counts: TermCounts, passages: int
) -> dict[str, int]:
    """Count the passages with each common term; reuse counts while the index grew by at most a tenth."""
    frequencies = {}
    for term in terms:
        count, passages_then = counts.get((term, scope), (0, -1))
        if passages_then <= passages <= passages_then * 1.1:
            frequencies[term] = count
    missing = [term for term in terms if term not in frequencies]
    if missing:
        if len(counts) >= _MAX_CACHED_COUNTS:
            counts.clear()
        for term, count in zip(missing, reader.counts(missing, scope), strict=True):
            counts[term, scope] = (count, passages)
            frequencies[term] = count
    return frequencies


# Fusion

VECTOR_WEIGHT = 0.5
"""The weight of vectors beside words, each divided by its best: from .3 to .8 it makes half a point. Fusing ranks (RRF)
loses 4 to 9 points: ranks overstate the weaker of the two."""

MIN_BEST_SIMILARITY = 0.2
"""A best similarity (cosine) below this means that nothing is near; it is not scaled up to 1."""

RECENCY_BOOST = 0.02
"""The share by which the newest is raised and the oldest lowered: it breaks ties. Ages count in order, as seconds depend on the machine."""

DATE_BOOST = 0.1
"""The share by which a hit within a date of the query is raised."""

ROLE_CONFIDENCE: Mapping[str, float] = {"user": 1.0, "note": 1.0, "assistant": 0.85, "tool": 0.9, "system": 0.85}
"""The weight of each role. On LongMemEval's development questions, packed by score alone, the assistant at .8 instead
of 1 finds .864 instead of .770 of the evidence within 1,000 tokens."""

LONG_TERMS, LENGTH_POWER = 80, 0.5
"""Terms above which what was said scores less, as the root of its length. On LongMemEval's development questions (46, 50
sessions, turns) R@5 / R@10 are .722 / .882 without and .799 / .941 with it; LoCoMo's turns are all shorter. What a tool
wrote is long by nature, and is spared."""

MIN_HITS_TO_SEED = 4
"""Limit from which the best by words and the best by vectors are always among the hits."""

MAX_HITS_PER_HANDLE = 2
"""Passages of one text among the hits."""


class PassageCandidate(NamedTuple):
    """A passage to be scored. ``meaning`` is a cosine, None without a vector. A search makes hundreds."""

    id: int
    handle: tuple[int, int, int]
    role: str
    at: float
    mentioned_at: float | None
    words: float
    meaning: float | None
    text_hash: int
    """Equal for repetitions."""
    size: int = 0
    """Its number of terms."""


class ScoredCandidate(NamedTuple):
    """A candidate with its score and the parts of it."""

    candidate: PassageCandidate
    score: float
    scores: Mapping[str, float]


def fuse(candidates: Sequence[PassageCandidate], windows: Sequence[DateWindow] = ()) -> list[ScoredCandidate]:
    """Score the candidates, best first, the newest first among equals; those that score 0 are left out."""
    if not candidates:
        return []
    words = max(candidate.words for candidate in candidates) or 1.0
    meaning = max(MIN_BEST_SIMILARITY, *(candidate.meaning or 0.0 for candidate in candidates))
    oldest_first = sorted(candidates, key=attrgetter("at", "id"))
    newest = len(candidates) - 1
    fused = [
        _score_candidate(candidate, place / newest if newest else 0.5, words, meaning, windows)
        for place, candidate in enumerate(oldest_first)
    ]
    # Of equals the newest is first: sorted() keeps the order of equals.
    return sorted((scored for scored in reversed(fused) if scored.score > 0), key=lambda scored: -scored.score)


def _score_candidate(
    candidate: PassageCandidate, age: float, words: float, meaning: float, windows: Sequence[DateWindow]
) -> ScoredCandidate:
    by_words = candidate.words / words
    near = max(0.0, candidate.meaning or 0.0) / meaning
    recency = 1 + RECENCY_BOOST * (2 * age - 1)
    confidence = ROLE_CONFIDENCE.get(candidate.role, 1.0)
    times = (candidate.at,) if candidate.mentioned_at is None else (candidate.at, candidate.mentioned_at)
    date_boost = 1 + DATE_BOOST * (bool(windows) and any(window.contains(at) for window in windows for at in times))
    score = (by_words + VECTOR_WEIGHT * near) * recency * confidence * date_boost
    if candidate.size > LONG_TERMS and candidate.role in ("user", "assistant"):
        score *= (LONG_TERMS / candidate.size) ** LENGTH_POWER
    scores = {"words": by_words} | ({} if candidate.meaning is None else {"meaning": near})
    scores |= {"recency": recency, "confidence": confidence, "time": date_boost}
    return ScoredCandidate(candidate, score, scores)


def select_hits(ranked: Sequence[ScoredCandidate], limit: int) -> list[ScoredCandidate]:
    """Select the hits, best first: no text twice, few passages of one text.

    With ``MIN_HITS_TO_SEED`` or more, the best by words and the best by vectors are among them.
    """
    diverse = list(_drop_repetitions(ranked))
    hits = diverse[:limit]
    if limit >= MIN_HITS_TO_SEED:
        for kind in ("words", "meaning"):
            best = max(diverse, key=lambda scored: scored.scores.get(kind, 0.0), default=None)
            if best is not None and best not in hits and best.scores.get(kind, 0.0) > 0:
                hits[-1] = best
    return hits


def _drop_repetitions(ranked: Iterable[ScoredCandidate]) -> Iterable[ScoredCandidate]:
    hashes: set[int] = set()
    per_handle: dict[tuple[int, int, int], int] = {}
    for scored in ranked:
        handle, text_hash = scored.candidate.handle, scored.candidate.text_hash
        if text_hash in hashes or per_handle.get(handle, 0) >= MAX_HITS_PER_HANDLE:
            continue
        hashes.add(text_hash)
        per_handle[handle] = per_handle.get(handle, 0) + 1
        yield scored
