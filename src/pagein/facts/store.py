"""``Facts``: the object a user holds as ``memory.facts``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from pagein.errors import ConfigurationError, LogError, PageinError
from pagein.events.entries import Body, FactConfirmed, FactRemoved, FactScope, Source
from pagein.facts.block import Block, block_of
from pagein.facts.drafts import gone
from pagein.facts.export import drafts_from, exported
from pagein.facts.extraction.pipeline import Extraction, Read
from pagein.facts.fact import (
    SCOPES,
    Fact,
    FactError,
    UnknownFact,
    checked_category,
    checked_confidence,
    checked_content,
    checked_interval,
    checked_scope,
    parsed_id,
)
from pagein.facts.ledger import Book, Change, book_of
from pagein.facts.owners import Owners
from pagein.facts.placement import Laid, Room, frozen, laid
from pagein.facts.ranking import MOST, Ranked
from pagein.facts.reconcile import Draft, merged
from pagein.facts.retention import near_duplicates, stale
from pagein.facts.settings import Settings
from pagein.facts.shelves import Shelves
from pagein.log.base import Log
from pagein.tokens import TokenCounter

if TYPE_CHECKING:
    from pagein.models import Model
    from pagein.search.base import Embedder

_KEEP: Any = object()


class Facts(Shelves):
    """The facts that one session may see: its own, its task's, its project's, its user's and its tenant's.

    ``open_log`` gives the log of a name, in the store and the tenant of the run; ``Facts.open`` does that for an
    address. ``model`` is asked what contradicts what, and for facts where ``extract`` says so; ``embedder`` tells what
    says the same in other words. Every change is appended, and durable before it returns; what another process
    appended is seen at the next look. Safe to share between threads. Raises FactError for what is no fact, LogError.
    """

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
        super().__init__(open_log, owners, settings, model=model, embedder=embedder, clock=clock)
        self._extraction = Extraction(self)
        self.paused = False
        """True: nothing is taken from what is said, until it is False again."""

    @classmethod
    def open(
        cls,
        url: str,
        *,
        session: str = "default",
        user: str | None = None,
        project: str | None = None,
        task: str | None = None,
        tenant: str = "",
        settings: Settings | None = None,
        model: Model | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], float] = time.time,
        **store: Any,
    ) -> Self:
        """The facts in a store: a path, ``:memory:`` or a server's address; ``store`` is what ``open_log`` takes."""
        from pagein.backends.open import open_log  # noqa: PLC0415 - a store's drivers load when one is opened

        def opened(name: str) -> Log:
            return open_log(url, session=name, tenant=tenant, **store)

        owners = Owners(session, user, project, task, tenant)
        return cls(opened, owners, settings, model=model, embedder=embedder, clock=clock)

    # -- changes

    def add(
        self,
        content: str,
        *,
        category: str = "context",
        confidence: float = 1.0,
        scope: FactScope | None = None,
        valid_from: float | None = None,
        valid_until: float | None = None,
        sources: Sequence[str | Source] = (),
        author: str = "host",
        reason: str = "",
    ) -> Fact:
        """State a fact, for the user unless a ``scope`` is named (for the session where no user is known).

        One that is known already is confirmed instead, and given back. One that an older fact cannot hold with takes
        its place where the model says so; without a model both stay, and the newer is preferred. ``sources`` are
        handles of this session. Raises FactError.
        """
        draft = Draft(
            checked_content(content),
            checked_category(category, self.settings.known),
            checked_confidence(confidence),
            self.owners.usual if scope is None else checked_scope(scope),
            valid_from,
            valid_until,
            self.sources(sources),
            author=author,
            reason=reason,
        )
        checked_interval(valid_from, valid_until)
        return self.state([draft])[0]

    def update(
        self,
        id: str,
        content: str | None = None,
        *,
        category: str | None = None,
        confidence: float | None = None,
        valid_from: float | None = _KEEP,
        valid_until: float | None = _KEEP,
        sources: Sequence[str | Source] = (),
        author: str = "host",
        reason: str = "",
    ) -> Fact:
        """Put a fact in the place of another: what is not given stays. The older one can be read in the history.

        Raises UnknownFact, FactError.
        """
        before = self.get(id)
        draft = Draft(
            before.content if content is None else checked_content(content),
            before.category if category is None else checked_category(category, self.settings.known),
            before.confidence if confidence is None else checked_confidence(confidence),
            before.scope,
            before.valid_from if valid_from is _KEEP else valid_from,
            before.valid_until if valid_until is _KEEP else valid_until,
            tuple(dict.fromkeys((*before.sources, *self.sources(sources)))),
            (before.id,),
            author,
            reason,
        )
        checked_interval(draft.valid_from, draft.valid_until)
        return self.state([draft])[0]

    def correct(self, id: str, content: str, *, reason: str = "corrected", author: str = "user") -> Fact:
        """Say what is so instead: the new fact supersedes the old one, and is sure. Raises UnknownFact, FactError."""
        return self.update(id, content, confidence=1.0, reason=reason, author=author)

    def remove(self, id: str, *, reason: str = "removed", author: str = "host") -> Fact:
        """Let a fact go; what it said, and why it went, stays readable. Raises UnknownFact."""
        if not isinstance(reason, str):
            raise FactError(f"a reason is text, not {reason!r}. Nothing was removed.")
        return self._each(id, lambda position: FactRemoved(position, reason, author))

    def confirm(
        self,
        id: str,
        *,
        confidence: float | None = None,
        sources: Sequence[str | Source] = (),
        author: str = "host",
        reason: str = "confirmed",
    ) -> Fact:
        """Say that a fact still holds, and how sure it is now. Raises UnknownFact."""
        sure = None if confidence is None else checked_confidence(confidence)
        told = self.sources(sources)
        self._each(id, lambda position: FactConfirmed(position, sure, told, author, reason))
        return self.get(id)

    def import_(self, data: Any, *, scope: FactScope | None = None) -> tuple[Fact, ...]:
        """State what ``export`` gave, or a list of facts, or deer-flow's ``memory.json``; all of it, or nothing of a scope.

        Facts keep their scope unless ``scope`` names one; one whose scope has no owner here goes to the usual one.
        Raises FactError naming the fact that is none, before anything is written.
        """
        drafts = drafts_from(data, self.settings.known, self.owners, scope)
        found: list[Fact] = []
        for each in SCOPES:
            if of_scope := [draft for draft in drafts if draft.scope == each]:
                most = self.settings.capacity.max_facts
                if most and len(of_scope) > most:
                    raise FactError(f"{len(of_scope):,} facts, and {most:,} have room: raise max_facts")
                found.extend(self.state(of_scope, strict=False))
        return tuple(found)

    # -- looks

    def get(self, id: str) -> Fact:
        """The fact of an id, as it stands now. Raises UnknownFact where it left, and says why."""
        scope, position = parsed_id(id)
        with self._lock:
            self.refresh()
            if scope not in self._shelves:
                raise UnknownFact(id, f"no {scope} is known here")
            book = self._shelves[scope].book
            if position not in book.facts:
                raise UnknownFact(id, gone(book, position))
            return book.facts[position]

    def list(
        self, *, scope: FactScope | None = None, category: str | None = None, all: bool = False
    ) -> tuple[Fact, ...]:
        """The facts that hold now, the narrowest scope first, each oldest first; with ``all`` those of other times too."""
        wanted = None if scope is None else checked_scope(scope)
        kind = None if category is None else checked_category(category)
        now = self._clock()
        with self._lock:
            self.refresh()
            found = [each for shelf in self._shelves.values() for each in shelf.book.facts.values()]
        return tuple(
            each
            for each in found
            if (wanted in (None, each.scope)) and (kind in (None, each.category)) and (all or each.holds(now))
        )

    def search(self, query: str, *, limit: int = 10) -> tuple[Ranked, ...]:
        """The facts that have something in common with the query, best first; each of them counts as used."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ConfigurationError(f"limit is a whole number of facts, 1 or more, not {limit!r}")
        if not isinstance(query, str):
            raise ConfigurationError(f"a query is text, not {query!r}")
        found = tuple(each for each in self.ranked(query, limit=MOST) if each.similarity > 0)[:limit]
        with self._lock:
            self._used.update((each.fact.id, None) for each in found)
        return found

    def ranked(self, context: str = "", *, limit: int = MOST) -> tuple[Ranked, ...]:
        """The facts that hold now, those first that matter for the context (see ``context_of``); most 512."""
        with self._lock:
            self.refresh()
            return tuple(self._ranking.ranked(context, now=self._clock(), limit=limit))

    def block(self, context: str = "", *, counter: TokenCounter, max_tokens: int | None = None) -> Block:
        """The ``<memory>`` block for the context, within ``max_injection_tokens`` by the counter given."""
        settings = self.settings
        most = settings.max_injection_tokens if max_tokens is None else max_tokens
        found = [each.fact for each in self.ranked(context)]
        with self._lock:
            return block_of(
                found, counter=counter, max_tokens=most, guaranteed=settings.guaranteed,
                share=settings.guaranteed_share, cost=self._cost(counter),
            )  # fmt: skip

    def laid(
        self, held: tuple[Laid, ...], context: str, *, position: int, counter: TokenCounter, max_tokens: int
    ) -> tuple[Laid, ...]:
        """The blocks as they stand in a view that has come to ``position``: ``held`` stays where it is while it is true.

        Together they are within ``max_tokens`` and ``max_injection_tokens``. See ``laying``.
        """
        ranked = self.ranked(context)
        most = min(max_tokens, self.settings.max_injection_tokens)
        with self._lock:
            room = Room(position, most, counter, self._cost(counter))
            return laid(held, ranked, self._standing_now, room, self.settings)

    def frozen(self, text: str, context: str, *, counter: TokenCounter, max_tokens: int) -> Block:
        """The one block of a view's head that says ``text`` so far: the same while it is true, and worth its place."""
        ranked = self.ranked(context)
        most = min(max_tokens, self.settings.max_injection_tokens)
        with self._lock:
            room = Room(0, most, counter, self._cost(counter))
            return frozen(text, ranked, self._standing_now, room, self.settings)

    def _standing_now(self, id: str) -> Fact | None:
        scope, at = parsed_id(id)
        fact = self._shelves[scope].book.facts.get(at) if scope in self._shelves else None
        return fact if fact is not None and fact.holds(self._clock()) else None

    def _cost(self, counter: TokenCounter) -> Callable[[str], int]:
        """The counter's cost of a line, remembered."""

        def cost(line: str) -> int:
            if line not in self._costs:
                if len(self._costs) > 4 * MOST:
                    self._costs.clear()
                self._costs[line] = counter.text(line)
            return self._costs[line]

        return cost

    def as_of(self, at: float) -> tuple[Fact, ...]:
        """What was known at a time and held then, whatever was learnt since."""
        checked_interval(at, None)
        with self._lock:
            books = [book_of(shelf.entries(), until=at) for shelf in self._shelves.values()]
        return tuple(each for book in books for each in book.facts.values() if each.holds(at))

    def history(self, id: str) -> tuple[Change, ...]:
        """What became of a fact, and of those it took the place of, oldest first. Raises UnknownFact."""
        scope, position = parsed_id(id)
        with self._lock:
            self.refresh()
            found = self.shelf(scope).book.history(position) if scope in self._shelves else ()
        if not found:
            raise UnknownFact(id)
        return found

    def audit(self) -> tuple[Change, ...]:
        """Every change of every fact this memory may see, with its author and reason, oldest first."""
        with self._lock:
            self.refresh()
            found = [each for shelf in self._shelves.values() for each in shelf.book.changes()]
        return tuple(sorted(found, key=lambda each: each.at))

    def export(self) -> dict[str, Any]:
        """Every fact that stands, as JSON-safe values; ``import_`` takes them."""
        return exported(self.list(all=True))

    # -- housekeeping

    def stale(self, days: float | None = None) -> tuple[Fact, ...]:
        """The facts to look at again: no longer valid, or not said for so many days. Nothing is removed."""
        return stale(self.list(all=True), self._clock(), self.settings.stale_days if days is None else days)

    def tidy(self) -> tuple[Change, ...]:
        """Merge near-duplicates, and let go what is no longer valid; gives what changed. Each with its reason."""
        with self._lock:
            before = set(self.audit())
            for scope in self._shelves:
                facts = self.list(scope=scope)
                for group in near_duplicates(facts, lambda each: self._like(each.content, scope)):  # noqa: B023 - used at once
                    self.state([merged(group)], strict=False)
            now = self._clock()
            for each in self.list(all=True):
                if each.valid_until is not None and each.valid_until <= now:
                    self.remove(each.id, reason="no longer valid", author="rules")
            return tuple(each for each in self.audit() if each not in before)

    # -- from a run

    def attend(self, read: Read, head: int) -> tuple[Fact, ...]:
        """Tell that the run's log has come to ``head``: what was said is read for facts where it is time.

        ``read`` gives entries as a log's ``read``. Without a model the rules read at once; a model is asked when
        nothing came for ``debounce`` seconds. Gives the facts that came of it; a model's failure is in ``failed``.
        """
        return () if self.paused else self._extraction.attend(read, head, self._clock())

    def flush(self, read: Read, head: int) -> tuple[Fact, ...]:
        """Read now whatever was not read for facts: before a compaction, and at the end."""
        return () if self.paused else self._extraction.flush(read, head, self._clock())

    @property
    def asks(self) -> bool:
        """True where a model reads what was said, and so waits for a session to be quiet."""
        return self._extraction.model is not None

    @property
    def failed(self) -> PageinError | None:
        """What the last reading failed with; the span is read again with the next."""
        return self._extraction.failed

    def close(self) -> None:
        """Write down what was looked up, and release the logs; a second call does nothing."""
        with self._lock:
            with suppress(LogError):
                self.note_uses()
            super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _each(self, id: str, body: Callable[[int], Body]) -> Fact:
        scope, position = parsed_id(id)
        with self._lock:
            fact = self.get(id)

            def decide(book: Book) -> list[Body]:
                if position not in book.facts:
                    raise UnknownFact(id, gone(book, position))
                return [body(position)]

            self.write(self.shelf(scope), decide)
            return fact
