"""The tables of a SQLite file: the migrations of the log, and the derived tables with their versions.

A derived table is created where it is missing. It can be built again from the log, so it has no migration.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

APPLICATION_ID = 0x7061676E
"""Says that a database is ours ("pagn"): it lies in the header of the file, and ``file`` shows it."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Without a rowid the primary key is the table: one B-tree to write, and a session's entries lie together.
        """CREATE TABLE entries (
            tenant TEXT NOT NULL, session TEXT NOT NULL, position INTEGER NOT NULL,
            at REAL NOT NULL, kind TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL, digest TEXT NOT NULL,
            PRIMARY KEY (tenant, session, position)
        ) STRICT, WITHOUT ROWID""",
        # With one here: blobs are large, and their keys random.
        """CREATE TABLE blobs (
            tenant TEXT NOT NULL, session TEXT NOT NULL, digest TEXT NOT NULL, data BLOB NOT NULL,
            PRIMARY KEY (tenant, session, digest)
        ) STRICT""",
    ),
    (
        # With a rowid after all. Without one, a row over a quarter of a page goes on in a page of its own: measured on
        # steps of 1,400 bytes, that was 2.2 times the messages on the disk; so it is 1.3 times, an append as fast.
        """CREATE TABLE entries_2 (
            tenant TEXT NOT NULL, session TEXT NOT NULL, position INTEGER NOT NULL,
            at REAL NOT NULL, kind TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL, digest TEXT NOT NULL,
            PRIMARY KEY (tenant, session, position)
        ) STRICT""",
        "INSERT INTO entries_2 SELECT * FROM entries ORDER BY tenant, session, position",
        "DROP TABLE entries",
        "ALTER TABLE entries_2 RENAME TO entries",
    ),
)
"""``MIGRATIONS[n]`` brings a database of version n to n + 1. A released one is never edited."""

READABLE = 1
"""The oldest version that is read as it stands, where nothing may be written."""

# No migration: a file without it is whole, and an earlier release passes it over. The row of no session counts.
SNAPSHOTS_TABLE = """CREATE TABLE IF NOT EXISTS snapshots (
    tenant TEXT NOT NULL, run TEXT NOT NULL, session TEXT NOT NULL,
    position INTEGER NOT NULL, digest TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, "check" TEXT NOT NULL,
    PRIMARY KEY (tenant, run, session)
) STRICT"""

REQUESTS_TABLE = """CREATE TABLE IF NOT EXISTS requests (
    tenant TEXT NOT NULL, run TEXT NOT NULL, number INTEGER NOT NULL,
    head INTEGER NOT NULL, at REAL NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (tenant, run, number)
) STRICT"""

CLAIMS_TABLE = """CREATE TABLE IF NOT EXISTS worker_claims (
    tenant TEXT NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL, worker TEXT NOT NULL, until REAL NOT NULL,
    PRIMARY KEY (tenant, session, kind)) STRICT, WITHOUT ROWID"""


# The tables of a graph (LangGraph), made when its saver or its store is opened

_OWNER = "tenant TEXT NOT NULL, thread TEXT NOT NULL"
_BODY = "kind TEXT NOT NULL, body BLOB NOT NULL"


@dataclass(frozen=True, slots=True)
class GraphTable:
    """A table of a graph: its name, its columns, and the columns of its key."""

    name: str
    columns: str
    key: str

    @property
    def others(self) -> str:
        """The names of the columns but the first two, which are of the owner."""
        return ", ".join(column.split()[0] for column in self.columns.split(", ")[2:])


CHECKPOINT_TABLES = (
    GraphTable(
        "langgraph_checkpoints",
        f"{_OWNER}, ns TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, run TEXT, {_BODY}, "
        "metadata_kind TEXT NOT NULL, metadata BLOB NOT NULL",
        "tenant, thread, ns, id",
    ),
    GraphTable(
        "langgraph_channels",
        f"{_OWNER}, ns TEXT NOT NULL, channel TEXT NOT NULL, version TEXT NOT NULL, {_BODY}",
        "tenant, thread, ns, channel, version",
    ),
    GraphTable("langgraph_elements", f"{_OWNER}, digest BLOB NOT NULL, {_BODY}", "tenant, thread, digest"),
    GraphTable(
        "langgraph_writes",
        f"{_OWNER}, ns TEXT NOT NULL, checkpoint TEXT NOT NULL, task TEXT NOT NULL, number INTEGER NOT NULL, "
        f"channel TEXT NOT NULL, {_BODY}, path TEXT NOT NULL",
        "tenant, thread, ns, checkpoint, task, number",
    ),
)

_PLACE = "tenant TEXT NOT NULL, namespace TEXT NOT NULL, key TEXT NOT NULL"
ITEM_TABLES = (
    GraphTable(
        "langgraph_items",
        f"{_PLACE}, value TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, ttl REAL, expires REAL, "
        "texts TEXT NOT NULL",
        "tenant, namespace, key",
    ),
    GraphTable(
        "langgraph_vectors",
        f"{_PLACE}, number INTEGER NOT NULL, vector BLOB NOT NULL",
        "tenant, namespace, key, number",
    ),
    GraphTable(
        "langchain_bytes",
        "tenant TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL",
        "tenant, name, key",
    ),
)


# The search index

INDEX_VERSION = "2"
"""The version of the tables and of ``terms``: raise it with each change, so that every index is built again."""

INDEX_TABLES = (
    "archive_about",
    "archive_sessions",
    "archive_passages",
    "archive_sizes",
    "archive_own",
    "archive_signs",
    "archive_vectors",
    "archive_words",
)

_WORDS = """CREATE VIRTUAL TABLE archive_words USING fts5(
    terms, content='', detail=none, columnsize=0,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co Cn Cs'"
)"""
# Terms come ready made, parted by spaces: every other character belongs to one. FTS5 only says who holds a term;
# positions and sizes, which would be most of the index, are not kept, and scores are made from what is stored.

INDEX_SCHEMA = (
    "CREATE TABLE archive_about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    # ``number`` counts a tenant's sessions; tenant and number lead every id below.
    """CREATE TABLE archive_sessions (
        tenant TEXT NOT NULL, session TEXT NOT NULL, holder INTEGER NOT NULL, number INTEGER NOT NULL,
        position INTEGER NOT NULL, digest TEXT NOT NULL, next INTEGER NOT NULL,
        PRIMARY KEY (tenant, session), UNIQUE (holder, number)
    ) STRICT, WITHOUT ROWID""",
    # How many passages and terms a session has, by role; and a tenant, under the number below 0 that stands for it.
    """CREATE TABLE archive_sizes (
        session INTEGER NOT NULL, role TEXT NOT NULL, passages INTEGER NOT NULL, size INTEGER NOT NULL,
        PRIMARY KEY (session, role)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE archive_passages (
        id INTEGER PRIMARY KEY, position INTEGER NOT NULL, part INTEGER NOT NULL, role TEXT NOT NULL,
        at REAL NOT NULL, said REAL, start INTEGER NOT NULL, whole INTEGER NOT NULL, size INTEGER NOT NULL,
        same INTEGER NOT NULL, terms TEXT NOT NULL, text TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX archive_places ON archive_passages (id >> 24, position)",
    "CREATE INDEX archive_times ON archive_passages (id >> 24, at)",
    """CREATE TABLE archive_own (
        session INTEGER NOT NULL, position INTEGER NOT NULL, part INTEGER NOT NULL,
        PRIMARY KEY (session, position, part)
    ) STRICT, WITHOUT ROWID""",
    # Numbered as they come, so that who has read some reads on from there.
    """CREATE TABLE archive_signs (
        row INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL UNIQUE, signs BLOB NOT NULL
    ) STRICT""",
    "CREATE TABLE archive_vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT",
    _WORDS,
)


MERGE_INDEX = "INSERT INTO archive_words (archive_words) VALUES ('optimize')"
"""Merges the segments of the index: until then those of before hold the words of passages that are gone."""


def has_index(database: sqlite3.Connection) -> bool:
    """True where the file has a search index."""
    return database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'archive_words'").fetchone() is not None


def is_index_current(database: sqlite3.Connection) -> bool:
    """True where the tables are exactly those of this release. Raises what SQLite raises for a damaged file."""
    there = {sql for (sql,) in database.execute("SELECT sql FROM sqlite_schema WHERE name GLOB 'archive_*'")}
    if not there.issuperset(INDEX_SCHEMA):
        return False
    version = database.execute("SELECT value FROM archive_about WHERE name = 'version'").fetchone()
    return bool(version == (INDEX_VERSION,))


def recreate_index(database: sqlite3.Connection) -> None:
    """Drop the index tables, and create them empty, within the caller's transaction."""
    for name in reversed(INDEX_TABLES):
        _drop(database, name)
    for statement in INDEX_SCHEMA:
        database.execute(statement)
    database.execute("INSERT INTO archive_about VALUES ('version', ?)", (INDEX_VERSION,))


def _drop(database: sqlite3.Connection, name: str) -> None:
    kind = database.execute("SELECT type FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    if kind is not None:
        try:
            database.execute(f"DROP {'VIEW' if kind[0] == 'view' else 'TABLE'} {name}")
        except sqlite3.DatabaseError:
            # FTS5 cannot be asked to drop what it cannot open.
            database.execute("PRAGMA writable_schema = ON")
            database.execute("DELETE FROM sqlite_schema WHERE name = ?", (name,))
            database.execute("PRAGMA writable_schema = RESET")
    for (shadow,) in database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ?", (f"{name}_*",)
    ).fetchall():
        database.execute(f"DROP TABLE {shadow}")
