"""The tables of a graph's checkpoints and items in the SQLite file of the logs, and their statements.

They are beside the log, not in it: a checkpoint is the framework's own state, which it deletes and prunes, and
the log is never rewritten. Every write is one transaction. A list is stored item by item, each item once, so
that a conversation that grows by a message costs a message and not the conversation.
"""
# ruff: noqa: S608 - the statements are made of names in this module

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from pagein.backends.sqlite.connection import FileMark, SharedDatabase
from pagein.backends.sqlite.migrations import CHECKPOINT_TABLES, GraphTable
from pagein.errors import ConfigurationError

DIGEST_BYTES = 16

CHECKPOINT_COLUMNS = "thread, ns, id, parent, kind, body, metadata_kind, metadata"
SAVE_CHECKPOINT = """INSERT OR REPLACE INTO langgraph_checkpoints
    (tenant, thread, ns, id, parent, run, kind, body, metadata_kind, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
SAVE_NEW_WRITE = "INSERT OR IGNORE INTO langgraph_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
REPLACE_WRITE = "INSERT OR REPLACE INTO langgraph_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
READ_WRITES = """SELECT task, channel, kind, body FROM langgraph_writes
    WHERE tenant = ? AND thread = ? AND ns = ? AND checkpoint = ? ORDER BY path, task, number"""
DELETE_CHECKPOINT = (
    "DELETE FROM langgraph_checkpoints WHERE tenant = ? AND thread = ? AND ns = ? AND id = ?",
    "DELETE FROM langgraph_writes WHERE tenant = ? AND thread = ? AND ns = ? AND checkpoint = ?",
)
DELETE_THREAD = tuple(f"DELETE FROM {table.name} WHERE tenant = ? AND thread = ?" for table in CHECKPOINT_TABLES)
COPY_THREAD = tuple(
    f"""INSERT OR REPLACE INTO {table.name} (tenant, thread, {table.others})
        SELECT tenant, ?, {table.others} FROM {table.name} WHERE tenant = ? AND thread = ?"""
    for table in CHECKPOINT_TABLES
)
_CONDITIONS = {
    "thread": "thread = ?", "ns": "ns = ?", "id": "id = ?", "run": "run = ?", "before": "id < ?",
}  # fmt: skip

_VERSION = "WHERE tenant = ? AND thread = ? AND ns = ? AND channel = ? AND version = ?"
READ_CHANNEL = f"SELECT kind, body FROM langgraph_channels {_VERSION}"
LATEST_LIST = """SELECT version FROM langgraph_channels WHERE tenant = ? AND thread = ? AND ns = ? AND channel = ?
    AND version < ? AND kind LIKE 'list%' ORDER BY version DESC LIMIT 1"""
READ_INCREMENTAL_LISTS = """SELECT version, kind, body FROM langgraph_channels
    WHERE tenant = ? AND thread = ? AND ns = ? AND channel = ? AND kind LIKE 'list+%'"""
SAVE_CHANNEL = "INSERT OR REPLACE INTO langgraph_channels VALUES (?, ?, ?, ?, ?, ?, ?)"
UPDATE_CHANNEL = f"UPDATE langgraph_channels SET kind = ?, body = ? {_VERSION}"
LIST_CHANNELS = "SELECT ns, channel, version FROM langgraph_channels WHERE tenant = ? AND thread = ?"
DELETE_CHANNEL = f"DELETE FROM langgraph_channels {_VERSION}"
READ_ELEMENT = "SELECT kind, body FROM langgraph_elements WHERE tenant = ? AND thread = ? AND digest = ?"
SAVE_ELEMENT = "INSERT OR IGNORE INTO langgraph_elements VALUES (?, ?, ?, ?, ?)"
LIST_ELEMENTS = "SELECT digest FROM langgraph_elements WHERE tenant = ? AND thread = ?"
DELETE_ELEMENT = "DELETE FROM langgraph_elements WHERE tenant = ? AND thread = ? AND digest = ?"

READ_ITEMS = """SELECT namespace, key, value, created, updated, texts FROM langgraph_items
    WHERE tenant = ? AND (expires IS NULL OR expires > ?)"""
SAVE_ITEM = """INSERT INTO langgraph_items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    value = excluded.value, updated = excluded.updated, ttl = excluded.ttl, expires = excluded.expires, texts = excluded.texts"""
RENEW_ITEM = """UPDATE langgraph_items SET expires = ? + ttl * 60
    WHERE tenant = ? AND namespace = ? AND key = ? AND ttl IS NOT NULL"""
EXPIRED_ITEMS = "SELECT namespace, key FROM langgraph_items WHERE tenant = ? AND expires <= ?"
ANY_EXPIRING_ITEM = "SELECT 1 FROM langgraph_items WHERE tenant = ? AND ttl IS NOT NULL LIMIT 1"
LIST_NAMESPACES = """SELECT DISTINCT namespace FROM langgraph_items
    WHERE tenant = ? AND (expires IS NULL OR expires > ?)"""
DELETE_ITEM = "DELETE FROM langgraph_items WHERE tenant = ? AND namespace = ? AND key = ?"
READ_VECTORS = """SELECT namespace, key, vector FROM langgraph_vectors
    WHERE tenant = ? AND namespace >= ? AND namespace < ?"""
SAVE_VECTOR = "INSERT INTO langgraph_vectors VALUES (?, ?, ?, ?, ?)"
DELETE_VECTORS = "DELETE FROM langgraph_vectors WHERE tenant = ? AND namespace = ? AND key = ?"

READ_BYTES = "SELECT value FROM langchain_bytes WHERE tenant = ? AND name = ? AND key = ?"
SAVE_BYTES = "INSERT OR REPLACE INTO langchain_bytes VALUES (?, ?, ?, ?)"
DELETE_BYTES = "DELETE FROM langchain_bytes WHERE tenant = ? AND name = ? AND key = ?"
LIST_KEYS = "SELECT key FROM langchain_bytes WHERE tenant = ? AND name = ? ORDER BY key"


def select_checkpoints(conditions: Iterable[str]) -> str:
    """The statement for a tenant's checkpoints, newest first, with a limit.

    ``conditions`` are of thread, ns, id, run, and before (an id). Its values: tenant, those of the conditions,
    limit.
    """
    where = " AND ".join(("tenant = ?", *(_CONDITIONS[name] for name in conditions)))
    return f"SELECT {CHECKPOINT_COLUMNS} FROM langgraph_checkpoints WHERE {where} ORDER BY id DESC LIMIT ?"


Typed = tuple[str, bytes]


class GraphTables(SharedDatabase):
    """The database of a graph: one connection, one transaction at a time. Raises LogError, never a driver's error."""

    what = "store"
    reads_in_transactions = True

    def __init__(self, url: str | os.PathLike[str], *, timeout: float = 5.0, synchronous: str = "FULL") -> None:
        path = os.fspath(url)
        if not isinstance(path, str) or "://" in path:
            raise ConfigurationError(f"checkpoints and items are kept in a SQLite file or ':memory:', not {path!r}")
        self._connect(path, timeout=timeout, synchronous=synchronous)
        self._file = FileMark(path)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it, or nothing."""
        with self._within("BEGIN IMMEDIATE", writing=True) as database:
            self._file.check()
            yield database
            database.execute("COMMIT")

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """The rows of a query."""
        with self._using(writing=False) as database:
            return database.execute(statement, values).fetchall()

    def create(self, tables: Iterable[GraphTable]) -> None:
        """Create the tables that are missing."""
        with self.writing() as database:
            for table in tables:
                columns = f"{table.columns}, PRIMARY KEY ({table.key})"
                database.execute(f"CREATE TABLE IF NOT EXISTS {table.name} ({columns}) STRICT")


def element_digest(element: Typed) -> bytes:
    """The key of an element: the hash of its content."""
    kind, body = element
    return hashlib.blake2b(kind.encode() + b"\0" + body, digest_size=DIGEST_BYTES).digest()


def split_digests(digests: bytes) -> list[bytes]:
    """Split joined digests."""
    return [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
