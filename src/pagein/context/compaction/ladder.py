"""The ladder: a policy that applies others in order, the cheapest first, with one prefix break."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, Policy
from pagein.context.compaction.policies.chat import FoldUsers
from pagein.context.compaction.policies.clip import Clip
from pagein.context.compaction.policies.mask import Mask
from pagein.context.compaction.policies.projection import Projection
from pagein.context.compaction.policies.reasoning import DropReasoning
from pagein.context.compaction.policies.users import ClipUsers
from pagein.context.view.body import preview
from pagein.context.view.view import View
from pagein.tokens import Budget

RUNGS: tuple[Policy, ...] = (Clip(), DropReasoning(), ClipUsers(), FoldUsers(), Mask(alone=True), Projection())
"""The default rungs, cheapest first. Behind every policy stands the floor."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Applies each rung to the result of the one before; all their replacements are one plan."""

    rungs: tuple[Policy, ...] = RUNGS
    name: str = "ladder"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Join the plans of the rungs; None without any."""
        whole: Plan | None = None
        for rung in self.rungs:
            plan = rung(view, budget)
            if plan is not None:
                view = preview(view, plan.replacements)
                whole = plan if whole is None else whole.then(plan)
        return whole
