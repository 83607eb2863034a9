"""Vectors in a SQLite file. Signs in memory find candidates; the vectors themselves give similarities.

The signs of 384 numbers are 48 bytes. Of 100,000 passages they fill 5 MB; the 200 nearest by differing signs
hold .998 of the 10 nearest by cosine (measured on LoCoMo's vectors), and only those are read from disk.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from pagein.backends.sqlite.search import SqliteIndexReader
from pagein.search.base import Embedder
from pagein.search.index_store import Scope
from pagein.search.vectors import RESCORED_PASSAGES, VectorStore

_ABOUT = "SELECT value FROM archive_about WHERE name = 'embedder'"
_SET_ABOUT = "INSERT INTO archive_about VALUES ('embedder', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_TODO = """SELECT p.id, p.text FROM archive_passages AS p WHERE p.id BETWEEN ? AND ?
    AND NOT EXISTS (SELECT 1 FROM archive_vectors AS v WHERE v.id = p.id) ORDER BY p.id DESC LIMIT ?"""
_LEFT = """SELECT (SELECT count(*) FROM archive_passages WHERE id BETWEEN ?1 AND ?2)
    - (SELECT count(*) FROM archive_vectors WHERE id BETWEEN ?1 AND ?2)"""


class SqliteVectors(VectorStore):
    """The vectors of one tenant's passages in an index file, made by one embedder. Raises ConfigurationError."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._about = json.dumps([embedder.name, embedder.dimension])
        self._row = 0
        self._width = -(-embedder.dimension // 64) * 8
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._signs: NDArray[np.uint64] = np.empty((0, self._width // 8), np.uint64)

    def pending(self, reader: SqliteIndexReader, limit: int) -> tuple[list[tuple[int, str]], int]:
        """At most ``limit`` passages without a vector, newest first, and their total number."""
        database, bounds = reader.database, reader.range_of_all()
        if limit < 1:
            return [], 0
        if not self._is_ours(database):
            count = database.execute(
                "SELECT count(*) FROM archive_passages WHERE id BETWEEN ? AND ?", bounds
            ).fetchone()[0]
            rows = database.execute(
                "SELECT id, text FROM archive_passages WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?",
                (*bounds, limit),
            )
            return rows.fetchall(), count
        count = database.execute(_LEFT, bounds).fetchone()[0]
        return (database.execute(_TODO, (*bounds, limit)).fetchall() if count else []), count

    def store_vectors(self, writer: SqliteIndexReader, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Store vectors; drop another embedder's first. Those of removed passages are skipped."""
        database = writer.database
        if not self._is_ours(database):
            database.execute("DELETE FROM archive_vectors")
            database.execute("DELETE FROM archive_signs")
            database.execute(_SET_ABOUT, (self._about,))
        bodies, signs = vectors.astype(np.float16), self._signs_of(vectors)
        for id, body, sign in zip(ids, bodies, signs, strict=True):
            there = database.execute("SELECT 1 FROM archive_passages WHERE id = ?", (id,)).fetchone()
            if there is not None:
                database.execute("INSERT OR REPLACE INTO archive_vectors VALUES (?, ?)", (id, body.tobytes()))
                database.execute("INSERT OR REPLACE INTO archive_signs (id, signs) VALUES (?, ?)", (id, sign.tobytes()))

    def score_nearest(self, reader: SqliteIndexReader, vector: NDArray[np.float32], scope: Scope) -> dict[int, float]:
        """The similarities of the nearest passages in a scope: candidates by their signs, then measured."""
        self.refresh(reader.database)
        ids, near = self.by_signs(vector, scope)
        return self.score_passages(reader, vector, ids[self.top(near, RESCORED_PASSAGES)].tolist())

    def refresh(self, database: sqlite3.Connection) -> None:
        """Read the signs that are new since the last call."""
        if not self._is_ours(database):
            self._row, self._ids, self._signs = 0, self._ids[:0], self._signs[:0]
            return
        last = database.execute("SELECT coalesce(max(row), 0), count(*) FROM archive_signs").fetchone()
        if last[1] < len(self._ids) or last[0] < self._row:
            self._row, self._ids, self._signs = 0, self._ids[:0], self._signs[:0]
        rows = database.execute(
            "SELECT row, id, signs FROM archive_signs WHERE row > ? ORDER BY row", (self._row,)
        ).fetchall()
        good = [row for row in rows if len(row[2]) == self._width]
        if good:
            signs = np.frombuffer(b"".join(row[2] for row in good), np.uint64).reshape(len(good), -1)
            self._ids = np.concatenate([self._ids, np.array([row[1] for row in good], np.int64)])
            self._signs = np.concatenate([self._signs, signs])
        if rows:
            self._row = rows[-1][0]

    def by_signs(self, vector: NDArray[np.float32], scope: Scope) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The ids within the scope that have a vector, and their approximate similarities."""
        within = np.zeros(len(self._ids), bool)
        for first, last in scope.ranges:
            within |= (self._ids >= first) & (self._ids <= last)
        ids, signs = (self._ids, self._signs) if within.all() else (self._ids[within], self._signs[within])
        differ = np.bitwise_count(signs ^ self._signs_of(vector[None])[0]).sum(axis=1, dtype=np.int32)
        near: NDArray[np.float32] = np.cos(np.pi * differ / self.embedder.dimension).astype(np.float32)
        return ids, near

    def score_passages(
        self, reader: SqliteIndexReader, vector: NDArray[np.float32], ids: Collection[int]
    ) -> dict[int, float]:
        rows = reader.database.execute(
            "SELECT v.id, v.vector FROM json_each(?) AS wanted JOIN archive_vectors AS v ON v.id = wanted.value",
            (json.dumps([int(id) for id in ids]),),
        ).fetchall()
        return self.similarities(rows, vector) if self._is_ours(reader.database) else {}

    def top(self, near: NDArray[np.float32], most: int) -> NDArray[np.int64]:
        """The indices of the highest values, about in order."""
        best = np.arange(len(near)) if len(near) <= most else np.argpartition(-near, most)[:most]
        order: NDArray[np.int64] = best[np.argsort(-near[best], kind="stable")]
        return order

    def _is_ours(self, database: sqlite3.Connection) -> bool:
        return bool(database.execute(_ABOUT).fetchone() == (self._about,))

    def _signs_of(self, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        packed = np.packbits(vectors > 0, axis=1)
        padded = np.zeros((len(vectors), self._width), np.uint8)
        padded[:, : packed.shape[1]] = packed
        signs: NDArray[np.uint64] = padded.view(np.uint64)
        return signs
