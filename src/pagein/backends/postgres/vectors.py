"""Vectors in a table of pgvector's half floats; the server measures how near they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import LiteralString

import numpy as np
from numpy.typing import NDArray

from pagein.backends.postgres.search_tables import PostgresReading
from pagein.search.base import Embedder
from pagein.search.index_store import Scope
from pagein.search.vectors import RESCORED, Embedding

# A session at a time, the newest first, so that nothing is sorted that is not read; each vector looked up by its key, as
# the planner would take a table that was just made for empty.
_TODO: LiteralString = """SELECT todo.id, todo.text FROM {0}.archive_sessions AS s, LATERAL (
        SELECT p.id, p.text FROM {0}.archive_passages AS p WHERE p.tenant = s.tenant AND p.session = s.session
            AND (SELECT true FROM {0}.archive_vectors AS v WHERE v.tenant = p.tenant AND v.session = p.session
                AND v.id = p.id AND v.model = %(model)s LIMIT 1) IS NULL
        ORDER BY p.id DESC LIMIT %(limit)s) AS todo
    WHERE s.tenant = %(tenant)s ORDER BY s.number DESC, todo.id DESC LIMIT %(limit)s"""
_LEFT: LiteralString = """SELECT
    coalesce((SELECT sum(passages) FROM {0}.archive_sizes WHERE tenant = %(tenant)s), 0)::bigint
    - (SELECT count(*) FROM {0}.archive_vectors WHERE tenant = %(tenant)s AND model = %(model)s)"""
# A passage that is being removed is waited for, so that no vector outlives it.
_KEEP: LiteralString = """INSERT INTO {0}.archive_vectors
    SELECT p.tenant, p.session, p.id, %(model)s, wanted.vector::{vector}.halfvec
    FROM unnest(%(ids)s::bigint[], %(sessions)s::text[], %(vectors)s::text[]) AS wanted(id, session, vector)
    JOIN {0}.archive_passages AS p ON p.tenant = %(tenant)s AND p.session = wanted.session AND p.id = wanted.id
    ORDER BY p.id FOR KEY SHARE OF p
    ON CONFLICT (tenant, session, id) DO UPDATE SET model = excluded.model, vector = excluded.vector"""
_NEAR: LiteralString = """SELECT v.id, 1 - (v.vector OPERATOR({vector}.<=>) %(query)s::{vector}.halfvec) FROM {0}.archive_vectors AS v
    WHERE tenant = %(tenant)s AND model = %(model)s
        AND (%(within)s::text[] IS NULL OR session = ANY(%(within)s))
        AND (%(first)s::bigint[] IS NULL OR EXISTS (SELECT FROM unnest(%(first)s::bigint[], %(last)s::bigint[])
            AS span(first, last) WHERE id BETWEEN span.first AND span.last))
    ORDER BY 2 DESC LIMIT %(most)s"""
_OF: LiteralString = """SELECT wanted.id, 1 - (v.vector OPERATOR({vector}.<=>) %(query)s::{vector}.halfvec)
    FROM unnest(%(ids)s::bigint[], %(sessions)s::text[]) AS wanted(id, session), LATERAL (SELECT vector
        FROM {0}.archive_vectors WHERE tenant = %(tenant)s AND session = wanted.session AND id = wanted.id
        AND model = %(model)s LIMIT 1) AS v"""


class PostgresVectors(Embedding):
    """The vectors of passages in a PostgreSQL schema, made by one embedder; those of others are not looked at."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._model = json.dumps([embedder.name, embedder.dimension])

    def pending(self, reading: PostgresReading, limit: int) -> tuple[list[tuple[int, str]], int]:
        """At most ``limit`` passages without a vector, newest first; and how many there are."""
        if limit < 1:
            return [], 0
        ((left,),) = reading.fetch(_LEFT, model=self._model)
        return (reading.fetch(_TODO, model=self._model, limit=limit) if left > 0 else []), left

    def keep(self, writing: PostgresReading, ids: Sequence[int], made: NDArray[np.float32]) -> None:
        """Store vectors, those of passages that are gone not; in the place of another embedder's."""
        vectors = dict(zip(ids, map(_spelled, made), strict=True))
        wanted = writing.wanted(ids)
        told = [vectors[id] for id in wanted["ids"]]
        writing.run(_KEEP, model=self._model, vectors=told, **wanted)

    def near(self, reading: PostgresReading, vector: NDArray[np.float32], scope: Scope) -> dict[int, float]:
        """How near the nearest passages of a scope are: all are measured by the server."""
        if not scope.ranges:
            return {}
        return dict(reading.fetch(
            _NEAR, model=self._model, query=_spelled(vector), most=RESCORED, **reading.spans(scope),
            within=reading.summed(scope)["sessions"],
        ))  # fmt: skip

    def measured(
        self, reading: PostgresReading, vector: NDArray[np.float32], ids: Collection[int]
    ) -> dict[int, float]:
        """How near these are, measured by their vectors; those that have none are left out."""
        return dict(reading.fetch(_OF, model=self._model, query=_spelled(vector), **reading.wanted(ids)))


def _spelled(vector: NDArray[np.float32]) -> str:
    """A vector as pgvector reads it, to a precision above that it keeps."""
    return f"[{','.join(['%.6f'] * len(vector)) % tuple(vector.tolist())}]"
