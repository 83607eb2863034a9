"""Tiers: an active window, episodes behind it, an archive behind those (hierarchical working memory, seed 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pagein.compaction import Plan, actions, plan_of
from pagein.compaction.extracting import boundary, stays, summary_of, visible_from
from pagein.compaction.folding import folds, legal_stop
from pagein.log import Replacement
from pagein.steps import SummaryStep
from pagein.tokens import Budget
from pagein.view import Shown, View


@dataclass(frozen=True, slots=True)
class Tiers:
    """Keeps the last ``fewest`` to ``most`` actions whole; what leaves them is an episode, with a summary of its own.

    Episodes are written once and stay as they are, so that the prefix holds, until there are more than ``episodes`` of
    them or the view passes the high mark: then they become one archive summary, rewritten from the run. An episode's
    summary has ``share`` of the limit. Pins stay by themselves.
    """

    fewest: int = 5
    most: int = 10
    episodes: int = 4
    share: float = 0.06
    name: str = "tiers"

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
        visible = visible_from(view, stop)
        newer = sum(each.tokens for each in view.run if each.first >= stop and not stays(each))
        found = folds(view, stop)
        for number, held in enumerate(found):
            newest = number == len(found) - 1
            past = [each for each in held if isinstance(each.item, SummaryStep)]
            if newest and (high or len(past) >= self.episodes):
                yield summary_of(view, held, max(0, room - newer), visible)
            elif fresh := _after(held, past):
                yield summary_of(view, fresh, int(view.limit * self.share), visible, own=True)


def _after(held: tuple[Shown, ...], past: list[Shown]) -> tuple[Shown, ...]:
    """The entries behind the last episode."""
    return tuple(each for each in held if not past or each.first > past[-1].first)
