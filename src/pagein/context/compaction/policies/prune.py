"""Prune old observations: beyond the last few, each keeps its first characters and its handle (tinyAgent)."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.compaction.base import Plan, actions, is_stubbed, observed, plan_of
from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement, Stub
from pagein.events.handles import observation_handle
from pagein.events.steps import as_text
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class PruneOldObservations:
    """Cuts observations older than the last ``keep_last_n`` actions to ``max_length`` characters, above the high mark.

    tinyAgent's ``prune_old_observations`` cut the record itself; here the original stays behind the handle.
    """

    keep_last_n: int = 3
    max_length: int = 100
    name: str = "prune"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for all the old observations that are longer, in one batch, or none."""
        if view.tokens <= view.limit * budget.high:
            return None
        acted = actions(view)
        old = acted[: max(0, len(acted) - self.keep_last_n)]
        found = [
            Replacement(each.first, each.last, stubs) for each in old if (stubs := tuple(self._stubs(each)))
        ]
        return plan_of(found, self.name, f"observations older than the last {self.keep_last_n} actions")

    def _stubs(self, shown: Shown) -> list[Stub]:
        stubs = []
        for index, seen in observed(shown):
            text = as_text(seen.content)
            if len(text) > self.max_length + 40 and not is_stubbed(shown, "observation", index):
                handle = observation_handle(shown.first, index)
                short = f"{text[: self.max_length]}\n[... {len(text):,} characters: {handle}]"
                stubs.append(Stub("observation", index, short, "mask"))
        return stubs
