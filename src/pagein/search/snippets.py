"""What is shown of the hits within a budget of tokens: the densest first, of long ones the lines nearest the query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pagein.search.base import Hit, Snippet
from pagein.search.tokenizer import Wanted, query_terms
from pagein.tokens import TokenCounter

DENSITY = 0.3
"""Hits go in by score / tokens ** DENSITY: of two that match alike the short one leaves room for another."""

LONG = 120
"""Tokens above which a hit is shown by its lines nearest the query."""

SHARE = 0.5
"""Of the budget, what one hit may take."""

GAP = "[…]"
_MOST_TERMS = 64


def pack(
    hits: Sequence[Hit],
    tokens: int,
    counter: TokenCounter,
    query: str = "",
    *,
    density: float = DENSITY,
    long: int = LONG,
) -> tuple[Snippet, ...]:
    """What to show of the hits in at most ``tokens``, best first; what does not fit is skipped, and nothing is twice.

    A hit above ``long`` tokens is cut to the lines nearest the query, whole lines, gaps marked.
    """
    wanted = Wanted(query_terms(query, _MOST_TERMS))
    most = max(1, min(long, int(tokens * SHARE)))
    shown = {each: _shown(each, wanted, most, counter) for each in _distinct(hits)}
    order = sorted(shown, key=lambda each: -worth(each.score, shown[each][1], density))
    packed: list[Snippet] = []
    left = tokens
    for each in order:
        text, cost = shown[each]
        if text and cost <= left:
            packed.append(Snippet(each.handle, text, cost, each))
            left -= cost
    return tuple(sorted(packed, key=lambda each: -each.hit.score))


def worth(score: float, tokens: float, density: float = DENSITY) -> float:
    """What a hit is worth for the room it takes."""
    return score / math.pow(max(tokens, 1.0), density)


def _distinct(hits: Iterable[Hit]) -> list[Hit]:
    return list({(each.session, each.handle, each.text): each for each in hits}.values())


def _shown(hit: Hit, wanted: Wanted, most: int, counter: TokenCounter) -> tuple[str, int]:
    cost = counter.text(hit.text)
    if cost <= most:
        return hit.text, cost
    return snippet(hit.text, wanted, most, counter)


def snippet(text: str, wanted: Wanted, most: int, counter: TokenCounter) -> tuple[str, int]:
    """The lines of a text that hold most of the wanted terms, in order, in about ``most`` tokens; and their tokens."""
    lines = [each for line in text.splitlines() for each in _pieces(line)]
    kept = _nearest(lines, list(map(wanted.held_in, lines)), most, counter)
    joined = _joined(lines, sorted(kept))
    return joined, counter.text(joined)


def _nearest(
    lines: Sequence[str], found: Sequence[frozenset[str]], most: int, counter: TokenCounter
) -> set[int]:
    """Which of the lines to keep: one by one the one that adds most and still fits, of equals the first."""
    kept: set[int] = set()
    held: set[str] = set()
    rates = {
        each: len(holds) + 0.1 * len(holds)
        for each, (line, holds) in enumerate(zip(lines, found, strict=True))
        if line.strip()
    }
    while rates:
        best = max(rates, key=rates.__getitem__)
        cost = counter.text(lines[best]) + 2
        if cost > most:
            rates = {each: old for each, old in rates.items() if counter.text(lines[each]) + 2 <= most}
            continue
        del rates[best]
        kept.add(best)
        most -= cost
        new = found[best] - held
        held |= new
        nearer = {best - 1, best + 1}.union(each for each in rates if new and not new.isdisjoint(found[each]))
        for each in nearer & rates.keys():
            beside = each - 1 in kept or each + 1 in kept
            # What the text is shown for already counts less than what is new.
            rates[each] = len(found[each] - held) + 0.1 * len(found[each]) + 0.05 * beside
    return kept


_WIDE_LINE = 240


def _pieces(line: str) -> Iterable[str]:
    """A line as it is; one that is very long in pieces."""
    if len(line) <= _WIDE_LINE:
        return (line,)
    return tuple(line[start : start + _WIDE_LINE] for start in range(0, len(line), _WIDE_LINE))


def _joined(lines: Sequence[str], kept: Sequence[int]) -> str:
    parts: list[str] = []
    last = -1
    for each in kept:
        if each != last + 1:
            parts.append(GAP)
        parts.append(lines[each])
        last = each
    if kept and last != len(lines) - 1:
        parts.append(GAP)
    return "\n".join(parts)
