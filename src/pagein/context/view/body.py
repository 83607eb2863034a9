"""The part of a view that compactions change, and the view as it would be after one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pagein.context.view.layout import ViewEntry, make_entry
from pagein.context.view.view import View, request_cost
from pagein.errors import LogUnreadable
from pagein.events import entries, steps
from pagein.tokens import TokenCounter


def replacement_entry(old: Sequence[ViewEntry], by: entries.Replacement, counter: TokenCounter, why: str) -> ViewEntry:
    """Build the entry that replaces ``old``: a summary of the range, or its one step with stubs in their slots."""
    if by.summary is not None:
        step = steps.SummaryStep(by.summary, by.author)
        return make_entry(step, by.first, by.last, counter, tier="summary", why=why)
    if len(old) != 1:
        raise LogUnreadable(f"a compaction names one step at {by.first}, the view has {len(old)} there")
    slots = {(stub.slot, stub.index) for stub in by.stubs}
    entry = old[0]
    stubs = tuple(stub for stub in entry.stubs if (stub.slot, stub.index) not in slots) + by.stubs
    tier = by.stubs[-1].tier if by.stubs else "whole"
    why = entry.why if len(stubs) > len(by.stubs) and why.split(":", maxsplit=1)[0] in entries.BY_LIST else why
    return make_entry(entry.item, entry.first, entry.last, counter, tier=tier, why=why, ids=entry.ids, stubs=stubs)


def is_permanent(entry: ViewEntry) -> bool:
    """True for entries that no compaction removes: pins, and system prompts in the middle of the run."""
    return isinstance(entry.item, entries.Pin | steps.SystemPromptStep)


@dataclass(slots=True)
class ViewBody:
    """The part of a view behind the system prompts: ``front``, then the run in order, each position once.

    ``front`` has the pins and late system prompts whose neighbours were folded.
    """

    front: list[ViewEntry] = field(default_factory=list)
    run: list[ViewEntry] = field(default_factory=list)

    def replace(self, by: entries.Replacement, counter: TokenCounter, why: str) -> None:
        """Replace a range by its summary or stubs; entries that no compaction removes move to the front."""
        start = bisect_left(self.run, by.first, key=lambda entry: entry.first)
        stop = bisect_left(self.run, by.last, key=lambda entry: entry.first)
        old = self.run[start:stop]
        leaving = [entry for entry in old if by.summary is None or not is_permanent(entry)]
        if not leaving or old[0].first != by.first:
            raise LogUnreadable(f"a compaction covers [{by.first}, {by.last}), where the view has nothing to replace")
        new = replacement_entry(leaving, by, counter, why)
        if by.summary is not None:
            self.front.extend(entry for entry in old if is_permanent(entry))
        self.run[start:stop] = [new]


def find_shown(run: Sequence[ViewEntry], position: int) -> ViewEntry | None:
    """Return the entry that shows the step at a position; None where it is behind a summary, or stays in every view."""
    at = bisect_left(run, position, key=lambda entry: entry.first)
    if at == len(run) or (run[at].first, run[at].last) != (position, position + 1):
        return None
    return None if isinstance(run[at].item, steps.SummaryStep) or is_permanent(run[at]) else run[at]


def preview(view: View, replacements: Iterable[entries.Replacement], why: str = "") -> View:
    """Return the view as it would be after the replacements. Nothing is recorded."""
    body = ViewBody(list(view.front), list(view.run))
    for replacement in replacements:
        body.replace(replacement, view.counter, why)
    front, run = tuple(body.front), tuple(body.run)
    tokens = request_cost((*view.systems, *front, *run), view.counter)
    important = view.important if view.find_important is None else view.find_important(run)
    return replace(view, front=front, run=run, tokens=tokens, important=important)
