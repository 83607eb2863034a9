"""Window: the newest actions as they are, everything older behind one handle."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, actions, plan_of
from pagein.context.compaction.episodes import fold_before
from pagein.context.view.view import View
from pagein.events.handles import range_handle
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Window:
    """Keeps the last ``keep`` actions; older ones leave, with a line that says where they are.

    Acts above the high mark, or at every call when ``always``.
    """

    keep: int = 10
    always: bool = False
    name: str = "window"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for what is older than the window, or none."""
        if not self.always and view.tokens <= view.limit * budget.high:
            return None
        acted = actions(view)
        if len(acted) <= self.keep:
            return None
        stop = acted[-self.keep].first if self.keep else view.head
        found = fold_before(
            view, stop, lambda first, last: f"Left the window. Handle: {range_handle(first, last)}"
        )
        return plan_of(found, self.name, f"older than the last {self.keep} actions")
