"""The tables of the index in SQLite, and whether what is found may be trusted. What may not is dropped: it can be built again."""

from __future__ import annotations

import sqlite3

from pagein.search.passage_ids import passage_id

VERSION = "1"
"""Of the tables and of ``terms``: whoever changes either counts up, and every index is built anew."""

TABLES = (
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

_SCHEMA = (
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

_NUMBER_BITS = 22
MOST_SESSIONS = 1 << _NUMBER_BITS
"""Sessions of one tenant."""
MOST_TENANTS = 1 << 16


def session_key(holder: int, number: int) -> int:
    """What leads the ids of one session's passages: the tenant's number, then the session's."""
    return holder << _NUMBER_BITS | number


def totals_of_tenant(holder: int) -> int:
    """The number under which a tenant's totals are kept."""
    return -holder - 1


def range_of_tenant(holder: int) -> tuple[int, int]:
    """The first and the last id that a tenant's passages may have."""
    return passage_id(session_key(holder, 0), 0), passage_id(session_key(holder + 1, 0), 0) - 1


def is_trusted(database: sqlite3.Connection) -> bool:
    """True where the tables are exactly those of this release. Raises what SQLite raises for a damaged file."""
    there = {sql for (sql,) in database.execute("SELECT sql FROM sqlite_schema WHERE name GLOB 'archive_*'")}
    if not there.issuperset(_SCHEMA):
        return False
    found = database.execute("SELECT value FROM archive_about WHERE name = 'version'").fetchone()
    return bool(found == (VERSION,))


def make_anew(database: sqlite3.Connection) -> None:
    """Drop whatever is there under our names, and create the tables, empty; within the caller's transaction."""
    for name in reversed(TABLES):
        _drop(database, name)
    for statement in _SCHEMA:
        database.execute(statement)
    database.execute("INSERT INTO archive_about VALUES ('version', ?)", (VERSION,))


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
