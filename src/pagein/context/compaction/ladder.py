"""The ladder: cheap before dear, one prefix break a pass."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, Policy
from pagein.context.compaction.policies.clip import Clip
from pagein.context.compaction.policies.mask import Mask
from pagein.context.compaction.policies.projection import Projection
from pagein.context.compaction.policies.reasoning import DropReasoning
from pagein.context.compaction.policies.users import ClipUsers, FoldUsers
from pagein.context.view.fold import preview
from pagein.context.view.view import View
from pagein.tokens import Budget

RUNGS: tuple[Policy, ...] = (
    Clip(),
    DropReasoning(),
    ClipUsers(),
    FoldUsers(),
    Mask(alone=True),
    Projection(),
)
"""Cheap before dear. The floor stands below: whoever asks a policy falls back on it."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Each rung in turn, until the view is under the high mark; all that leaves is one plan."""

    rungs: tuple[Policy, ...] = RUNGS
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
