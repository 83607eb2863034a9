"""The channels of one thread, version by version; a list item by item, each item once.

A version of a list is the version before it, how much of that it begins with, and what follows. Every ``WHOLE``
versions one is told whole, so that reading one never walks far.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pagein.errors import LogUnreadable
from pagein.integrations.langgraph.tables import Tables, Typed, digest, split

WHOLE = 32

_EMPTY, _LIST, _VALUE = "empty", "list", "="
_FEW = 2
_ROW = "SELECT kind, body FROM langgraph_channels WHERE tenant = ? AND thread = ? AND ns = ? AND channel = ? AND version = ?"
_LATEST = """SELECT version FROM langgraph_channels WHERE tenant = ? AND thread = ? AND ns = ? AND channel = ?
    AND version < ? AND kind LIKE 'list%' ORDER BY version DESC LIMIT 1"""
_ALL = "SELECT version, kind, body FROM langgraph_channels WHERE tenant = ? AND thread = ? AND ns = ? AND channel = ?"
_TELL = """UPDATE langgraph_channels SET kind = ?, body = ?
    WHERE tenant = ? AND thread = ? AND ns = ? AND channel = ? AND version = ?"""
_ELEMENT = "SELECT kind, body FROM langgraph_elements WHERE tenant = ? AND thread = ? AND digest = ?"


@dataclass(frozen=True, slots=True)
class Spelled:
    """A version of a channel as it is stored, and the elements it names."""

    channel: str
    version: str
    value: Typed
    digests: tuple[bytes, ...] = ()
    elements: Mapping[bytes, Typed] | None = None


class Channels:
    """The channels of one namespace of a thread."""

    def __init__(self, tables: Tables, serde: Any, tenant: str, thread: str, ns: str) -> None:
        self._tables = tables
        self._serde = serde
        self._scope = (tenant, thread)
        self._key = (tenant, thread, ns)

    def spelled(self, channel: str, version: Any, values: Mapping[str, Any]) -> Spelled:
        """A channel's value in bytes; what cannot be is raised here, before anything is written."""
        named = json.dumps(version)
        if channel not in values:
            return Spelled(channel, named, (_EMPTY, b""))
        value = values[channel]
        if type(value) is list and len(value) >= _FEW:
            elements = [self._serde.dumps_typed(each) for each in value]
            if not any("+" in kind for kind, _ in elements):  # what is encrypted is never the same twice
                digests = tuple(map(digest, elements))
                return Spelled(
                    channel, named, (_LIST, b""), digests, dict(zip(digests, elements, strict=True))
                )
        kind, body = self._serde.dumps_typed(value)
        return Spelled(channel, named, (_VALUE + kind, body))

    def write(self, database: sqlite3.Connection, made: Spelled) -> None:
        """Write a channel's version, within a transaction."""
        value = made.value
        if made.elements is not None:
            value, same = self._told(made)
            database.executemany(
                "INSERT OR IGNORE INTO langgraph_elements VALUES (?, ?, ?, ?, ?)",
                [(*self._scope, name, *made.elements[name]) for name in made.digests[same:]],
            )
        if self._row(made.channel, made.version) not in (None, value):
            self._free(database, made.channel, made.version)
        database.execute(
            "INSERT OR REPLACE INTO langgraph_channels VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*self._key, made.channel, made.version, *value),
        )

    def _free(self, database: sqlite3.Connection, channel: str, base: str) -> None:
        """Tell whole the lists that are told by a version which is about to say something else."""
        rows = self._tables.rows(f"{_ALL} AND kind LIKE 'list+%'", (*self._key, channel))
        for version, kind, body in cast(Iterable[tuple[str, str, bytes]], rows):
            if json.loads(body.partition(b"\n")[0])[0] == base:
                digests = self._digests(channel, (kind, body))
                database.execute(_TELL, (_LIST, b"".join(digests), *self._key, channel, version))

    def read(self, versions: Mapping[str, Any]) -> dict[str, Any]:
        """The values of these versions; a channel that was empty, or was never saved, is left out."""
        values = {}
        for channel, version in versions.items():
            found = self._row(channel, json.dumps(version))
            if found is None or found[0] == _EMPTY:
                continue
            kind, body = found
            if kind.startswith(_LIST):
                values[channel] = [self._element(each) for each in self._digests(channel, found)]
            else:
                values[channel] = self._serde.loads_typed((kind.removeprefix(_VALUE), body))
        return values

    def keep(self, database: sqlite3.Connection, used: Mapping[str, set[tuple[str, str]]]) -> None:
        """Erase, within a transaction, the versions of the thread that are not used, and the elements of no list."""
        named: set[bytes] = set()
        rows = self._tables.rows(
            "SELECT ns, channel, version FROM langgraph_channels WHERE tenant = ? AND thread = ?", self._scope
        )
        for ns, channel, version in cast(Iterable[tuple[str, str, str]], rows):
            each = Channels(self._tables, self._serde, *self._scope, ns)
            if (channel, version) not in used.get(ns, ()):
                continue
            found = each._row(channel, version)
            if found is not None and found[0].startswith(_LIST):
                digests = each._digests(channel, found)
                named.update(digests)
                # Told whole, it no longer needs those it was told by.
                database.execute(_TELL, (_LIST, b"".join(digests), *each._key, channel, version))
        for ns, channel, version in cast(Iterable[tuple[str, str, str]], rows):
            if (channel, version) not in used.get(ns, ()):
                database.execute(
                    "DELETE FROM langgraph_channels WHERE tenant = ? AND thread = ? AND ns = ? AND channel = ? AND version = ?",
                    (*self._scope, ns, channel, version),
                )
        held = self._tables.rows(
            "SELECT digest FROM langgraph_elements WHERE tenant = ? AND thread = ?", self._scope
        )
        gone = [(*self._scope, each) for (each,) in held if each not in named]
        database.executemany(
            "DELETE FROM langgraph_elements WHERE tenant = ? AND thread = ? AND digest = ?", gone
        )

    def _told(self, made: Spelled) -> tuple[Typed, int]:
        """The list by the latest version before it, where it begins alike, else whole; and how much was there."""
        latest = self._tables.rows(_LATEST, (*self._key, made.channel, made.version))
        base = str(latest[0][0]) if latest else ""
        found = self._row(made.channel, base) if latest else None
        depth = WHOLE if found is None else _depth(found[0]) + 1
        if found is not None and depth < WHOLE:
            before = self._digests(made.channel, found)
            same = _begin_alike(before, made.digests)
            if same:
                head = json.dumps([base, same]).encode()
                return (f"{_LIST}+{depth}", head + b"\n" + b"".join(made.digests[same:])), same
        return (_LIST, b"".join(made.digests)), 0

    def _digests(self, channel: str, found: Typed) -> list[bytes]:
        """The elements of a list, through the versions it is told by."""
        kind, body = found
        if "+" not in kind:
            return split(body)
        head, _, rest = body.partition(b"\n")
        base, same = json.loads(head)
        before = self._row(channel, base)
        if before is None:
            raise LogUnreadable(f"{self._tables.path}: version {base} of channel {channel!r} is not there")
        return [*self._digests(channel, before)[:same], *split(rest)]

    def _row(self, channel: str, version: str) -> Typed | None:
        found = self._tables.rows(_ROW, (*self._key, channel, version))
        return cast(Typed, found[0]) if found else None

    def _element(self, name: bytes) -> Any:
        found = self._tables.rows(_ELEMENT, (*self._scope, name))
        if not found:
            raise LogUnreadable(f"{self._tables.path}: an element of a list is not there")
        return self._serde.loads_typed(cast(Typed, found[0]))


def _depth(kind: str) -> int:
    return int(kind.partition("+")[2] or 0)


def _begin_alike(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))
