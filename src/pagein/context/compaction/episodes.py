"""Folding: runs of entries between the user's words become one summary each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pagein.context.view.cuts import cuts
from pagein.context.view.fold import is_kept
from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement
from pagein.events.steps import TaskStep


def legal_stop(view: View, stop: int) -> int:
    """The last cut at or before ``stop``."""
    return max(
        (each for each in cuts(view) if each <= stop), default=view.run[0].first if view.run else view.head
    )


def stretches(view: View, stop: int) -> Iterator[tuple[Shown, ...]]:
    """The entries before ``stop`` that may leave, split where the user spoke: words of the user stay."""
    held: list[Shown] = []
    for each in view.run:
        if each.first >= stop or isinstance(each.item, TaskStep):
            if held:
                yield tuple(held)
            held = []
            if each.first >= stop:
                return
        else:
            held.append(each)
    if held:
        yield tuple(held)


def span(view: View, held: tuple[Shown, ...]) -> tuple[int, int]:
    """The positions ``[first, last)`` a summary of these entries covers, up to the next entry shown."""
    after = next((each.first for each in view.run if each.first > held[-1].first), view.head)
    return held[0].first, after


def fold_before(view: View, stop: int, write: Callable[[int, int], str]) -> Iterator[Replacement]:
    """A summary for each stretch before ``stop``, written by ``write(first, last)``; what is one already stays."""
    for held in stretches(view, legal_stop(view, stop)):
        leaving = [each for each in held if not is_kept(each)]
        if not leaving or is_summary(tuple(leaving)) or not is_worth(leaving):
            continue
        first, last = span(view, held)
        yield Replacement(first, last, summary=write(first, last))


def folds(view: View, stop: int) -> list[tuple[Shown, ...]]:
    """The stretches before ``stop`` in which something may leave, oldest first."""
    return [held for held in stretches(view, stop) if any(not is_kept(each) for each in held)]


def is_summary(held: tuple[Shown, ...]) -> bool:
    """True for a stretch that is one summary already."""
    return len(held) == 1 and held[0].tier == "summary"


WORTH = 40
"""Tokens below which a line with a handle would save nothing."""


def is_worth(held: Iterable[Shown]) -> bool:
    """True where what stands for these entries can be smaller than they are."""
    return sum(each.tokens for each in held) > WORTH
