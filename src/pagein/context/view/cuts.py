"""Cuts: the positions at which a view may be split, the intersection of what each rule allows.

A compaction removes whole runs of entries between two cuts. An action and its observations are one entry, so no cut
separates a call from its result.
"""

from __future__ import annotations

from collections.abc import Callable

from pagein.context.view.layout import ViewEntry, is_thinking
from pagein.context.view.view import View
from pagein.events.protocol import open_calls
from pagein.events.steps import ActionStep, TaskStep, as_parts

CutRule = Callable[[View], frozenset[int]]


def entry_bounds(view: View) -> frozenset[int]:
    """Allow a cut between any two entries of the run, and at its ends."""
    return frozenset(entry.first for entry in view.run) | {view.head}


def before_open_calls(view: View) -> frozenset[int]:
    """Allow no cut behind an action that waits for a result: it stays until all its results have come."""
    actions = ((entry.first, entry.item) for entry in view.run if isinstance(entry.item, ActionStep))
    waiting = next((first for first, action in actions if open_calls(action, first)), view.head)
    return frozenset(bound for bound in entry_bounds(view) if bound <= waiting)


def before_live_thinking(view: View) -> frozenset[int]:
    """Allow no cut behind the newest action if it has thinking: providers want the reasoning of the last turn back.

    Anthropic refuses a tool loop whose last assistant turn lost its signed thinking (claude-code#12311). A new user
    message closes the turn, and then it may leave.
    """
    newest = next((entry for entry in reversed(view.run) if isinstance(entry.item, ActionStep | TaskStep)), None)
    if newest is None or not has_thinking(newest):
        return entry_bounds(view)
    return frozenset(bound for bound in entry_bounds(view) if bound <= newest.first)


RULES: tuple[CutRule, ...] = (entry_bounds, before_open_calls, before_live_thinking)


def cuts(view: View) -> tuple[int, ...]:
    """Return the positions where the run may be split, in order."""
    return tuple(sorted(frozenset.intersection(*(rule(view) for rule in RULES))))


def has_thinking(entry: ViewEntry) -> bool:
    """True for an action whose reasoning is in the view."""
    return isinstance(entry.item, ActionStep) and any(map(is_thinking, as_parts(entry.item.content)))
