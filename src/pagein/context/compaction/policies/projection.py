"""The deterministic projection: older steps become one extract of themselves, in order, with handles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pagein.context.compaction.base import Plan, actions, plan_of
from pagein.context.compaction.episodes import folds, is_worth, legal_stop
from pagein.context.compaction.extracts import boundary, stays, summary_of, visible_from
from pagein.context.compaction.policies.clip import clip_whole
from pagein.context.view.fold import preview
from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement
from pagein.events.handles import step_handle
from pagein.events.steps import SummaryStep, as_text
from pagein.tokens import Budget

MOST_EXTRACT = 12_000
"""Tokens beyond which an extract finds little worth its room; in a large view the newest steps have the rest."""

AHEAD, WIDEST = 1, 0.3
"""Steps of the usual size that fit between two passes, and the share of the limit that may be kept free for them."""

NEWEST = 0.5
"""Share of the room that the newest action may take before it is cut down to leave room for an extract."""

TIGHT = 0.8
"""The share of what is left beside what stays verbatim that is filled at least, be the low mark where it may: where the
user's words are near as long as the window, or steps are long, the newest one would be cut down to nothing."""

SMALLEST = 48
"""Tokens below which cutting the newest action down is not tried."""

LONG = 80
"""Characters beyond which a text of the newest action may be cut."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Folds everything but the newest steps into an extract, above the high mark, down to the low mark.

    ``recent`` is the share of what is left at the low mark that the newest steps keep; the extract has the rest.
    """

    recent: float = 0.3
    name: str = "projection"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan that folds the oldest steps, or none."""
        if view.tokens <= view.limit * budget.high:
            return None
        staying = sum(each.tokens for each in view.entries if stays(each))
        room = max(low_mark(view, budget) - staying, int((view.limit - staying) * TIGHT))
        clipped = _clip_newest(view, int(room * NEWEST))
        if clipped:
            view = preview(view, clipped)
        newest = max(room * self.recent, room - MOST_EXTRACT)
        stop = legal_stop(view, boundary(view, newest))
        newer = sum(each.tokens for each in view.run if each.first >= stop and not stays(each))
        folded = _fold(view, stop, room - newer)
        return plan_of((*clipped, *folded), self.name, f"older than {step_handle(stop)}")


def low_mark(view: View, budget: Budget) -> int:
    """The tokens to come down to: the budget's low mark, or lower where steps are so long that it would soon be passed.

    Between two passes there is room for ``AHEAD`` steps of the newest ones' median size, in at most ``WIDEST`` of the
    limit.
    """
    sizes = [each.tokens for each in actions(view)[-5:]]
    ahead = min(int(AHEAD * median(sizes)), int(view.limit * WIDEST)) if sizes else 0
    return min(int(view.limit * budget.low_share), view.limit - ahead)


def _clip_newest(view: View, tokens: int) -> tuple[Replacement, ...]:
    """The newest action cut down to ``tokens`` where it alone would leave no room for an extract."""
    acted = actions(view)
    allowed = max(tokens, SMALLEST)
    if not acted or acted[-1].tokens <= allowed:
        return ()
    newest = acted[-1]
    found: tuple[Replacement, ...] = ()
    for divisor in (1, 2, 4, 8):
        each = max(8, allowed // (divisor * _slots(newest)))
        stubs = tuple(clip_whole(newest, each, view.counter, "clip"))
        if not stubs:
            return found
        found = (Replacement(newest.first, newest.last, stubs),)
        if preview(view, found).tokens <= view.tokens - newest.tokens + allowed:
            return found
    return found


def _slots(shown: Shown) -> int:
    """How many of an action's texts are long enough to be cut."""
    texts = [message.content for message in shown.messages] + [
        call.arguments for message in shown.messages for call in message.tool_calls
    ]
    return max(1, sum(len(as_text(each)) > LONG for each in texts))


def _fold(view: View, stop: int, tokens: int) -> Iterator[Replacement]:
    """Every stretch before ``stop`` as a summary; the newest has the extract, which is the whole run's."""
    found = folds(view, stop)
    for number, held in enumerate(found):
        newest = number == len(found) - 1
        if newest or is_worth(held):
            by = summary_of(view, held, tokens if newest else 0, visible_from(view, stop))
            if len(held) > 1 or held[0].item != SummaryStep(by.summary or ""):
                yield by
