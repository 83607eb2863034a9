"""Rounds: the user's words stay, what was done between them becomes a summary each (Mini-Agent)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pagein.context.compaction.base import Plan, newest_user, plan_of
from pagein.context.compaction.episodes import folds, is_summary, legal_stop
from pagein.context.compaction.extracts import boundary, stays, summary_of, visible_from
from pagein.context.view.fold import preview
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Rounds:
    """Above ``tokens``, or the high mark where that is lower, each closed round's execution becomes one summary.

    System prompts and every message of the user stay verbatim and in order. A summary has a fifth of what it stands
    for, at most ``longest`` tokens, and is made once. The round in flight is never summarised away: only where closing
    the others was not enough do its older steps fold, and its newest keep half of the room.
    """

    tokens: int = 80_000
    longest: int = 1_300
    name: str = "rounds"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for every closed round that still stands in full, and for the round in flight where it must."""
        limit = min(view.limit, self.tokens)
        if view.tokens <= limit * budget.high:
            return None
        closed = tuple(self._closed(view))
        after = preview(view, closed)
        low = int(limit * budget.low_share)
        flight = tuple(self._in_flight(after, low)) if after.tokens > low else ()
        return plan_of((*closed, *flight), self.name, "rounds that are over")

    def _closed(self, view: View) -> Iterator[Replacement]:
        stop = legal_stop(view, newest_user(view))
        for held in folds(view, stop):
            if not is_summary(held):
                spent = sum(each.tokens for each in held)
                room = min(self.longest, spent // 5)
                yield summary_of(view, held, room, visible_from(view, stop), own=True)

    def _in_flight(self, view: View, low: int) -> Iterator[Replacement]:
        room = low - sum(
            each.tokens for each in view.entries if stays(each) or each.first < newest_user(view)
        )
        stop = legal_stop(view, boundary(view, room / 2))
        newer = sum(each.tokens for each in view.run if each.first >= stop and not stays(each))
        for held in folds(view, stop):
            if held[0].first > newest_user(view):
                yield summary_of(view, held, max(0, room - newer), visible_from(view, stop))
