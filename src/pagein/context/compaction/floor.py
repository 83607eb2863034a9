"""The floor: a deterministic fallback that makes any view fit, in a fixed order of stages.

1. Fold the oldest turns, as few as needed, at last all but the newest turn and the user messages.
2. Clip the earlier user messages if together they have more than half of the limit.
3. Clip the newest turn's results, arguments and prose, then the earlier user messages, shorter each time.
4. Fold the oldest user messages, as many as needed, into one line with the handle of their range.

System prompts, pins and the newest user message stay verbatim. If these alone are over the limit, nothing fits, and the
caller raises OverBudget.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial

from pagein.context.compaction import base
from pagein.context.compaction.clips import clip_entry, clip_user_message
from pagein.context.compaction.episodes import USER_SHARE, fold_before, may_fold_users
from pagein.context.view.body import is_permanent, preview
from pagein.context.view.cuts import cuts
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.events.handles import range_handle
from pagein.tokens import Budget

FILL_SHARE = 0.9
"""Share of the limit to fill when turns are folded, so that not every turn folds one."""

CLIP_TOKENS = (256, 64, 16, 4)
"""Tokens to which entries are clipped, one try after the other."""

FloorStage = Callable[[View], list[Replacement]]


def floor(view: View, budget: Budget) -> base.Plan | None:
    """Plan the least that makes the view fit, or as much as possible; None if it fits."""
    del budget
    replacements: tuple[Replacement, ...] = ()
    for stage in _stages():
        if view.tokens <= view.limit:
            break
        proposed = stage(view)
        after = preview(view, proposed) if proposed else view
        if after.tokens < view.tokens:
            replacements, view = (*replacements, *proposed), after
    return base.make_plan(base.drop_covered(replacements), "floor", "nothing else fits")


def _stages() -> Iterator[FloorStage]:
    yield _fold_oldest_turns
    yield _fold_oldest_talk
    yield _clip_users_over_share
    for tokens in CLIP_TOKENS[:-1]:
        yield partial(_clip_newest, tokens=tokens)
    for tokens in CLIP_TOKENS[:-1]:
        yield partial(_clip_users, tokens=tokens)
    yield partial(_clip_newest, tokens=CLIP_TOKENS[-1])
    yield partial(_clip_users, tokens=CLIP_TOKENS[-1])
    yield _fold_oldest_entries
    yield lambda view: list(fold_before(view, view.head, _range_line))


def _range_line(first: int, last: int) -> str:
    return f"Left out to fit: {range_handle(first, last)}"


def _fold_oldest_turns(view: View) -> list[Replacement]:
    """Fold the oldest turns, as few as needed to fill ``FILL_SHARE``; at last all but the newest."""
    entries, allowed = base.actions(view), frozenset(cuts(view))
    stops = [entry.first for entry in entries if entry.first in allowed]

    def fold_turns(stop: int) -> list[Replacement]:
        return list(fold_before(view, stop, _range_line))

    fewest = _count_to_fill(view, stops, fold_turns) if stops else 0
    return fold_turns(stops[fewest] if fewest < len(stops) else entries[-1].first) if entries else []


def _count_to_fill(view: View, stops: list[int], fold: Callable[[int], list[Replacement]]) -> int:
    """Return the index, at least 1, of the first stop whose fold brings the view to ``FILL_SHARE`` of the limit."""
    target = view.limit * FILL_SHARE
    return bisect_left(stops, True, lo=1, key=lambda stop: preview(view, fold(stop)).tokens <= target)


def _fold_oldest_talk(view: View) -> list[Replacement]:
    """Fold the oldest entries of a run that is talk, as few as needed: many clipped turns say less than the newest whole."""
    return _fold_oldest_entries(view) if may_fold_users(view) else []


def _clip_users_over_share(view: View) -> list[Replacement]:
    earlier = sum(entry.tokens for entry in base.earlier_user_entries(view))
    return _clip_users(view, CLIP_TOKENS[0]) if earlier > view.full_limit * USER_SHARE else []


def _must_users_stay(view: View) -> bool:
    """True in a part of the limit while the user's words are within their share: what else was to have room gives way."""
    return view.limit < view.full_limit and view.user_tokens <= view.full_limit * USER_SHARE


def _clip_users(view: View, tokens: int) -> list[Replacement]:
    if _must_users_stay(view):
        return []
    return [
        clip_user_message(entry, tokens, view.counter)
        for entry in base.earlier_user_entries(view)
        if entry.tokens > tokens + 24
    ]


def _clip_newest(view: View, tokens: int) -> list[Replacement]:
    long = (entry for entry in view.run if entry.tokens > tokens)
    return list(base.put_stubs(long, lambda entry: clip_entry(entry, tokens, view.counter, "floor")))


def _fold_oldest_entries(view: View) -> list[Replacement]:
    """Fold the oldest entries before the newest user message, user messages too, as few as needed."""
    if _must_users_stay(view):
        return []
    # Pins and important steps at the start of the run stay: a fold of these alone would replace nothing.
    leaving = (entry.first for entry in view.run if not is_permanent(entry) and entry.first not in view.important)
    first = next(leaving, view.head)
    bounds = [position for position in cuts(view) if first <= position <= base.newest_user_position(view)]
    if len(bounds) < 2:
        return []

    def fold_entries(stop: int) -> list[Replacement]:
        return [Replacement(bounds[0], stop, summary=_range_line(bounds[0], stop))]

    return fold_entries(bounds[min(_count_to_fill(view, bounds, fold_entries), len(bounds) - 1)])
