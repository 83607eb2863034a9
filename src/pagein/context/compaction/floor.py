"""The deterministic floor: whatever it takes to fit, in a fixed order, and nothing that may not leave.

It gives up, in this order: the oldest turns, as few as it takes, at last everything but the newest turn and the user's
words; the length of the user's older words
where together they pass their half; the length of the newest turn's results, arguments and prose; the length of the
user's older words all the same; the oldest of them, as many as it takes, into one line with the handle of their range.
System prompts, pins and the user's newest words stay verbatim; if those alone are over the budget, nothing fits and
the caller raises OverBudget.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial

from pagein.context.compaction.base import Plan, actions, newest_user, plan_of, settled
from pagein.context.compaction.episodes import fold_before
from pagein.context.compaction.policies.clip import clip_content, clip_whole
from pagein.context.view.cuts import cuts
from pagein.context.view.fold import is_kept, preview
from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement, Stub
from pagein.events.handles import range_handle, step_handle
from pagein.events.steps import TaskStep
from pagein.tokens import Budget

HALF = 0.5
"""The share of the limit within which the user's earlier words stay verbatim."""

SLACK = 0.9
"""The share of the limit that is filled where the oldest have to go, so that not each turn takes one."""

CLIPS = (256, 64, 16, 4)
"""Tokens to which things are clipped, one try after the other."""

Rung = Callable[[View], list[Replacement]]


def floor(view: View, budget: Budget) -> Plan | None:
    """The least that brings the view within its limit, or all that can be done towards it; None when it fits."""
    del budget
    taken: tuple[Replacement, ...] = ()
    for rung in _rungs():
        if view.tokens <= view.limit:
            break
        found = rung(view)
        after = preview(view, found) if found else view
        if after.tokens < view.tokens:
            taken, view = (*taken, *found), after
    return plan_of(settled(taken), "floor", "nothing else fits")


def _rungs() -> Iterator[Rung]:
    yield _all_but_newest
    yield _users_over_half
    for tokens in CLIPS[:-1]:
        yield partial(_clip_newest, tokens=tokens)
    for tokens in CLIPS[:-1]:
        yield partial(_clip_users, tokens=tokens)
    yield partial(_clip_newest, tokens=CLIPS[-1])
    yield partial(_clip_users, tokens=CLIPS[-1])
    yield _oldest
    yield _everything


def _line(first: int, last: int) -> str:
    return f"Left out to fit: {range_handle(first, last)}"


def _all_but_newest(view: View) -> list[Replacement]:
    """One line for the oldest turns: as few as it takes, with some slack; all but the newest where that is too few."""
    acted, allowed = actions(view), frozenset(cuts(view))
    stops = [each.first for each in acted if each.first in allowed]
    if not stops:
        return list(fold_before(view, acted[-1].first, _line)) if acted else []

    def folded(stop: int) -> list[Replacement]:
        return list(fold_before(view, stop, _line))

    fits = bisect_left(
        stops, True, lo=1, key=lambda stop: preview(view, folded(stop)).tokens <= view.limit * SLACK
    )
    return folded(stops[fits] if fits < len(stops) else acted[-1].first)


def _everything(view: View) -> list[Replacement]:
    return list(fold_before(view, view.head, _line))


def _users_over_half(view: View) -> list[Replacement]:
    newest = newest_user(view)
    earlier = sum(
        each.tokens for each in view.run if isinstance(each.item, TaskStep) and each.first != newest
    )
    return _clip_users(view, CLIPS[0]) if earlier > view.limit * HALF else []


def _clip_users(view: View, tokens: int) -> list[Replacement]:
    newest = newest_user(view)
    return [
        Replacement(each.first, each.last, (Stub("content", 0, _clipped(each, view, tokens), "clip"),))
        for each in view.run
        if isinstance(each.item, TaskStep) and each.first != newest and each.tokens > tokens + 24
    ]


def _clipped(shown: Shown, view: View, tokens: int) -> str:
    content = shown.item.content if isinstance(shown.item, TaskStep) else ""
    return clip_content(content, tokens, view.counter, step_handle(shown.first))


def _clip_newest(view: View, tokens: int) -> list[Replacement]:
    return [
        Replacement(each.first, each.last, stubs)
        for each in view.run
        if each.tokens > tokens and (stubs := tuple(clip_whole(each, tokens, view.counter, "floor")))
    ]


def _oldest(view: View) -> list[Replacement]:
    """One line for the oldest entries before the user's newest words, the user's included: as few as it takes."""
    # Pins at the front stay: a fold of nothing else would replace nothing.
    first = next((each.first for each in view.run if not is_kept(each)), view.head)
    bounds = [each for each in cuts(view) if first <= each <= newest_user(view)]
    if len(bounds) < 2:
        return []

    def folded(stop: int) -> list[Replacement]:
        return [Replacement(bounds[0], stop, summary=_line(bounds[0], stop))]

    fits = bisect_left(
        bounds, True, lo=1, key=lambda stop: preview(view, folded(stop)).tokens <= view.limit * SLACK
    )
    return folded(bounds[min(fits, len(bounds) - 1)])
