"""Chat: folds the oldest turns of a long chat, user messages included, into one summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import POSITIVE_SHARE
from pagein.context.compaction.base import Plan, earlier_user_entries, make_plan
from pagein.context.compaction.episodes import legal_stop, summarize_stretch, visible_texts
from pagein.context.view.view import View
from pagein.events.handles import step_handle
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class FoldUsers:
    """Folds the oldest turns, user messages included, above the high mark, if user messages pass ``share`` of the limit.

    Clipping does not help a long chat of short messages. The newest user messages keep ``kept`` of the limit; older turns
    become an extract of ``extract`` of it, the user's lines first.
    """

    share: Annotated[float, POSITIVE_SHARE, "Share of the limit for many short messages."] = 0.5
    kept: Annotated[float, POSITIVE_SHARE, "Share of the limit for the user's newest messages."] = 0.3
    extract: Annotated[float, POSITIVE_SHARE, "Share of the limit for the extract of the older ones."] = 0.2
    name: str = "chat"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan one summary of the oldest turns, or None."""
        if view.tokens <= view.limit * budget.high:
            return None
        earlier = earlier_user_entries(view)
        if not earlier or sum(entry.tokens for entry in earlier) <= view.limit * self.share:
            return None
        tokens_left, stop = view.limit * self.kept, earlier[-1].first
        for entry in reversed(earlier):
            tokens_left -= entry.tokens
            if tokens_left < 0:
                break
            stop = entry.first
        stop = legal_stop(view, stop)
        oldest = tuple(entry for entry in view.run if entry.first < stop)
        if not oldest:
            return None
        visible = visible_texts(view, stop, users=False)
        summary = summarize_stretch(view, oldest, int(view.limit * self.extract), visible, own=True)
        return make_plan((summary,), self.name, f"the user's words pass their share; older than {step_handle(stop)}")
