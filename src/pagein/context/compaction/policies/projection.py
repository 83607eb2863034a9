"""Projection: replaces older steps by one extract of them, in order, with handles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated

from pagein._common.validation import POSITIVE_SHARE, CheckedFields
from pagein.context.compaction import episodes
from pagein.context.compaction.base import Plan, actions, make_plan, put_stubs
from pagein.context.compaction.clips import clip_entry, clip_own_words
from pagein.context.view.body import preview
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.events.handles import step_handle
from pagein.events.messages import Message
from pagein.events.steps import SummaryStep, as_text
from pagein.tokens import Budget

STEPS_AHEAD, AHEAD_MAX_SHARE = 1, 0.3
"""Steps of median size that fit between two compactions, and the largest share of the limit kept free for them."""

NEWEST_MAX_SHARE = 0.5
"""Share of the room above which the newest action is clipped, to leave room for an extract."""

MIN_FILL_SHARE = 0.25
"""Share of the tokens beside protected entries that is filled at least, whatever the low mark is. If user messages nearly
fill the window, the newest step would be clipped to nothing."""

FILL_SHARE, FILL_TOKENS, MAX_FILL_SHARE = 0.45, 400, 0.8
"""The default low mark beside protected entries: a share, tokens that are added to it, and its most."""

CLIP_MIN_TOKENS = 48
"""Tokens to which the newest action is clipped at least."""

LONG_TEXT_CHARS = 80
"""Characters above which a text of the newest action may be clipped."""


@dataclass(frozen=True, slots=True)
class Projection(CheckedFields):
    """Folds everything but the newest steps into an extract, above the high mark, down to the low mark.

    The newest steps keep ``recent`` of the tokens left at the low mark; the extract has the rest.
    """

    recent: Annotated[float, POSITIVE_SHARE, "Share of the remaining tokens for the newest steps."] = 0.3
    name: str = "projection"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan an extract of the oldest steps, or None."""
        if view.tokens <= view.limit * budget.high:
            return None
        staying = episodes.protected_tokens(view)
        room = _room_at_low_mark(view, budget, staying)
        unread, reserve = episodes.unread_tokens(view), episodes.extract_reserve(view)
        clipped = _clip_newest(view, int(room * NEWEST_MAX_SHARE), unread)
        if clipped:
            view = preview(view, clipped)
        newest = max(room * self.recent, room - episodes.EXTRACT_MAX_TOKENS)
        stop = episodes.legal_stop(view, episodes.boundary(view, newest))
        folded = _fold(view, stop, max(reserve if unread else 0, room - episodes.unprotected_tokens(view, stop)))
        return make_plan((*clipped, *folded), self.name, f"extract before {step_handle(stop)}")


def _room_at_low_mark(view: View, budget: Budget, staying: int) -> int:
    """Return the tokens to fill beside ``staying``: down to the low mark, or less, so that ``STEPS_AHEAD`` steps fit."""
    free = view.limit - staying
    if budget.low is None:
        return int(free * fill_share(view.limit))
    low = int(view.limit * budget.low) - staying
    sizes = [entry.tokens for entry in actions(view)[-5:]]
    ahead = min(int(STEPS_AHEAD * median(sizes)), int(view.limit * AHEAD_MAX_SHARE)) if sizes else 0
    return max(min(low, free - ahead), int(free * MIN_FILL_SHARE))


def fill_share(limit: int) -> float:
    """Return the share of the tokens beside what stays that is filled after a compaction, where no low mark is given.

    A compaction is paid for by the tokens it writes anew, and the more it leaves free, the later the next one comes. A
    small view needs more of its tokens. Measured at 4,000 and 8,000 tokens: decisions 0045 and 0046.
    """
    return min(MAX_FILL_SHARE, FILL_SHARE + FILL_TOKENS / limit)


def _clip_newest(view: View, tokens: int, unread: int) -> tuple[Replacement, ...]:
    """Clip the newest action to ``tokens`` if it costs more; only its own words if ``unread`` tokens of results stay whole."""
    newest, clip = episodes.newest_entries(view), clip_own_words if unread else clip_entry
    allowed = max(tokens - unread, episodes.OWN_MIN_TOKENS if unread else CLIP_MIN_TOKENS)
    whole = sum(entry.tokens for entry in newest)
    if whole <= unread + allowed:
        return ()
    clipped: tuple[Replacement, ...] = ()
    messages = [message for entry in newest for message in entry.messages]
    texts = _count_long_texts(messages[:1] if unread else messages)
    for divisor in (1, 2, 4, 8):
        share = max(8, allowed // (divisor * texts))
        shorter = tuple(put_stubs(newest, lambda entry: clip(entry, share, view.counter, "clip")))  # noqa: B023
        if not shorter:
            return clipped
        clipped = shorter
        if preview(view, clipped).tokens <= view.tokens - whole + unread + allowed:
            return clipped
    return clipped


def _count_long_texts(messages: Sequence[Message]) -> int:
    """Count the texts of an action's messages that are long enough to be clipped, at least 1."""
    texts = [message.content for message in messages]
    texts += [call.arguments for message in messages for call in message.tool_calls]
    return max(1, sum(len(as_text(text)) > LONG_TEXT_CHARS for text in texts))


def _fold(view: View, stop: int, tokens: int) -> Iterator[Replacement]:
    """Summarize every stretch before ``stop``; the newest one has the extract of the whole run."""
    stretches, visible = episodes.foldable_stretches(view, stop), episodes.visible_texts(view, stop)
    for stretch in stretches:
        is_newest = stretch is stretches[-1]
        if is_newest or episodes.is_worth_folding(stretch):
            summary = episodes.summarize_stretch(view, stretch, tokens if is_newest else 0, visible)
            if len(stretch) > 1 or stretch[0].item != SummaryStep(summary.summary or ""):
                yield summary
