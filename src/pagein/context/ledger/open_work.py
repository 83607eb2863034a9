"""The open work of hidden steps as text: the lists of tasks, and what goes on elsewhere. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.context.ledger.task_plans import PlanVersion, render_plan
from pagein.context.ledger.waiting import WaitingItem, render_waiting
from pagein.tokens import TokenCounter

SHORT_TOKENS = 160
"""Tokens up to which the lines are short."""

HEAD = "Open when these steps left the view; a newer step may say otherwise. > in progress, x done, - open."
SHORT_HEAD = "Open:"
"""The headings."""


@dataclass(frozen=True, slots=True)
class OpenLines:
    """The open work of hidden steps: the newest version of each list of tasks, and what goes on, oldest first."""

    plans: tuple[PlanVersion, ...]
    waiting: tuple[WaitingItem, ...]

    @property
    def keys(self) -> tuple[tuple[int | str, ...], ...]:
        """The places of what is shown, which says all that may change in it."""
        return (*(("plan", *plan.place) for plan in self.plans), *((item.id, *item.place) for item in self.waiting))


def render_open(lines: OpenLines, tokens: int, counter: TokenCounter) -> str:
    """Return the text of what is open that fits: the lists of tasks, then what goes on, the newest first; "" if nothing fits.

    The newest list has half, then what goes on, then the lists have what is left.
    """
    is_short = tokens <= SHORT_TOKENS
    head = SHORT_HEAD if is_short else HEAD
    tokens -= counter.text(head) + 1
    least = sum(counter.text(render_plan(plan, tokens // 2, counter)) + 1 for plan in lines.plans[-1:])
    going_on, tokens_left = list[str](), tokens - least
    for item in reversed(lines.waiting):
        line = render_waiting(item, is_short=is_short)
        if (cost := counter.text(line) + 1) <= tokens_left:
            tokens_left -= cost
            going_on.insert(0, line)
    tokens_left += least
    plans = list[str]()
    for plan in reversed(lines.plans):
        text = render_plan(plan, tokens_left, counter)
        if text:
            tokens_left -= counter.text(text) + 1
            plans.insert(0, text)
    return "\n".join((head, *plans, *going_on)) if plans or going_on else ""
