"""Writes the facts that matter now into a view: which they are, within how many tokens, and where they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pagein.context.view.view import OutOfView
from pagein.facts import procedures
from pagein.facts._fact_log import FactLogs
from pagein.facts.block import Block, build_block, render_line
from pagein.facts.fact import Fact
from pagein.facts.placement import FactPlacement, PlacedBlock
from pagein.facts.ranking import MAX_RANKED, RankedFact
from pagein.facts.settings import Settings
from pagein.search.tfidf import fact_terms
from pagein.tokens import TokenCounter

RELEVANCE_FLOOR = 0.03
"""Cosine with the last turns below which a fact is not shown, unless it is a correction or a constraint.

Measured on questions of LoCoMo and LongMemEval: 77 % and 98 % of the facts they need are above it, of other facts 15 % and 14 %."""

MIN_TOPIC_TERMS = 12
"""Different terms in the last turns from which they have a topic that a fact can be off."""


class FactBlocks:
    """Chooses facts for a context and places their blocks. ``logs`` are up to date, and their lock is held by the caller."""

    def __init__(self, logs: FactLogs, settings: Settings, clock: Callable[[], float]) -> None:
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._costs: dict[str, int] = {}
        self.left_out: tuple[OutOfView, ...] = ()
        """The facts that mattered to the last request and had no room, best first, each with the reason."""

    def build(self, context: str, counter: TokenCounter, max_tokens: int | None) -> Block:
        """Build the block of a context, within ``max_tokens`` or else the setting."""
        settings, now = self._settings, self._clock()
        most = settings.max_injection_tokens if max_tokens is None else max_tokens
        tasks = (procedures.describe_task(context),)
        ranked = (*self._logs.rank(context, now, MAX_RANKED), *self._similar_procedures(tasks))
        cost = self._cost(counter)
        return build_block(
            [item.fact for item in procedures.fit_procedures(ranked, most, cost)], counter=counter, max_tokens=most,
            guaranteed=settings.guaranteed, share=settings.guaranteed_share, cost=cost,
        )  # fmt: skip

    def place(
        self, blocks: tuple[PlacedBlock, ...], context: str, tasks: Sequence[str], position: int,
        counter: TokenCounter, max_tokens: int,
    ) -> tuple[PlacedBlock, ...]:  # fmt: skip
        """Place the blocks of a view that has come to ``position``; see ``FactPlacement.place_blocks``."""
        ranked = self._relevant(context, tasks)
        placement = self._placement(ranked, position, counter, max_tokens)
        placed = placement.place_blocks(blocks)
        self._note_left_out(ranked, {id for block in placed for id, _ in block.lines}, placement)
        return placed

    def place_head(
        self, text: str, context: str, tasks: Sequence[str], counter: TokenCounter, max_tokens: int
    ) -> Block:
        """Place the block of a view's head, whose text is ``text`` now; see ``FactPlacement.place_head_block``."""
        ranked = self._relevant(context, tasks)
        placement = self._placement(ranked, 0, counter, max_tokens)
        block = placement.place_head_block(text)
        self._note_left_out(ranked, set(block.ids), placement)
        return block

    def _placement(
        self, ranked: Sequence[RankedFact], position: int, counter: TokenCounter, max_tokens: int
    ) -> FactPlacement:
        tokens, cost = min(max_tokens, self._settings.max_injection_tokens), self._cost(counter)
        fitting = procedures.fit_procedures(ranked, tokens, cost)
        return FactPlacement(fitting, self._find, position, tokens, counter, cost, self._settings)

    def _find(self, id: str) -> Fact | None:
        return self._logs.find(id, self._clock())

    def _relevant(self, context: str, tasks: Sequence[str]) -> Sequence[RankedFact]:
        """The procedures of similar tasks, and the facts that matter to a context: of the guaranteed categories, or near it."""
        sure, ranked = self._settings.guaranteed, self._logs.rank(context, self._clock(), MAX_RANKED)
        if len(set(fact_terms(context))) >= MIN_TOPIC_TERMS:
            ranked = tuple(item for item in ranked if item.similarity >= RELEVANCE_FLOOR or item.fact.category in sure)
        return (*self._similar_procedures(tasks or (procedures.describe_task(context),)), *ranked)

    def _similar_procedures(self, tasks: Sequence[str]) -> Sequence[RankedFact]:
        return self._logs.rank_procedures(tasks, self._clock())[: procedures.MAX_SHOWN]

    def _note_left_out(self, ranked: Sequence[RankedFact], ids: set[str], placement: FactPlacement) -> None:
        self.left_out = tuple(
            OutOfView(
                fact.id,
                "facts",
                f"needs {placement.cost(render_line(fact))} of the {placement.tokens} tokens for facts: {fact.headline}",
            )
            for fact in (item.fact for item in ranked)
            if fact.id not in ids
        )

    def _cost(self, counter: TokenCounter) -> Callable[[str], int]:
        """The counter's cost of a line, cached."""

        def cost(line: str) -> int:
            if line not in self._costs:
                if len(self._costs) > 4 * MAX_RANKED:
                    self._costs.clear()
                self._costs[line] = counter.text(line)
            return self._costs[line]

        return cost
