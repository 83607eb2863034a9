"""Clip: shortens long observations to head and tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import POSITIVE_SHARE, CheckedFields
from pagein.context.compaction import episodes
from pagein.context.compaction.base import Plan, make_plan, put_stubs
from pagein.context.compaction.clips import clip_results
from pagein.context.view.view import View
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Clip(CheckedFields):
    """Clips each observation longer than ``share`` of the limit once the view is above the high mark; the log has it whole.

    The newest action's results, which the model has not read yet, stay whole where they fit.
    """

    share: Annotated[float, POSITIVE_SHARE, "Share of the budget above which an observation is clipped."] = 0.34
    name: str = "clip"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan clips of the observations that are too long, or None."""
        if view.tokens <= view.limit * budget.high:
            return None
        tokens = max(64, int(view.limit * self.share))
        unread = {entry.first for entry in (episodes.newest_entries(view) if episodes.unread_tokens(view) else ())}
        long = (entry for entry in view.run if entry.tokens > tokens and entry.first not in unread)
        replacements = put_stubs(long, lambda entry: clip_results(entry, tokens, view.counter))
        return make_plan(replacements, self.name, f"observations over {tokens} tokens")
