"""The lines of a ledger in a view: which items are shown, and in which of their forms."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pagein.context.ledger.items import LedgerItem, is_sure, worth_of
from pagein.context.ledger.shortening import shorten, tighten
from pagein.tokens import TokenCounter

LIKELY_TOKENS = 800
"""Tokens of a block that such items may have; they take what the others leave."""

NEVER_SHOWN_TOKENS = 8
"""Tokens left below which the selection ends."""

MAX_REMEMBERED_FORMS = 1_600
"""Texts of which the shorter forms are remembered."""

Form = Literal["full", "short", "tight"]


class LedgerLine(NamedTuple):
    """A line to show: the item, its words, whole or shortened, and the rendered line."""

    item: LedgerItem
    text: str
    line: str
    form: Form


def select_lines(
    items: Iterable[LedgerItem], tokens: int, counter: TokenCounter, *, is_terse: bool = False
) -> tuple[LedgerLine, ...]:
    """Return the lines of the items, in order of position, within the tokens.

    Safety rules come first, then the others by worth per token, the newest first among equals. All are taken in
    their tightest form; where room is left, they grow to the short form, the worthiest first. Items that no
    pattern knew take what is left then, by worth, and the last grows all to the whole form. Terse lines are for
    the least room: there these items come before anything grows.
    """
    candidates = [_forms(item, counter, is_terse) for item in items]
    candidates.sort(key=_rank)
    known = [candidate for candidate in candidates if is_sure(candidate.item.statement)]
    likely = [candidate for candidate in candidates if not is_sure(candidate.item.statement)]
    chosen, left = _take(known, tokens)
    if not is_terse:
        left = _grow(chosen, 1, left)
    guessed, unused = _take(likely, min(left, LIKELY_TOKENS))
    left -= min(left, LIKELY_TOKENS) - unused
    chosen += guessed
    for form in (1, 0):
        left = _grow(chosen, form, left)
    lines = [candidate.line(form) for candidate, form in chosen]
    return tuple(sorted(lines, key=lambda line: line.item.key))


def render(lines: Iterable[LedgerLine]) -> str:
    """Return the lines of a selection as one text."""
    return "\n".join(line.line for line in lines)


def render_item(item: LedgerItem, text: str, *, is_tight: bool = False, is_terse: bool = False) -> str:
    """Return the line of an item: its handle, its words, and what it replaced.

    A tight line says that it is new only where its words do not say that something changed. A terse one has the bare
    number of the step, unless its words begin with a number, too.

    >>> from pagein.context.ledger.items import BindingStatement
    >>> item = LedgerItem(12, 0, BindingStatement("rule", "Use tabs."), replaced=4)
    >>> render_item(item, "Use tabs."), render_item(item, "Use tabs.", is_tight=True)
    ('s12 Use tabs. (replaces s4)', 's12 Use tabs. (new)')
    """
    if item.replaced is None and not item.is_newer:
        note = ""
    elif is_tight:
        note = f" ({tighten(item.about)[:-1]})" if item.about else "" if item.statement.revises else " (new)"
    else:
        about = f": {item.about}" if item.about else ""
        note = " (newer)" if item.replaced is None else f" (replaces s{item.replaced}{about})"
    letter = "" if is_terse and not text[:1].isdigit() else "s"
    return f"{letter}{item.position} {text}{note}"


@dataclass(frozen=True, slots=True)
class _Candidate:
    item: LedgerItem
    texts: tuple[str, str, str]
    lines: tuple[str, str, str]
    costs: tuple[int, int, int]

    def line(self, form: int) -> LedgerLine:
        names: tuple[Form, Form, Form] = ("full", "short", "tight")
        return LedgerLine(self.item, self.texts[form], self.lines[form], names[form])


def _take(candidates: Iterable[_Candidate], tokens: int) -> tuple[list[tuple[_Candidate, int]], int]:
    """Take the candidates that fit, each in its tightest form; return them, and the tokens left."""
    chosen: list[tuple[_Candidate, int]] = []
    for candidate in candidates:
        if candidate.costs[-1] <= tokens:
            tokens -= candidate.costs[-1]
            chosen.append((candidate, len(candidate.costs) - 1))
        elif tokens < NEVER_SHOWN_TOKENS:
            break
    return chosen, tokens


def _grow(chosen: list[tuple[_Candidate, int]], form: int, tokens: int) -> int:
    """Give the candidates this longer form while the tokens last; return those left."""
    for at, (candidate, current) in enumerate(chosen):
        growth = candidate.costs[form] - candidate.costs[current]
        if form < current and growth <= tokens:
            tokens -= growth
            chosen[at] = (candidate, form)
    return tokens


def _forms(item: LedgerItem, counter: TokenCounter, is_terse: bool) -> _Candidate:
    full, brief, tight = texts = _short_forms(item.statement.text)
    lines = (
        render_item(item, full, is_terse=is_terse),
        render_item(item, brief, is_terse=is_terse),
        render_item(item, tight, is_tight=True, is_terse=is_terse),
    )
    most, some, least = (counter.text(f"{line}\n") for line in lines)
    # A longer form never costs less than a shorter one, so that growing is never a gain.
    return _Candidate(item, texts, lines, (max(most, some, least), max(some, least), least))


def _rank(candidate: _Candidate) -> tuple[bool, float, tuple[int, int]]:
    item = candidate.item
    position, number = item.key
    # The likelihood of a guess does not know its length: per token, short small talk would come before all that binds.
    tokens = candidate.costs[-1] if is_sure(item.statement) else 1
    return (not item.statement.is_safety, -worth_of(item) / tokens, (-position, -number))


@functools.lru_cache(maxsize=MAX_REMEMBERED_FORMS)
def _short_forms(text: str) -> tuple[str, str, str]:
    """Return the text, its short form and its tight one."""
    short = shorten(text)
    return (text, short, tighten(short))
