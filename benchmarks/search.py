"""Measure the time of a search, compared with plain FTS5 and tantivy on the same steps and questions."""

from __future__ import annotations

import importlib.util
import random
import sqlite3
import tempfile
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

from benchmarks.recall.measures import quantile
from pagein.backends import SqliteSearchIndex
from pagein.events.steps import TaskStep
from pagein.log.base import Entry
from pagein.search import Query
from pagein.search.embedders import CallableEmbedder
from pagein.search.tokenizer import STOP_WORDS

Tick = Callable[[str, int, int], object]

SHORTEST, LONGEST = 12, 45
"""Words of a step."""

ASKED = 6
"""Words of a query."""

_VOCABULARY = 30_000
_STEPS_AT_ONCE = 5_000
_DIMENSION = 384
_ONSETS = (
    "b",
    "br",
    "c",
    "d",
    "dr",
    "f",
    "g",
    "gl",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
    "w",
)
_RHYMES = ("a", "ad", "an", "e", "el", "en", "er", "i", "in", "o", "on", "or", "u", "un")


@dataclass(frozen=True, slots=True)
class SearchCost:
    """One engine: milliseconds of a search, the share of steps found by their own words, seconds and MB of its index.

    ``resident`` is what a search that was just opened adds to the process, in MB, where the system says. Where
    something could not be measured, ``note`` says why.
    """

    name: str
    p50: float = 0.0
    p95: float = 0.0
    found: float = 0.0
    build: float = 0.0
    disk: float = 0.0
    resident: float | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON-safe values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Steps:
    """Made-up steps, the same for the same seed: words as frequent as in English, the most frequent its stop words."""

    count: int
    seed: int = 1

    def __iter__(self) -> Iterator[str]:
        draw = random.Random(self.seed)  # noqa: S311 - a draw, no secret
        words = _vocabulary()
        # Zipf's law: the n-th most frequent word is n times as rare as the first.
        weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))
        total = weights[-1]
        for _ in range(self.count):
            size = draw.randint(SHORTEST, LONGEST)
            yield " ".join(words[bisect(weights, draw.random() * total)] for _ in range(size))

    def pick_queries(self, queries: int) -> list[tuple[int, str]]:
        """Pick the steps to search for, and the words to search by."""
        draw = random.Random(self.seed + 1)  # noqa: S311 - a draw, no secret
        places = frozenset(draw.sample(range(self.count), min(queries, self.count)))
        chosen = [(place, text) for place, text in enumerate(self) if place in places]
        draw.shuffle(chosen)
        return [(place, " ".join(draw.sample(text.split(), ASKED))) for place, text in chosen]


class Engine(Protocol):
    """Something that searches."""

    name: str

    def build(self, steps: Steps, sessions: int, folder: Path, tick: Callable[[int], object]) -> None:
        """Index the steps in a folder."""
        ...

    def open(self) -> None:
        """Open what was indexed, as a new process would."""
        ...

    def search(self, query: str) -> Sequence[int]:
        """The places of the ten best."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def bench_search(
    documents: int, sessions: int, queries: int, tick: Tick, *, vectors: bool = False
) -> tuple[SearchCost, ...]:
    """Measure each engine on the same steps and queries; as many searches before as are counted, so that all are warm."""
    steps = Steps(documents)
    asked = steps.pick_queries(2 * queries)
    engines: list[Engine] = [Pagein(), BareFts5()]
    if vectors:
        engines.insert(1, Pagein(vectors=True))
    rows = [_measure(engine, steps, sessions, asked, tick) for engine in engines]
    if importlib.util.find_spec("tantivy") is None:
        return (*rows, SearchCost("tantivy", note="pip install tantivy"))
    return (*rows, _measure(Tantivy(), steps, sessions, asked, tick))


def _measure(engine: Engine, steps: Steps, sessions: int, asked: Sequence[tuple[int, str]], tick: Tick) -> SearchCost:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        engine.build(steps, sessions, folder, lambda done: tick(f"{engine.name}: index", done, steps.count))
        build = time.perf_counter() - start
        disk = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1e6
        before = _resident()
        engine.open()
        took: list[float] = []
        hits = 0
        for number, (place, query) in enumerate(asked):
            start = time.perf_counter()
            result = engine.search(query)
            took.append((time.perf_counter() - start) * 1_000)
            hits += place in result
            tick(f"{engine.name}: search", number + 1, len(asked))
        after = _resident()
        engine.close()
    warm = took[len(took) // 2 :]
    resident = None if before is None or after is None else max(0.0, after - before)
    return SearchCost(engine.name, quantile(warm, 0.5), quantile(warm, 0.95), hits / len(asked), build, disk, resident)


class Pagein:
    """A search index, each step a step of a session."""

    def __init__(self, *, vectors: bool = False) -> None:
        self.name = "pagein with vectors" if vectors else "pagein"
        self._embedder = CallableEmbedder(_made_up, name="made up", dimension=_DIMENSION) if vectors else None
        self._path = Path()
        self._each = 1
        self._archive: SqliteSearchIndex | None = None

    def build(self, steps: Steps, sessions: int, folder: Path, tick: Callable[[int], object]) -> None:
        """Index the steps, the first part of them in the first session, and embed them."""
        self._path = folder / "archive.db"
        self._each = -(-steps.count // sessions)
        with SqliteSearchIndex(self._path, embedder=self._embedder) as index:
            batch: list[Entry] = []
            for place, text in enumerate(steps):
                batch.append(Entry(place % self._each, float(place), TaskStep(text), ""))
                if len(batch) == _STEPS_AT_ONCE or (place + 1) % self._each == 0 or place + 1 == steps.count:
                    index.index(batch, session=self._session(place))
                    batch = []
                    tick(place + 1)
            while index.embed_pending(_STEPS_AT_ONCE):
                pass

    def open(self) -> None:
        """Open the index again."""
        self._archive = SqliteSearchIndex(self._path, embedder=self._embedder)

    def search(self, query: str) -> list[int]:
        """The ten best hits, with text, score and why."""
        if self._archive is None:
            return []
        hits = self._archive.search(Query(query, limit=10))
        return [int(hit.session) * self._each + hit.position for hit in hits]

    def close(self) -> None:
        """Close the index."""
        if self._archive is not None:
            self._archive.close()

    def _session(self, place: int) -> str:
        return str(place // self._each)


class BareFts5:
    """One FTS5 table with Porter's stems; all words of the query, joined by OR, ordered by rank."""

    name = "bare FTS5"

    def __init__(self) -> None:
        self._path = Path()
        self._database: sqlite3.Connection | None = None

    def build(self, steps: Steps, sessions: int, folder: Path, tick: Callable[[int], object]) -> None:
        """Index the steps."""
        del sessions
        self._path = folder / "fts.db"
        database = sqlite3.connect(self._path)
        database.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize='porter unicode61')")
        database.executemany("INSERT INTO said (rowid, text) VALUES (?, ?)", enumerate(steps))
        database.commit()
        database.close()
        tick(steps.count)

    def open(self) -> None:
        """Open the table."""
        self._database = sqlite3.connect(self._path)

    def search(self, query: str) -> list[int]:
        """The ids of the ten best."""
        if self._database is None:
            return []
        rows = self._database.execute(
            "SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT 10",
            (" OR ".join(f'"{word}"' for word in query.split()),),
        )
        return [row[0] for row in rows]

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            self._database.close()


class Tantivy:
    """tantivy's own index, English stems; all words of the query, any of which may match."""

    name = "tantivy"

    def __init__(self) -> None:
        self._path = Path()
        self._index: Any = None
        self._searcher: Any = None

    def build(self, steps: Steps, sessions: int, folder: Path, tick: Callable[[int], object]) -> None:
        """Index the steps."""
        import tantivy  # noqa: PLC0415 - where it is installed

        del sessions
        self._path = folder
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", stored=False, tokenizer_name="en_stem")
        schema.add_integer_field("place", stored=True)
        index = tantivy.Index(schema.build(), path=str(folder))
        writer = index.writer()
        for place, text in enumerate(steps):
            writer.add_document(tantivy.Document(text=text, place=place))
        writer.commit()
        writer.wait_merging_threads()
        tick(steps.count)

    def open(self) -> None:
        """Open the index."""
        import tantivy  # noqa: PLC0415 - where it is installed

        self._index = tantivy.Index.open(str(self._path))
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query: str) -> list[int]:
        """The places of the ten best."""
        parsed = self._index.parse_query(query, ["text"])
        hits = self._searcher.search(parsed, 10).hits
        return [self._searcher.doc(address)["place"][0] for _, address in hits]

    def close(self) -> None:
        """Let go of the index."""
        self._index = self._searcher = None


def _vocabulary() -> list[str]:
    draw = random.Random(0)  # noqa: S311 - a draw, no secret
    stops = sorted(word for word in STOP_WORDS if len(word) > 1)
    made: dict[str, None] = dict.fromkeys(stops)
    while len(made) < _VOCABULARY:
        made["".join(draw.choice(_ONSETS) + draw.choice(_RHYMES) for _ in range(draw.randint(2, 4)))] = None
    return list(made)


def _made_up(texts: Sequence[str]) -> Any:
    """A vector for each text, the same for the same text, near to nothing else."""
    import numpy as np  # noqa: PLC0415 - only where there are vectors

    made = np.empty((len(texts), _DIMENSION), np.float32)
    for row, text in enumerate(texts):
        made[row] = np.random.default_rng(abs(hash(text))).standard_normal(_DIMENSION)
    return made


def _resident() -> float | None:
    """MB of this process that are in memory, where the system says."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * 4096 / 1e6
