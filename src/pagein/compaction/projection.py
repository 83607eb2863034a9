"""The deterministic projection: older steps become one extract of themselves, in order, with handles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from pagein.compaction import Plan, plan_of
from pagein.compaction.digest import Chosen, choose
from pagein.compaction.folding import legal_stop, span, stretches
from pagein.log import Replacement
from pagein.steps import as_text
from pagein.tokens import Budget
from pagein.view import View
from pagein.view.fold import is_kept
from pagein.view.handles import range_handle, step_handle


@dataclass(frozen=True, slots=True)
class Projection:
    """Folds everything but the newest steps into an extract, above the high mark, down to the low mark.

    ``recent`` is the share of what is left at the low mark that the newest steps keep; the extract has the rest.
    """

    recent: float = 0.5
    name: str = "projection"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan that folds the oldest steps, or none."""
        if view.tokens <= view.limit * budget.high:
            return None
        fixed = sum(each.tokens for each in view.entries if each.tier in ("system", "pin", "user", "note"))
        room = view.limit * budget.low - fixed
        stop = legal_stop(view, _boundary(view, room * self.recent))
        newer = sum(each.tokens for each in view.run if each.first >= stop and each.tier != "user")
        return plan_of(_fold(view, stop, int(room - newer)), self.name, f"older than {step_handle(stop)}")


def _boundary(view: View, tokens: float) -> int:
    """The position from which on the newest steps cost at most ``tokens``."""
    stop = view.head
    for each in reversed(view.run):
        if each.tier in ("user", "pin", "note"):
            continue
        tokens -= each.tokens
        if tokens < 0:
            break
        stop = each.first
    return stop


def _fold(view: View, stop: int, tokens: int) -> Iterator[Replacement]:
    found = [held for held in stretches(view, stop) if any(not is_kept(each) for each in held)]
    visible = [
        as_text(message.content)
        for each in view.entries
        if each.first >= stop or each.tier in ("system", "user", "pin", "note")
        for message in each.messages
    ]
    for number, held in enumerate(found):
        first, last = span(view, held)
        lines: list[Chosen] = []
        if number == len(found) - 1:
            lines = choose(view.memo, max(0, tokens - 40), view.counter, visible=visible, stop=stop)
        yield Replacement(first, last, summary=_text(first, last, lines))


def _text(first: int, last: int, lines: list[Chosen]) -> str:
    said = [
        f"Steps {range_handle(first, last)} left the view; expand(handle) gives them back. Lines of theirs:"
    ]
    for position, group in groupby(lines, key=lambda each: each.position):
        said.append(f"[{step_handle(position)}]")
        said.extend(each.text for each in group)
    return "\n".join(said if lines else said[0].partition(" Lines")[0:1])
