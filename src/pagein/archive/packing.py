"""What is shown of the hits within a budget of tokens: the densest first, of long ones the lines nearest the query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pagein.archive.contract import Hit, Snippet
from pagein.archive.terms import query_terms, terms
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
    wanted = frozenset(query_terms(query, _MOST_TERMS))
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


def _shown(hit: Hit, wanted: frozenset[str], most: int, counter: TokenCounter) -> tuple[str, int]:
    cost = counter.text(hit.text)
    if cost <= most:
        return hit.text, cost
    return snippet(hit.text, wanted, most, counter)


def snippet(text: str, wanted: frozenset[str], most: int, counter: TokenCounter) -> tuple[str, int]:
    """The lines of a text that hold most of the wanted terms, in order, in about ``most`` tokens; and their tokens."""
    lines = [each for line in text.splitlines() for each in _pieces(line)]
    found = [wanted.intersection(terms(line)) for line in lines]
    kept: set[int] = set()
    held: set[str] = set()
    left = most
    costs = [counter.text(line) + 2 for line in lines]
    while True:
        # What the text is shown for already counts less than what is new.
        best = max(
            (
                each
                for each in range(len(lines))
                if each not in kept and costs[each] <= left and lines[each].strip()
            ),
            key=lambda each: (
                len(found[each] - held) + 0.1 * len(found[each]) + 0.05 * bool({each - 1, each + 1} & kept),
                -each,
            ),
            default=None,
        )
        if best is None:
            break
        kept.add(best)
        held |= found[best]
        left -= costs[best]
    joined = _joined(lines, sorted(kept))
    return joined, counter.text(joined)


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
