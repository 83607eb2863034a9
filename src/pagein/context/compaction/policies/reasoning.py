"""Drop reasoning: the thinking of closed turns goes, whole; the newest turn keeps its own."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, actions, plan_of
from pagein.context.view.cuts import thinks
from pagein.context.view.view import View
from pagein.events.entries import Replacement, Stub
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class DropReasoning:
    """Takes the thinking out of every action but the newest, above the high mark.

    A provider that signs thinking wants it back unchanged in its last turn and takes older turns without it; a part
    of it would be refused (claude-code#12311).
    """

    name: str = "reasoning"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for all the thinking of closed turns, or none."""
        if view.tokens <= view.limit * budget.high:
            return None
        found = [
            Replacement(each.first, each.last, (Stub("thinking", 0, "", "reasoning"),))
            for each in actions(view)[:-1]
            if thinks(each)
        ]
        return plan_of(found, self.name, "thinking of closed turns")
