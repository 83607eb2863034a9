"""Compares a new fact with what is known: which facts say the same, which it replaces, which it disputes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pagein.facts._fact_log import FactLogs
from pagein.facts.contradiction import slot_terms
from pagein.facts.extraction.model import find_contradicted
from pagein.facts.fact import PROCEDURE, Fact
from pagein.facts.ranking import RankedFact
from pagein.facts.reconcile import FactDraft, Judgement, judge

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pagein.models import Model
    from pagein.models.writer_account import WriterAccount
    from pagein.search.base import Embedder

MIN_COMPARED_COSINE = 0.3
"""Cosine from which a known fact is compared with a new one."""

MAX_COMPARED_FACTS = 8
"""Known facts that a new one is compared with."""


@dataclass(frozen=True, slots=True)
class FactComparison:
    """Finds what a new fact means for the known ones: by rules, by an embedder, and by a model where there is one."""

    logs: FactLogs
    lock: AbstractContextManager[object]
    clock: Callable[[], float]
    model: Model | None
    embedder: Embedder | None
    account: WriterAccount | None

    def similar_facts(self, new: Fact | FactDraft) -> Sequence[Fact]:
        """Return the facts of its scope that a fact may repeat, replace or dispute, the nearest first."""
        content = new.content
        near = [ranked for ranked in self._rank(content) if ranked.similarity >= MIN_COMPARED_COSINE]
        if words := slot_terms(content.strip()):
            near += [ranked for ranked in self._rank(words) if ranked.similarity > 0]
        return list(dict.fromkeys(ranked.fact for ranked in near if ranked.fact.scope == new.scope))[
            :MAX_COMPARED_FACTS
        ]

    def judge(self, draft: FactDraft) -> Judgement:
        """Compare a draft with the known facts. A model may be asked: the lock is not held meanwhile."""
        with self.lock:
            if draft.category == PROCEDURE or self.logs.of(draft.scope).ledger.find(draft.content) is not None:
                return Judgement()
        alike = [fact for fact in self.similar_facts(draft) if fact.id not in draft.supersedes]
        if not alike:
            return Judgement()
        judgement = judge(draft, alike, self._embed if self.embedder is not None else None)
        if self.model is None or judgement.same:
            return judgement
        contradicted_ids = find_contradicted(self.model, draft, alike, self.account)
        return (
            judgement
            if contradicted_ids is None
            else replace(judgement, supersedes=(*judgement.supersedes, *contradicted_ids), disputes=())
        )

    def _rank(self, text: str) -> Sequence[RankedFact]:
        with self.lock:
            self.logs.refresh()
            return self.logs.rank(text, self.clock(), 4 * MAX_COMPARED_FACTS)

    def _embed(self, text: str) -> Sequence[float]:
        if self.embedder is None:
            return ()
        try:
            return [float(number) for number in self.embedder.embed([text])[0]]
        except Exception:  # noqa: BLE001 - an embedder may raise anything; facts go on by their words
            return ()
