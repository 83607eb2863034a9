"""The tables of a graph's checkpoints and items, in the SQLite file of the logs. Bytes in, bytes out.

They stand beside the log, not in it: a checkpoint is the framework's own state, which it deletes and prunes as it
likes, and the log is never rewritten. Every write is one transaction. A list is stored item by item, each item once,
so that a conversation that grows by a message costs a message and not the conversation.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pagein.backends.sqlite.connection import open_database, translated
from pagein.errors import ConfigurationError, LogClosed

_OWNER = "tenant TEXT NOT NULL, thread TEXT NOT NULL"
_BODY = "kind TEXT NOT NULL, body BLOB NOT NULL"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of ours: its name, its columns, and the columns of its key."""

    name: str
    columns: str
    key: str

    @property
    def others(self) -> str:
        """The names of the columns but the first two, which say whose it is."""
        return ", ".join(each.split()[0] for each in self.columns.split(", ")[2:])


CHECKPOINT_TABLES = (
    Table(
        "langgraph_checkpoints",
        f"{_OWNER}, ns TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, run TEXT, {_BODY}, "
        "metadata_kind TEXT NOT NULL, metadata BLOB NOT NULL",
        "tenant, thread, ns, id",
    ),
    Table(
        "langgraph_channels",
        f"{_OWNER}, ns TEXT NOT NULL, channel TEXT NOT NULL, version TEXT NOT NULL, {_BODY}",
        "tenant, thread, ns, channel, version",
    ),
    Table("langgraph_elements", f"{_OWNER}, digest BLOB NOT NULL, {_BODY}", "tenant, thread, digest"),
    Table(
        "langgraph_writes",
        f"{_OWNER}, ns TEXT NOT NULL, checkpoint TEXT NOT NULL, task TEXT NOT NULL, number INTEGER NOT NULL, "
        f"channel TEXT NOT NULL, {_BODY}, path TEXT NOT NULL",
        "tenant, thread, ns, checkpoint, task, number",
    ),
)

_PLACE = "tenant TEXT NOT NULL, namespace TEXT NOT NULL, key TEXT NOT NULL"
ITEM_TABLES = (
    Table(
        "langgraph_items",
        f"{_PLACE}, value TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, ttl REAL, expires REAL, "
        "texts TEXT NOT NULL",
        "tenant, namespace, key",
    ),
    Table(
        "langgraph_vectors",
        f"{_PLACE}, number INTEGER NOT NULL, vector BLOB NOT NULL",
        "tenant, namespace, key, number",
    ),
    Table(
        "langchain_bytes",
        "tenant TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL",
        "tenant, name, key",
    ),
)

DIGEST = 16

Typed = tuple[str, bytes]


class Tables:
    """The database: one connection, one transaction at a time, its errors in our words. Raises LogError."""

    def __init__(
        self, url: str | os.PathLike[str], *, timeout: float = 5.0, synchronous: str = "FULL"
    ) -> None:
        path = os.fspath(url)
        if not isinstance(path, str) or "://" in path:
            raise ConfigurationError(
                f"checkpoints and items are kept in a SQLite file or ':memory:', not {path!r}"
            )
        self.path = path
        self._turn = threading.RLock()
        self._closed = False
        self._database = open_database(path, timeout=timeout, synchronous=synchronous, readonly=False)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it, or nothing."""
        with self._turn, translated(self.path, writing=True):
            self._check_open()
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """What a query finds."""
        with self._turn, translated(self.path, writing=False):
            self._check_open()
            return self._database.execute(statement, values).fetchall()

    def create(self, tables: Iterable[Table]) -> None:
        """Make the tables where there are none."""
        with self.writing() as database:
            for each in tables:
                columns = f"{each.columns}, PRIMARY KEY ({each.key})"
                database.execute(f"CREATE TABLE IF NOT EXISTS {each.name} ({columns}) STRICT")

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        with self._turn:
            self._closed = True
            self._database.close()

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed(f"{self.path}: this was closed; open it again to go on")


def digest(element: Typed) -> bytes:
    """The name of an element by its content."""
    kind, body = element
    return hashlib.blake2b(kind.encode() + b"\0" + body, digest_size=DIGEST).digest()


def split(digests: bytes) -> list[bytes]:
    """Digests that were joined, one by one."""
    return [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)]
