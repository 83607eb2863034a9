"""The ladder: cheap before dear, one prefix break a pass."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.compaction import Plan, Policy
from pagein.compaction.clip import Clip
from pagein.compaction.mask import Mask
from pagein.compaction.projection import Projection
from pagein.compaction.reasoning import DropReasoning
from pagein.compaction.users import ClipUsers, FoldUsers
from pagein.tokens import Budget
from pagein.view import View
from pagein.view.fold import preview

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
