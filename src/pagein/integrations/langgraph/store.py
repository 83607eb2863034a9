"""A graph's long-term store in the SQLite file of the logs: ``BaseStore``, and LangChain's plain store of bytes."""

from __future__ import annotations

import array
import asyncio
import json
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from pagein.errors import ConfigurationError, FormatError
from pagein.integrations._versions import checked_release
from pagein.integrations.langgraph.facts import FactItems
from pagein.integrations.langgraph.item_search import Finder, Looked
from pagein.integrations.langgraph.items import (
    is_in,
    namespace_of,
    namespace_text,
    nearness,
    passes,
    words_in,
)
from pagein.integrations.langgraph.tables import ITEM_TABLES, Tables
from pagein.memory.options import Options, embedder_of

try:
    from langchain_core.stores import BaseStore as KeyValueStore
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        ensure_embeddings,
        get_text_at_path,
    )
except ImportError as missing:
    raise ConfigurationError("LangGraph needs pip install 'pagein[langgraph]'") from missing

_ROWS = "SELECT namespace, key, value, created, updated, texts FROM langgraph_items WHERE tenant = ? AND (expires IS NULL OR expires > ?)"
_PUT = """INSERT INTO langgraph_items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    value = excluded.value, updated = excluded.updated, ttl = excluded.ttl, expires = excluded.expires, texts = excluded.texts"""
_KEPT = "UPDATE langgraph_items SET expires = ? + ttl * 60 WHERE tenant = ? AND namespace = ? AND key = ? AND ttl IS NOT NULL"
_GONE = "DELETE FROM {} WHERE tenant = ? AND namespace = ? AND key = ?"
_VECTORS = "SELECT namespace, key, vector FROM langgraph_vectors WHERE tenant = ? AND namespace >= ? AND namespace < ?"

Row = tuple[str, str, str, float, float, str]
Vectors = Mapping[str, Sequence[float]]


class BadNamespace(FormatError, InvalidNamespaceError):
    """A label that is no text, is empty or has a period, which LangGraph's stores join labels by. Nothing was done."""


class PageinStore(BaseStore):
    """Items by namespace and key, durable; found by filter, and by a query as the archive finds what was recorded.

    ``graph.compile(store=PageinStore("run.db"))``. A query is answered by words, and with ``embedder`` by meaning too;
    ``index`` and ``ttl`` are LangGraph's own, and with ``index`` it is answered by its vectors alone. What matches comes
    first, best first, then what does not. ``facts="facts"`` gives the facts of a user to read as items of ``("facts",
    user)``. An item past its time is not shown. A batch does its reads first, then its writes, all or none. ``clock``
    gives seconds since the epoch. Raises LogError, ConfigurationError, and FormatError for a value that is no JSON.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        tenant: str = "",
        index: IndexConfig | None = None,
        embedder: Any = None,
        facts: str | None = None,
        ttl: TTLConfig | None = None,
        timeout: float = 5.0,
        synchronous: str = "FULL",
        clock: Callable[[], float] = time.time,
    ) -> None:
        checked_release("langgraph-checkpoint")
        self._tenant = tenant
        self._clock = clock
        self.ttl_config = ttl
        self.index_config = index
        self._fields = list((index or {}).get("fields") or ["$"])
        if index is not None and embedder is not None:
            raise ConfigurationError(
                "give index, which is LangGraph's, or embedder, which is pagein's: not both"
            )
        self._finder = Finder(embedder_of(Options(embedder=embedder)))
        self._facts = FactItems(url, tenant, facts, clock)
        self.embeddings = ensure_embeddings(index.get("embed")) if index else None
        self._tables = Tables(url, timeout=timeout, synchronous=synchronous)
        self._tables.create(ITEM_TABLES)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """What each operation gives, in order. Raises BadNamespace before any of them is done."""
        asked = _checked(ops)
        texts = self._to_embed(asked)
        vectors = self.embeddings.embed_documents(texts) if texts and self.embeddings else []
        return self._done(asked, dict(zip(texts, vectors, strict=True)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As ``batch``; the file is reached from a thread."""
        asked = _checked(ops)
        texts = self._to_embed(asked)
        vectors = await self.embeddings.aembed_documents(texts) if texts and self.embeddings else []
        return await asyncio.to_thread(self._done, asked, dict(zip(texts, vectors, strict=True)))

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self._finder.close()
        self._facts.close()
        self._tables.close()

    def _done(self, ops: Sequence[Op], vectors: Vectors) -> list[Result]:
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}  # the last one counts
        rows = [self._row(op, self._clock()) for op in puts.values()]
        results = [self._read(op, vectors) for op in ops]
        if rows:
            with self._tables.writing() as database:
                self._sweep(database)
                for op, row in zip(puts.values(), rows, strict=True):
                    self._write(database, op, row, vectors)
        return results

    def _read(self, op: Op, vectors: Vectors) -> Result:
        match op:
            case GetOp(namespace=namespace, key=key) if self._facts.holds(namespace):
                fact = self._facts.get(namespace, key)
                return Item(**fact) if fact else None
            case SearchOp(namespace_prefix=namespace) if self._facts.holds(namespace):
                told = self._facts.search(namespace, op.query, op.filter)[op.offset : op.offset + op.limit]
                return [SearchItem(**fields, score=score) for fields, score in told]
            case GetOp(namespace=namespace, key=key, refresh_ttl=refresh):
                found = self._rows(" AND namespace = ? AND key = ?", (namespace_text(namespace), key))
                self._refresh(found if refresh else ())
                return Item(**_fields(found[0])) if found else None
            case SearchOp():
                found_items = self._search(op, vectors)
                self._refresh([row for row, _ in found_items] if op.refresh_ttl else ())
                return [SearchItem(**_fields(row), score=score) for row, score in found_items]
            case ListNamespacesOp():
                return self._namespaces(op)
            case _:
                return None

    # -- searching

    def _rows(self, where: str, values: Sequence[object]) -> list[Row]:
        found = self._tables.rows(
            f"{_ROWS}{where} ORDER BY namespace, created, key", (self._tenant, self._clock(), *values)
        )
        return cast(list[Row], found)

    def _search(self, op: SearchOp, vectors: Vectors) -> list[tuple[Row, float | None]]:
        first, last = _below(op.namespace_prefix)
        rows = self._rows(" AND namespace >= ? AND namespace < ?", (first, last))
        if op.filter:
            wanted = op.filter
            rows = [row for row in rows if passes(json.loads(row[2]), wanted)]
        ranked: list[tuple[Row, float | None]] = [(row, None) for row in rows]
        if op.query:
            scored = (
                self._near(rows, vectors[op.query], first, last)
                if op.query in vectors
                else self._finder.scores(op.query, list(map(_looked, rows)))
            )
            # What does not match stands behind what does: a limit is filled, as LangGraph's own stores fill it.
            ranked = sorted(zip(rows, scored, strict=True), key=lambda each: -_low(each[1]))
        return ranked[op.offset : op.offset + op.limit]

    def _near(self, rows: Sequence[Row], query: Sequence[float], first: str, last: str) -> list[float | None]:
        best: dict[tuple[str, str], float] = {}
        for namespace, key, held in cast(
            Iterable[tuple[str, str, bytes]], self._tables.rows(_VECTORS, (self._tenant, first, last))
        ):
            near = nearness(query, array.array("d", held))
            best[namespace, key] = max(near, best.get((namespace, key), -1.0))
        return [best.get((row[0], row[1])) for row in rows]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        rows = self._tables.rows(
            "SELECT DISTINCT namespace FROM langgraph_items WHERE tenant = ? AND (expires IS NULL OR expires > ?)",
            (self._tenant, self._clock()),
        )
        conditions = op.match_conditions or ()
        held = (namespace_of(str(text)) for (text,) in rows)
        found = (
            each for each in held if all(is_in(each, wanted.match_type, wanted.path) for wanted in conditions)
        )
        return sorted({each[: op.max_depth] for each in found})[op.offset : op.offset + op.limit]

    # -- writing

    def _row(self, op: PutOp, now: float) -> tuple[object, ...]:
        if self._facts.holds(op.namespace):
            raise FormatError("facts are stated by memory.facts, and read here", path="namespace")
        if op.value is None:
            return ()
        try:
            value = json.dumps(dict(op.value), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise FormatError(f"the value of {op.key!r} is no JSON: {error}", path="value") from None
        ttl = op.ttl
        texts = [] if op.index is False else self._texts(op) if op.index else list(words_in(op.value))
        expires = None if ttl is None else now + ttl * 60
        searched = json.dumps(texts, ensure_ascii=True)
        return (self._tenant, namespace_text(op.namespace), op.key, value, now, now, ttl, expires, searched)

    def _texts(self, op: PutOp) -> list[str]:
        """The texts an item is found by, by meaning: LangGraph's paths into its value."""
        paths = self._fields if op.index is None else op.index or []
        return [text for path in paths for text in get_text_at_path(op.value, path)]

    def _to_embed(self, ops: Sequence[Op]) -> list[str]:
        if self.embeddings is None:
            return []
        queries = [op.query for op in ops if isinstance(op, SearchOp) and op.query]
        texts = [
            text for op in ops if isinstance(op, PutOp) and op.value is not None for text in self._texts(op)
        ]
        return list(dict.fromkeys([*queries, *texts]))

    def _write(
        self, database: sqlite3.Connection, op: PutOp, row: tuple[object, ...], vectors: Vectors
    ) -> None:
        key = (self._tenant, namespace_text(op.namespace), op.key)
        database.execute(_GONE.format("langgraph_vectors"), key)
        if op.value is None:
            database.execute(_GONE.format("langgraph_items"), key)
            return
        database.execute(_PUT, row)
        if self.embeddings is not None:
            held = [array.array("d", vectors[text]).tobytes() for text in self._texts(op)]
            database.executemany(
                "INSERT INTO langgraph_vectors VALUES (?, ?, ?, ?, ?)",
                [(*key, at, each) for at, each in enumerate(held)],
            )

    def _refresh(self, rows: Sequence[Row]) -> None:
        if not rows or not self._tables.rows(
            "SELECT 1 FROM langgraph_items WHERE tenant = ? AND ttl IS NOT NULL LIMIT 1", (self._tenant,)
        ):
            return
        now = self._clock()
        with self._tables.writing() as database:
            database.executemany(_KEPT, [(now, self._tenant, row[0], row[1]) for row in rows])

    def _sweep(self, database: sqlite3.Connection) -> None:
        late = "SELECT namespace, key FROM langgraph_items WHERE tenant = ? AND expires <= ?"
        gone = database.execute(late, (self._tenant, self._clock())).fetchall()
        for table in ("langgraph_vectors", "langgraph_items"):
            database.executemany(_GONE.format(table), [(self._tenant, *each) for each in gone])


def _checked(ops: Iterable[Op]) -> list[Op]:
    """The operations. LangGraph looks at the namespaces of its verbs, and not at those of a batch."""
    asked = list(ops)
    for path in (path for op in asked for path in _paths(op)):
        for label in path:
            if not isinstance(label, str) or not label or "." in label:
                raise BadNamespace(f"{label!r} is no label: text without a period", path=f"namespace {path}")
    return asked


def _paths(op: Op) -> Sequence[Sequence[str]]:
    match op:
        case GetOp() | PutOp():
            return (op.namespace,)
        case SearchOp():
            return (op.namespace_prefix,)
        case _:
            return [each.path for each in op.match_conditions or ()]


class PageinByteStore(KeyValueStore[str, bytes]):
    """LangChain's store of bytes by key (``ByteStore``), durable, in the SQLite file of the logs.

    ``name`` keeps several apart in one file. Raises LogError, and FormatError for a value that is not bytes.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        name: str = "",
        tenant: str = "",
        timeout: float = 5.0,
        synchronous: str = "FULL",
    ) -> None:
        checked_release("langchain-core")
        self._scope = (tenant, name)
        self._tables = Tables(url, timeout=timeout, synchronous=synchronous)
        self._tables.create(ITEM_TABLES)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """The value of each key, or None."""
        statement = "SELECT value FROM langchain_bytes WHERE tenant = ? AND name = ? AND key = ?"
        found = [self._tables.rows(statement, (*self._scope, key)) for key in keys]
        return [cast(bytes, each[0][0]) if each else None for each in found]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Set the values, all or none."""
        for key, value in key_value_pairs:
            if not isinstance(value, bytes):
                raise FormatError(f"the value of {key!r} is {type(value).__name__}, not bytes", path="value")
        with self._tables.writing() as database:
            rows = [(*self._scope, *pair) for pair in key_value_pairs]
            database.executemany("INSERT OR REPLACE INTO langchain_bytes VALUES (?, ?, ?, ?)", rows)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete the keys; one that is not there is no error."""
        with self._tables.writing() as database:
            statement = "DELETE FROM langchain_bytes WHERE tenant = ? AND name = ? AND key = ?"
            database.executemany(statement, [(*self._scope, key) for key in keys])

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with the prefix, sorted."""
        rows = self._tables.rows(
            "SELECT key FROM langchain_bytes WHERE tenant = ? AND name = ? ORDER BY key", self._scope
        )
        yield from (key for (key,) in cast(Iterable[tuple[str]], rows) if key.startswith(prefix or ""))

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """See yield_keys."""
        for key in await asyncio.to_thread(lambda: list(self.yield_keys(prefix=prefix))):
            yield key

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self._tables.close()


def _fields(row: Row) -> dict[str, Any]:
    namespace, key, value, created, updated, _ = row
    times = {
        "created_at": datetime.fromtimestamp(created, UTC),
        "updated_at": datetime.fromtimestamp(updated, UTC),
    }
    return {"namespace": namespace_of(namespace), "key": key, "value": json.loads(value), **times}


def _below(prefix: Sequence[str]) -> tuple[str, str]:
    """The range of the texts of a namespace and of those below it."""
    text = namespace_text(prefix)
    return (text, text[:-1] + " ") if text else ("", "\U0010ffff")


def _looked(row: Row) -> Looked:
    return Looked((row[0], row[1]), row[4], "\n".join(json.loads(row[5])))


def _low(score: float | None) -> float:
    return float("-inf") if score is None else score
