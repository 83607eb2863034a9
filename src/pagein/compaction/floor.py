"""The deterministic floor: whatever it takes to fit, in a fixed order, and nothing that may not leave.

It gives up, in this order: everything but the newest turn and the user's words, then the length of the user's older
words, then the length of the newest turn's results and arguments, then older words of the user into one line each
range. System prompts, pins and the user's newest words stay verbatim; if those alone are over the budget, nothing
fits and the caller raises OverBudget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pagein.compaction import Plan, actions, newest_user, plan_of, settled
from pagein.compaction.clip import clip_content, clip_whole
from pagein.compaction.folding import fold_before
from pagein.log import Replacement, Stub
from pagein.steps import TaskStep
from pagein.tokens import Budget
from pagein.view import Shown, View
from pagein.view.fold import is_kept, preview
from pagein.view.handles import range_handle, step_handle

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
    for tokens in CLIPS:
        yield lambda view, tokens=tokens: _clip_users(view, tokens)  # type: ignore[misc]
        yield lambda view, tokens=tokens: _clip_newest(view, tokens)  # type: ignore[misc]
    yield _older_users
    yield _everything


def _line(first: int, last: int) -> str:
    return f"Left out to fit: {range_handle(first, last)}"


def _all_but_newest(view: View) -> list[Replacement]:
    acted = actions(view)
    return list(fold_before(view, acted[-1].first, _line)) if acted else []


def _everything(view: View) -> list[Replacement]:
    return list(fold_before(view, view.head, _line))


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


def _older_users(view: View) -> list[Replacement]:
    """One line for all that is older than the user's newest words, theirs included."""
    newest = newest_user(view)
    older = [each for each in view.run if each.first < newest and not is_kept(each)]
    if len(older) < 2:
        return []
    return [Replacement(older[0].first, newest, summary=_line(older[0].first, newest))]
