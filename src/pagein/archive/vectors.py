"""Vectors on disk, their signs in memory: near is found by signs, and measured by the vectors themselves.

The signs of 384 numbers are 48 bytes. Of 100,000 passages they fill 5 MB, their 200 nearest by differing signs hold .998
of the 10 nearest by cosine (measured on LoCoMo's vectors), and only those are read from disk.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pagein.archive.candidates import Scope
from pagein.archive.contract import Embedder
from pagein.archive.schema import range_of_tenant
from pagein.errors import ConfigurationError

RESCORED = 400
"""Nearest by signs that are measured."""

_LONGEST = 4_000
"""Characters of a text that an embedder is given."""

_ABOUT = "SELECT value FROM archive_about WHERE name = 'embedder'"
_SET_ABOUT = (
    "INSERT INTO archive_about VALUES ('embedder', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_TODO = """SELECT p.id, p.text FROM archive_passages AS p WHERE p.id BETWEEN ? AND ?
    AND NOT EXISTS (SELECT 1 FROM archive_vectors AS v WHERE v.id = p.id) ORDER BY p.id DESC LIMIT ?"""
_LEFT = """SELECT (SELECT count(*) FROM archive_passages WHERE id BETWEEN ?1 AND ?2)
    - (SELECT count(*) FROM archive_vectors WHERE id BETWEEN ?1 AND ?2)"""


class Vectors:
    """The vectors of one tenant's passages in an archive's file, made by one embedder.

    Raises ConfigurationError where NumPy is too old, or the embedder's name or dimension are none.
    """

    def __init__(self, embedder: Embedder, tenant: str) -> None:
        self.embedder, self.tenant = embedder, tenant
        _refuse_older_numpy()
        name, dimension = embedder.name, embedder.dimension
        if (
            not isinstance(name, str)
            or isinstance(dimension, bool)
            or not isinstance(dimension, int)
            or dimension < 1
        ):
            raise ConfigurationError(
                f"an embedder has a name and a dimension above 0, not {name!r} and {dimension!r}"
            )
        self._about = json.dumps([name, dimension])
        self.failure: Exception | None = None
        """Why the last query had no vector, or None."""
        self._row = 0
        width = -(-dimension // 64) * 8
        self._width = width
        self._ids: NDArray[np.int64] = np.empty(0, np.int64)
        self._signs: NDArray[np.uint64] = np.empty((0, width // 8), np.uint64)

    def pending(self, database: sqlite3.Connection, limit: int) -> tuple[list[tuple[int, str]], int]:
        """At most ``limit`` passages without a vector, newest first; and how many there are."""
        bounds = self._bounds(database)
        if bounds is None or limit < 1:
            return [], 0
        if not self._is_ours(database):
            left = database.execute(
                "SELECT count(*) FROM archive_passages WHERE id BETWEEN ? AND ?", bounds
            ).fetchone()[0]
            rows = database.execute(
                "SELECT id, text FROM archive_passages WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?",
                (*bounds, limit),
            )
            return rows.fetchall(), left
        left = database.execute(_LEFT, bounds).fetchone()[0]
        return (database.execute(_TODO, (*bounds, limit)).fetchall() if left else []), left

    def made(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The texts' vectors, each of length 1. Raises ConfigurationError for vectors that are not of the dimension."""
        found = np.asarray(self.embedder.embed([text[:_LONGEST] for text in texts]), dtype=np.float32)
        wanted = (len(texts), self.embedder.dimension)
        if found.shape != wanted or not np.isfinite(found).all():
            raise ConfigurationError(
                f"the embedder {self.embedder.name} gave vectors of shape {found.shape} where {wanted} finite numbers "
                "were due; nothing was kept"
            )
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit: NDArray[np.float32] = (found / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return unit

    def keep(self, database: sqlite3.Connection, ids: Sequence[int], made: NDArray[np.float32]) -> None:
        """Store vectors, those of passages that are gone not; those of another embedder are dropped first."""
        if not self._is_ours(database):
            database.execute("DELETE FROM archive_vectors")
            database.execute("DELETE FROM archive_signs")
            database.execute(_SET_ABOUT, (self._about,))
        bodies, signs = made.astype(np.float16), self._signs_of(made)
        for id, body, sign in zip(ids, bodies, signs, strict=True):
            there = database.execute("SELECT 1 FROM archive_passages WHERE id = ?", (id,)).fetchone()
            if there is not None:
                database.execute("INSERT OR REPLACE INTO archive_vectors VALUES (?, ?)", (id, body.tobytes()))
                database.execute(
                    "INSERT OR REPLACE INTO archive_signs (id, signs) VALUES (?, ?)", (id, sign.tobytes())
                )

    def query(self, text: str) -> Nearness | None:
        """What is near to this text; None where the embedder fails, and ``failure`` then says why."""
        if not text.strip():
            return None
        try:
            vector = self.made([text])[0]
        except Exception as error:  # noqa: BLE001 - whatever an embedder raises, the search goes on without it
            self.failure = error
            return None
        self.failure = None
        return Nearness(self, vector)

    def refresh(self, database: sqlite3.Connection) -> None:
        """Read the signs that are new since the last look."""
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

    def by_signs(
        self, vector: NDArray[np.float32], scope: Scope
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The ids within the scope that have a vector, and about how near each is."""
        within = np.zeros(len(self._ids), bool)
        for first, last in scope.ranges:
            within |= (self._ids >= first) & (self._ids <= last)
        ids, signs = (self._ids, self._signs) if within.all() else (self._ids[within], self._signs[within])
        differ = np.bitwise_count(signs ^ self._signs_of(vector[None])[0]).sum(axis=1, dtype=np.int32)
        near: NDArray[np.float32] = np.cos(np.pi * differ / self.embedder.dimension).astype(np.float32)
        return ids, near

    def measured(
        self, database: sqlite3.Connection, vector: NDArray[np.float32], ids: Collection[int]
    ) -> dict[int, float]:
        """How near these are, measured by their vectors; those that have none are left out."""
        rows = database.execute(
            "SELECT v.id, v.vector FROM json_each(?) AS wanted JOIN archive_vectors AS v ON v.id = wanted.value",
            (json.dumps([int(each) for each in ids]),),
        ).fetchall()
        if not self._is_ours(database):
            return {}
        good = [row for row in rows if len(row[1]) == 2 * self.embedder.dimension]
        if not good:
            return {}
        bodies = np.frombuffer(b"".join(row[1] for row in good), np.float16).reshape(len(good), -1)
        near = bodies.astype(np.float32) @ vector
        return dict(zip((row[0] for row in good), near.tolist(), strict=True))

    def top(self, near: NDArray[np.float32], most: int) -> NDArray[np.int64]:
        """The places of the highest, about in order."""
        best = np.arange(len(near)) if len(near) <= most else np.argpartition(-near, most)[:most]
        found: NDArray[np.int64] = best[np.argsort(-near[best], kind="stable")]
        return found

    def _bounds(self, database: sqlite3.Connection) -> tuple[int, int] | None:
        row = database.execute(
            "SELECT holder FROM archive_sessions WHERE tenant = ? LIMIT 1", (self.tenant,)
        ).fetchone()
        return None if row is None else range_of_tenant(row[0])

    def _is_ours(self, database: sqlite3.Connection) -> bool:
        return bool(database.execute(_ABOUT).fetchone() == (self._about,))

    def _signs_of(self, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        packed = np.packbits(vectors > 0, axis=1)
        padded = np.zeros((len(vectors), self._width), np.uint8)
        padded[:, : packed.shape[1]] = packed
        signs: NDArray[np.uint64] = padded.view(np.uint64)
        return signs


class Nearness:
    """How near a scope's passages are to one vector: all by their signs, the nearest and the asked for measured."""

    def __init__(self, vectors: Vectors, vector: NDArray[np.float32]) -> None:
        self._vectors, self._vector = vectors, vector
        self._database: sqlite3.Connection | None = None
        self._measured: dict[int, float] = {}

    def look(self, database: sqlite3.Connection, scope: Scope) -> None:
        """Take in what the file holds now, within the caller's transaction."""
        self._vectors.refresh(database)
        ids, near = self._vectors.by_signs(self._vector, scope)
        best = self._vectors.top(near, RESCORED)
        self._measured = self._vectors.measured(database, self._vector, ids[best].tolist())
        self._database = database

    def nearest(self, most: int) -> Sequence[int]:
        """The ids of the nearest, measured."""
        return sorted(self._measured, key=lambda each: -self._measured[each])[:most]

    def of(self, ids: Collection[int]) -> Mapping[int, float]:
        """How near these are, those that have a vector."""
        missing = [id for id in ids if id not in self._measured]
        if missing and self._database is not None:
            self._measured |= self._vectors.measured(self._database, self._vector, missing)
        return {id: self._measured[id] for id in ids if id in self._measured}


def _refuse_older_numpy() -> None:
    if not hasattr(np, "bitwise_count"):
        raise ConfigurationError(
            f"vectors need NumPy 2 or later, this is {np.__version__}: pip install -U numpy"
        )
