"""Mask: old observations become stubs, in one batch (SWE-agent's last-n, JetBrains' "complexity trap")."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from pagein.context.compaction.base import Plan, actions, is_stubbed, observed, plan_of
from pagein.context.view.fold import preview
from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement, Stub
from pagein.events.handles import observation_handle
from pagein.events.identifiers import identifiers
from pagein.events.steps import Observation, as_text
from pagein.tokens import Budget

LOOKED_AT = 4_000
"""Characters of an observation in which a stub looks for identifiers."""

SHORTEST = 160
"""Characters below which a stub would save nothing worth a broken prefix."""


@dataclass(frozen=True, slots=True)
class Mask:
    """Masks observations older than the last ``keep`` actions, above the high mark; calls stay as they are.

    A stub holds the handle, the first line and the observation's identifiers. Masking old observations halves cost
    at an equal or better solve rate than summaries written by a model (arXiv 2508.21433, keep = 10). ``alone`` makes
    it a rung of a ladder: it then acts only where masking by itself brings the view down to the low mark.
    """

    keep: int = 10
    alone: bool = False
    name: str = "mask"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan for every old observation that is long enough, or none."""
        if view.tokens <= view.limit * budget.high:
            return None
        acted = actions(view)
        old = acted[: max(0, len(acted) - self.keep)]
        found = [Replacement(each.first, each.last, stubs) for each in old if (stubs := mask_stubs(each))]
        if self.alone and preview(view, found).tokens > view.limit * budget.low_share:
            return None
        return plan_of(found, self.name, f"observations older than the last {self.keep} actions")


def mask_stubs(shown: Shown) -> tuple[Stub, ...]:
    """Stubs for the observations of one action that are worth it."""
    return tuple(
        Stub("observation", index, stub_text(seen, observation_handle(shown.first, index)), "mask")
        for index, seen in observed(shown)
        if len(as_text(seen.content)) > SHORTEST and not is_stubbed(shown, "observation", index)
    )


def stub_text(seen: Observation, handle: str) -> str:
    """One line that stands for an observation: its size, its first line, its identifiers, its handle."""
    text = as_text(seen.content)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")[:80]
    names = ", ".join(dict.fromkeys(islice(identifiers(text[:LOOKED_AT]), 6)))
    return f"[{len(text):,} characters masked: {handle}] {first}" + (f" | {names}" if names else "")
