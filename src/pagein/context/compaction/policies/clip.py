"""Clip: shortens long observations to head and tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import POSITIVE_SHARE, CheckedFields
from pagein.context.compaction.base import Plan
from pagein.context.compaction.clips import clip_results
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Clip(CheckedFields):
    """Clips each observation longer than ``share`` of the limit as it enters the view; the log has it whole."""

    share: Annotated[float, POSITIVE_SHARE, "Share of the budget above which an observation is clipped."] = 0.34
    name: str = "clip"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan clips of the observations that are too long, or None."""
        del budget
        tokens = max(64, int(view.limit * self.share))
        replacements = []
        for entry in reversed(view.run):
            if entry.tier in ("summary", "clip", "mask"):
                break  # entries before it were checked when they were new
            if entry.tokens > tokens:
                stubs = tuple(clip_results(entry, tokens, view.counter))
                if stubs:
                    replacements.append(Replacement(entry.first, entry.last, stubs))
        if not replacements:
            return None
        return Plan(tuple(reversed(replacements)), self.name, f"observations over {tokens} tokens")
