"""Items found as an archive finds steps: by words, and by meaning where there is an embedder."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from pagein.backends.memory import InMemoryLog
from pagein.backends.sqlite.search import SqliteArchive
from pagein.events.steps import TaskStep
from pagein.search.base import Embedder, Query

BATCH = 64
"""Texts embedded at a time."""


@dataclass(frozen=True, slots=True)
class Looked:
    """An item as it is looked through: what names it and this state of it, and its words; "" is found by nothing."""

    name: tuple[str, str]
    updated: float
    text: str


class Finder:
    """Ranks items by the archive's hybrid ranking. What is looked through first is taken in first; threads may share it.

    The index is in memory: the items lie in their tables, and it can be made from them at any time.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._turn = threading.Lock()
        self._archive: SqliteArchive | None = None
        self._known: dict[tuple[str, str], tuple[float, str]] = {}
        self._made = 0

    def scores(self, query: str, items: Sequence[Looked]) -> list[float | None]:
        """How well each item answers the query, higher is better; None where it does not. Raises LogError."""
        with self._turn:
            said = [each for each in items if each.text.strip()]
            if not said or not query.strip():
                return [None] * len(items)
            archive = self._taken_in(said)
            names = {self._known[each.name][1]: each.name for each in said}
            best: dict[tuple[str, str], float] = {}
            for hit in archive.search(Query(query, len(said), sessions=tuple(names))):
                name = names[hit.session]
                best[name] = max(hit.score, best.get(name, hit.score))
            return [best.get(each.name) for each in items]

    def close(self) -> None:
        """Release the index; what is asked next makes another."""
        with self._turn:
            if self._archive is not None:
                self._archive.close()
            self._archive = None
            self._known.clear()

    def _taken_in(self, items: Sequence[Looked]) -> SqliteArchive:
        archive = self._archive = self._archive or SqliteArchive(embedder=self._embedder)
        for each in items:
            updated, session = self._known.get(each.name, (None, ""))
            if updated == each.updated:
                continue
            if session:
                archive.clear(session)
            # A session each: what stands beside a step says something of it, what stands beside an item does not.
            self._made += 1
            session = f"item {self._made}"
            entries = InMemoryLog(session=session).append((TaskStep(each.text),), after=0, at=each.updated)
            archive.index(entries, session=session)
            self._known[each.name] = (each.updated, session)
        try:
            while self._embedder is not None and archive.embed_pending(BATCH):
                pass
        except Exception as error:  # noqa: BLE001 - anyone's embedder; the search goes on by words
            logging.getLogger("pagein").warning("items are found by words alone: %s", error)
        return archive
