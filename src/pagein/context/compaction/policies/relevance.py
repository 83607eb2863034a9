"""Relevance: near capacity each old step is scored against what the run is doing now, and the low ones leave first.

Hierarchical working memory's third eviction rule (seed 3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from pagein.context.compaction.base import Plan, actions, plan_of
from pagein.context.compaction.episodes import is_summary, is_worth, legal_stop
from pagein.context.compaction.extracts import boundary, summary_of
from pagein.context.compaction.step_scores import (
    Embeds,
    Scores,
    Weight,
    by_words,
    is_marked,
    kept_best,
    text_of,
)
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.tokens import Budget

__all__ = ["Embeds", "Relevance", "Weight", "by_words"]

NEWEST = 0.3
"""Share of the limit that the newest actions may have; the newest of all stays whatever it costs."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Above the high mark, folds the old steps that have least to do with the newest, down to the low mark.

    The last ``keep`` actions stay where they are not too long, and so do system prompts, pins, the user's words and
    final answers; ``weight`` adds what the user knows better. Where steps left stands a line with their handles, and
    with the newest of them an extract of the run, which has ``share`` of the room. With ``embedder`` a step is compared
    by meaning; where that fails, by words.
    """

    keep: int = 3
    share: float = 0.4
    weight: Weight | None = None
    embedder: Embeds | None = None
    name: str = "relevance"
    _vectors: dict[str, tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan that folds the least relevant steps, or none."""
        if view.tokens <= view.limit * budget.high:
            return None
        scores = self.scores(view)
        room = int(view.limit * budget.low_share) - sum(
            each.tokens for each in view.entries if is_marked(each)
        )
        extract = int(room * self.share)
        costs = {each.first: each.tokens for each in view.run if not is_marked(each)}
        left = room - extract - sum(cost for first, cost in costs.items() if first not in scores)
        leaving = scores.keys() - kept_best(scores, costs, left)
        folded = tuple(self._folded(view, leaving, extract))
        return plan_of(folded, self.name, f"{len(leaving)} steps least relevant to what is done now")

    def scores(self, view: View) -> Mapping[int, float]:
        """By position, what each step that may leave is worth keeping, higher is more."""
        acted = actions(view)
        newest = acted[-self.keep :][0].first if acted and self.keep else view.head
        stop = legal_stop(view, max(newest, boundary(view, view.limit * NEWEST)))
        old = [each for each in view.run if each.first < stop and not is_marked(each)]
        return Scores(self.weight, self.embedder, self._vectors)(view, old)

    def _folded(self, view: View, leaving: Collection[int], room: int) -> Iterator[Replacement]:
        """One line for each run of neighbours that leave; the newest has the extract, which is the whole run's.

        A summary that stands already, and has no new neighbour, stays; but the newest of all is made anew.
        """
        found = [
            tuple(held) for goes, held in groupby(view.run, key=lambda each: each.first in leaving) if goes
        ]
        held_back = (*view.systems, *view.kept, *(each for each in view.run if each.first not in leaving))
        visible = tuple(text_of(each) for each in held_back)
        for held in found:
            newest = held is found[-1]
            if newest or (is_worth(held) and not is_summary(held)):
                yield summary_of(view, held, room if newest else 0, visible)
