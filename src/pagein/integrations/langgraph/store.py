"""A graph's long-term store in the SQLite file of the logs: ``BaseStore``, and LangChain's plain store of bytes."""

from __future__ import annotations

import array
import asyncio
import json
import math
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from pagein.backends.sqlite import graph_tables as sql
from pagein.backends.sqlite.graph_tables import GraphTables
from pagein.backends.sqlite.migrations import ITEM_TABLES
from pagein.errors import ConfigurationError, FormatError
from pagein.integrations._versions import require_release
from pagein.integrations.langgraph import items
from pagein.log.hash_chain import check_name
from pagein.memory.options import Options, resolve_embedder

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

Row = tuple[str, str, str, float, float, str]
Vectors = Mapping[str, Sequence[float]]


class BadNamespace(FormatError, InvalidNamespaceError):
    """A label that is no text, is empty, or has a period, with which LangGraph's stores join labels. Nothing was done."""


class PageinStore(BaseStore):
    """Items by namespace and key, durable; found by filters, and by queries as recall finds passages.

    ``graph.compile(store=PageinStore("run.db"))``. A query searches words, and with ``embedder`` meanings too. ``index``
    and ``ttl`` are LangGraph's own; with ``index``, a query searches its vectors alone. Items that match come first, best
    first, then the others. With ``facts="facts"`` the facts of a user can be read as items of ``("facts", user)``. An item
    past its time is not shown. A batch does its reads first, then its writes, all or none. ``clock`` gives seconds since
    the epoch. Raises LogError, ConfigurationError, and FormatError for a value that is not JSON.
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
        require_release("langgraph-checkpoint")
        self._tenant = check_name("tenant", tenant)
        self._clock = clock
        self.ttl_config = ttl
        self.index_config = index
        self._fields = list((index or {}).get("fields") or ["$"])
        if index is not None and embedder is not None:
            raise ConfigurationError("give index, which is LangGraph's, or embedder, which is pagein's: not both")
        self._item_index = items.ItemIndex(resolve_embedder(Options(embedder=embedder)))
        self._facts = items.FactItems(url, tenant, facts, clock)
        self.embeddings = ensure_embeddings(index.get("embed")) if index else None
        self._tables = GraphTables(url, timeout=timeout, synchronous=synchronous)
        self._tables.create(ITEM_TABLES)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Return the result of each operation, in order. Raises BadNamespace before any of them is done."""
        checked = _check_namespaces(ops)
        texts = self._texts_to_embed(checked)
        vectors = self.embeddings.embed_documents(texts) if texts and self.embeddings else []
        return self._run_batch(checked, dict(zip(texts, vectors, strict=True)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As ``batch``; the file is used in a thread."""
        checked = _check_namespaces(ops)
        texts = self._texts_to_embed(checked)
        vectors = await self.embeddings.aembed_documents(texts) if texts and self.embeddings else []
        return await asyncio.to_thread(self._run_batch, checked, dict(zip(texts, vectors, strict=True)))

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self._item_index.close()
        self._facts.close()
        self._tables.close()

    def _run_batch(self, ops: Sequence[Op], vectors: Vectors) -> list[Result]:
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}  # the last one counts
        rows = [self._row(op, self._clock()) for op in puts.values()]
        results = [self._run_read(op, vectors) for op in ops]
        if rows:
            with self._tables.writing() as database:
                self._delete_expired(database)
                for op, row in zip(puts.values(), rows, strict=True):
                    self._write(database, op, row, vectors)
        return results

    def _run_read(self, op: Op, vectors: Vectors) -> Result:
        match op:
            case GetOp(namespace=namespace, key=key) if self._facts.has_namespace(namespace):
                fact = self._facts.get(namespace, key)
                return Item(**fact) if fact else None
            case SearchOp(namespace_prefix=namespace) if self._facts.has_namespace(namespace):
                facts = self._facts.search(namespace, op.query, op.filter)[op.offset : op.offset + op.limit]
                return [SearchItem(**fields, score=score) for fields, score in facts]
            case GetOp(namespace=namespace, key=key, refresh_ttl=refresh):
                rows = self._rows(" AND namespace = ? AND key = ?", (items.namespace_text(namespace), key))
                self._renew(rows if refresh else ())
                return Item(**_item_fields(rows[0])) if rows else None
            case SearchOp():
                scored = self._search(op, vectors)
                self._renew([row for row, _ in scored] if op.refresh_ttl else ())
                return [SearchItem(**_item_fields(row), score=score) for row, score in scored]
            case ListNamespacesOp():
                return self._namespaces(op)
            case _:
                return None

    # -- searching

    def _rows(self, where: str, values: Sequence[object]) -> list[Row]:
        rows = self._tables.rows(
            f"{sql.READ_ITEMS}{where} ORDER BY namespace, created, key", (self._tenant, self._clock(), *values)
        )
        return cast(list[Row], rows)

    def _search(self, op: SearchOp, vectors: Vectors) -> list[tuple[Row, float | None]]:
        first, last = _text_range(op.namespace_prefix)
        rows = self._rows(" AND namespace >= ? AND namespace < ?", (first, last))
        if op.filter:
            condition = op.filter
            rows = [row for row in rows if items.matches_filter(json.loads(row[2]), condition)]
        ranked: list[tuple[Row, float | None]] = [(row, None) for row in rows]
        if op.query:
            if op.query in vectors:
                scores = self._vector_scores(rows, vectors[op.query], first, last)
            else:
                scores = self._item_index.scores(op.query, list(map(_searchable_item, rows)))
            # Items that do not match come last: a limit is filled, as LangGraph's own stores fill it.
            ranked = sorted(zip(rows, scores, strict=True), key=lambda pair: math.inf if pair[1] is None else -pair[1])
        return ranked[op.offset : op.offset + op.limit]

    def _vector_scores(self, rows: Sequence[Row], query: Sequence[float], first: str, last: str) -> list[float | None]:
        best: dict[tuple[str, str], float] = {}
        for namespace, key, data in cast(
            Iterable[tuple[str, str, bytes]], self._tables.rows(sql.READ_VECTORS, (self._tenant, first, last))
        ):
            score = items.cosine(query, array.array("d", data))
            best[namespace, key] = max(score, best.get((namespace, key), -1.0))
        return [best.get((row[0], row[1])) for row in rows]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        rows = self._tables.rows(sql.LIST_NAMESPACES, (self._tenant, self._clock()))
        conditions = op.match_conditions or ()
        namespaces = {
            namespace[: op.max_depth]
            for namespace in (items.parse_namespace(str(text)) for (text,) in rows)
            if all(items.matches_path(namespace, rule.match_type, rule.path) for rule in conditions)
        }
        return sorted(namespaces)[op.offset : op.offset + op.limit]

    # -- writing

    def _row(self, op: PutOp, now: float) -> tuple[object, ...]:
        if self._facts.has_namespace(op.namespace):
            raise FormatError("facts are stated by memory.facts, and read here", path="namespace")
        if op.value is None:
            return ()
        try:
            value = json.dumps(dict(op.value), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise FormatError(f"the value of {op.key!r} is no JSON: {error}", path="value") from None
        ttl = op.ttl
        texts = [] if op.index is False else self._texts(op) if op.index else list(items.texts_in(op.value))
        expires = None if ttl is None else now + ttl * 60
        texts_json = json.dumps(texts, ensure_ascii=True)
        return (self._tenant, items.namespace_text(op.namespace), op.key, value, now, now, ttl, expires, texts_json)

    def _texts(self, op: PutOp) -> list[str]:
        """The texts of an item that are embedded: those at LangGraph's paths into its value."""
        paths = self._fields if op.index is None else op.index or []
        return [text for path in paths for text in get_text_at_path(op.value, path)]

    def _texts_to_embed(self, ops: Sequence[Op]) -> list[str]:
        if self.embeddings is None:
            return []
        queries = [op.query for op in ops if isinstance(op, SearchOp) and op.query]
        texts = [text for op in ops if isinstance(op, PutOp) and op.value is not None for text in self._texts(op)]
        return list(dict.fromkeys([*queries, *texts]))

    def _write(self, database: sqlite3.Connection, op: PutOp, row: tuple[object, ...], vectors: Vectors) -> None:
        key = (self._tenant, items.namespace_text(op.namespace), op.key)
        database.execute(sql.DELETE_VECTORS, key)
        if op.value is None:
            database.execute(sql.DELETE_ITEM, key)
            return
        database.execute(sql.SAVE_ITEM, row)
        if self.embeddings is not None:
            rows = [(*key, at, array.array("d", vectors[text]).tobytes()) for at, text in enumerate(self._texts(op))]
            database.executemany(sql.SAVE_VECTOR, rows)

    def _renew(self, rows: Sequence[Row]) -> None:
        if not rows or not self._tables.rows(sql.ANY_EXPIRING_ITEM, (self._tenant,)):
            return
        now = self._clock()
        with self._tables.writing() as database:
            database.executemany(sql.RENEW_ITEM, [(now, self._tenant, row[0], row[1]) for row in rows])

    def _delete_expired(self, database: sqlite3.Connection) -> None:
        keys = database.execute(sql.EXPIRED_ITEMS, (self._tenant, self._clock())).fetchall()
        for statement in (sql.DELETE_VECTORS, sql.DELETE_ITEM):
            database.executemany(statement, [(self._tenant, *key) for key in keys])


def _check_namespaces(ops: Iterable[Op]) -> list[Op]:
    """Return the operations. LangGraph checks the namespaces of its methods, and not those of a batch."""
    checked = list(ops)
    for path in (path for op in checked for path in _paths(op)):
        for label in path:
            if not isinstance(label, str) or not label or "." in label:
                raise BadNamespace(f"{label!r} is no label: text without a period", path=f"namespace {path}")
    return checked


def _paths(op: Op) -> Sequence[Sequence[str]]:
    match op:
        case GetOp() | PutOp():
            return (op.namespace,)
        case SearchOp():
            return (op.namespace_prefix,)
        case _:
            return [condition.path for condition in op.match_conditions or ()]


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
        require_release("langchain-core")
        self._scope = (check_name("tenant", tenant), name)
        self._tables = GraphTables(url, timeout=timeout, synchronous=synchronous)
        self._tables.create(ITEM_TABLES)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """The value of each key, or None."""
        results = (self._tables.rows(sql.READ_BYTES, (*self._scope, key)) for key in keys)
        return [cast(bytes, rows[0][0]) if rows else None for rows in results]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Set the values, all or none."""
        for key, value in key_value_pairs:
            if not isinstance(value, bytes):
                raise FormatError(f"the value of {key!r} is {type(value).__name__}, not bytes", path="value")
        with self._tables.writing() as database:
            rows = [(*self._scope, *pair) for pair in key_value_pairs]
            database.executemany(sql.SAVE_BYTES, rows)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete the keys; an unknown key is no error."""
        with self._tables.writing() as database:
            database.executemany(sql.DELETE_BYTES, [(*self._scope, key) for key in keys])

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with the prefix, sorted."""
        rows = self._tables.rows(sql.LIST_KEYS, self._scope)
        yield from (key for (key,) in cast(Iterable[tuple[str]], rows) if key.startswith(prefix or ""))

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """See yield_keys."""
        for key in await asyncio.to_thread(lambda: list(self.yield_keys(prefix=prefix))):
            yield key

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self._tables.close()


def _item_fields(row: Row) -> dict[str, Any]:
    namespace, key, value, created, updated, _ = row
    times = {"created_at": datetime.fromtimestamp(created, UTC), "updated_at": datetime.fromtimestamp(updated, UTC)}
    return {"namespace": items.parse_namespace(namespace), "key": key, "value": json.loads(value), **times}


def _text_range(prefix: Sequence[str]) -> tuple[str, str]:
    """The range of the texts of a namespace and of those below it; the end is not part of it."""
    text = items.namespace_text(prefix)
    return (text, text[:-1] + " ") if text else ("", "\U0010ffff")


def _searchable_item(row: Row) -> items.SearchableItem:
    return items.SearchableItem((row[0], row[1]), row[4], "\n".join(json.loads(row[5])))
