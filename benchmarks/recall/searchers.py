"""The searchers to compare: pagein by words, pagein by words and meaning, bare FTS5, and the newest."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pagein.backends import SqliteSearchIndex
from pagein.evaluation.conversations import Turn
from pagein.events.handles import parse_handle
from pagein.events.steps import FinalAnswerStep, TaskStep
from pagein.log.base import Entry
from pagein.search import Embedder, Query
from pagein.search.tokenizer import STOP_WORDS

MOST = 600
"""Hits asked for, so that the largest budget can be filled."""


class Searcher(Protocol):
    """Finds turns."""

    def turns(self, question: str, at: float | None) -> dict[str, float]:
        """The ids of the turns found, with their scores."""
        ...

    def sessions(self, question: str, at: float | None) -> list[str]:
        """The sessions found, best first."""
        ...

    def close(self) -> None:
        """Let go of what was indexed."""
        ...


OpenSearcher = Callable[[Sequence[Turn]], Searcher]


def searchers(embedder: Embedder | None) -> dict[str, OpenSearcher]:
    """Every system that is measured, by name: the best of ours first."""
    ours: dict[str, OpenSearcher] = {"words": lambda turns: PageinSearcher(turns, None)}
    if embedder is not None:
        kept = Remembering(embedder)
        ours = {"words and meaning": lambda turns: PageinSearcher(turns, kept), **ours}
    return {**ours, "bare FTS5": BareSearcher, "newest": NewestSearcher}


class PageinSearcher:
    """A search index in memory that holds each turn as a step."""

    def __init__(self, turns: Sequence[Turn], embedder: Embedder | None) -> None:
        self._archive = SqliteSearchIndex(embedder=embedder)
        self._ids: dict[tuple[str, int], str] = {}
        for session, said in _by_session(turns).items():
            entries = [Entry(place, turn.at, _step(turn), "") for place, turn in enumerate(said)]
            self._archive.index(entries, session=session)
            self._ids |= {(session, place): turn.id for place, turn in enumerate(said)}
        while self._archive.embed_pending(1_000):
            pass

    def turns(self, question: str, at: float | None) -> dict[str, float]:
        """A turn's score is that of its best passage."""
        results: dict[str, float] = {}
        for hit in self._archive.search(Query(question, limit=MOST, now=at)):
            handle = parse_handle(hit.handle)
            if handle is not None:
                id = self._ids[hit.session, handle.first]
                results[id] = max(results.get(id, 0.0), hit.score)
        return results

    def sessions(self, question: str, at: float | None) -> list[str]:
        """As the search index ranks them."""
        return [name for name, _ in self._archive.sessions(Query(question, limit=MOST, now=at))]

    def close(self) -> None:
        """Release the index."""
        self._archive.close()


class BareSearcher:
    """One FTS5 table with Porter's stems, the question's words without stop words, joined by OR."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize='porter unicode61')")
        self._insert("said", enumerate(turn.text for turn in turns))
        self._together = list(_by_session(turns).items())
        self._database.execute("CREATE VIRTUAL TABLE chats USING fts5(text, tokenize='porter unicode61')")
        self._insert(
            "chats",
            ((place, " ".join(message.text for message in said)) for place, (_, said) in enumerate(self._together)),
        )

    def turns(self, question: str, at: float | None) -> dict[str, float]:
        """By SQLite's own BM25."""
        del at
        return {self._turns[place].id: score for place, score in self._rank("said", question)}

    def sessions(self, question: str, at: float | None) -> list[str]:
        """By SQLite's own BM25 over each session's text."""
        del at
        return [self._together[place][0] for place, _ in self._rank("chats", question)]

    def close(self) -> None:
        """Let go of the table."""
        self._database.close()

    def _insert(self, table: str, rows: Iterable[tuple[int, str]]) -> None:
        self._database.executemany(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", rows)  # noqa: S608 - ours

    def _rank(self, table: str, question: str) -> list[tuple[int, float]]:
        match = any_of(question)
        if not match:
            return []
        rows = self._database.execute(
            f"SELECT rowid, -rank FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?",  # noqa: S608 - ours
            (match, MOST),
        )
        return rows.fetchall()


class NewestSearcher:
    """The newest turns, whatever is asked."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns

    def turns(self, question: str, at: float | None) -> dict[str, float]:
        """The newest first."""
        del question, at
        return {turn.id: 1.0 + place for place, turn in enumerate(self._turns[-MOST:])}

    def sessions(self, question: str, at: float | None) -> list[str]:
        """The newest first."""
        del question, at
        newest = sorted(self._turns, key=lambda turn: -turn.at)
        return list(dict.fromkeys(turn.session for turn in newest))

    def close(self) -> None:
        """Nothing is held."""


class Remembering:
    """An embedder that embeds each text once, however many indexes it is in."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}
        self.name, self.dimension = embedder.name, embedder.dimension

    def embed(self, texts: Sequence[str]) -> list[Any]:
        """The texts' vectors, known or new."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= zip(new, self._embedder.embed(new), strict=True)
        return [self._known[text] for text in texts]


def any_of(question: str) -> str:
    """The words of a question as an FTS5 query for any of them, stop words left out."""
    words = dict.fromkeys(word.lower() for word in re.findall(r"\w+", question))
    telling = [word for word in words if word not in STOP_WORDS] or list(words)
    return " OR ".join(f'"{word}"' for word in telling)


def measure_time(work: Callable[[], Any], into: list[float]) -> Any:
    """Return the result of the work; append its time in milliseconds to ``into``."""
    start = time.perf_counter()
    given = work()
    into.append((time.perf_counter() - start) * 1_000)
    return given


def _by_session(turns: Iterable[Turn]) -> Mapping[str, list[Turn]]:
    results: dict[str, list[Turn]] = {}
    for turn in turns:
        results.setdefault(turn.session, []).append(turn)
    return results


def _step(turn: Turn) -> TaskStep | FinalAnswerStep:
    return FinalAnswerStep(turn.text) if turn.role == "assistant" else TaskStep(turn.text)
