"""An archive over any database that can keep its index: the verbs, and when what is found may be trusted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Self, TypeVar

from pagein.errors import LogUnreadable
from pagein.events.entries import Erased
from pagein.log.base import Entry, Log
from pagein.log.rows import checked_name
from pagein.search.base import Hit, Query
from pagein.search.candidates import Counts
from pagein.search.erasure import revise
from pagein.search.index_store import Indexed, Meanings, Reading, Scope, Store, Writing
from pagein.search.index_writes import add
from pagein.search.passage_ids import range_of_session
from pagein.search.query import Found, find, hits
from pagein.search.sessions import rank_sessions

T = TypeVar("T")

_A_BATCH = 128
"""Entries indexed in one transaction: a writer of the log beside us never waits for more."""


class DerivedArchive:
    """An Archive whose index lies in a ``store``, as derived data: what cannot be trusted is dropped and built again.

    ``session`` is what calls without one mean; ``tenant`` is the store's. ``own_tools`` names the tools whose results
    are not taken in because they repeat what was recalled. Threads may share one archive.
    """

    def __init__(self, store: Store, *, session: str = "default", own_tools: Collection[str] = ()) -> None:
        self.session = session
        self._store = store
        self._own_tools = frozenset(own_tools)
        self._counts: Counts = {}
        self._logs: dict[str, Log] = {}

    @property
    def path(self) -> str:
        """Where the index is, without a password."""
        return self._store.path

    @property
    def problems(self) -> tuple[str, ...]:
        """What the store cannot do that was asked of it, as finding by meaning, each in a line."""
        return self._store.problems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def catch_up(self, log: Log, *, session: str | None = None) -> int:
        """Take in what the session's log holds beyond the watermark; the number of entries that were new.

        Each batch and the watermark behind it are one transaction. A log that is not the one indexed before, as after
        a restore, is indexed anew. Raises what reading the log raises, LogBusy, LogUnwritable.
        """
        session = self._named(session)
        self._logs[session] = log
        return self._trusting(lambda: self._catch_up(log, session))

    def index(self, entries: Iterable[Entry], *, session: str | None = None) -> int:
        """Take in entries in order, those below the watermark not again; the number that were new.

        Raises LogError where one is missing: what came before it is indexed.
        """
        session = self._named(session)
        every = tuple(entries)
        return self._trusting(lambda: self._index(iter(every), session))

    def watermark(self, session: str | None = None) -> int:
        """The position up to which the session is indexed."""
        session = self._named(session)
        known = self._store.read(lambda reading: reading.indexed(session))
        return 0 if known is None else known.position

    def watermarks(self) -> dict[str, int]:
        """The position up to which each session of the tenant is indexed, for those that are."""
        return self._store.read(lambda reading: {each.name: each.position for each in reading.every()})

    def search(self, query: Query | str) -> tuple[Hit, ...]:
        """The best hits, best first, at most ``limit``. Any text is data: no operator, no quote means anything.

        An embedder that fails is left out: the hits are then those by words.
        """
        asked = Query(query) if isinstance(query, str) else query
        return self._trusting(lambda: self._search(asked))

    def sessions(self, query: Query | str) -> tuple[tuple[str, float], ...]:
        """The sessions in which it may have been, with their scores, best first, at most ``limit``."""
        asked = Query(query) if isinstance(query, str) else query
        return self._trusting(lambda: self._sessions(asked))

    def forget(self, positions: Iterable[int], *, session: str | None = None) -> int:
        """Take what stands at these positions out of the index; the number of passages that went."""
        session = self._named(session)
        wanted = tuple(positions)
        return self._trusting(lambda: self._forget(wanted, session))

    def revise(self, entries: Iterable[Entry], *, session: str | None = None) -> int:
        """Take out what these entries of the log do not say any more, as where it was erased; the passages that went."""
        session = self._named(session)
        every = tuple(entries)
        return self._trusting(lambda: self._store.write(lambda writing: revise(writing, session, every)))

    def clear(self, session: str | None = None) -> None:
        """Drop the index of one session, so that the next ``catch_up`` builds it anew."""
        session = self._named(session)
        self._trusting(lambda: self._clear(session))

    def rebuild(self) -> None:
        """Drop the whole index: of every tenant in a file, of this one on a server. The next ``catch_up`` builds it again."""
        self._counts.clear()
        self._store.empty()

    def pending(self) -> int:
        """How many passages of the tenant have no vector yet; 0 without an embedder."""
        vectors = self._store.vectors
        return (
            0 if vectors is None else max(0, self._store.read(lambda reading: vectors.pending(reading, 1)[1]))
        )

    def embed_pending(self, limit: int = 64) -> int:
        """Embed at most ``limit`` passages that have no vector yet, newest first; how many were still to do after.

        May run in a thread of its own: nothing is locked while the embedder works. Raises ConfigurationError for an
        embedder whose vectors are not of its dimension; what else it raises goes through, and nothing was written.
        """
        vectors = self._store.vectors
        if vectors is None:
            return 0
        todo, left = self._store.read(lambda reading: vectors.pending(reading, limit))
        if not todo:
            return 0
        made = vectors.made([text for _, text in todo])
        self._store.write(lambda writing: vectors.keep(writing, [id for id, _ in todo], made))
        return max(0, left - len(todo))

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        self._store.close()

    # What the verbs are made of

    def _catch_up(self, log: Log, session: str) -> int:
        head = log.head()
        # Looked at once: meanwhile another process may index on.
        known = self._store.read(lambda reading: reading.indexed(session))
        start = 0 if known is None else known.position
        if known is not None and start and not _is_of(log, known, head):
            self._clear(session)
            start = 0
        return self._index(log.read(start, head), session) if start < head else 0

    def _index(self, entries: Iterator[Entry], session: str) -> int:
        new = 0
        while batch := tuple(islice(entries, _A_BATCH)):
            new += self._store.write(lambda writing: add(writing, session, batch, self._own_tools))
            for each in batch:
                if isinstance(each.body, Erased):
                    self._erase(each.body, each.position, session)
        return new

    def _erase(self, note: Erased, before: int, session: str) -> None:
        """What was erased in the log after it was indexed here."""
        log = self._logs.get(session)
        for first, end in note.spans if not note.gone else ():
            last = min(end, before)
            if log is None:
                self._forget(range(first, last), session)
            else:
                entries = tuple(log.read(first, last))
                self._store.write(lambda writing: revise(writing, session, entries))  # noqa: B023 - called at once

    def _search(self, query: Query) -> tuple[Hit, ...]:
        meanings = self._meanings(query)

        def search(reading: Reading) -> tuple[Hit, ...]:
            found, names, _ = self._find(reading, query, meanings)
            return hits(reading, query, found, names)

        return self._store.read(search)

    def _sessions(self, query: Query) -> tuple[tuple[str, float], ...]:
        meanings = self._meanings(query)

        def rank(reading: Reading) -> tuple[tuple[str, float], ...]:
            found, names, scope = self._find(reading, query, meanings)
            ranked = rank_sessions(reading, query, scope, self._counts, found)
            return tuple((names[key], score) for key, score in ranked[: query.limit] if key in names)

        return self._store.read(rank)

    def _meanings(self, query: Query) -> Meanings | None:
        vectors = self._store.vectors
        return None if vectors is None else vectors.query(query.text)

    def _find(
        self, reading: Reading, query: Query, meanings: Meanings | None
    ) -> tuple[Found, dict[int, str], Scope]:
        names = {each.key: each.name for each in reading.every()}
        scope = _scope(reading, query, names)
        if meanings is not None:
            meanings.look(reading, scope)
        known = reading.indexed(self.session) if query.exclude else None
        hidden = frozenset() if known is None else frozenset(reading.places(known, query.exclude))
        return find(reading, query, scope, hidden, self._counts, meanings), names, scope

    def _forget(self, positions: Collection[int], session: str) -> int:
        def forget(writing: Writing) -> int:
            known = writing.indexed(session)
            return 0 if known is None else writing.remove(known, writing.places(known, positions))

        return self._store.write(forget)

    def _clear(self, session: str) -> None:
        def clear(writing: Writing) -> None:
            if known := writing.indexed(session):
                writing.remove_session(known)

        self._store.write(clear)

    def _named(self, session: str | None) -> str:
        return self.session if session is None else checked_name("session", session)

    def _trusting(self, work: Callable[[], T]) -> T:
        """What the work gives; where the index turns out damaged or gone, it is made anew once, and the work done again.

        Raises LogUnreadable where the logs to build it from are not known: the index is then empty.
        """
        try:
            return work()
        except LogUnreadable as error:
            if not self._store.is_damage(error):
                raise
        self._counts.clear()
        self._store.make_anew()
        if not self._logs:
            raise LogUnreadable(
                f"{self.path}: the index was damaged, and is empty now; catch_up() builds it again from the log"
            )
        for session, log in self._logs.items():
            self._catch_up(log, session)
        return work()


def _is_of(log: Log, known: Indexed, head: int) -> bool:
    """Whether what was indexed is the beginning of this log: its last entry's hash says so for all before it."""
    if known.position > head:
        return False
    return next(iter(log.read(known.position - 1, known.position))).digest == known.digest


def _scope(reading: Reading, query: Query, names: dict[int, str]) -> Scope:
    """Where the query is to look."""
    if not names:
        return Scope((), (), query.roles)
    keys = sorted(key for key, name in names.items() if not query.sessions or name in query.sessions)
    sessions = tuple(keys) if query.sessions else None
    if query.since is not None or query.until is not None:
        early = float("-inf") if query.since is None else query.since
        late = float("inf") if query.until is None else query.until
        return Scope(tuple(reading.within(keys, early, late)), sessions, query.roles)
    if sessions is None:
        return Scope((reading.range_of_all(),), None, query.roles)
    return Scope(tuple(map(range_of_session, sessions)), sessions, query.roles)
