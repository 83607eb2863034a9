"""Reconciliation of drafts with known facts: the same, contrary, or new; and the log entries they become. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pagein.events.entries import Body, FactConfirmed, FactRemoved, FactScope, FactStated, Source
from pagein.facts.contradiction import is_contrary, lives_elsewhere, specifics
from pagein.facts.fact import Fact, UnknownFact, checked_category, content_key, parse_fact_id
from pagein.facts.ledger import Ledger
from pagein.facts.retention import Capacity, select_evictions

SAME_COSINE = 0.92
"""Cosine of two embeddings from which two facts with the same names and numbers say the same."""


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact before it is stated; ``supersedes`` are the ids of the facts it replaces."""

    content: str
    category: str = "context"
    confidence: float = 1.0
    scope: FactScope = "session"
    valid_from: float | None = None
    valid_until: float | None = None
    sources: tuple[Source, ...] = ()
    supersedes: tuple[str, ...] = ()
    author: str = "host"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The relation of a draft to known facts: the id of the ``same`` one, and the ids of contrary ones."""

    same: str = ""
    supersedes: tuple[str, ...] = ()
    disputes: tuple[str, ...] = ()


def judge(draft: FactDraft, facts: Iterable[Fact], embed: Callable[[str], Sequence[float]] | None = None) -> Judgement:
    """Compare a draft with similar facts; ``embed`` returns a text's embedding, if there is an embedder.

    A fact that says the same is confirmed. A contrary one is disputed, and stays: without a model it is safer to keep both.
    Where somebody lives, the newest place holds.
    """
    same, disputes, moved = "", [], []
    for fact in facts:
        if fact.id in draft.supersedes or fact.scope != draft.scope:
            continue
        if lives_elsewhere(draft.content, fact.content):
            moved.append(fact.id)
        elif is_contrary(draft.content, fact.content):
            disputes.append(fact.id)
        elif not same and _is_same(draft.content, fact.content, embed):
            same = fact.id
    return Judgement(same, supersedes=tuple(moved), disputes=tuple(disputes))


def _is_same(one: str, other: str, embed: Callable[[str], Sequence[float]] | None) -> bool:
    if content_key(one) == content_key(other):
        return True
    return embed is not None and specifics(one) == specifics(other) and cosine(embed(one), embed(other)) >= SAME_COSINE


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors; 0 if one is zero."""
    dot = sum(float(a) * float(b) for a, b in zip(one, other, strict=True))
    length = math.sqrt(sum(float(a) ** 2 for a in one) * sum(float(b) ** 2 for b in other))
    return dot / length if length else 0.0


def merge_facts(group: Sequence[Fact]) -> FactDraft:
    """One draft for facts that say the same: the newest text, every source, the highest confidence."""
    newest = max(group, key=lambda fact: (fact.seen_at, int(fact.id[2:])))
    sources = tuple(dict.fromkeys(source for fact in group for source in fact.sources))
    draft = FactDraft(
        newest.content, checked_category(newest.category), max(fact.confidence for fact in group), newest.scope,
        newest.valid_from, newest.valid_until, sources, tuple(fact.id for fact in group),
    )  # fmt: skip
    return replace(draft, author="rules", reason=f"{len(group)} facts that say the same, in one")


NO_JUDGEMENT = Judgement()


def build_bodies(
    drafts: Sequence[FactDraft],
    ledger: Ledger,
    owner: str,
    *,
    judgements: Mapping[str, Judgement],
    capacity: Capacity,
    now: float,
    strict: bool = True,
) -> list[Body]:
    """The entry bodies that state the drafts, all of one scope, in order, followed by the evictions for them.

    ``judgements`` is keyed by content. A draft that is known already confirms the known fact. With ``strict``, a draft that
    supersedes an unknown fact raises UnknownFact; otherwise it is stated for itself.
    """
    bodies: list[Body] = []
    keys: set[str] = set()
    going: set[int] = set()
    for draft in drafts:
        key = content_key(draft.content)
        if key in keys:
            continue
        keys.add(key)
        judgement = judgements.get(draft.content, NO_JUDGEMENT)
        places = _superseded_positions((*draft.supersedes, *judgement.supersedes), ledger, draft, strict=strict)
        same = find_same(draft, ledger, judgement)
        if same is not None and (position := parse_fact_id(same.id)[1]) not in places:
            bodies.append(_confirmation(draft, position, same))
            bodies += (FactRemoved(place, f"said by {same.id} already", draft.author) for place in places)
        else:
            disputes = tuple(
                at for id in judgement.disputes if (at := parse_fact_id(id)[1]) in ledger.facts and at not in places
            )
            bodies.append(_statement(draft, owner, places, disputes))
        going.update(places)
    staying = [fact for at, fact in ledger.facts.items() if at not in going]
    coming = sum(isinstance(body, FactStated) for body in bodies)
    touched = {body.fact for body in bodies if isinstance(body, FactConfirmed)}
    for fact in select_evictions(staying, coming, capacity, now):
        at = parse_fact_id(fact.id)[1]
        if at not in touched:
            reason = f"capacity: more than {capacity.max_facts} facts, and of these the least worth keeping"
            bodies.append(FactRemoved(at, reason, "rules"))
    return bodies


def _superseded_positions(ids: Sequence[str], ledger: Ledger, draft: FactDraft, *, strict: bool) -> tuple[int, ...]:
    positions = []
    for id in dict.fromkeys(ids):
        scope, position = parse_fact_id(id)
        if scope == draft.scope and position in ledger.facts:
            positions.append(position)
        elif strict:
            raise UnknownFact(id, removal_reason(ledger, position))
    return tuple(positions)


def removal_reason(ledger: Ledger, position: int) -> str:
    """The reason why a fact left, or ""."""
    change = ledger.removals.get(position)
    if change is None:
        return ""
    return f"it was {change.what}" + (f" by {change.by}" if change.by else "")


def find_same(draft: FactDraft, ledger: Ledger, judgement: Judgement) -> Fact | None:
    """The known fact that says the same as a draft."""
    same = ledger.facts.get(parse_fact_id(judgement.same)[1]) if judgement.same else None
    return ledger.find(draft.content) or same


def _confirmation(draft: FactDraft, position: int, fact: Fact) -> FactConfirmed:
    confidence = draft.confidence if draft.confidence > fact.confidence else None
    new = tuple(source for source in draft.sources if source not in fact.sources)
    return FactConfirmed(position, confidence, new, draft.author, draft.reason or "said again")


def _statement(draft: FactDraft, owner: str, places: tuple[int, ...], disputes: tuple[int, ...]) -> FactStated:
    return FactStated(
        draft.content, draft.category, draft.confidence, draft.scope, owner, draft.valid_from, draft.valid_until,
        draft.sources, places, disputes, draft.author, draft.reason,
    )  # fmt: skip
