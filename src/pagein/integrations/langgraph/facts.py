"""The facts of users, read as items of a graph's store."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from pagein.facts import UnknownFact
from pagein.facts.fact import Fact
from pagein.facts.store import Facts
from pagein.integrations.langgraph.items import passes

Fields = dict[str, Any]


class FactItems:
    """Under ``(label, user)``: the facts of that user, as ``memory.facts`` of the same store states them. Read only."""

    def __init__(
        self, url: str | os.PathLike[str], tenant: str, label: str | None, clock: Callable[[], float]
    ) -> None:
        self._url, self._tenant, self._label, self._clock = os.fspath(url), tenant, label, clock
        self._turn = threading.Lock()
        self._open: dict[str, Facts] = {}

    def holds(self, namespace: Sequence[str]) -> bool:
        """Whether the namespace is one of facts."""
        return self._label is not None and len(namespace) > 1 and namespace[0] == self._label

    def get(self, namespace: Sequence[str], key: str) -> Fields | None:
        """The fact of that id, as an item's fields; None where it does not hold any more."""
        try:
            fact = self._of(namespace).get(key)
        except UnknownFact:
            return None
        return _fields(namespace, fact) if len(namespace) == 2 and fact.scope == "user" else None

    def search(
        self, namespace: Sequence[str], query: str | None, wanted: dict[str, Any] | None
    ) -> list[tuple[Fields, float | None]]:
        """The user's facts that pass the filter, those that matter most for the query first; without one, as stated."""
        if len(namespace) > 2:
            return []
        facts = self._of(namespace)
        known = {each.id: each for each in facts.list(scope="user")}
        ranked: list[tuple[Fact, float | None]] = [(each, None) for each in known.values()]
        if query:
            found = [each for each in facts.ranked(query) if each.fact.id in known]
            scored = {each.fact.id: each.similarity or None for each in found}
            ranked = sorted(
                ((each, scored.get(each.id)) for each in known.values()), key=lambda pair: -(pair[1] or 0.0)
            )
        told = [(_fields(namespace, fact), score) for fact, score in ranked]
        return [pair for pair in told if not wanted or passes(pair[0]["value"], wanted)]

    def close(self) -> None:
        """Release the logs of the facts."""
        with self._turn:
            for each in self._open.values():
                each.close()
            self._open.clear()

    def _of(self, namespace: Sequence[str]) -> Facts:
        user = str(namespace[1])
        with self._turn:
            if user not in self._open:
                self._open[user] = Facts.open(self._url, user=user, tenant=self._tenant, clock=self._clock)
            return self._open[user]


def _fields(namespace: Sequence[str], fact: Fact) -> Fields:
    value = {
        "content": fact.content,
        "category": fact.category,
        "confidence": fact.confidence,
        "author": fact.author,
    }
    return {
        "namespace": tuple(namespace),
        "key": fact.id,
        "value": value,
        "created_at": datetime.fromtimestamp(fact.stated_at, UTC),
        "updated_at": datetime.fromtimestamp(fact.confirmed_at or fact.stated_at, UTC),
    }
