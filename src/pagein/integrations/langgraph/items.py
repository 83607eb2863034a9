"""The items of a store: their namespaces as text, filters, search by words and by meaning, and facts as items."""

from __future__ import annotations

import logging
import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pagein.backends.memory import InMemoryLog
from pagein.backends.sqlite.search import SqliteSearchIndex
from pagein.events.steps import TaskStep
from pagein.facts import UnknownFact
from pagein.facts.fact import Fact
from pagein.facts.store import Facts
from pagein.search.base import Embedder, Query

LABEL_END = "\x1f"
"""Ends every label of a namespace, so that the text of ``("ab",)`` does not begin with that of ``("a",)``."""

EMBED_BATCH = 64
"""Texts embedded at a time."""

Fields = dict[str, Any]
"""The fields of a LangGraph Item."""


def namespace_text(namespace: Sequence[str]) -> str:
    """Encode a namespace as text; those below it, and no others, begin with it."""
    labels = (str(label).replace("\\", "\\\\").replace(LABEL_END, "\\e") for label in namespace)
    return "".join(label + LABEL_END for label in labels)


def parse_namespace(text: str) -> tuple[str, ...]:
    """Decode a namespace from its text."""
    return tuple(
        re.sub(r"\\(.)", lambda match: LABEL_END if match[1] == "e" else match[1], label)
        for label in text.split(LABEL_END)[:-1]
    )


def matches_path(namespace: Sequence[str], kind: str, path: Sequence[str]) -> bool:
    """True if the namespace begins (``prefix``) or ends (``suffix``) with the path; ``*`` is any one label."""
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if kind == "prefix" else namespace[len(namespace) - len(path) :]
    return all(pattern in ("*", label) for label, pattern in zip(part, path, strict=True))


def matches_filter(value: Any, condition: Any) -> bool:
    """True if a value equals the condition, or if each of the condition's operators holds for it.

    No operator holds for what cannot be compared. Raises ValueError for an unknown operator.
    """
    if not isinstance(condition, Mapping):
        return bool(value == condition)
    if any(str(key).startswith("$") for key in condition):
        return all(_compare(value, str(key), operand) for key, operand in condition.items())
    return isinstance(value, Mapping) and all(
        matches_filter(_field(value, key), inner) for key, inner in condition.items()
    )


def _field(value: Mapping[str, Any], key: str) -> Any:
    """The value under a key, or under a key in another: ``user.name``."""
    first, dot, rest = key.partition(".")
    inner = value.get(first)
    return _field(inner, rest) if key not in value and dot and isinstance(inner, Mapping) else value.get(key)


def _compare(value: Any, operator: str, operand: Any) -> bool:
    if operator not in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"unknown operator {operator!r}: use $eq, $ne, $gt, $gte, $lt or $lte")
    if operator in ("$eq", "$ne"):
        return bool(value == operand) == (operator == "$eq")
    try:
        first, second = (
            (value, operand) if isinstance(value, str) and isinstance(operand, str) else (float(value), float(operand))
        )
    except (TypeError, ValueError):
        return False
    if operator in ("$gt", "$gte"):
        return first > second or (operator == "$gte" and first == second)  # type: ignore[operator]
    return first < second or (operator == "$lte" and first == second)  # type: ignore[operator]


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from texts_in(inner)
        case list() | tuple():
            for inner in value:
                yield from texts_in(inner)
        case int() | float():
            yield str(value)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors; 0 where one has no length."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


@dataclass(frozen=True, slots=True)
class SearchableItem:
    """An item as it is searched: its name, the time of this state of it, and its text; no search finds an empty text."""

    name: tuple[str, str]
    updated: float
    text: str


class ItemIndex:
    """Ranks items as recall ranks passages. Items are indexed when they are first searched; threads may share it.

    The index is in memory, as it can be made from the tables at any time.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._index: SqliteSearchIndex | None = None
        self._indexed: dict[tuple[str, str], tuple[float, str]] = {}
        self._session_count = 0

    def scores(self, query: str, items: Sequence[SearchableItem]) -> list[float | None]:
        """Score each item for the query, higher is better; None where it does not match. Raises LogError."""
        with self._lock:
            with_text = [item for item in items if item.text.strip()]
            if not with_text or not query.strip():
                return [None] * len(items)
            index = self._index_items(with_text)
            names = {self._indexed[item.name][1]: item.name for item in with_text}
            best: dict[tuple[str, str], float] = {}
            for hit in index.search(Query(query, len(with_text), sessions=tuple(names))):
                name = names[hit.session]
                best[name] = max(hit.score, best.get(name, hit.score))
            return [best.get(item.name) for item in items]

    def close(self) -> None:
        """Release the index; the next search makes another."""
        with self._lock:
            if self._index is not None:
                self._index.close()
            self._index = None
            self._indexed.clear()

    def _index_items(self, items: Sequence[SearchableItem]) -> SqliteSearchIndex:
        index = self._index = self._index or SqliteSearchIndex(embedder=self._embedder)
        for item in items:
            updated, session = self._indexed.get(item.name, (None, ""))
            if updated == item.updated:
                continue
            if session:
                index.clear(session)
            # One session each: a step is also found by its neighbours, and an item is not.
            self._session_count += 1
            session = f"item {self._session_count}"
            log = InMemoryLog(session=session)
            index.index(log.append((TaskStep(item.text),), after=0, at=item.updated), session=session)
            self._indexed[item.name] = (item.updated, session)
        try:
            while self._embedder is not None and index.embed_pending(EMBED_BATCH):
                pass
        except Exception as error:  # noqa: BLE001 - a user's embedder; the search goes on by words
            logging.getLogger("pagein").warning("items are found by words alone: %s", error)
        return index


class FactItems:
    """The facts of a user as items under ``(label, user)``, as ``memory.facts`` of the same store has them. Read only."""

    def __init__(self, url: str | os.PathLike[str], tenant: str, label: str | None, clock: Callable[[], float]) -> None:
        self._url, self._tenant, self._label, self._clock = os.fspath(url), tenant, label, clock
        self._lock = threading.Lock()
        self._open: dict[str, Facts] = {}

    def has_namespace(self, namespace: Sequence[str]) -> bool:
        """True if the namespace is one of facts."""
        return self._label is not None and len(namespace) > 1 and namespace[0] == self._label

    def get(self, namespace: Sequence[str], key: str) -> Fields | None:
        """The fact with that id as an item's fields; None where there is none."""
        try:
            fact = self._facts(namespace).get(key)
        except UnknownFact:
            return None
        return _fact_fields(namespace, fact) if len(namespace) == 2 and fact.scope == "user" else None

    def search(
        self, namespace: Sequence[str], query: str | None, condition: dict[str, Any] | None
    ) -> list[tuple[Fields, float | None]]:
        """The user's facts that match the filter: the most similar to the query first, or in the order of their time."""
        if len(namespace) > 2:
            return []
        facts = self._facts(namespace)
        by_id = {fact.id: fact for fact in facts.list(scope="user")}
        scores: dict[str, float | None] = {}
        if query:
            scores = {hit.fact.id: hit.similarity or None for hit in facts.rank(query) if hit.fact.id in by_id}
        ranked = sorted(by_id.values(), key=lambda fact: -(scores.get(fact.id) or 0.0))
        items = [(_fact_fields(namespace, fact), scores.get(fact.id)) for fact in ranked]
        return [item for item in items if not condition or matches_filter(item[0]["value"], condition)]

    def close(self) -> None:
        """Release the logs of the facts."""
        with self._lock:
            for facts in self._open.values():
                facts.close()
            self._open.clear()

    def _facts(self, namespace: Sequence[str]) -> Facts:
        user = str(namespace[1])
        with self._lock:
            if user not in self._open:
                self._open[user] = Facts.open(self._url, user=user, tenant=self._tenant, clock=self._clock)
            return self._open[user]


def _fact_fields(namespace: Sequence[str], fact: Fact) -> Fields:
    value = {"content": fact.content, "category": fact.category, "confidence": fact.confidence, "author": fact.author}
    return {
        "namespace": tuple(namespace),
        "key": fact.id,
        "value": value,
        "created_at": datetime.fromtimestamp(fact.stated_at, UTC),
        "updated_at": datetime.fromtimestamp(fact.confirmed_at or fact.stated_at, UTC),
    }
