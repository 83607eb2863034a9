"""Relevance: scores old steps against the newest ones, and folds those with the lowest scores.

The third eviction rule of hierarchical working memory (seed 3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Annotated

from pagein._common.validation import COUNT, POSITIVE_SHARE, CheckedFields
from pagein.context.compaction import episodes, step_scores
from pagein.context.compaction.base import Plan, actions, make_plan
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.tokens import Budget

RATED_SHARE = 0.85
"""Share of the high mark from which on a rater is asked, so that it has answered when a fold is due. Not tuned."""

NEWEST_SHARE = 0.3
"""Share of the limit for the newest actions; the newest of all stays whatever it costs."""


@dataclass(frozen=True, slots=True)
class Relevance(CheckedFields):
    """Folds the old steps least relevant to the newest, above the high mark, down to the low mark.

    The last ``keep`` actions stay unless they are too long; system prompts, pins, user messages and final answers always
    stay. ``weight`` adds to a step's score. Removed steps are replaced by a line with their handles, the newest of them
    by an extract of the run with ``share`` of the room. Steps are compared by the vectors of an ``embedder``, or by words
    without one or if it fails. A ``rater`` judges those whose score is near the lowest that stays, by ``band`` of it; it is
    asked before a fold is due.
    """

    keep: Annotated[int, COUNT, "Newest actions that stay, unless they are too long."] = 3
    share: Annotated[float, POSITIVE_SHARE, "Share of the space for older steps that their extract takes."] = 0.4
    weight: step_scores.Weight | None = None
    embedder: step_scores.StepEmbedder | None = None
    rater: step_scores.StepRater | None = None
    band: Annotated[float, POSITIVE_SHARE, "Share of the lowest score that stays within which a rater decides."] = 0.25
    name: str = "relevance"
    _vectors: step_scores.Vectors = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan a fold of the least relevant steps, or None."""
        high = view.limit * budget.high
        if view.tokens <= (high if self.rater is None else high * RATED_SHARE):
            return None
        scores, permanent = self.scores(view), step_scores.permanent_positions(view)
        staying = sum(entry.tokens for entry in view.entries if episodes.is_protected(entry, permanent))
        room = int(view.limit * budget.low_share) - staying
        extract = int(room * self.share)
        costs = {entry.first: entry.tokens for entry in view.run if not episodes.is_protected(entry, permanent)}
        room_left = room - extract - sum(cost for first, cost in costs.items() if first not in scores)
        best = step_scores.select_best(scores, costs, room_left)
        if self.rater is not None:
            rated = step_scores.rate_borderline(view, scores, best, self.rater, self.band)
            best = step_scores.select_best(rated, costs, room_left)
        if view.tokens <= high:
            return None
        leaving = scores.keys() - best
        folded = tuple(self._fold(view, leaving, extract))
        return make_plan(folded, self.name, f"{len(leaving)} steps least relevant to what is done now")

    def scores(self, view: View) -> Mapping[int, float]:
        """Return the score of each step that may leave, by position."""
        acted = actions(view)
        newest = acted[-self.keep :][0].first if acted and self.keep else view.head
        stop = episodes.legal_stop(view, max(newest, episodes.boundary(view, view.limit * NEWEST_SHARE)))
        permanent = step_scores.permanent_positions(view)
        old = [entry for entry in view.run if entry.first < stop and not episodes.is_protected(entry, permanent)]
        return step_scores.score_steps(view, old, self.weight, self.embedder, self._vectors)

    def _fold(self, view: View, leaving: Collection[int], room: int) -> Iterator[Replacement]:
        """Summarize each stretch of leaving neighbours; the newest one has the extract of the whole run.

        A single older summary stays; the newest one is made anew.
        """
        permanent = step_scores.permanent_positions(view)

        def leaves(entry: ViewEntry) -> bool:
            return entry.first in leaving and not episodes.is_protected(entry, permanent)

        stretches = [tuple(stretch) for leaving_together, stretch in groupby(view.run, key=leaves) if leaving_together]
        staying = (*view.systems, *view.front, *(entry for entry in view.run if not leaves(entry)))
        visible = tuple(step_scores.entry_text(entry) for entry in staying)
        for stretch in stretches:
            is_newest = stretch is stretches[-1]
            if is_newest or (episodes.is_worth_folding(stretch) and not episodes.is_summary(stretch)):
                yield episodes.summarize_stretch(view, stretch, room if is_newest else 0, visible)
