"""Vectors in a table of pgvector's half floats; the server measures similarities."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import LiteralString

import numpy as np
from numpy.typing import NDArray

from pagein.backends.postgres.search import PostgresIndexReader
from pagein.search.base import Embedder
from pagein.search.index_store import Scope
from pagein.search.vectors import RESCORED_PASSAGES, VectorStore

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


class PostgresVectors(VectorStore):
    """The vectors of passages in a PostgreSQL schema, made by one embedder; those of others are ignored."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self._model = json.dumps([embedder.name, embedder.dimension])

    def pending(self, reader: PostgresIndexReader, limit: int) -> tuple[list[tuple[int, str]], int]:
        """At most ``limit`` passages without a vector, newest first, and their total number."""
        if limit < 1:
            return [], 0
        ((count,),) = reader.fetch(_LEFT, model=self._model)
        return (reader.fetch(_TODO, model=self._model, limit=limit) if count > 0 else []), count

    def store_vectors(self, writer: PostgresIndexReader, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Store vectors, in place of another embedder's; those of removed passages are skipped."""
        texts = dict(zip(ids, map(_to_text, vectors), strict=True))
        keys = writer.keys_of(ids)
        values = [texts[id] for id in keys["ids"]]
        writer.execute(_KEEP, model=self._model, vectors=values, **keys)

    def score_nearest(self, reader: PostgresIndexReader, vector: NDArray[np.float32], scope: Scope) -> dict[int, float]:
        """The similarities of the nearest passages in a scope, measured by the server."""
        if not scope.ranges:
            return {}
        return dict(reader.fetch(
            _NEAR, model=self._model, query=_to_text(vector), most=RESCORED_PASSAGES, **reader.spans(scope),
            within=reader.scope_filter(scope)["sessions"],
        ))  # fmt: skip

    def score_passages(
        self, reader: PostgresIndexReader, vector: NDArray[np.float32], ids: Collection[int]
    ) -> dict[int, float]:
        return dict(reader.fetch(_OF, model=self._model, query=_to_text(vector), **reader.keys_of(ids)))


def _to_text(vector: NDArray[np.float32]) -> str:
    """A vector as text for pgvector, with a higher precision than it stores."""
    return f"[{','.join(['%.6f'] * len(vector)) % tuple(vector.tolist())}]"
