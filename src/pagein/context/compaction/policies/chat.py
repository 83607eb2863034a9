"""Chat: folds the oldest turns of a long chat, user messages included, into one summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import POSITIVE_SHARE, CheckedFields
from pagein.context.compaction.base import Plan, earlier_user_entries, make_plan, newest_user_position
from pagein.context.compaction.episodes import is_summary, legal_stop, may_fold_users, summarize_stretch, visible_texts
from pagein.context.talk import is_talk
from pagein.context.view.body import is_permanent
from pagein.context.view.view import View
from pagein.events.handles import step_handle
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class FoldUsers(CheckedFields):
    """Folds the oldest turns of talk, user messages included, above the high mark, into one extract.

    It acts where the user's words pass ``share`` of the limit: clipping does not help a long chat of short messages. The newest turns keep ``kept`` of the limit, the extract has ``extract`` of it.
    """

    share: Annotated[float, POSITIVE_SHARE, "Share of the limit for many short messages."] = 0.5
    kept: Annotated[float, POSITIVE_SHARE, "Share of the limit for the newest turns."] = 0.6
    extract: Annotated[float, POSITIVE_SHARE, "Share of the limit for the extract of the older ones."] = 0.1
    name: str = "chat"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan one summary of the oldest turns, or None."""
        if view.tokens <= view.limit * budget.high:
            return None
        earlier = sum(entry.tokens for entry in earlier_user_entries(view))
        if not may_fold_users(view) and (is_talk(view) or earlier <= view.full_limit * self.share):
            return None
        stop = legal_stop(view, self._start_of_newest(view))
        oldest = tuple(entry for entry in view.run if entry.first < stop)
        if not oldest or all(map(is_permanent, oldest)) or is_summary(oldest):
            return None
        visible = visible_texts(view, stop, users=False)
        summary = summarize_stretch(view, oldest, int(view.limit * self.extract), visible, own=True)
        return make_plan((summary,), self.name, f"the oldest turns of talk, older than {step_handle(stop)}")

    def _start_of_newest(self, view: View) -> int:
        """Return the position from which the entries cost at most ``kept`` of the limit; the newest exchange is behind it."""
        tokens_left, newest = view.limit * self.kept, newest_user_position(view)
        stop = newest if newest >= 0 else view.head
        for entry in reversed(view.run):
            tokens_left -= entry.tokens
            if tokens_left < 0 and entry.first < newest:
                break
            stop = min(stop, entry.first)
        return stop
