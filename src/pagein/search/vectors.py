"""The parts of a vector store that are the same in every database: embedding texts, and similarities to a query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pagein._common.validation import is_whole_number
from pagein.errors import ConfigurationError
from pagein.search.base import Embedder
from pagein.search.index_store import Scope

RESCORED_PASSAGES = 400
"""Nearest passages whose similarity is computed exactly."""

_MAX_EMBED_CHARS = 4_000
"""Characters of a text that an embedder is given."""


class VectorStore:
    """The vectors of one embedder, read and written through the caller's reader or writer. A subclass stores them.

    Raises ConfigurationError if NumPy is too old, or the embedder's name or dimension is invalid.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        if not hasattr(np, "bitwise_count"):
            raise ConfigurationError(f"vectors need NumPy 2 or later, this is {np.__version__}: pip install -U numpy")
        name, dimension = embedder.name, embedder.dimension
        if not isinstance(name, str) or not is_whole_number(dimension) or dimension < 1:
            raise ConfigurationError(f"an embedder has a name and a dimension above 0, not {name!r} and {dimension!r}")
        self.failure: Exception | None = None
        """The error of the embedder at the last query, or None."""

    def pending(self, reader: Any, limit: int) -> tuple[Sequence[tuple[int, str]], int]:
        """At most ``limit`` passages without a vector, as (id, text), newest first; and their number."""
        raise NotImplementedError

    def store_vectors(self, writer: Any, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Store vectors, except those of removed passages."""
        raise NotImplementedError

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The texts' vectors, each of length 1. Raises ConfigurationError for vectors of a wrong dimension."""
        vectors = np.asarray(self.embedder.embed([text[:_MAX_EMBED_CHARS] for text in texts]), dtype=np.float32)
        shape = (len(texts), self.embedder.dimension)
        if vectors.shape != shape or not np.isfinite(vectors).all():
            raise ConfigurationError(
                f"the embedder {self.embedder.name} gave vectors of shape {vectors.shape} where {shape} finite numbers "
                "were due; nothing was kept"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return unit

    def scores_for(self, text: str) -> VectorScores | None:
        """The similarities to a query text; None if the embedder fails, with the error in ``failure``."""
        if not text.strip():
            return None
        try:
            vector = self.embed_texts([text])[0]
        except Exception as error:  # noqa: BLE001 - whatever an embedder raises, the search goes on without it
            self.failure = error
            return None
        self.failure = None
        return VectorScores(self, vector)

    def score_nearest(self, reader: Any, vector: NDArray[np.float32], scope: Scope) -> dict[int, float]:
        """The exact similarities of the nearest passages of a scope."""
        raise NotImplementedError

    def score_passages(self, reader: Any, vector: NDArray[np.float32], ids: Collection[int]) -> dict[int, float]:
        """The exact similarities of these passages; those without a vector are left out."""
        raise NotImplementedError

    def similarities(self, stored: Sequence[tuple[int, bytes]], vector: NDArray[np.float32]) -> dict[int, float]:
        """The similarities of stored vectors of half floats; those of another length are left out."""
        good = [row for row in stored if len(row[1]) == 2 * self.embedder.dimension]
        if not good:
            return {}
        bodies = np.frombuffer(b"".join(row[1] for row in good), np.float16).reshape(len(good), -1)
        near = bodies.astype(np.float32) @ vector
        return dict(zip((row[0] for row in good), near.tolist(), strict=True))


class VectorScores:
    """The similarities of passages to one vector, that of a query."""

    def __init__(self, vectors: VectorStore, vector: NDArray[np.float32]) -> None:
        self._vectors, self._vector = vectors, vector
        self._reading: Any = None
        self._measured: dict[int, float] = {}

    def load(self, reader: Any, scope: Scope) -> None:
        """Read the nearest passages of the scope, within the caller's transaction."""
        self._measured = self._vectors.score_nearest(reader, self._vector, scope)
        self._reading = reader

    def nearest(self, limit: int) -> Sequence[int]:
        """The ids of the most similar passages."""
        return sorted(self._measured, key=lambda passage: -self._measured[passage])[:limit]

    def similarities(self, ids: Collection[int]) -> Mapping[int, float]:
        """The similarity of each of these passages that has a vector."""
        missing = [id for id in ids if id not in self._measured]
        if missing and self._reading is not None:
            self._measured |= self._vectors.score_passages(self._reading, self._vector, missing)
        return {id: self._measured[id] for id in ids if id in self._measured}
