"""Rolling summary: every so many steps, all but the last few become one summary (hierarchical working memory, seed 3)."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, actions, plan_of
from pagein.context.compaction.episodes import legal_stop
from pagein.context.compaction.extracts import summaries
from pagein.context.view.view import View
from pagein.events.handles import step_handle
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Rolling:
    """Folds all but the last ``keep`` actions whenever ``every`` more have come, or above the high mark.

    The summaries together have ``share`` of the limit. The article's example folded at 6 messages and kept 3; counted
    in steps here, so that a call keeps its result.
    """

    every: int = 6
    keep: int = 3
    share: float = 0.25
    name: str = "rolling"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan that folds what is older than the last few actions, or none."""
        acted = actions(view)
        due = len(acted) >= self.keep + self.every or view.tokens > view.limit * budget.high
        if not due or len(acted) <= self.keep:
            return None
        stop = legal_stop(view, acted[-self.keep].first if self.keep else view.head)
        found = summaries(view, stop, int(view.limit * self.share))
        return plan_of(found, self.name, f"older than {step_handle(stop)}")
