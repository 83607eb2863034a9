"""The user's words: verbatim while together they fit their share, then the longest are clipped, never dropped."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.compaction import Plan, newest_user, plan_of
from pagein.compaction.clip import clip_content
from pagein.log import Replacement, Stub
from pagein.steps import TaskStep
from pagein.tokens import Budget
from pagein.view import Shown, View
from pagein.view.handles import step_handle


@dataclass(frozen=True, slots=True)
class ClipUsers:
    """Clips the user's earlier messages, longest and then oldest first, once together they pass ``share`` of the limit.

    Each is clipped to ``least`` of the limit. The newest words are never touched. Acts above the high mark only, so
    that it breaks the prefix together with what else leaves.
    """

    share: float = 0.5
    least: float = 0.1
    name: str = "users"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for as many messages as it takes, or none."""
        if view.tokens <= view.limit * budget.high:
            return None
        newest = newest_user(view)
        earlier = [each for each in view.run if isinstance(each.item, TaskStep) and each.first != newest]
        over = sum(each.tokens for each in earlier) - int(view.limit * self.share)
        least = max(32, int(view.limit * self.least))
        found = []
        for each in sorted(earlier, key=lambda each: (-each.tokens, each.first)):
            if over <= 0 or each.tokens <= least + 24:
                break
            found.append(Replacement(each.first, each.last, (self._stub(each, view, least),)))
            over -= each.tokens - least
        return plan_of(sorted(found, key=lambda by: by.first), self.name, "the user's words pass their share")

    def _stub(self, shown: Shown, view: View, tokens: int) -> Stub:
        content = shown.item.content if isinstance(shown.item, TaskStep) else ""
        return Stub(
            "content", 0, clip_content(content, tokens, view.counter, step_handle(shown.first)), "clip"
        )
