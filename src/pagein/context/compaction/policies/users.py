"""The user's words: verbatim while together they fit their share, then the longest are clipped, never dropped."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, newest_user, plan_of
from pagein.context.compaction.episodes import legal_stop
from pagein.context.compaction.extracts import summary_of, visible_from
from pagein.context.compaction.policies.clip import clip_content
from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement, Stub
from pagein.events.handles import step_handle
from pagein.events.steps import TaskStep
from pagein.tokens import Budget


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
        earlier = earlier_words(view)
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


def earlier_words(view: View) -> list[Shown]:
    """What the user said before the newest words, as it is shown."""
    newest = newest_user(view)
    return [each for each in view.run if isinstance(each.item, TaskStep) and each.first != newest]


@dataclass(frozen=True, slots=True)
class FoldUsers:
    """Folds the oldest turns, the user's words with them, where so many short messages pass ``share`` of the limit.

    Clipping cannot help a long chat: each message is short already. The newest words of the user keep ``kept`` of the
    limit; what is older becomes an extract of ``extract`` of it, the user's words first.
    """

    share: float = 0.5
    kept: float = 0.3
    extract: float = 0.2
    name: str = "chat"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for the oldest turns, as one summary, or none."""
        earlier = earlier_words(view)
        if view.tokens <= view.limit * budget.high or not earlier:
            return None
        if sum(each.tokens for each in earlier) <= view.limit * self.share:
            return None
        left, stop = view.limit * self.kept, earlier[-1].first
        for each in reversed(earlier):
            left -= each.tokens
            if left < 0:
                break
            stop = each.first
        stop = legal_stop(view, stop)
        held = tuple(each for each in view.run if each.first < stop)
        if not held:
            return None
        visible = visible_from(view, stop, users=False)
        by = summary_of(view, held, int(view.limit * self.extract), visible, own=True)
        return plan_of((by,), self.name, f"the user's words pass their share; older than {step_handle(stop)}")
