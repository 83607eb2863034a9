"""Answers of the model, beside what the user asked for. Pure.

The user's words stay in a view, and the work on them leaves it. Without the answer an old request looks like one that nobody
has seen to, and a model does it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from pagein.context.view.layout import ViewEntry, make_entry
from pagein.context.view.view import View
from pagein.events.handles import step_handle
from pagein.events.steps import SummaryStep

if TYPE_CHECKING:
    from pagein.context.ledger.run_ledger import RunLedger

ANSWERS_SHARE, ANSWERS_MAX_TOKENS = 0.08, 1_200
"""The share of the limit that the answers in a view may have, and their most."""

BATCH_TOKENS = 160
"""Tokens of what the answers may have for each one that is left out at once."""


def answer_tokens(view: View, ledger: RunLedger) -> int:
    """Return the tokens of the answers that may have to be shown once all that may leave a view has left it."""
    return sum(tokens for _, _, tokens in _choose(view, ledger, list(ledger.work.answers), view.full_limit))


def with_answers(view: View, ledger: RunLedger, bare: Collection[int]) -> View:
    """Return the view with each answer that left it in the notice that ends with it; the same view if there are none.

    ``bare`` are the indexes of notices whose own words are said elsewhere.
    """
    places = dict[int, int]()
    for index, entry in enumerate(view.run):
        if isinstance(entry.item, SummaryStep):
            inside = (at for at in reversed(ledger.work.answers) if entry.first <= at < entry.last)
            position = next(inside, -1)
            if position >= 0 and (ledger.work.answers[position].end or entry.last) >= entry.last:
                places[position] = index
    run = list(view.run)
    for position, line, _ in _choose(view, ledger, sorted(places), view.limit):
        index = places[position]
        run[index] = _add_line(run[index], "" if index in bare else "\n", line, view)
    return replace(view, run=tuple(run)) if places else view


def _choose(view: View, ledger: RunLedger, positions: Sequence[int], limit: int) -> Iterator[tuple[int, str, int]]:
    """Yield the newest answers that fit their share of the limit: their positions, lines and tokens.

    Where not all do, several of the oldest are left out at once: each change breaks the provider's cache at that place.
    """
    room = min(int(limit * ANSWERS_SHARE), ANSWERS_MAX_TOKENS)
    lines, batch = list[tuple[int, str, int]](), max(1, room // BATCH_TOKENS)
    for position in reversed(positions):
        line = f"[{step_handle(position)}] answered: {ledger.work.answers[position].text}"
        lines.append((position, line, view.counter.text(line) + 1))
    fitting = sum(total <= room for total in accumulate(tokens for _, _, tokens in lines))
    if fitting < len(lines):
        order = list(ledger.work.answers)
        first = min(-(-(order.index(lines[fitting][0]) + 1) // batch) * batch, len(order) - 1)
        lines = [line for line in lines[:fitting] if order.index(line[0]) >= first]
    yield from lines


def _add_line(entry: ViewEntry, separator: str, line: str, view: View) -> ViewEntry:
    if not isinstance(entry.item, SummaryStep):
        raise TypeError(f"{entry.handle} is no notice")
    item = replace(entry.item, content=f"{entry.item.content if separator else ''}{separator}{line}")
    return make_entry(item, entry.first, entry.last, view.counter, tier=entry.tier, why=entry.why)
