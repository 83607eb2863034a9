"""The search of one memory: its index is opened when it is first needed, kept up to date, and embedded beside the run."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from pagein.backends.base import store_of
from pagein.errors import PageinError
from pagein.facts.owners import is_reserved
from pagein.log.base import Entry, Log, LogStore, StoredLog
from pagein.memory.background.worker_thread import WorkerThread

if TYPE_CHECKING:
    from pagein.search.base import Embedder, Hit, Query
    from pagein.search.index import SearchIndex

OWN_TOOLS = ("recall", "expand", "pin", "note", "forget", "remember", "update", "compact")
"""The memory's own tools: their results repeat what was recorded before, and are not indexed."""

EMBED_BATCH = 64
"""Passages embedded at a time."""

MAX_ENTRIES_PER_SEARCH = 2_000
"""Entries of other sessions that one search indexes; the rest waits for the next search."""

MAX_KNOWN_SESSIONS = 1_000
"""Sessions in the index that one search asks for new entries. Sessions that are not in the index come first."""


class SearchRuntime:
    """The search index over a log. Every method raises a LogError, never a driver's error."""

    def __init__(self, log: StoredLog, embedder: Embedder | None) -> None:
        self._log, self._embedder = log, embedder
        self._not_searched: tuple[str, ...] = ()
        self._unready: tuple[str, ...] = ()
        """A line on passages that had no vector at the last recall."""
        self._index: SearchIndex | None = None
        self._closed = threading.Event()
        self._embedding: WorkerThread[None] | None = None

    def recall(self, query: Query, *, across: bool) -> tuple[Hit, ...]:
        """Search this session up to its last entry, or with ``across`` all sessions of the tenant.

        Sessions that were never indexed are indexed a few entries at a time; ``problems`` says which wait.
        """
        index = self._opened_index()
        index.catch_up(self._log)
        if across:
            store = self._log.store
            names = [name for name in store.sessions() if name != index.session and not is_reserved(name)]
            self._not_searched = index_sessions(index, store, names)
        self._embed()
        pending = 0 if self._embedder is None else index.pending()
        line = f"recall: {pending:,} passages have no vector yet and are found by words alone; wait() waits for them"
        self._unready = (line,) if pending else ()
        if not across and not query.sessions:
            query = replace(query, sessions=(index.session,))
        return index.search(query)

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems of the index so far, and sessions that were not wholly searched."""
        return (*(() if self._index is None else self._index.problems), *self._not_searched, *self._unready)

    def wait(self, timeout: float | None) -> bool:
        """Index what was recorded and wait for its vectors, at most ``timeout`` seconds (None: as long as it takes).

        True if none is missing, or there is no embedder.
        """
        if self._embedder is None:
            return True
        index = self._opened_index()
        index.catch_up(self._log)
        self._embed()
        if self._embedding is not None:
            self._embedding.join(timeout)
        is_ready = not index.pending()
        self._unready = () if is_ready else self._unready
        return is_ready

    def index(self, limit: int) -> None:
        """Index at most ``limit`` more entries."""
        index = self._opened_index()
        start = index.watermark()
        index.index(self._log.read(start, start + limit))

    def revise(self, entries: Iterable[Entry], session: str) -> None:
        """Remove from the index what these entries of a session, as they are to stand, no longer say."""
        self._opened_index().revise(entries, session=session)

    def clear(self, session: str) -> None:
        """Remove a session from the index."""
        self._opened_index().clear(session)

    def clear_if_open(self) -> None:
        """Have the index built anew, after the history it was built from changed."""
        if self._index is not None:
            self._index.clear()

    def for_log(self, log: StoredLog) -> SearchRuntime:
        """Close this search, and return one over another log."""
        self.close()
        return SearchRuntime(log, self._embedder)

    def close(self) -> None:
        """Release the index; a second call does nothing."""
        self._closed.set()
        if self._embedding is not None:
            self._embedding.join()
        if self._index is not None:
            self._index.close()

    def _opened_index(self) -> SearchIndex:
        if self._index is None:
            self._index = store_of(self._log).search_index(
                self._log.session, embedder=self._embedder, own_tools=OWN_TOOLS
            )
        return self._index

    def _embed(self) -> None:
        """Embed passages without a vector in a thread; a search by words does not wait for it."""
        if self._embedder is None or (self._embedding is not None and self._embedding.is_alive()):
            return
        self._embedding = WorkerThread("pagein embeds", self._embed_pending, self._closed)

    def _embed_pending(self, cancelled: threading.Event) -> None:
        index = self._opened_index()
        try:
            while not cancelled.is_set() and index.embed_pending(EMBED_BATCH):
                pass
        except Exception as error:  # noqa: BLE001 - anyone's embedder; recall goes on by words
            import logging  # noqa: PLC0415 - loads where something went wrong

            logging.getLogger("pagein").warning("nothing more is embedded, recall goes on by words: %s", error)


def index_sessions(
    index: SearchIndex, store: LogStore, names: Iterable[str], max_entries: int = MAX_ENTRIES_PER_SEARCH
) -> tuple[str, ...]:
    """Index the new entries of the named sessions, at most ``max_entries``; return a line on what is left, if any.

    A session that cannot be read is skipped, and named in the line. Raises what indexing raises.
    """
    watermarks = index.watermarks()
    names = tuple(names)
    new = [name for name in names if name not in watermarks]
    indexed = [name for name in names if name in watermarks]
    waiting, unread = 0, list[str]()
    for name in (*new, *indexed[:MAX_KNOWN_SESSIONS]):
        start = watermarks.get(name, 0)
        if name in watermarks and store.head(name) == start:
            continue
        if max_entries <= 0:
            waiting += 1
            continue
        try:
            with closing(store.log(name)) as log:
                count, is_whole = _index_session(index, log, name, start, max_entries)
        except PageinError as error:
            unread.append(f"{name!r} ({type(error).__name__}: {error})")
        else:
            max_entries -= count
            waiting += not is_whole
    return tuple(_describe_rest(len(names), waiting, unread))


def _index_session(index: SearchIndex, log: Log, name: str, start: int, max_entries: int) -> tuple[int, bool]:
    """Index one session; return how many entries, and True if none is left."""
    if log.head() <= start + max_entries:
        # A log that is shorter than its index is another log: catch_up indexes it anew.
        return index.catch_up(log, session=name), True
    return index.index(log.read(start, start + max_entries), session=name), False


def _describe_rest(sessions: int, waiting: int, unread: list[str]) -> Iterable[str]:
    if waiting:
        yield (
            f"recall(across=True): {waiting} of {sessions} other sessions are not wholly indexed yet, and were not "
            "wholly searched; recall again, or run pagein recall, which indexes them all"
        )
    if unread:
        yield (
            f"recall(across=True): {len(unread)} of {sessions} other sessions cannot be read, and were searched as far "
            f"as they are indexed: {', '.join(unread[:3])}"
        )
