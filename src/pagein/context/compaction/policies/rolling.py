"""Rolling: folds all but the last few steps every few steps (hierarchical working memory, seed 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import COUNT, POSITIVE_COUNT, POSITIVE_SHARE, CheckedFields
from pagein.context.compaction.base import Plan, actions, make_plan
from pagein.context.compaction.episodes import legal_stop, summarize_before
from pagein.context.view.view import View
from pagein.events.handles import step_handle
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Rolling(CheckedFields):
    """Folds all but the last ``keep`` actions whenever ``every`` more have come, or above the high mark.

    The summaries together have ``share`` of the limit. The article's example folds at 6 messages and keeps 3; here steps
    are counted, so that a call keeps its result.
    """

    every: Annotated[int, POSITIVE_COUNT, "New actions after which the older ones are folded."] = 6
    keep: Annotated[int, COUNT, "Newest actions that stay."] = 3
    share: Annotated[float, POSITIVE_SHARE, "Share of the limit for all summaries together."] = 0.25
    name: str = "rolling"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan a fold of everything older than the last few actions, or None."""
        acted = actions(view)
        is_due = len(acted) >= self.keep + self.every or view.tokens > view.limit * budget.high
        if not is_due or len(acted) <= self.keep:
            return None
        stop = legal_stop(view, acted[-self.keep].first if self.keep else view.head)
        replacements = summarize_before(view, stop, int(view.limit * self.share))
        return make_plan(replacements, self.name, f"older than {step_handle(stop)}")
