"""The ledger of one owner's facts: a pure fold of the log, with history and audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pagein.events.entries import Erased, FactConfirmed, FactRemoved, FactsExtracted, FactStated, FactsUsed, Source
from pagein.facts.fact import Fact, content_key, fact_from_entry
from pagein.log.base import Entry

ChangeKind = Literal["stated", "superseded", "removed", "confirmed"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one fact: time, kind, author and reason; ``fact`` right after it, or right before it left."""

    at: float
    position: int
    what: ChangeKind
    fact: Fact
    author: str
    reason: str
    by: str = ""
    """The id of the fact that replaced it."""


class Ledger:
    """The facts of one owner, folded from log entries. The same entries give the same ledger in any process."""

    def __init__(self) -> None:
        self.head = 0
        self.facts: dict[int, Fact] = {}
        """By position, those that stand now; oldest first."""
        self.removals: dict[int, Change] = {}
        """By position, the change by which a fact left."""
        self.extracted: dict[str, int] = {}
        """By session, the position up to which it was read for facts."""
        self.by_key: dict[str, int] = {}
        self.touched: set[int] = set()
        """Positions of facts that came, changed or left since this was cleared."""
        self._changes: list[Change] = []

    def apply(self, entry: Entry) -> None:
        """Apply the next entry; entries that are not about facts change nothing."""
        self.head = entry.position + 1
        match entry.body:
            case FactStated() as body:
                self._add(entry, body)
            case Erased() as note:
                self._erase(note)
            case FactRemoved(fact=fact, reason=reason, author=author):
                self._retire(fact, entry, "removed", author, reason)
            case FactConfirmed() as body:
                self._confirm(entry, body)
            case FactsUsed(facts=facts):
                for used in facts:
                    if used in self.facts:
                        self.facts[used] = replace(self.facts[used], uses=self.facts[used].uses + 1)
                        self.touched.add(used)
            case FactsExtracted(session=session, upto=upto):
                self.extracted[session] = max(upto, self.extracted.get(session, 0))

    def find(self, content: str) -> Fact | None:
        """The current fact with this text, ignoring case and white space."""
        position = self.by_key.get(content_key(content))
        return None if position is None else self.facts.get(position)

    def has_said(self, content: str, source: Source) -> bool:
        """True if the source said this text before: it stands, or left for another reason than the source's own new wording."""
        key = content_key(content)
        by_id = {fact.id: fact for fact in self.facts.values()}
        by_id |= {change.fact.id: change.fact for change in self.removals.values()}
        standing = self.find(content)
        if standing is not None and source in standing.sources:
            return True
        left = (change for change in self.removals.values() if content_key(change.fact.content) == key)
        return any(
            source in change.fact.sources and not (change.by in by_id and source in by_id[change.by].sources)
            for change in left
        )

    def changes(self) -> tuple[Change, ...]:
        """Every change, oldest first."""
        return tuple(self._changes)

    def history(self, position: int) -> tuple[Change, ...]:
        """The changes of the fact stated at a position, and of the facts it replaced, oldest first."""
        ids = set(self._lineage(position))
        return tuple(change for change in self._changes if change.fact.id in ids)

    def _lineage(self, position: int) -> Iterator[str]:
        positions: set[int] = set()
        rest = [position]
        while rest:
            at = rest.pop()
            fact = self.facts.get(at) or (self.removals[at].fact if at in self.removals else None)
            if at in positions or fact is None:
                continue
            positions.add(at)
            yield fact.id
            rest.extend(int(id[2:]) for id in fact.supersedes)

    def _add(self, entry: Entry, body: FactStated) -> None:
        if entry.erased is not None:
            for other in body.supersedes:
                self._retire(other, entry, "superseded", body.author, "")
            return
        position, fact = entry.position, fact_from_entry(entry.position, entry.at, body)
        self.facts[position] = fact
        self.by_key[content_key(fact.content)] = position
        self.touched.add(position)
        self._changes.append(Change(entry.at, position, "stated", fact, body.author, body.reason))
        for other in body.supersedes:
            self._retire(other, entry, "superseded", body.author, body.reason, by=fact.id)
        for other in body.disputes:
            if other in self.facts:
                self.facts[other] = replace(self.facts[other], disputed_by=fact.id)
                self.touched.add(other)

    def _erase(self, note: Erased) -> None:
        """Remove erased facts and their changes."""
        positions = {*self.facts, *self.removals}
        erased = {at for at in positions if note.covers(at)}
        for at in erased:
            self._drop(at)
            self.removals.pop(at, None)
        self.touched |= erased
        self._changes = [change for change in self._changes if int(change.fact.id[2:]) not in erased]

    def _retire(self, position: int, entry: Entry, what: ChangeKind, author: str, reason: str, by: str = "") -> None:
        fact = self._drop(position)
        if fact is None:
            return
        change = Change(entry.at, entry.position, what, fact, author, reason, by)
        self.removals[position] = change
        self.touched.add(position)
        self._changes.append(change)
        for other in fact.disputes:
            at = int(other[2:])
            if at in self.facts and self.facts[at].disputed_by == fact.id:
                self.facts[at] = replace(self.facts[at], disputed_by="")
                self.touched.add(at)

    def _drop(self, position: int) -> Fact | None:
        fact = self.facts.pop(position, None)
        if fact is not None and self.by_key.get(key := content_key(fact.content)) == position:
            del self.by_key[key]
        return fact

    def _confirm(self, entry: Entry, body: FactConfirmed) -> None:
        fact = self.facts.get(body.fact)
        if fact is None:
            return
        fact = replace(
            fact,
            confirmed_at=entry.at,
            confidence=fact.confidence if body.confidence is None else body.confidence,
            sources=tuple(dict.fromkeys((*fact.sources, *body.sources))),
        )
        self.facts[body.fact] = fact
        self.touched.add(body.fact)
        self._changes.append(Change(entry.at, entry.position, "confirmed", fact, body.author, body.reason))


def ledger_of(entries: Iterable[Entry], *, until: float | None = None) -> Ledger:
    """The ledger of these entries, up to a time if given. Pure."""
    ledger = Ledger()
    for entry in entries:
        if until is None or entry.at <= until:
            ledger.apply(entry)
    return ledger
