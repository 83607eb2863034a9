"""The archive of one memory: opened when it is first needed, kept up to date, embedded while the run goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pagein.log.base import Entry, Log
from pagein.log.branch_log import BranchLog
from pagein.memory.branches import OpenLog, beside

if TYPE_CHECKING:
    from pagein.search.base import Embedder, Hit, Query
    from pagein.search.index import DerivedArchive

OWN_TOOLS = ("recall", "expand", "pin", "note", "forget", "remember", "update")
"""The tools of ours whose results are not taken in: they repeat what was recorded before."""

BATCH = 64
"""Passages embedded at a time."""


class Library:
    """The archive over a log, and what it takes to search it. Every method raises a LogError, never a driver's error."""

    def __init__(self, log: Log, embedder: Embedder | None, open_log: OpenLog | None = None) -> None:
        self._log, self._embedder = log, embedder
        self.open_log = beside(log) if open_log is None else open_log
        self._left: tuple[str, ...] = ()
        self._archive: DerivedArchive | None = None
        self._closed = threading.Event()
        self._embedding: threading.Thread | None = None

    def recall(self, query: Query, *, across: bool) -> tuple[Hit, ...]:
        """What is found, everything recorded so far included; in this session only, unless ``across``.

        Across sessions those that were never indexed are, so many entries a search: ``problems`` says what still waits.
        """
        archive = self._opened()
        archive.catch_up(self._log)
        if across:
            self._gather(archive)
        self._embed()
        if not across and not query.sessions:
            query = replace(query, sessions=(archive.session,))
        return archive.search(query)

    @property
    def problems(self) -> tuple[str, ...]:
        """What the archive cannot do that was asked of it; none before it was needed."""
        found = () if self._archive is None else self._archive.problems
        return (*found, *self._left)

    def index(self, limit: int) -> None:
        """Take in at most ``limit`` more entries."""
        archive = self._opened()
        start = archive.watermark()
        archive.index(self._log.read(start, start + limit))

    def revise(self, entries: Iterable[Entry], session: str) -> None:
        """Take out what these entries of a session, as they are to stand, do not say any more."""
        self._opened().revise(entries, session=session)

    def clear(self, session: str) -> None:
        """Drop what is known of a session."""
        self._opened().clear(session)

    def moved(self, log: Log) -> Library:
        """The archive over another log; this one is released."""
        self.close()
        return Library(log, self._embedder, self.open_log)

    def close(self) -> None:
        """Release the index; a second call does nothing."""
        self._closed.set()
        if self._embedding is not None:
            self._embedding.join()
        if self._archive is not None:
            self._archive.close()

    def _opened(self) -> DerivedArchive:
        if self._archive is None:
            from pagein.backends.search import archive_of  # noqa: PLC0415 - loads where something is looked for

            self._archive = archive_of(self._log, embedder=self._embedder, own_tools=OWN_TOOLS)
        return self._archive

    def _gather(self, archive: DerivedArchive) -> None:
        """Take in what the other sessions of the store recorded."""
        from pagein.facts.owners import is_reserved  # noqa: PLC0415
        from pagein.memory.session_indexing import gather  # noqa: PLC0415 - loads where all sessions are searched

        # A branch's entries lie in a session of their own; the store is its root's.
        store: Any = self._log.own if isinstance(self._log, BranchLog) else self._log
        listed: Sequence[str] = getattr(store, "sessions", tuple)()
        names = [each for each in listed if each != archive.session and not is_reserved(each)]
        self._left = gather(archive, store, names, self.open_log)

    def _embed(self) -> None:
        """Have what has no vector yet embedded in a thread; a search by words does not wait for it."""
        if self._embedder is None or (self._embedding is not None and self._embedding.is_alive()):
            return
        self._embedding = threading.Thread(target=self._embed_all, name="pagein embeds", daemon=True)
        self._embedding.start()

    def _embed_all(self) -> None:
        archive = self._opened()
        try:
            while not self._closed.is_set() and archive.embed_pending(BATCH):
                pass
        except Exception as error:  # noqa: BLE001 - anyone's embedder; recall goes on by words
            import logging  # noqa: PLC0415 - loads where something went wrong

            logging.getLogger("pagein").warning(
                "nothing more is embedded, recall goes on by words: %s", error
            )
