"""Placement of facts in a view: blocks that stay byte for byte where they first stood, while their facts hold.

A new block behind the run for every request would cost a provider's cache the block's length each time. So a block stays
in place, and the run goes on behind it. Facts that come to matter later get a block of their own at the end, as far as
there is room. All blocks are replaced by one at the end if a fact of theirs changed, if a correction or a constraint has
no other room, or if most of the facts that matter now are missing. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pagein.facts.block import ABOUT, CLOSE, OPEN, Block, build_block, render_line
from pagein.facts.fact import PROCEDURE, Fact
from pagein.tokens import TokenCounter

if TYPE_CHECKING:
    from pagein.facts.ranking import RankedFact
    from pagein.facts.settings import Settings

FIRST_BLOCK_SHARE = 0.4
"""Share of the tokens for the first block, if not all facts fit: the rest is for facts that matter later.

Measured with 200 facts and more on 20 dialogues at 8,000 tokens, the share of a request that is the next one's prefix,
and the share of the eight best facts that are in it: .982 and .90; with .6, .976 and .87."""

ADDED_SCORE_MARGIN = 0.1
"""Margin by which an added fact must score above the lowest in view."""

TOP_FACTS, MAX_MISSING_SHARE = 8, 0.75
"""The number of best facts, and the missing share of them above which all blocks are replaced."""

_LINE = re.compile(r"^- .*\[(f[tspua]\d+)\](?: \(said .*\))?(?:\n  .*)*$", re.MULTILINE)
"""A fact's line in a block, with its id; of a procedure also those of its steps."""

LATER_BLOCK_ABOUT = "Known too, as data:"
"""The introduction of every block but the first."""


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block before the steps from ``position`` on; ``lines`` are those of its facts, by id."""

    position: int
    text: str
    tokens: int
    lines: tuple[tuple[str, str], ...]

    @property
    def inner(self) -> str:
        """The text without its tags, which a view adds."""
        return self.text.removeprefix(OPEN).removesuffix(CLOSE).strip()


@dataclass(frozen=True, slots=True)
class PlacementLimits:
    """The position and the tokens of a new block, with the counter and the cost of a line."""

    position: int
    tokens: int
    counter: TokenCounter
    cost: Callable[[str], int]


def place_blocks(
    blocks: tuple[PlacedBlock, ...],
    ranked: Sequence[RankedFact],
    current_fact: Callable[[str], Fact | None],
    limits: PlacementLimits,
    settings: Settings,
) -> tuple[PlacedBlock, ...]:
    """Place the blocks of a view: ``blocks`` itself if nothing changes, () if no fact holds.

    ``ranked`` are the facts that hold, best first; ``current_fact`` returns a fact by id, None if it no longer holds.
    """
    lines = dict(line for block in blocks for line in block.lines)
    used = sum(block.tokens for block in blocks)
    true = _all_hold(lines, current_fact)
    if not blocks or not true or used > limits.tokens:
        return _rebuild_blocks(ranked, limits, settings)
    missing = [item for item in ranked if item.fact.id not in lines]
    lowest = min((item.score for item in ranked if item.fact.id in lines), default=0.0)
    least = lowest + ADDED_SCORE_MARGIN
    sure = frozenset(settings.guaranteed)
    added_facts = [item for item in missing if item.score >= least or item.fact.category in {*sure, PROCEDURE}]
    if not added_facts:
        return blocks
    added = _build_block(added_facts, limits, limits.tokens - used, settings, about=LATER_BLOCK_ABOUT)
    if added.ids:
        return (*blocks, _placed_block(added, added_facts, limits.position))
    afresh = _rebuild_blocks(ranked, limits, settings)
    return afresh if _is_better(afresh, lines, ranked, added_facts, sure) else blocks


def place_head_block(
    text: str,
    ranked: Sequence[RankedFact],
    current_fact: Callable[[str], Fact | None],
    limits: PlacementLimits,
    settings: Settings,
) -> Block:
    """Place the block of a view's head, whose text is ``text`` now: unchanged while its facts hold and most of the best are in it.

    If all facts fit, all of them are in it.
    """
    lines = {match[1]: match[0] for match in _LINE.finditer(text)}
    whole = _build_block(ranked, limits, limits.tokens, settings)
    true = _all_hold(lines, current_fact)
    missing = [item for item in ranked if item.fact.id not in lines]
    afresh = (_placed_block(whole, ranked, limits.position),)
    sure = frozenset(settings.guaranteed)
    some = len(whole.ids) < len(ranked) or not missing
    stays = lines and true and some and not _is_better(afresh, lines, ranked, missing, sure)
    current = f"{OPEN}\n{text}\n{CLOSE}"
    tokens = limits.counter.text(current)
    return Block(current, tokens, tuple(lines)) if stays and tokens <= limits.tokens else whole


def _all_hold(lines: Mapping[str, str], current_fact: Callable[[str], Fact | None]) -> bool:
    return all((fact := current_fact(id)) is not None and render_line(fact) == line for id, line in lines.items())


def _is_better(
    afresh: tuple[PlacedBlock, ...],
    lines: dict[str, str],
    ranked: Sequence[RankedFact],
    missing: Sequence[RankedFact],
    sure: frozenset[str],
) -> bool:
    """True if new blocks are worth a lost prefix: most of the best facts, or a guaranteed one, are missing."""
    foremost = ranked[:TOP_FACTS]
    if sum(item.fact.id not in lines for item in foremost) > MAX_MISSING_SHARE * len(foremost):
        return True
    stands = [item for item in ranked if item.fact.id in lines]
    others = any(item.fact.category not in sure for item in stands)
    lowest = min((item.score for item in stands if item.fact.category in sure), default=0.0)
    least = lowest + ADDED_SCORE_MARGIN
    new = {id for block in afresh for id, _ in block.lines}
    return any(
        item.fact.category in sure and item.fact.id in new and (others or item.score >= least) for item in missing
    )


def _rebuild_blocks(
    ranked: Sequence[RankedFact], limits: PlacementLimits, settings: Settings
) -> tuple[PlacedBlock, ...]:
    whole = _build_block(ranked, limits, limits.tokens, settings)
    if len(whole.ids) < len(ranked):
        some = _build_block(ranked, limits, int(limits.tokens * FIRST_BLOCK_SHARE), settings)
        sure = {item.fact.id for item in ranked if item.fact.category in (*settings.guaranteed, PROCEDURE)}
        whole = some if sure.intersection(whole.ids) <= set(some.ids) else whole
    return (_placed_block(whole, ranked, limits.position),) if whole.ids else ()


def _build_block(
    ranked: Sequence[RankedFact], limits: PlacementLimits, tokens: int, settings: Settings, *, about: str = ABOUT
) -> Block:
    return build_block(
        [item.fact for item in ranked], counter=limits.counter, max_tokens=max(0, tokens),
        guaranteed=settings.guaranteed, share=settings.guaranteed_share, cost=limits.cost, about=about,
    )  # fmt: skip


def _placed_block(block: Block, ranked: Sequence[RankedFact], position: int) -> PlacedBlock:
    lines = {item.fact.id: render_line(item.fact) for item in ranked}
    return PlacedBlock(position, block.text, block.tokens, tuple((id, lines[id]) for id in block.ids))
