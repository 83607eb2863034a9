"""Where a view may be split: the intersection of what each rule allows.

A run of entries between two cuts may leave whole. An action and its observations are one entry, so no cut parts a
call from its result.
"""

from __future__ import annotations

from collections.abc import Callable

from pagein.context.view.fold import is_kept
from pagein.context.view.stubs import is_thinking
from pagein.context.view.view import Shown, View
from pagein.events.protocol import open_calls
from pagein.events.steps import ActionStep, TaskStep, as_parts

Rule = Callable[[View], frozenset[int]]


def entry_bounds(view: View) -> frozenset[int]:
    """Between any two entries of the run, and at its ends."""
    return frozenset(each.first for each in view.run) | {view.head}


def before_open_calls(view: View) -> frozenset[int]:
    """Not behind an action that still waits for a result: it stays until its results are in."""
    waiting = next((each.first for each in view.run if _waits(each)), view.head)
    return frozenset(each for each in entry_bounds(view) if each <= waiting)


def before_live_thinking(view: View) -> frozenset[int]:
    """Not behind the newest action where it carries thinking: providers want the last turn's reasoning back.

    Anthropic refuses a tool loop whose last assistant turn lost its signed thinking (claude-code#12311). Once the
    user spoke again the turn is closed, and may leave.
    """
    newest = next((each for each in reversed(view.run) if isinstance(each.item, ActionStep | TaskStep)), None)
    if newest is None or not thinks(newest):
        return entry_bounds(view)
    return frozenset(each for each in entry_bounds(view) if each <= newest.first)


RULES: tuple[Rule, ...] = (entry_bounds, before_open_calls, before_live_thinking)


def cuts(view: View) -> tuple[int, ...]:
    """The positions where the run may be split, in order; what lies between the first and any of them may leave."""
    allowed = RULES[0](view)
    for rule in RULES[1:]:
        allowed &= rule(view)
    return tuple(sorted(allowed))


def leaving(view: View, stop: int) -> tuple[Shown, ...]:
    """The entries before ``stop`` that a compaction may take out."""
    return tuple(each for each in view.run if each.first < stop and not is_kept(each))


def _waits(shown: Shown) -> bool:
    return isinstance(shown.item, ActionStep) and bool(open_calls(shown.item, shown.first))


def thinks(shown: Shown) -> bool:
    """True for an action shown with its reasoning."""
    return isinstance(shown.item, ActionStep) and any(map(is_thinking, as_parts(shown.item.content)))
