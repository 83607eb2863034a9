"""The logs of everybody whose facts a session may see, one ranking over all of them, and the one way to write to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pagein.events.entries import Body, FactScope, FactsUsed, Source
from pagein.facts._fact_log import Shelf
from pagein.facts.contradiction import others_by
from pagein.facts.drafts import bodies_of
from pagein.facts.extraction.model import contradicted
from pagein.facts.fact import Fact, FactError, fact_id, parsed_id
from pagein.facts.ledger import Book
from pagein.facts.owners import Owners
from pagein.facts.ranking import Ranked, Ranking
from pagein.facts.reconcile import Draft, Judgement, judged
from pagein.facts.settings import Settings
from pagein.log.base import Log

if TYPE_CHECKING:
    from pagein.models import Model
    from pagein.search.base import Embedder

LIKE = 0.3
"""Cosine from which a known fact is compared with a new one."""

ALIKE = 8
"""Known facts that a new one is compared with at most."""


class Shelves:
    """What ``Facts`` and extraction stand on. Every change is appended, and durable before it returns."""

    def __init__(
        self,
        open_log: Callable[[str], Log],
        owners: Owners,
        settings: Settings | None = None,
        *,
        model: Model | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.owners = owners
        self.settings = settings or Settings()
        self.model = model
        self._embedder = embedder
        self._clock = clock
        self._lock = threading.RLock()
        self._shelves = {
            scope: Shelf(scope, owners.owner(scope), partial(open_log, owners.log_name(scope)))
            for scope in owners.known
        }
        self._ranking = Ranking(self.settings.weights)
        self._used: dict[str, None] = {}
        self._costs: dict[str, int] = {}

    def state(self, drafts: Sequence[Draft], *extra: Body, strict: bool = True) -> tuple[Fact, ...]:
        """State drafts of one scope in one append, and write ``extra`` behind them; gives the facts that stand for them.

        Nothing leaves before what takes its place is stored: both are in the same append.
        """
        shelf = self.shelf(drafts[0].scope)
        self.refresh()
        # A model may be asked here, and others go on meanwhile.
        judgements = {each.content: self._judged(each) for each in drafts}

        def decide(book: Book) -> list[Body]:
            stated = bodies_of(
                drafts, book, shelf.owner, judgements=judgements, capacity=self.settings.capacity,
                now=self._clock(), strict=strict,
            )  # fmt: skip
            return [*stated, *extra]

        with self._lock:
            self.write(shelf, decide)
            found = (self._standing(each, judgements[each.content], shelf.book) for each in drafts)
            return tuple(dict.fromkeys(each for each in found if each is not None))

    def _standing(self, draft: Draft, judgement: Judgement, book: Book) -> Fact | None:
        found = book.find(draft.content)
        if found is None and judgement.same:
            found = book.facts.get(parsed_id(judgement.same)[1])
        return found

    def write(self, shelf: Shelf, decide: Callable[[Book], Sequence[Body]]) -> None:
        """Append what is decided about a shelf's book as it stands, and rank what changed. Raises what ``decide`` does."""
        with self._lock:
            shelf.change(decide, self._clock())
            self._index(shelf)

    def refresh(self) -> bool:
        """Fold in what other sessions and processes wrote; True where that was anything."""
        with self._lock:
            some = [shelf.refresh() for shelf in self._shelves.values()]
            for shelf in self._shelves.values():
                self._index(shelf)
            return any(some)

    def note_uses(self) -> None:
        """Write down which facts were looked up since the last time; nothing where none was."""
        with self._lock:
            used, self._used = [parsed_id(each) for each in self._used], {}
            for scope, shelf in self._shelves.items():
                if positions := tuple(at for of, at in used if of == scope):
                    noted = (FactsUsed(positions),)
                    self.write(shelf, lambda _: noted)  # noqa: B023 - called at once

    def close(self) -> None:
        """Release the logs; a second call does nothing."""
        with self._lock:
            for shelf in self._shelves.values():
                shelf.close()

    def upto(self) -> int:
        """The position up to which this session was read for facts."""
        with self._lock:
            shelf = self.shelf("session")
            shelf.refresh()
            return shelf.book.extracted.get(self.owners.session, 0)

    def sources(self, handles: Sequence[str | Source]) -> tuple[Source, ...]:
        """Handles as sources, of this session where nothing else is said. Raises FactError."""
        if isinstance(handles, str) or not all(isinstance(each, str | Source) for each in handles):
            raise FactError(f"sources are a list of handles such as 's12', not {handles!r}")
        return tuple(
            each if isinstance(each, Source) else Source(self.owners.session, each) for each in handles
        )

    def logs(self) -> tuple[Log, ...]:
        """The logs of everybody whose facts are seen here."""
        return tuple(each.log for each in self._shelves.values())

    def shelf(self, scope: FactScope) -> Shelf:
        """The shelf of a scope. Raises FactError where the scope has no owner here."""
        if scope not in self._shelves:
            self.owners.owner(scope)
        return self._shelves[scope]

    def _index(self, shelf: Shelf) -> None:
        """Put what changed on a shelf into the ranking."""
        book = shelf.book
        for position in book.touched:
            fact = book.facts.get(position)
            if fact is None:
                self._ranking.drop(fact_id(shelf.scope, position))
            else:
                self._ranking.put(fact)
        book.touched.clear()

    def near(self, text: str, limit: int) -> list[Ranked]:
        """The facts that hold now, nearest to a text first."""
        with self._lock:
            self.refresh()
            return self._ranking.ranked(text, now=self._clock(), limit=limit)

    def _like(self, content: str, scope: FactScope) -> list[Fact]:
        """The known facts of a scope that are most like a text."""
        near = [each for each in self.near(content, 4 * ALIKE) if each.similarity >= LIKE]
        if words := others_by(content.strip()):
            near += [each for each in self.near(words, 4 * ALIKE) if each.similarity > 0]
        return list(dict.fromkeys(each.fact for each in near if each.fact.scope == scope))[:ALIKE]

    def _judged(self, draft: Draft) -> Judgement:
        with self._lock:
            if self.shelf(draft.scope).book.find(draft.content) is not None:
                return Judgement()
        alike = [each for each in self._like(draft.content, draft.scope) if each.id not in draft.supersedes]
        if not alike:
            return Judgement()
        found = judged(draft, alike, self._vector if self._embedder is not None else None)
        if self.model is None or found.same:
            return found
        told = contradicted(self.model, draft, alike)
        return found if told is None else replace(found, supersedes=told, disputes=())

    def _vector(self, text: str) -> Sequence[float]:
        if self._embedder is None:
            return ()
        try:
            return [float(each) for each in self._embedder.embed([text])[0]]
        except Exception:  # noqa: BLE001 - an embedder may raise anything; facts go on by their words
            return ()
