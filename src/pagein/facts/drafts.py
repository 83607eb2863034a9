"""What drafts become in a log: facts stated, or facts confirmed that say the same; and who leaves for them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pagein.events.entries import Body, FactConfirmed, FactRemoved, FactStated
from pagein.facts.fact import Fact, UnknownFact, fact_id, key_of, parsed_id
from pagein.facts.ledger import Book
from pagein.facts.reconcile import Draft, Judgement
from pagein.facts.retention import Capacity, leaving

NOTHING = Judgement()


def bodies_of(
    drafts: Sequence[Draft],
    book: Book,
    owner: str,
    *,
    judgements: Mapping[str, Judgement],
    capacity: Capacity,
    now: float,
    strict: bool = True,
) -> list[Body]:
    """The bodies that state the drafts in a book, in order, all of one scope; who leaves for them behind them.

    ``judgements`` by content. A draft that is known already confirms what is. With ``strict``, a draft in the place of
    a fact that is not there raises UnknownFact; else it is stated for itself.
    """
    bodies: list[Body] = []
    keys: set[str] = set()
    going: set[int] = set()
    for draft in drafts:
        key = key_of(draft.content)
        if key in keys:
            continue
        keys.add(key)
        judgement = judgements.get(draft.content, NOTHING)
        places = _places((*draft.supersedes, *judgement.supersedes), book, draft, strict=strict)
        known = _known(draft, book, judgement)
        if known is not None and known not in places:
            bodies.append(_confirmation(draft, known, book.facts[known]))
            bodies += (
                FactRemoved(each, f"said by {fact_id(draft.scope, known)} already", draft.author)
                for each in places
            )
        else:
            disputes = tuple(
                at
                for each in judgement.disputes
                if (at := parsed_id(each)[1]) in book.facts and at not in places
            )
            bodies.append(_statement(draft, owner, places, disputes))
        going.update(places)
    staying = [each for at, each in book.facts.items() if at not in going]
    coming = sum(isinstance(each, FactStated) for each in bodies)
    touched = {body.fact for body in bodies if isinstance(body, FactConfirmed)}
    for fact in leaving(staying, coming, capacity, now):
        at = parsed_id(fact.id)[1]
        if at not in touched:
            reason = f"capacity: more than {capacity.max_facts} facts, and of these the least worth keeping"
            bodies.append(FactRemoved(at, reason, "rules"))
    return bodies


def _places(ids: Sequence[str], book: Book, draft: Draft, *, strict: bool) -> tuple[int, ...]:
    found = []
    for each in dict.fromkeys(ids):
        scope, position = parsed_id(each)
        if scope == draft.scope and position in book.facts:
            found.append(position)
        elif strict:
            raise UnknownFact(each, gone(book, position))
    return tuple(found)


def gone(book: Book, position: int) -> str:
    """Why a fact is no longer there, or ""."""
    change = book.gone.get(position)
    if change is None:
        return ""
    return f"it was {change.what}" + (f" by {change.by}" if change.by else "")


def _known(draft: Draft, book: Book, judgement: Judgement) -> int | None:
    """The position of the fact that says the same."""
    found = book.find(draft.content)
    if found is not None:
        return parsed_id(found.id)[1]
    if judgement.same:
        position = parsed_id(judgement.same)[1]
        return position if position in book.facts else None
    return None


def _confirmation(draft: Draft, position: int, fact: Fact) -> FactConfirmed:
    confidence = draft.confidence if draft.confidence > fact.confidence else None
    new = tuple(each for each in draft.sources if each not in fact.sources)
    return FactConfirmed(position, confidence, new, draft.author, draft.reason or "said again")


def _statement(draft: Draft, owner: str, places: tuple[int, ...], disputes: tuple[int, ...]) -> FactStated:
    return FactStated(
        draft.content, draft.category, draft.confidence, draft.scope, owner, draft.valid_from, draft.valid_until,
        draft.sources, places, disputes, draft.author, draft.reason,
    )  # fmt: skip
