"""Users: clips the longest user messages when together they exceed their share; none is dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import POSITIVE_SHARE, CheckedFields
from pagein.context.compaction.base import Plan, earlier_user_entries, make_plan
from pagein.context.compaction.clips import clip_user_message
from pagein.context.view.view import View
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class ClipUsers(CheckedFields):
    """Clips earlier user messages, longest and then oldest first, if together they pass ``share`` of the limit.

    Each is clipped to ``least`` of the limit. The newest message stays. Acts above the high mark only, so that the prefix
    breaks once for all policies.
    """

    share: Annotated[float, POSITIVE_SHARE, "Share of the limit for the user's earlier messages."] = 0.5
    least: Annotated[float, POSITIVE_SHARE, "Share of the limit that each message keeps at least."] = 0.1
    name: str = "users"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan clips of as many messages as needed, or None."""
        if view.tokens <= view.limit * budget.high:
            return None
        earlier = earlier_user_entries(view)
        over = sum(entry.tokens for entry in earlier) - int(view.full_limit * self.share)
        least = max(32, int(view.limit * self.least))
        replacements = []
        for entry in sorted(earlier, key=lambda entry: (-entry.tokens, entry.first)):
            if over <= 0 or entry.tokens <= least + 24:
                break
            replacements.append(clip_user_message(entry, least, view.counter))
            over -= entry.tokens - least
        replacements.sort(key=lambda replacement: replacement.first)
        return make_plan(replacements, self.name, "the user's words pass their share")
