"""Mask: replaces old observations by stubs, in one batch (SWE-agent's last-n, JetBrains' "complexity trap")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from pagein._common.validation import COUNT, CheckedFields
from pagein.context.compaction.base import Plan, is_stubbed, iter_observations, make_plan, old_actions, put_stubs
from pagein.context.view.body import preview
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.entries import Stub
from pagein.events.handles import observation_handle
from pagein.events.identifiers import identifiers
from pagein.events.steps import Observation, as_text
from pagein.tokens import Budget

SCANNED_CHARS = 4_000
"""Characters of an observation that are searched for identifiers."""

MASK_MIN_CHARS = 160
"""Characters of an observation up to which a stub would save too little for a broken prefix."""


@dataclass(frozen=True, slots=True)
class Mask(CheckedFields):
    """Masks observations older than the last ``keep`` actions, above the high mark; calls stay.

    A stub has the handle, the first line and the identifiers of an observation. Masking halves the cost at an equal or
    better solve rate than summaries by a model (arXiv 2508.21433, keep = 10). With ``alone`` it acts
    only if masking alone brings the view down to the low mark.
    """

    keep: Annotated[int, COUNT, "Newest actions whose observations stay whole."] = 10
    alone: Annotated[bool, "Act only where masking alone reaches the low mark."] = False
    name: str = "mask"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan stubs for all old observations that are long enough, or None."""
        if view.tokens <= view.limit * budget.high:
            return None
        replacements = list(put_stubs(old_actions(view, self.keep), mask_stubs))
        if self.alone and preview(view, replacements).tokens > view.limit * budget.low_share:
            return None
        return make_plan(replacements, self.name, f"observations older than the last {self.keep} actions")


def mask_stubs(entry: ViewEntry) -> Iterator[Stub]:
    """Yield stubs for the observations of an action that are long enough."""
    for index, observation in iter_observations(entry):
        if len(as_text(observation.content)) > MASK_MIN_CHARS and not is_stubbed(entry, index):
            yield Stub("observation", index, _stub_text(observation, observation_handle(entry.first, index)), "mask")


def _stub_text(observation: Observation, handle: str) -> str:
    """Return the stub of an observation: its size, handle, first line and identifiers."""
    text = as_text(observation.content)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")[:80]
    names = ", ".join(dict.fromkeys(islice(identifiers(text[:SCANNED_CHARS]), 6)))
    return f"{masked_line(text, handle)} {first}" + (f" | {names}" if names else "")


def masked_line(text: str, handle: str, why: str = "") -> str:
    """Return the line that says how long a masked text is, its handle, and why it left where there is more to say."""
    return f"[{len(text):,} characters masked: {handle}{why and '; '}{why}]"
