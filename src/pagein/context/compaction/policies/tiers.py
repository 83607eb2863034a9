"""Tiers: an active window, episodes behind it, an archive behind those (hierarchical working memory, seed 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from pagein.context.compaction.base import Plan, actions, plan_of
from pagein.context.compaction.episodes import folds, is_worth, legal_stop
from pagein.context.compaction.extracts import boundary, stays, summary_of, visible_from
from pagein.context.compaction.step_scores import Embeds, Scores, Weight, is_marked, kept_best, text_of
from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement
from pagein.events.steps import SummaryStep
from pagein.tokens import Budget

A_LINE = 30
"""Tokens of a summary that is a handle and nothing else."""

SHORTER = 3
"""How many times as long as its summary an episode is at least that lies between steps that kept their place."""


@dataclass(frozen=True, slots=True)
class Tiers:
    """Keeps the last ``fewest`` to ``most`` actions whole; what leaves them is an episode, with a summary of its own.

    Episodes are written once and stay as they are, so that the prefix holds, until there are more than ``episodes`` of
    them or the view passes the high mark: then they become one archive summary, rewritten from the run. An episode's
    summary has ``share`` of the limit. Pins stay by themselves.

    Of the steps that leave the window those that have most to do with what the run is doing now keep their place,
    within ``relevant`` of the limit, until others have more to do with it: scored as ``Relevance`` scores them, by
    meaning where an ``embedder`` is given, with ``weight`` for what the user knows better.
    """

    fewest: int = 5
    most: int = 10
    episodes: int = 4
    share: float = 0.06
    relevant: float = 0.0
    weight: Weight | None = None
    embedder: Embeds | None = None
    name: str = "tiers"
    _vectors: dict[str, tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for the next episode, or for the archive, or none."""
        acted = actions(view)
        high = view.tokens > view.limit * budget.high
        if len(acted) <= self.most and not high:
            return None
        room = int(view.limit * budget.low_share) - sum(each.tokens for each in view.entries if stays(each))
        window = acted[-self.fewest :][0].first if acted else view.head
        stop = legal_stop(view, max(window, boundary(view, room / 2)))
        return plan_of(self._leaving(view, stop, room, high=high), self.name, "left the active window")

    def _leaving(self, view: View, stop: int, room: int, *, high: bool) -> Iterator[Replacement]:
        kept = self._kept(view, stop, room)
        visible = (*visible_from(view, stop), *(text_of(each) for each in view.run if each.first in kept))
        whole = [each for each in view.run if not stays(each) and (each.first >= stop or each.first in kept)]
        newer = sum(each.tokens for each in whole)
        found = [part for held in folds(view, stop) for part in _parts(held, kept)]
        for number, held in enumerate(found):
            newest = number == len(found) - 1
            past = [each for each in held if isinstance(each.item, SummaryStep)]
            if newest and (high or len(past) >= self.episodes):
                left = room - newer - (A_LINE * (len(found) - 1) if kept else 0)
                yield summary_of(view, held, max(0, left), visible)
            elif fresh := _after(held, past):
                if not kept:
                    yield summary_of(view, fresh, int(view.limit * self.share), visible, own=True)
                elif high and is_worth(held):
                    yield summary_of(view, held, 0, visible)  # the newest speaks of them all
                elif is_worth(fresh):
                    tokens = min(int(view.limit * self.share), sum(each.tokens for each in fresh) // SHORTER)
                    yield summary_of(view, fresh, tokens, visible, own=True)

    def _kept(self, view: View, stop: int, room: int) -> frozenset[int]:
        """The positions of what keeps its place although it is behind the window."""
        if self.relevant <= 0 and self.weight is None:
            return frozenset()
        old = [
            each
            for each in view.run
            if each.first < stop and not is_marked(each) and not isinstance(each.item, SummaryStep)
        ]
        costs = {each.first: each.tokens for each in old}
        scores = Scores(self.weight, self.embedder, self._vectors)(view, old)
        return kept_best(scores, costs, min(view.limit * self.relevant, room / 2))


def _parts(held: tuple[Shown, ...], kept: frozenset[int]) -> Iterator[tuple[Shown, ...]]:
    """The stretches of neighbours that leave."""
    for stays_here, part in groupby(held, key=lambda each: each.first in kept):
        if not stays_here:
            yield tuple(part)


def _after(held: tuple[Shown, ...], past: list[Shown]) -> tuple[Shown, ...]:
    """The entries behind the last episode."""
    return tuple(each for each in held if not past or each.first > past[-1].first)
