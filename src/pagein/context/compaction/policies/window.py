"""Window: keeps the newest actions, and replaces older ones by a line with their handle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import COUNT, CheckedFields
from pagein.context.compaction.base import Plan, actions, make_plan
from pagein.context.compaction.episodes import fold_before
from pagein.context.view.view import View
from pagein.events.handles import range_handle
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Window(CheckedFields):
    """Keeps the last ``keep`` actions; older ones are replaced by a line with their handle.

    Acts above the high mark, or at every call when ``always``.
    """

    keep: Annotated[int, COUNT, "Newest actions that stay."] = 10
    always: Annotated[bool, "Act at every call, not only above the high mark."] = False
    name: str = "window"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan the removal of everything older than the window, or None."""
        if not self.always and view.tokens <= view.limit * budget.high:
            return None
        acted = actions(view)
        if len(acted) <= self.keep:
            return None
        stop = acted[-self.keep].first if self.keep else view.head
        replacements = fold_before(
            view, stop, lambda first, last: f"Left the window. Handle: {range_handle(first, last)}"
        )
        return make_plan(replacements, self.name, f"older than the last {self.keep} actions")
