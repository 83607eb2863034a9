"""Snippets: the hits that fit a budget of tokens, long ones cut to the lines nearest the query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pagein.search.base import Hit, Snippet
from pagein.search.tokenizer import TermMatcher, query_terms
from pagein.tokens import TokenCounter

DENSITY_EXPONENT = 0.3
"""Hits are packed by score / tokens ** this: of two equal hits the shorter one goes first."""

LONG_HIT_TOKENS = 120
"""Tokens above which a hit is cut to its lines nearest the query."""

MAX_HIT_SHARE = 0.5
"""The share of the budget that one hit may take."""

GAP = "[…]"
_MAX_QUERY_TERMS = 64


def pack(hits: Sequence[Hit], tokens: int, counter: TokenCounter, query: str = "") -> tuple[Snippet, ...]:
    """Pack hits into at most ``tokens``, best first. A hit that does not fit is skipped; nothing is repeated.

    A long hit is cut to the lines nearest the query: whole lines, with gaps marked.
    """
    matcher = TermMatcher(query_terms(query, _MAX_QUERY_TERMS))
    limit = max(1, min(LONG_HIT_TOKENS, int(tokens * MAX_HIT_SHARE)))
    distinct = {(hit.session, hit.handle, hit.text): hit for hit in hits}.values()
    shortened = {hit: _shorten(hit, matcher, limit, counter) for hit in distinct}
    order = sorted(shortened, key=lambda hit: -worth(hit.score, shortened[hit][1]))
    packed: list[Snippet] = []
    room = tokens
    for hit in order:
        text, cost = shortened[hit]
        if text and cost <= room:
            packed.append(Snippet(hit.handle, text, cost, hit))
            room -= cost
    return tuple(sorted(packed, key=lambda hit: -hit.hit.score))


def worth(score: float, tokens: float, exponent: float = DENSITY_EXPONENT) -> float:
    """The value of a hit for its tokens."""
    return score / math.pow(max(tokens, 1.0), exponent)


def _shorten(hit: Hit, matcher: TermMatcher, limit: int, counter: TokenCounter) -> tuple[str, int]:
    cost = counter.text(hit.text)
    if cost <= limit:
        return hit.text, cost
    return snippet(hit.text, matcher, limit, counter)


def snippet(text: str, matcher: TermMatcher, limit: int, counter: TokenCounter) -> tuple[str, int]:
    """The lines with most of the matcher's terms, in order, within about ``limit`` tokens; and their tokens."""
    lines = [piece for line in text.splitlines() for piece in pieces_of(line)]
    chosen_lines = _select_lines(lines, list(map(matcher.terms_in, lines)), limit, counter)
    text_of_lines = join_lines(lines, sorted(chosen_lines))
    return text_of_lines, counter.text(text_of_lines)


def _select_lines(
    lines: Sequence[str], matches: Sequence[frozenset[str]], limit: int, counter: TokenCounter
) -> set[int]:
    """Select lines one by one: always the one that adds most and fits, the first among equals."""
    selected: set[int] = set()
    covered: set[str] = set()
    rates = {
        index: len(holds) + 0.1 * len(holds)
        for index, (line, holds) in enumerate(zip(lines, matches, strict=True))
        if line.strip()
    }
    while rates:
        best = max(rates, key=rates.__getitem__)
        cost = counter.text(lines[best]) + 2
        if cost > limit:
            rates = {index: old for index, old in rates.items() if counter.text(lines[index]) + 2 <= limit}
            continue
        del rates[best]
        selected.add(best)
        limit -= cost
        new = matches[best] - covered
        covered |= new
        nearer = {best - 1, best + 1}
        if new:
            nearer.update(index for index in rates if not new.isdisjoint(matches[index]))
        for index in nearer & rates.keys():
            is_adjacent = index - 1 in selected or index + 1 in selected
            # Terms that a selected line has already count less than new ones.
            rates[index] = len(matches[index] - covered) + 0.1 * len(matches[index]) + 0.05 * is_adjacent
    return selected


_MAX_LINE_CHARS = 240


def pieces_of(line: str) -> Iterable[str]:
    """The line, in pieces if it is very long."""
    if len(line) <= _MAX_LINE_CHARS:
        return (line,)
    return tuple(line[start : start + _MAX_LINE_CHARS] for start in range(0, len(line), _MAX_LINE_CHARS))


def join_lines(lines: Sequence[str], indexes: Sequence[int]) -> str:
    """Join the lines with these indexes, with a gap where others are left out."""
    parts: list[str] = []
    last = -1
    for index in indexes:
        if index != last + 1:
            parts.append(GAP)
        parts.append(lines[index])
        last = index
    if indexes and last != len(lines) - 1:
        parts.append(GAP)
    return "\n".join(parts)
