"""The open work of a run: its lists of tasks, and what goes on elsewhere; beside them what the model answered. Pure and bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pagein.context.ledger.answers import Answers
from pagein.context.ledger.error_lines import has_failed
from pagein.context.ledger.task_plans import PlanVersion, TaskPlans, render_plan
from pagein.context.ledger.waiting import WaitingItem, WaitingItems, render_waiting
from pagein.events.entries import Slot
from pagein.events.handles import Place
from pagein.events.steps import Observation, ToolCall, as_text
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


class WorkLedger:
    """The work of one run, learned from its results and texts. The same results and texts give the same."""

    def __init__(self) -> None:
        self.plans = TaskPlans()
        self.waiting = WaitingItems()
        self.answers = Answers()

    def learn(self, place: Place, call: ToolCall, observation: Observation) -> None:
        """Fold the result of a call at this place."""
        text, failed = as_text(observation.content), has_failed(observation)
        self.answers.has_called = True
        if not failed:
            self.plans.learn(place, call, text)
        self.waiting.learn(place, call, text, has_failed=failed)

    def learn_text(self, position: int, text: str, whole: str, *, is_own: bool) -> None:
        """Fold what was said in text: what is over, and where the model says it, its answer and its list of tasks.

        ``whole`` has what the application put beside it, too, as a notice that something is over.
        """
        self.waiting.learn_text(position, text, whole)
        if not text:
            return  # nobody spoke
        self.answers.learn(position, text, is_own=is_own)
        if is_own:
            self.plans.learn_text(position, text)

    def has_step(self, position: int) -> bool:
        """True where a step made a list of tasks, or began what goes on."""
        return self.plans.has_step(position) or self.waiting.has_step(position)

    def remove_step(self, position: int) -> None:
        """Drop what is open by a step."""
        self.plans.remove_step(position)
        self.waiting.remove_step(position)

    def remove_slot(self, place: Place, slot: Slot) -> None:
        """Drop what is open by a slot of a step: the lists in the model's words or in the arguments of a call, or what its result named."""
        self.plans.remove_slot(place, slot)
        if slot != "content":
            self.waiting.remove_result(place)

    def find_hidden(
        self, is_hidden: Callable[[int], bool], hides_words: Callable[[int], bool], newest: int = -1
    ) -> OpenLines:
        """Return what is open by the steps whose results are hidden, and the lists of those that hide the model's words.

        Steps in view change nothing, so a block stays as it is. But what is over is so by steps before ``newest``, the
        newest one that left: the words of the user stay in view for long.
        """
        return OpenLines(self.plans.find_hidden(hides_words), self.waiting.find_hidden(is_hidden, newest))

    def to_state(self) -> list[Any]:
        """Return it as JSON-safe values."""
        return [self.plans.to_state(), self.waiting.to_state(), *self.answers.to_state()]

    @classmethod
    def from_state(cls, state: Iterable[Any]) -> WorkLedger:
        """Restore it from ``to_state``."""
        plans, waiting, *answers = state
        work = cls()
        work.plans, work.waiting = TaskPlans.from_state(plans), WaitingItems.from_state(waiting)
        work.answers = Answers.from_state(*answers)
        return work


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
