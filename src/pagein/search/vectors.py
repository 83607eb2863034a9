"""What is the same for vectors wherever they lie: how they are made, and how near passages are to a query's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pagein.errors import ConfigurationError
from pagein.search.base import Embedder
from pagein.search.index_store import Scope

RESCORED = 400
"""Nearest by signs that are measured."""

_LONGEST = 4_000
"""Characters of a text that an embedder is given."""


class Embedding:
    """Vectors of one embedder. A subclass says where they lie, by ``near`` and ``measured``.

    Raises ConfigurationError where NumPy is too old, or the embedder's name or dimension are none.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
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
        self.failure: Exception | None = None
        """Why the last query had no vector, or None."""

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

    def near(self, reading: Any, vector: NDArray[np.float32], scope: Scope) -> dict[int, float]:
        """How near the nearest passages of a scope are, measured by their vectors."""
        raise NotImplementedError

    def measured(self, reading: Any, vector: NDArray[np.float32], ids: Collection[int]) -> dict[int, float]:
        """How near these are, measured by their vectors; those that have none are left out."""
        raise NotImplementedError

    def similarities(
        self, stored: Sequence[tuple[int, bytes]], vector: NDArray[np.float32]
    ) -> dict[int, float]:
        """How near vectors are that are stored as half floats; one of another length is left out."""
        good = [row for row in stored if len(row[1]) == 2 * self.embedder.dimension]
        if not good:
            return {}
        bodies = np.frombuffer(b"".join(row[1] for row in good), np.float16).reshape(len(good), -1)
        near = bodies.astype(np.float32) @ vector
        return dict(zip((row[0] for row in good), near.tolist(), strict=True))


class Nearness:
    """How near a scope's passages are to one vector: the nearest and the asked for measured."""

    def __init__(self, vectors: Embedding, vector: NDArray[np.float32]) -> None:
        self._vectors, self._vector = vectors, vector
        self._reading: Any = None
        self._measured: dict[int, float] = {}

    def look(self, reading: Any, scope: Scope) -> None:
        """Take in what is there now, within the caller's transaction."""
        self._measured = self._vectors.near(reading, self._vector, scope)
        self._reading = reading

    def nearest(self, most: int) -> Sequence[int]:
        """The ids of the nearest, measured."""
        return sorted(self._measured, key=lambda each: -self._measured[each])[:most]

    def of(self, ids: Collection[int]) -> Mapping[int, float]:
        """How near these are, those that have a vector."""
        missing = [id for id in ids if id not in self._measured]
        if missing and self._reading is not None:
            self._measured |= self._vectors.measured(self._reading, self._vector, missing)
        return {id: self._measured[id] for id in ids if id in self._measured}


def _refuse_older_numpy() -> None:
    if not hasattr(np, "bitwise_count"):
        raise ConfigurationError(
            f"vectors need NumPy 2 or later, this is {np.__version__}: pip install -U numpy"
        )
