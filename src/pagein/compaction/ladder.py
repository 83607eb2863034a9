"""The ladder: cheap before dear, one prefix break a pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from pagein.compaction import Plan, Policy
from pagein.compaction.clip import Clip
from pagein.compaction.projection import Projection
from pagein.compaction.reasoning import DropReasoning
from pagein.tokens import Budget
from pagein.view import View
from pagein.view.fold import preview


@dataclass(frozen=True, slots=True)
class Ladder:
    """Each rung in turn, until the view is under the high mark; all that leaves is one plan."""

    rungs: tuple[Policy, ...] = field(default_factory=lambda: (Clip(), DropReasoning(), Projection()))
    name: str = "ladder"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """What leaves this time, or none."""
        whole: Plan | None = None
        for rung in self.rungs:
            plan = rung(view, budget)
            if plan is not None:
                view = preview(view, plan.replacements)
                whole = plan if whole is None else whole.then(plan)
        return whole
