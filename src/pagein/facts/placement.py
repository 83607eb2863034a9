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
class FactPlacement:
    """The placement of facts in one view: ``ranked`` are those that hold, best first.

    ``current_fact`` returns a fact by id, None if it no longer holds. A new block stands at ``position``; all blocks have at
    most ``tokens`` by the ``counter``, of which a line takes its ``cost``.
    """

    ranked: Sequence[RankedFact]
    current_fact: Callable[[str], Fact | None]
    position: int
    tokens: int
    counter: TokenCounter
    cost: Callable[[str], int]
    settings: Settings

    def place_blocks(self, blocks: tuple[PlacedBlock, ...]) -> tuple[PlacedBlock, ...]:
        """Place the blocks of a view: ``blocks`` itself if nothing changes, () if no fact holds."""
        lines = dict(line for block in blocks for line in block.lines)
        used = sum(block.tokens for block in blocks)
        if not blocks or not self._all_hold(lines) or used > self.tokens:
            return self._rebuild_blocks()
        missing = [item for item in self.ranked if item.fact.id not in lines]
        least = min((item.score for item in self.ranked if item.fact.id in lines), default=0.0) + ADDED_SCORE_MARGIN
        always = {*self.settings.guaranteed, PROCEDURE}
        added_facts = [item for item in missing if item.score >= least or item.fact.category in always]
        if not added_facts:
            return blocks
        added = self._build_block(added_facts, self.tokens - used, about=LATER_BLOCK_ABOUT)
        if added.ids:
            return (*blocks, self._placed_block(added))
        afresh = self._rebuild_blocks()
        return afresh if self._is_better(afresh, lines, added_facts) else blocks

    def place_head_block(self, text: str) -> Block:
        """Place the block of a view's head, whose text is ``text`` now: unchanged while its facts hold and most of the best are in it.

        If all facts fit, all of them are in it.
        """
        lines = {match[1]: match[0] for match in _LINE.finditer(text)}
        whole = self._build_block(self.ranked, self.tokens)
        missing = [item for item in self.ranked if item.fact.id not in lines]
        is_part = len(whole.ids) < len(self.ranked) or not missing
        is_better = self._is_better((self._placed_block(whole),), lines, missing)
        stays = lines and self._all_hold(lines) and is_part and not is_better
        current = f"{OPEN}\n{text}\n{CLOSE}"
        tokens = self.counter.text(current)
        return Block(current, tokens, tuple(lines)) if stays and tokens <= self.tokens else whole

    def _all_hold(self, lines: Mapping[str, str]) -> bool:
        facts = ((self.current_fact(id), line) for id, line in lines.items())
        return all(fact is not None and render_line(fact) == line for fact, line in facts)

    def _is_better(
        self, afresh: tuple[PlacedBlock, ...], lines: Mapping[str, str], missing: Sequence[RankedFact]
    ) -> bool:
        """True if new blocks are worth a lost prefix: most of the best facts, or a guaranteed one, are missing."""
        foremost, sure = self.ranked[:TOP_FACTS], frozenset(self.settings.guaranteed)
        if sum(item.fact.id not in lines for item in foremost) > MAX_MISSING_SHARE * len(foremost):
            return True
        stands = [item for item in self.ranked if item.fact.id in lines]
        others = any(item.fact.category not in sure for item in stands)
        lowest = min((item.score for item in stands if item.fact.category in sure), default=0.0)
        new = {id for block in afresh for id, _ in block.lines}
        return any(
            item.fact.category in sure and item.fact.id in new and (others or item.score >= lowest + ADDED_SCORE_MARGIN)
            for item in missing
        )

    def _rebuild_blocks(self) -> tuple[PlacedBlock, ...]:
        whole = self._build_block(self.ranked, self.tokens)
        if len(whole.ids) < len(self.ranked):
            first = self._build_block(self.ranked, int(self.tokens * FIRST_BLOCK_SHARE))
            always = {*self.settings.guaranteed, PROCEDURE}
            sure = {item.fact.id for item in self.ranked if item.fact.category in always}
            whole = first if sure.intersection(whole.ids) <= set(first.ids) else whole
        return (self._placed_block(whole),) if whole.ids else ()

    def _build_block(self, ranked: Sequence[RankedFact], tokens: int, *, about: str = ABOUT) -> Block:
        return build_block(
            [item.fact for item in ranked], counter=self.counter, max_tokens=max(0, tokens),
            guaranteed=self.settings.guaranteed, share=self.settings.guaranteed_share, cost=self.cost, about=about,
        )  # fmt: skip

    def _placed_block(self, block: Block) -> PlacedBlock:
        lines = {item.fact.id: render_line(item.fact) for item in self.ranked}
        return PlacedBlock(self.position, block.text, block.tokens, tuple((id, lines[id]) for id in block.ids))
