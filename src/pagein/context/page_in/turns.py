"""Whole turns of talk: those that the search finds for the user's words, and the newest ones that left the view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pagein.context.page_in.block import DAY_TOKENS, SourcedBlock, day_of, turn_block
from pagein.context.page_in.query import QUERY_MAX_NAMES
from pagein.context.page_in.sources import BlockSource, number_lines, turn_source
from pagein.tokens import TokenCounter

if TYPE_CHECKING:
    from pagein.search.base import Hit
    from pagein.search.passages import Passage

TURN_HITS = 128
"""Search results considered where the user speaks."""

TURN_DENSITY_EXPONENT = 0.15
"""How much a turn's length counts against it. At 0 LongMemEval has .016 less, at .3 REALTALK .010 less."""

TURN_MAX_SHARE = 0.4
"""Share of a page-in's tokens above which a turn is shown in part: its lines nearest the query."""

TURN_MIN_SCORE = 0.25
"""Score of a turn, as a share of the best one's, below which it is not shown. At .2 and .25 the same evidence stands in
the request as at 0, at .4 .03 less (120 questions on LoCoMo at 8,000 tokens, 30 on LongMemEval at 4,000)."""


class _RatedTurn(NamedTuple):
    """A turn that may come back; the best of several is the greatest."""

    worth: float
    position: int
    tokens: int
    block: SourcedBlock


def choose_turns(
    hits: Sequence[Hit], texts: Mapping[str, str], tokens: int, counter: TokenCounter, query: str
) -> tuple[SourcedBlock, ...]:
    """Choose whole turns that fit the tokens, best for their tokens first.

    ``texts`` has the whole texts by handle, where a hit is a part. A turn that is too long is cut to its lines nearest
    the query.
    """
    turns = _rate_turns(hits, texts, int(tokens * TURN_MAX_SHARE), counter, query)
    chosen: list[SourcedBlock] = []
    days = {""}
    for turn in sorted(turns, reverse=True, key=lambda turn: turn[:3]):
        cost = turn.tokens + (0 if turn.block.day in days else DAY_TOKENS)
        if cost <= tokens:
            chosen.append(turn.block)
            days.add(turn.block.day)
            tokens -= cost
    return tuple(chosen)


def _rate_turns(
    hits: Sequence[Hit], texts: Mapping[str, str], limit: int, counter: TokenCounter, query: str
) -> list[_RatedTurn]:
    """Rate the turns of the hits, each once and in at most ``limit`` tokens."""
    from pagein.search.snippets import snippet, worth  # noqa: PLC0415 - loads where something left
    from pagein.search.tokenizer import TermMatcher, query_terms  # noqa: PLC0415

    matcher = TermMatcher(query_terms(query, QUERY_MAX_NAMES))
    turns: dict[str, _RatedTurn] = {}
    top = max((hit.score for hit in hits), default=0.0)
    for hit in hits:
        if hit.handle in turns or hit.score < top * TURN_MIN_SCORE:
            continue
        whole = texts.get(hit.handle, hit.text)
        text = snippet(whole, matcher, limit, counter)[0] if counter.text(whole) > limit else whole
        if not text:
            continue  # one long line, of which no piece fits
        block = SourcedBlock(turn_block(hit.handle, hit.role, text), turn_source(hit, text, whole), day_of(hit.at))
        cost = counter.text(block.text) + 1
        turns[hit.handle] = _RatedTurn(worth(hit.score, cost, TURN_DENSITY_EXPONENT), hit.position, cost, block)
    return list(turns.values())


def recent_turn(part: Passage, text: str) -> SourcedBlock:
    """The block of a turn, whole, that is among the newest that left."""
    source = BlockSource("recent", part.position, part.part, number_lines(text, [text]))
    return SourcedBlock(turn_block(part.handle, part.role, text), source, day_of(part.at))


def divide_tokens(
    turns: Sequence[SourcedBlock], newest: Sequence[SourcedBlock], tokens: int, counter: TokenCounter
) -> tuple[tuple[SourcedBlock, ...], tuple[SourcedBlock, ...]]:
    """Divide the tokens: the newest turns have what the others leave, without a gap; one in both stands with the newest."""
    positions = {turn.source.position for turn in turns}
    free = tokens - sum(counter.text(turn.text) + 1 for turn in turns)
    fitting: list[SourcedBlock] = []
    for turn in newest:
        free -= 0 if turn.source.position in positions else counter.text(turn.text) + 1
        if free < 0:
            break
        fitting.append(turn)
    fitting_positions = {turn.source.position for turn in fitting}
    return tuple(turn for turn in turns if turn.source.position not in fitting_positions), tuple(fitting)
