"""Answers of the model: those that a run's ledger remembers, and their lines beside what the user asked for. Pure and bounded.

The user's words stay in a view, and the work on them leaves it. Without the answer an old request looks like one that nobody
has seen to, and a model does it again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from pagein.context.ledger.error_lines import clip_line
from pagein.context.view.layout import ViewEntry, make_entry
from pagein.context.view.view import View
from pagein.events.handles import step_handle
from pagein.events.secrets import hide_secret
from pagein.events.steps import SummaryStep

if TYPE_CHECKING:
    from pagein.context.ledger.run_ledger import RunLedger

MAX_ANSWERS, ANSWER_MAX_CHARS, SCANNED_CHARS = 256, 120, 2_000
"""Answers remembered of requests that took work, characters kept of each, and those that are read."""

ANSWERS_SHARE, ANSWERS_MAX_TOKENS = 0.08, 1_200
"""The share of the limit that the answers in a view may have, and their most."""

BATCH_TOKENS = 160
"""Tokens of what the answers may have for each one that is left out at once."""

_MARKDOWN = re.compile(r"[#*|]+(?=\s|$)|(?<!\S)[#*|]+|\*\*|-{3,}|^>", re.MULTILINE)
_PRELUDE = re.compile(
    r"(?i)\s*(?:(?:now i (?:have|understand|see|can)|i (?:now )?(?:have|understand)|let me|here(?:'s| is| are)|perfect|great|excellent|good|okay|ok)\b"
    r"[^.!?:\n]{0,120}[.!?:]+(?:\s+|$))+"
)
"""The sentences that only lead over to an answer: "Perfect! Now I have all that I need."."""


class ModelAnswer(NamedTuple):
    """The words of the model at the end of its work, shortened, and the position of the next thing that was said or called."""

    text: str
    end: int | None = None


class Answers:
    """By position, what the model said on what took work, and called no tool."""

    def __init__(self) -> None:
        self.by_position: dict[int, ModelAnswer] = {}
        self.has_called = False
        """True where a tool was called since the user spoke."""

    def learn(self, position: int, text: str, *, is_own: bool) -> None:
        """Fold a text: where the model says it behind its calls it is an answer."""
        self.end_last(position)
        if is_own and self.has_called:
            self.by_position[position] = ModelAnswer(hide_secret(clip_line(_drop_prelude(text), ANSWER_MAX_CHARS)))
            while len(self.by_position) > MAX_ANSWERS:
                del self.by_position[next(iter(self.by_position))]
        self.has_called = is_own and self.has_called

    def end_last(self, position: int) -> None:
        """Note that something was said or called behind the last answer."""
        last = next(reversed(self.by_position), None)
        if last is not None and self.by_position[last].end is None and position > last:
            self.by_position[last] = self.by_position[last]._replace(end=position)

    def to_state(self) -> tuple[list[Any], bool]:
        """Return the answers as JSON-safe values."""
        return [[position, *answer] for position, answer in self.by_position.items()], self.has_called

    @classmethod
    def from_state(cls, rows: Iterable[Any], has_called: bool) -> Answers:
        """Restore the answers from ``to_state``."""
        answers = cls()
        answers.by_position = {position: ModelAnswer(*row) for position, *row in rows}
        answers.has_called = has_called
        return answers


def _drop_prelude(text: str) -> str:
    """Return an answer without marks of Markdown, and without the sentences that only lead over to it."""
    plain = _MARKDOWN.sub(" ", text[:SCANNED_CHARS])
    return plain[match.end() :] if (match := _PRELUDE.match(plain)) and match.end() < len(plain.rstrip()) else plain


def answer_tokens(view: View, ledger: RunLedger) -> int:
    """Return the tokens of the answers that may have to be shown once all that may leave a view has left it."""
    return sum(tokens for _, _, tokens in _choose(view, ledger, list(ledger.answers.by_position), view.full_limit))


def with_answers(view: View, ledger: RunLedger, bare: Collection[int]) -> View:
    """Return the view with each answer that left it in the notice that ends with it; the same view if there are none.

    ``bare`` are the indexes of notices whose own words are said elsewhere.
    """
    places, answers = dict[int, int](), ledger.answers.by_position
    for index, entry in enumerate(view.run):
        if isinstance(entry.item, SummaryStep):
            inside = (at for at in reversed(answers) if entry.first <= at < entry.last)
            position = next(inside, -1)
            if position >= 0 and (answers[position].end or entry.last) >= entry.last:
                places[position] = index
    run = list(view.run)
    for position, line, _ in _choose(view, ledger, sorted(places), view.limit):
        index = places[position]
        run[index] = _add_line(run[index], line, view, is_bare=index in bare)
    return replace(view, run=tuple(run)) if places else view


def _choose(view: View, ledger: RunLedger, positions: Sequence[int], limit: int) -> Iterator[tuple[int, str, int]]:
    """Yield the newest answers that fit their share of the limit: their positions, lines and tokens.

    Where not all do, several of the oldest are left out at once: each change breaks the provider's cache at that place.
    """
    tokens, answers = min(int(limit * ANSWERS_SHARE), ANSWERS_MAX_TOKENS), ledger.answers.by_position
    lines, batch = list[tuple[int, str, int]](), max(1, tokens // BATCH_TOKENS)
    for position in reversed(positions):
        line = f"[{step_handle(position)}] answered: {answers[position].text}"
        lines.append((position, line, view.counter.text(line) + 1))
    fitting = sum(total <= tokens for total in accumulate(cost for _, _, cost in lines))
    if fitting < len(lines):
        order = list(answers)
        first = min(-(-(order.index(lines[fitting][0]) + 1) // batch) * batch, len(order) - 1)
        lines = [line for line in lines[:fitting] if order.index(line[0]) >= first]
    yield from lines


def _add_line(entry: ViewEntry, line: str, view: View, *, is_bare: bool) -> ViewEntry:
    if not isinstance(entry.item, SummaryStep):
        raise TypeError(f"{entry.handle} is no notice")
    words = "" if is_bare or not entry.item.content else f"{entry.item.content}\n"
    item = replace(entry.item, content=f"{words}{line}")
    return make_entry(item, entry.first, entry.last, view.counter, tier=entry.tier, why=entry.why)
