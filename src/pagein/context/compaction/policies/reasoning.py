"""Reasoning: removes the thinking of closed turns; the newest turn keeps its own."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, make_plan, old_actions
from pagein.context.view.cuts import has_thinking
from pagein.context.view.view import View
from pagein.events.entries import Replacement, Stub
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class DropReasoning:
    """Removes the thinking of every action but the newest, above the high mark.

    A provider that signs thinking wants it back unchanged in the last turn, and accepts older turns without it. It
    refuses parts of it (claude-code#12311).
    """

    name: str = "reasoning"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan the removal of all thinking in closed turns, or None."""
        if view.tokens <= view.limit * budget.high:
            return None
        stubs = (Stub("thinking", 0, "", "reasoning"),)
        closed = filter(has_thinking, old_actions(view, 1))
        replacements = (Replacement(entry.first, entry.last, stubs) for entry in closed)
        return make_plan(replacements, self.name, "thinking of closed turns")
