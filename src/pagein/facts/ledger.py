"""What is known of one owner: a pure fold of its log. What was known at a time, and why it changed, can be read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pagein.events.entries import Erased, FactConfirmed, FactRemoved, FactsExtracted, FactStated, FactsUsed
from pagein.facts.fact import Fact, fact_of, key_of
from pagein.log.base import Entry

What = Literal["stated", "superseded", "removed", "confirmed"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one fact: what, when, by whom and why; ``fact`` as it was right after it, or right before it left."""

    at: float
    position: int
    what: What
    fact: Fact
    author: str
    reason: str
    by: str = ""
    """The id of the fact that took its place."""


class Book:
    """The facts of one owner, folded so far. The same entries give the same book, in any process."""

    def __init__(self) -> None:
        self.head = 0
        self.facts: dict[int, Fact] = {}
        """By position, those that stand now; oldest first."""
        self.gone: dict[int, Change] = {}
        """By position, the change by which a fact left."""
        self.extracted: dict[str, int] = {}
        """By session, the position up to which it was read for facts."""
        self.by_key: dict[str, int] = {}
        self.touched: set[int] = set()
        """Positions of facts that came, changed or left since somebody cleared this."""
        self._changes: list[Change] = []

    def apply(self, entry: Entry) -> None:
        """Take in the next entry; what is not of facts changes nothing."""
        self.head = entry.position + 1
        match entry.body:
            case FactStated() as body:
                self._state(entry, body)
            case Erased() as note:
                self._erase(note)
            case FactRemoved(fact=fact, reason=reason, author=author):
                self._leave(fact, entry, "removed", author, reason)
            case FactConfirmed() as body:
                self._confirm(entry, body)
            case FactsUsed(facts=facts):
                for each in facts:
                    if each in self.facts:
                        self.facts[each] = replace(self.facts[each], uses=self.facts[each].uses + 1)
                        self.touched.add(each)
            case FactsExtracted(session=session, upto=upto):
                self.extracted[session] = max(upto, self.extracted.get(session, 0))
            case _:
                pass

    def find(self, content: str) -> Fact | None:
        """The standing fact with this text, whatever its case and white space."""
        position = self.by_key.get(key_of(content))
        return None if position is None else self.facts.get(position)

    def changes(self) -> tuple[Change, ...]:
        """Every change, oldest first."""
        return tuple(self._changes)

    def history(self, position: int) -> tuple[Change, ...]:
        """The changes of the fact stated at a position, and of those it took the place of, oldest first."""
        wanted = set(self._line_of(position))
        return tuple(each for each in self._changes if each.fact.id in wanted)

    def _line_of(self, position: int) -> Iterator[str]:
        seen: set[int] = set()
        rest = [position]
        while rest:
            at = rest.pop()
            fact = self.facts.get(at) or (self.gone[at].fact if at in self.gone else None)
            if at in seen or fact is None:
                continue
            seen.add(at)
            yield fact.id
            rest.extend(int(each[2:]) for each in fact.supersedes)

    def _state(self, entry: Entry, body: FactStated) -> None:
        if entry.erased is not None:
            for each in body.supersedes:
                self._leave(each, entry, "superseded", body.author, "")
            return
        position, fact = entry.position, fact_of(entry.position, entry.at, body)
        self.facts[position] = fact
        self.by_key[key_of(fact.content)] = position
        self.touched.add(position)
        self._changes.append(Change(entry.at, position, "stated", fact, body.author, body.reason))
        for each in body.supersedes:
            self._leave(each, entry, "superseded", body.author, body.reason, by=fact.id)
        for each in body.disputes:
            if each in self.facts:
                self.facts[each] = replace(self.facts[each], disputed_by=fact.id)
                self.touched.add(each)

    def _erase(self, note: Erased) -> None:
        """Forget what was erased after it was folded in, and that it ever changed."""
        known = {*self.facts, *self.gone}
        erased = {at for at in known if note.covers(at)}
        for at in erased:
            fact = self.facts.pop(at, None)
            self.gone.pop(at, None)
            if fact is not None and self.by_key.get(key_of(fact.content)) == at:
                del self.by_key[key_of(fact.content)]
        self.touched |= erased
        self._changes = [each for each in self._changes if int(each.fact.id[2:]) not in erased]

    def _leave(self, position: int, entry: Entry, what: What, author: str, reason: str, by: str = "") -> None:
        fact = self.facts.pop(position, None)
        if fact is None:
            return
        change = Change(entry.at, entry.position, what, fact, author, reason, by)
        self.gone[position] = change
        self.touched.add(position)
        self._changes.append(change)
        key = key_of(fact.content)
        if self.by_key.get(key) == position:
            del self.by_key[key]
        for other in fact.disputes:
            at = int(other[2:])
            if at in self.facts and self.facts[at].disputed_by == fact.id:
                self.facts[at] = replace(self.facts[at], disputed_by="")
                self.touched.add(at)

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


def book_of(entries: Iterable[Entry], *, until: float | None = None) -> Book:
    """The book that entries give, those after a time left out. Pure."""
    book = Book()
    for each in entries:
        if until is None or each.at <= until:
            book.apply(each)
    return book
