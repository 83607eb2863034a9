"""Rounds: keeps user messages, and folds the steps between them into a summary each (Mini-Agent)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import POSITIVE_TOKENS, CheckedFields
from pagein.context.compaction import episodes
from pagein.context.compaction.base import Plan, make_plan, newest_user_position
from pagein.context.view.body import preview
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.tokens import Budget

CLOSED_SHARE = 0.5
"""Largest share of the limit at which closed rounds stop folding: each compaction costs the cache of what is behind it."""


@dataclass(frozen=True, slots=True)
class Rounds(CheckedFields):
    """Folds the steps of closed rounds into a summary each, above ``tokens`` or the high mark, whichever is lower.

    The oldest rounds fold first, until the view has half of that limit, or less where the budget's low mark is lower.
    System prompts and user messages stay verbatim and in order. A summary has a fifth of the tokens it replaces, at most
    ``longest``, and is made once. If that is not enough, the older steps of the current round fold too; its newest ones
    keep half of the room.
    """

    tokens: Annotated[int, POSITIVE_TOKENS, "Tokens above which closed rounds become summaries."] = 80_000
    longest: Annotated[int, POSITIVE_TOKENS, "Maximum tokens of one summary."] = 1_300
    name: str = "rounds"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan summaries of the closed rounds, and of the current one if needed, or None."""
        limit = min(view.limit, self.tokens)
        if view.tokens <= limit * budget.high:
            return None
        closed = tuple(self._fold_closed(view, int(limit * min(budget.low_share, CLOSED_SHARE))))
        after = preview(view, closed)
        low = int(limit * budget.low_share)
        flight = tuple(self._fold_in_flight(after, low)) if after.tokens > low else ()
        return make_plan((*closed, *flight), self.name, "rounds that are over")

    def _fold_closed(self, view: View, low: int) -> Iterator[Replacement]:
        """Fold the oldest rounds that are over, until ``low`` tokens are left."""
        tokens = view.tokens
        stop = episodes.legal_stop(view, newest_user_position(view))
        for stretch in episodes.foldable_stretches(view, stop):
            if tokens > low and not episodes.is_summary(stretch):
                spent = sum(entry.tokens for entry in stretch)
                room = min(self.longest, spent // 5)
                tokens -= spent - room
                yield episodes.summarize_stretch(view, stretch, room, episodes.visible_texts(view, stop), own=True)

    def _fold_in_flight(self, view: View, low: int) -> Iterator[Replacement]:
        user = newest_user_position(view)
        protected = episodes.protected_positions(view)
        staying = (entry for entry in view.entries if episodes.is_protected(entry, protected) or entry.first < user)
        room = low - sum(entry.tokens for entry in staying)
        stop = episodes.legal_stop(view, episodes.boundary(view, room / 2))
        tokens = max(0, room - episodes.unprotected_tokens(view, stop))
        for stretch in episodes.foldable_stretches(view, stop):
            if stretch[0].first > user:
                yield episodes.summarize_stretch(view, stretch, tokens, episodes.visible_texts(view, stop))
