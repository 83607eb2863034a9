"""Tiers: an active window, then summaries of episodes, then one archive (hierarchical working memory, seed 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Annotated

from pagein._common.validation import ANY_SHARE, POSITIVE_COUNT, POSITIVE_SHARE, CheckedFields
from pagein.context.compaction import step_scores
from pagein.context.compaction.base import Plan, actions, make_plan
from pagein.context.compaction.episodes import (
    boundary,
    foldable_stretches,
    has_leaving,
    is_worth_folding,
    legal_stop,
    protected_tokens,
    summarize_stretch,
    unprotected_tokens,
    visible_texts,
)
from pagein.context.talk import is_talk
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.events.steps import SummaryStep
from pagein.tokens import Budget

HANDLE_LINE_TOKENS = 30
"""Tokens of a summary that has only a handle."""

EPISODE_FILL_SHARE, NEWEST_SHARE = 0.5, 0.25
"""Of the tokens beside what must stay and the summaries: the share up to which all steps stay, however many they are, and that of
the newest ones that stay behind an episode, if those are more than ``fewest``. At 8,000 tokens ten actions are half of it."""

EPISODE_MIN_RATIO = 3
"""Tokens of an episode between relevant steps, as a multiple of its summary's, at least."""


@dataclass(frozen=True, slots=True)
class Tiers(CheckedFields):
    """Keeps the last ``fewest`` to ``most`` actions whole; the actions that leave them become an episode with a summary.

    In a large view more actions stay: none leaves while they have less than half of what is free for them.

    An episode's summary has ``share`` of the limit. It is written once, so that the prefix stays, until there are more
    than ``episodes`` of them or the view passes the high mark. Then they become one archive, an extract of the run.

    The most relevant steps behind the window keep their place within ``relevant`` of the limit. They are scored as in
    ``Relevance``, with its ``embedder`` and ``weight``.
    """

    fewest: Annotated[int, POSITIVE_COUNT, "Actions that stay whole after a compaction. At most `most`."] = 5
    most: Annotated[int, POSITIVE_COUNT, "Actions that stay whole before a compaction."] = 10
    episodes: Annotated[int, POSITIVE_COUNT, "Episodes above which they are merged into one archive."] = 4
    share: Annotated[float, POSITIVE_SHARE, "Share of the limit for the summary of an episode."] = 0.06
    relevant: Annotated[
        float, ANY_SHARE, "Share of the limit for older steps most relevant to the newest. 0: none."
    ] = 0.0
    weight: step_scores.Weight | None = None
    embedder: step_scores.StepEmbedder | None = None
    name: str = "tiers"
    _vectors: step_scores.Vectors = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan the next episode or the archive, or None."""
        acted = actions(view)
        is_high = view.tokens > view.limit * budget.high
        if len(acted) <= self.most and not is_high:
            return None
        protected = protected_tokens(view)
        summaries = sum(entry.tokens for entry in view.run if isinstance(entry.item, SummaryStep))
        free = view.limit - protected - summaries
        if view.tokens - protected - summaries <= free * EPISODE_FILL_SHARE and not is_high:
            return None
        room = int(view.limit * budget.low_share) - protected
        window = acted[-self.fewest :][0].first if acted else view.head
        newest = min(window, boundary(view, free * NEWEST_SHARE))
        stop = legal_stop(view, max(newest, boundary(view, room / 2)))
        return make_plan(self._fold(view, stop, room, high=is_high), self.name, "left the active window")

    def _fold(self, view: View, stop: int, room: int, *, high: bool) -> Iterator[Replacement]:
        staying = self._relevant_positions(view, stop, room)
        relevant = [entry for entry in view.run if entry.first in staying]
        visible = (*visible_texts(view, stop), *map(step_scores.entry_text, relevant))
        whole = unprotected_tokens(view, stop) + sum(entry.tokens for entry in relevant)
        stretches = [
            part
            for stretch in foldable_stretches(view, stop)
            for is_staying, entries in groupby(stretch, key=lambda entry: entry.first in staying)
            if not is_staying and has_leaving(part := tuple(entries))
        ]
        for stretch in stretches:
            is_newest = stretch is stretches[-1]
            episodes = [entry for entry in stretch if isinstance(entry.item, SummaryStep)]
            if is_newest and (high or len(episodes) >= self.episodes):
                tokens_left = room - whole - (HANDLE_LINE_TOKENS * (len(stretches) - 1) if staying else 0)
                yield summarize_stretch(view, stretch, max(0, tokens_left), visible)
                continue
            fresh = tuple(entry for entry in stretch if not episodes or entry.first > episodes[-1].first)
            if not has_leaving(fresh):
                continue
            if staying and high and is_worth_folding(stretch):
                yield summarize_stretch(view, stretch, 0, visible)  # the newest summary covers all
            elif not staying or is_worth_folding(fresh):
                tokens = int(view.limit * self.share)
                if staying or is_talk(view):
                    tokens = min(tokens, sum(entry.tokens for entry in fresh) // EPISODE_MIN_RATIO)
                yield summarize_stretch(view, fresh, tokens, visible, own=True)

    def _relevant_positions(self, view: View, stop: int, room: int) -> frozenset[int]:
        """Return the positions of the relevant steps behind the window, which stay."""
        if self.relevant <= 0 and self.weight is None:
            return frozenset()
        permanent = step_scores.permanent_positions(view)
        old = [
            entry
            for entry in view.run
            if entry.first < stop and entry.first not in permanent and not isinstance(entry.item, SummaryStep)
        ]
        costs = {entry.first: entry.tokens for entry in old}
        scores = step_scores.score_steps(view, old, self.weight, self.embedder, self._vectors)
        return step_scores.select_best(scores, costs, min(view.limit * self.relevant, room / 2))
