"""The channels of one thread, version by version; a list item by item, each item once.

A version of a list is an earlier version, the number of its items that are the same, and the items that follow. One of
``MAX_CHAIN`` versions is stored whole, so that reading never follows a long chain.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pagein._common.sequences import count_same
from pagein.backends.sqlite import graph_tables as sql
from pagein.backends.sqlite.graph_tables import GraphTables, Typed, element_digest, split_digests
from pagein.errors import LogUnreadable

MAX_CHAIN = 32
"""Versions of a list until one is stored whole."""

MIN_LIST_ITEMS = 2
"""Items from which a list is stored item by item."""

_EMPTY, _LIST, _VALUE = "empty", "list", "="


@dataclass(frozen=True, slots=True)
class ChannelVersion:
    """A version of a channel as it is stored, and the list items in it by their digests."""

    channel: str
    version: str
    value: Typed
    digests: tuple[bytes, ...] = ()
    elements: Mapping[bytes, Typed] | None = None


class Channels:
    """The channels of one namespace of a thread."""

    def __init__(self, tables: GraphTables, serde: Any, tenant: str, thread: str, ns: str) -> None:
        self._tables = tables
        self._serde = serde
        self._scope = (tenant, thread)
        self._key = (tenant, thread, ns)

    def encode(self, channel: str, version: Any, values: Mapping[str, Any]) -> ChannelVersion:
        """Encode a channel's value. Raises what the serializer raises, before anything is written."""
        name = json.dumps(version)
        if channel not in values:
            return ChannelVersion(channel, name, (_EMPTY, b""))
        value = values[channel]
        if type(value) is list and len(value) >= MIN_LIST_ITEMS:
            elements = [self._serde.dumps_typed(element) for element in value]
            if not any("+" in kind for kind, _ in elements):  # encrypted elements are never the same twice
                digests = tuple(map(element_digest, elements))
                by_digest = dict(zip(digests, elements, strict=True))
                return ChannelVersion(channel, name, (_LIST, b""), digests, by_digest)
        kind, body = self._serde.dumps_typed(value)
        return ChannelVersion(channel, name, (_VALUE + kind, body))

    def write(self, database: sqlite3.Connection, encoded: ChannelVersion) -> None:
        """Write a channel's version, within a transaction."""
        channel, version, value = encoded.channel, encoded.version, encoded.value
        if encoded.elements is not None:
            value, same = self._encode_list(encoded)
            rows = [(*self._scope, digest, *encoded.elements[digest]) for digest in encoded.digests[same:]]
            database.executemany(sql.SAVE_ELEMENT, rows)
        if self._row(channel, version) not in (None, value):
            self._detach_lists(database, channel, version)
        database.execute(sql.SAVE_CHANNEL, (*self._key, channel, version, *value))

    def _detach_lists(self, database: sqlite3.Connection, channel: str, base: str) -> None:
        """Store the lists whole that build on a version which is about to be replaced."""
        rows = self._tables.rows(sql.READ_INCREMENTAL_LISTS, (*self._key, channel))
        for version, kind, body in cast(Iterable[tuple[str, str, bytes]], rows):
            if json.loads(body.partition(b"\n")[0])[0] == base:
                digests = self._digests(channel, (kind, body))
                database.execute(sql.UPDATE_CHANNEL, (_LIST, b"".join(digests), *self._key, channel, version))

    def load(self, versions: Mapping[str, Any]) -> dict[str, Any]:
        """The values of these versions, without channels that were empty or never saved."""
        values = {}
        for channel, version in versions.items():
            row = self._row(channel, json.dumps(version))
            if row is None or row[0] == _EMPTY:
                continue
            kind, body = row
            if kind.startswith(_LIST):
                values[channel] = [self._element(digest) for digest in self._digests(channel, row)]
            else:
                values[channel] = self._serde.loads_typed((kind.removeprefix(_VALUE), body))
        return values

    def delete_unused(self, database: sqlite3.Connection, used: Mapping[str, set[tuple[str, str]]]) -> None:
        """Delete, within a transaction, the versions of the thread that are not used, and the elements of no list."""
        used_digests: set[bytes] = set()
        rows = cast("list[tuple[str, str, str]]", self._tables.rows(sql.LIST_CHANNELS, self._scope))
        for ns, channel, version in rows:
            if (channel, version) not in used.get(ns, ()):
                continue
            channels = Channels(self._tables, self._serde, *self._scope, ns)
            row = channels._row(channel, version)
            if row is not None and row[0].startswith(_LIST):
                digests = channels._digests(channel, row)
                used_digests.update(digests)
                # Stored whole, it no longer needs the versions that it builds on.
                key = (*self._scope, ns, channel, version)
                database.execute(sql.UPDATE_CHANNEL, (_LIST, b"".join(digests), *key))
        for ns, channel, version in rows:
            if (channel, version) not in used.get(ns, ()):
                database.execute(sql.DELETE_CHANNEL, (*self._scope, ns, channel, version))
        stored = self._tables.rows(sql.LIST_ELEMENTS, self._scope)
        unused = [(*self._scope, digest) for (digest,) in stored if digest not in used_digests]
        database.executemany(sql.DELETE_ELEMENT, unused)

    def _encode_list(self, encoded: ChannelVersion) -> tuple[Typed, int]:
        """Encode a list on top of the latest version with the same beginning, else whole; and the length of that."""
        latest = self._tables.rows(sql.LATEST_LIST, (*self._key, encoded.channel, encoded.version))
        base = str(latest[0][0]) if latest else ""
        row = self._row(encoded.channel, base) if latest else None
        depth = MAX_CHAIN if row is None else int(row[0].partition("+")[2] or 0) + 1
        if row is not None and depth < MAX_CHAIN:
            same = count_same(self._digests(encoded.channel, row), encoded.digests)
            if same:
                head = json.dumps([base, same]).encode()
                return (f"{_LIST}+{depth}", head + b"\n" + b"".join(encoded.digests[same:])), same
        return (_LIST, b"".join(encoded.digests)), 0

    def _digests(self, channel: str, row: Typed) -> list[bytes]:
        """The digests of a list's elements, through the versions it builds on."""
        kind, body = row
        if "+" not in kind:
            return split_digests(body)
        head, _, rest = body.partition(b"\n")
        base, same = json.loads(head)
        base_row = self._row(channel, base)
        if base_row is None:
            raise LogUnreadable(f"{self._tables.path}: version {base} of channel {channel!r} is not there")
        return [*self._digests(channel, base_row)[:same], *split_digests(rest)]

    def _row(self, channel: str, version: str) -> Typed | None:
        rows = self._tables.rows(sql.READ_CHANNEL, (*self._key, channel, version))
        return cast(Typed, rows[0]) if rows else None

    def _element(self, digest: bytes) -> Any:
        rows = self._tables.rows(sql.READ_ELEMENT, (*self._scope, digest))
        if not rows:
            raise LogUnreadable(f"{self._tables.path}: an element of a list is not there")
        return self._serde.loads_typed(cast(Typed, rows[0]))
