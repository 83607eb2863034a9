"""One score from several arms: fused where they were normalised, bounded factors, a place for the best of each arm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pagein.search.dates import Window

MEANING = 0.5
"""What meaning counts beside words, each divided by its best. On LoCoMo's first five conversations R@5 / R@10 are
.692 / .786 by words alone and .713 / .806 at .5, and within half a point of that from .3 to .8; on LongMemEval's
development questions .900 of the evidence is within 1,000 tokens, .821 by words alone. Ranks fused (RRF) lose 4 to 9
points: where one arm is weak its ranks say too much."""

FAINT = 0.2
"""A best similarity below this (cosine) says that nothing is near: it is not stretched to 1."""

RECENCY = 0.02
"""How far the newest is lifted and the oldest lowered, as a share. Bounded: it breaks ties, and never ranks."""

TIME = 0.1
"""How far a hit is lifted that falls within a time the query names."""

CONFIDENCE: Mapping[str, float] = {
    "user": 1.0,
    "note": 1.0,
    "assistant": 0.85,
    "tool": 0.9,
    "system": 0.85,
}
"""How far what each role says is believed to be what is looked for. On LongMemEval's development questions, packed by
score alone, the assistant at .8 instead of 1 finds .864 instead of .770 of the evidence within 1,000 tokens."""

SEEDED = 4
"""Hits from which on the best of each arm has a place."""

PER_HANDLE = 2
"""Passages of one text among the hits."""


class Candidate(NamedTuple):
    """A passage as the fusion sees it. ``meaning`` is a cosine, None where there is no vector. Made by the hundred."""

    id: int
    handle: tuple[int, int, int]
    role: str
    at: float
    said: float | None
    words: float
    meaning: float | None
    same: int
    """Equal for passages that say the same."""


class Fused(NamedTuple):
    """A candidate with its score and what that is made of."""

    candidate: Candidate
    score: float
    arms: Mapping[str, float]


def fuse(candidates: Sequence[Candidate], windows: Sequence[Window] = ()) -> list[Fused]:
    """The candidates with their scores, best first, of equals the newest; those that nothing speaks for are left out."""
    if not candidates:
        return []
    words = max(each.words for each in candidates) or 1.0
    meaning = max(FAINT, *(each.meaning or 0.0 for each in candidates), FAINT)
    oldest, newest = min(each.at for each in candidates), max(each.at for each in candidates)
    fused = [_fused(each, words, meaning, (oldest, newest), windows) for each in candidates]
    return sorted(
        (each for each in fused if each.score > 0),
        key=lambda each: (-each.score, -each.candidate.at, -each.candidate.id),
    )


def _fused(
    each: Candidate, words: float, meaning: float, span: tuple[float, float], windows: Sequence[Window]
) -> Fused:
    by_words = each.words / words
    near = max(0.0, each.meaning or 0.0) / meaning
    oldest, newest = span
    age = (each.at - oldest) / (newest - oldest) if newest > oldest else 0.5
    recency = 1 + RECENCY * (2 * age - 1)
    confidence = CONFIDENCE.get(each.role, 1.0)
    times = (each.at,) if each.said is None else (each.at, each.said)
    named = 1 + TIME * (bool(windows) and any(window.holds(at) for window in windows for at in times))
    score = (by_words + MEANING * near) * recency * confidence * named
    arms = {"words": by_words} | ({} if each.meaning is None else {"meaning": near})
    return Fused(each, score, arms | {"recency": recency, "confidence": confidence, "time": named})


def chosen(ranked: Sequence[Fused], limit: int) -> list[Fused]:
    """The hits to give: no text twice, few passages of one, and among them the best of each arm; best first."""
    diverse = list(_diverse(ranked))
    kept = diverse[:limit]
    if limit >= SEEDED:
        for arm in ("words", "meaning"):
            _seed(kept, max(diverse, key=lambda each: each.arms.get(arm, 0.0), default=None), arm)
    return kept


def _diverse(ranked: Iterable[Fused]) -> Iterable[Fused]:
    said: set[int] = set()
    of: dict[tuple[int, int, int], int] = {}
    for each in ranked:
        handle, same = each.candidate.handle, each.candidate.same
        if same in said or of.get(handle, 0) >= PER_HANDLE:
            continue
        said.add(same)
        of[handle] = of.get(handle, 0) + 1
        yield each


def _seed(kept: list[Fused], best: Fused | None, arm: str) -> None:
    """Put the best of an arm in the last place, where it has none and the arm found anything."""
    if best is None or best in kept or best.arms.get(arm, 0.0) <= 0:
        return
    kept[-1] = best
