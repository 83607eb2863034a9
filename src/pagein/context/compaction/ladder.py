"""The ladder: a policy that applies others in order, the cheapest first, with one prefix break."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pagein.context.compaction.base import Plan, Policy, actions
from pagein.context.compaction.policies.chat import FoldUsers
from pagein.context.compaction.policies.clip import Clip
from pagein.context.compaction.policies.projection import Projection, fill_share
from pagein.context.compaction.policies.reasoning import DropReasoning
from pagein.context.compaction.policies.users import ClipUsers
from pagein.context.view.body import preview
from pagein.context.view.view import View
from pagein.tokens import Budget

RUNGS: tuple[Policy, ...] = (Clip(), DropReasoning(), ClipUsers(), FoldUsers(), Projection())
"""The default rungs, cheapest first. Behind every policy stands the floor."""


ENOUGH = 1.3
"""Times the low mark that a view may have after a rung that broke the prefix: with more the next rungs act, too. Measured
on runs of an agent that thinks: decision 0052."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Applies each rung to the result of the one before, as far as needed; all their replacements are one plan."""

    rungs: tuple[Policy, ...] = RUNGS
    name: str = "ladder"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Join the plans of the rungs; None without any."""
        whole: Plan | None = None
        for rung in self.rungs:
            plan = rung(view, budget)
            if plan is not None:
                if _breaks_prefix(view, plan):
                    # What is behind it is written anew. If that frees little, the next compaction comes too soon.
                    low = fill_share(view.limit) if budget.low is None else budget.low
                    budget = replace(budget, high=min(budget.high, ENOUGH * low), soft=None)
                view = preview(view, plan.replacements)
                whole = plan if whole is None else whole.then(plan)
        return whole


def _breaks_prefix(view: View, plan: Plan) -> bool:
    """True if the plan changes what the model has read already."""
    acted = actions(view)
    return not acted or plan.replacements[0].first < acted[-1].first
