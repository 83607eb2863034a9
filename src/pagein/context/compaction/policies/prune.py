"""Prune: cuts old observations to their first characters and a handle (tinyAgent)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import COUNT, CheckedFields
from pagein.context.compaction.base import Plan, is_stubbed, iter_observations, make_plan, old_actions, put_stubs
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.entries import Stub
from pagein.events.handles import observation_handle
from pagein.events.steps import as_text
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class PruneOldObservations(CheckedFields):
    """Cuts observations older than the last ``keep_last_n`` actions to ``max_length`` characters, above the high mark.

    tinyAgent's ``prune_old_observations`` cuts the record itself; here the handle gives the original back.
    """

    keep_last_n: Annotated[int, COUNT, "Newest actions whose observations stay whole."] = 3
    max_length: Annotated[int, COUNT, "Characters that older observations keep."] = 100
    name: str = "prune"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan stubs for all old observations that are longer, or None."""
        if view.tokens <= view.limit * budget.high:
            return None
        replacements = put_stubs(old_actions(view, self.keep_last_n), self._stubs)
        return make_plan(replacements, self.name, f"observations older than the last {self.keep_last_n} actions")

    def _stubs(self, entry: ViewEntry) -> Iterator[Stub]:
        for index, observation in iter_observations(entry):
            text = as_text(observation.content)
            if len(text) > self.max_length + 40 and not is_stubbed(entry, index):
                handle = observation_handle(entry.first, index)
                short = f"{text[: self.max_length]}\n[... {len(text):,} characters: {handle}]"
                yield Stub("observation", index, short, "mask")
