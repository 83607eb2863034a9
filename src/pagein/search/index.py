"""The search index over any database that implements ``IndexStore``: its public methods.

``candidates`` is one search within a transaction, ``index_writes`` what changes the index within one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from pagein.errors import LogUnreadable
from pagein.events.entries import Erased
from pagein.log.base import Entry
from pagein.log.hash_chain import check_name
from pagein.search import ranking
from pagein.search.base import Hit, Query
from pagein.search.candidates import SearchCandidates, build_hits, find_candidates
from pagein.search.index_store import IndexedSession, IndexReader, IndexStore, IndexWriter, Scope
from pagein.search.index_writes import add_entries, remove_stale
from pagein.search.passages import range_of_session
from pagein.search.sessions import rank_sessions

if TYPE_CHECKING:
    from pagein.search.vectors import VectorScores

T = TypeVar("T")

_BATCH_ENTRIES = 128
"""Entries indexed in one transaction; it bounds how long a writer of the log waits."""


class ReadLog(Protocol):
    """The part of a log that an index reads."""

    def head(self) -> int:
        """The number of entries."""
        ...

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order."""
        ...


class SearchIndex:
    """The index over every step of a tenant's sessions, in a ``store``. Derived: dropped and rebuilt where it is damaged.

    ``session`` is the session of calls that name none; the store has one tenant. ``own_tools`` names the tools whose
    results are not indexed because they repeat recalled text. Threads may share one index. Every method raises a
    ``LogError`` or ``ConfigurationError``, never a driver's error.
    """

    def __init__(self, store: IndexStore, *, session: str = "default", own_tools: Collection[str] = ()) -> None:
        self.session = session
        self._store = store
        self._own_tools = frozenset(own_tools)
        self._counts: ranking.TermCounts = {}
        self._logs: dict[str, ReadLog] = {}

    @property
    def path(self) -> str:
        """The address of the index, without a password."""
        return self._store.path

    @property
    def problems(self) -> tuple[str, ...]:
        """Unavailable features that were asked for, such as search by vectors; a line each."""
        return self._store.problems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def catch_up(self, log: ReadLog, *, session: str | None = None) -> int:
        """Index the entries of the session's log above the watermark; return how many there were.

        Each batch and its watermark are one transaction. A log other than the one indexed before, as after a restore, is
        indexed from the start. Raises LogBusy, LogUnwritable, and what reading the log raises.
        """
        session = self._session_name(session)
        self._logs[session] = log
        return self._with_rebuild(lambda: self._catch_up(log, session))

    def index(self, entries: Iterable[Entry], *, session: str | None = None) -> int:
        """Index entries in order, skipping those below the watermark; return how many were new.

        Raises LogError for a gap; the entries before it are indexed.
        """
        session = self._session_name(session)
        batch = tuple(entries)
        return self._with_rebuild(lambda: self._index(iter(batch), session))

    def watermark(self, session: str | None = None) -> int:
        """The position up to which the session is indexed."""
        session = self._session_name(session)
        indexed = self._store.run_read(lambda reader: reader.find_session(session))
        return 0 if indexed is None else indexed.position

    def watermarks(self) -> dict[str, int]:
        """The position up to which each session is indexed, for all indexed sessions of the tenant."""
        return self._store.run_read(lambda reader: {indexed.name: indexed.position for indexed in reader.sessions()})

    def search(self, query: Query | str) -> tuple[Hit, ...]:
        """The best hits, best first, at most ``limit``. There is no query syntax: any text is searched as it is.

        If the embedder fails, the hits are those by words.
        """
        parsed = Query(query) if isinstance(query, str) else query
        return self._with_rebuild(lambda: self._search(parsed))

    def sessions(self, query: Query | str) -> tuple[tuple[str, float], ...]:
        """The best sessions for the query with their scores, best first, at most ``limit``."""
        parsed = Query(query) if isinstance(query, str) else query
        return self._with_rebuild(lambda: self._sessions(parsed))

    def forget(self, positions: Iterable[int], *, session: str | None = None) -> int:
        """Remove the passages at these positions; return how many there were."""
        session = self._session_name(session)
        places = tuple(positions)
        return self._with_rebuild(lambda: self._forget(places, session))

    def revise(self, entries: Iterable[Entry], *, session: str | None = None) -> int:
        """Remove passages that these entries no longer contain, as after an erasure; return how many there were."""
        session = self._session_name(session)
        batch = tuple(entries)
        return self._with_rebuild(lambda: self._store.run_write(lambda writer: remove_stale(writer, session, batch)))

    def clear(self, session: str | None = None) -> None:
        """Drop the index of one session; the next ``catch_up`` builds it again."""
        session = self._session_name(session)
        self._with_rebuild(lambda: self._clear(session))

    def rebuild(self) -> None:
        """Drop the index: of every tenant in a file, of this tenant on a server. The next ``catch_up`` builds it again."""
        self._counts.clear()
        self._store.empty()

    def pending(self) -> int:
        """The number of the tenant's passages without a vector; 0 without an embedder."""
        vectors = self._store.vectors
        return 0 if vectors is None else max(0, self._store.run_read(lambda reader: vectors.pending(reader, 1)[1]))

    def embed_pending(self, limit: int = 64) -> int:
        """Embed at most ``limit`` passages that have no vector, newest first; return how many remain.

        May run in a thread of its own: nothing is locked while the embedder works. Raises ConfigurationError for vectors of a
        wrong dimension, and what the embedder raises; nothing is written then.
        """
        vectors = self._store.vectors
        if vectors is None:
            return 0
        todo, total = self._store.run_read(lambda reader: vectors.pending(reader, limit))
        if not todo:
            return 0
        embedded = vectors.embed_texts([text for _, text in todo])
        self._store.run_write(lambda writer: vectors.store_vectors(writer, [id for id, _ in todo], embedded))
        return max(0, total - len(todo))

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        self._store.close()

    # The methods without the rebuild

    def _catch_up(self, log: ReadLog, session: str) -> int:
        head = log.head()
        # Read once: another process may index more meanwhile.
        indexed = self._store.run_read(lambda reader: reader.find_session(session))
        start = 0 if indexed is None else indexed.position
        if indexed is not None and start and not _is_same_log(log, indexed, head):
            self._clear(session)
            start = 0
        return self._index(log.read(start, head), session) if start < head else 0

    def _index(self, entries: Iterator[Entry], session: str) -> int:
        total = 0
        while batch := tuple(islice(entries, _BATCH_ENTRIES)):
            total += self._store.run_write(lambda writer: add_entries(writer, session, batch, self._own_tools))
            for entry in batch:
                if isinstance(entry.body, Erased):
                    self._forget_erased(entry.body, entry.position, session)
        return total

    def _forget_erased(self, note: Erased, before: int, session: str) -> None:
        """Remove passages of entries that the log erased after they were indexed."""
        log = self._logs.get(session)
        for first, end in note.spans if not note.gone else ():
            last = min(end, before)
            if log is None:
                self._forget(range(first, last), session)
            else:
                entries = tuple(log.read(first, last))
                self._store.run_write(lambda writer: remove_stale(writer, session, entries))  # noqa: B023 - called at once

    def _search(self, query: Query) -> tuple[Hit, ...]:
        vector_scores = self._vector_scores(query)

        def search(reader: IndexReader) -> tuple[Hit, ...]:
            candidates, names, _ = self._find(reader, query, vector_scores)
            return build_hits(reader, query, candidates, names)

        return self._store.run_read(search)

    def _sessions(self, query: Query) -> tuple[tuple[str, float], ...]:
        vector_scores = self._vector_scores(query)

        def rank(reader: IndexReader) -> tuple[tuple[str, float], ...]:
            candidates, names, scope = self._find(reader, query, vector_scores)
            ranked = rank_sessions(reader, query, scope, self._counts, candidates.scored)
            return tuple((names[key], score) for key, score in ranked[: query.limit] if key in names)

        return self._store.run_read(rank)

    def _vector_scores(self, query: Query) -> VectorScores | None:
        vectors = self._store.vectors
        return None if vectors is None else vectors.scores_for(query.text)

    def _find(
        self, reader: IndexReader, query: Query, vector_scores: VectorScores | None
    ) -> tuple[SearchCandidates, dict[int, str], Scope]:
        names = {indexed.key: indexed.name for indexed in reader.sessions()}
        scope = _scope_of(reader, query, names)
        if vector_scores is not None:
            vector_scores.load(reader, scope)
        own = reader.find_session(self.session) if query.exclude or query.asking else None
        excluded = frozenset() if own is None else frozenset(reader.ids_at(own, query.exclude))
        asking = frozenset() if own is None else frozenset(reader.ids_at(own, query.asking))
        return find_candidates(reader, query, scope, excluded, asking, self._counts, vector_scores), names, scope

    def _forget(self, positions: Collection[int], session: str) -> int:
        def forget(writer: IndexWriter) -> int:
            indexed = writer.find_session(session)
            return 0 if indexed is None else writer.remove_passages(indexed, writer.ids_at(indexed, positions))

        return self._store.run_write(forget)

    def _clear(self, session: str) -> None:
        def clear(writer: IndexWriter) -> None:
            if indexed := writer.find_session(session):
                writer.remove_session(indexed)

        self._store.run_write(clear)

    def _session_name(self, session: str | None) -> str:
        return self.session if session is None else check_name("session", session)

    def _with_rebuild(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``; if the index is damaged or gone, rebuild it once and repeat.

        Raises LogUnreadable where the logs to rebuild it from are not known: the index is then empty.
        """
        try:
            return work()
        except LogUnreadable as error:
            if not self._store.is_damage(error):
                raise
        self._counts.clear()
        self._store.recreate()
        if not self._logs:
            raise LogUnreadable(
                f"{self.path}: the index was damaged, and is empty now; catch_up() builds it again from the log"
            )
        for session, log in self._logs.items():
            self._catch_up(log, session)
        return work()


def _is_same_log(log: ReadLog, indexed: IndexedSession, head: int) -> bool:
    """True if the indexed entries are the beginning of this log, by the hash of the last one."""
    if indexed.position > head:
        return False
    return next(iter(log.read(indexed.position - 1, indexed.position))).digest == indexed.digest


def _scope_of(reader: IndexReader, query: Query, names: dict[int, str]) -> Scope:
    if not names:
        return Scope((), (), query.roles)
    keys = sorted(key for key, name in names.items() if not query.sessions or name in query.sessions)
    sessions = tuple(keys) if query.sessions else None
    if query.since is not None or query.until is not None:
        early = float("-inf") if query.since is None else query.since
        late = float("inf") if query.until is None else query.until
        return Scope(tuple(reader.ranges_between(keys, early, late)), sessions, query.roles)
    if sessions is None:
        return Scope((reader.range_of_all(),), None, query.roles)
    return Scope(tuple(map(range_of_session, sessions)), sessions, query.roles)
