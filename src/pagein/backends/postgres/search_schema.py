"""The tables of the index in PostgreSQL, beside the log's, and whether they can be trusted; and pgvector, where it is."""

from __future__ import annotations

from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from pagein.backends.postgres.connection import Connection
from pagein.backends.postgres.migrations import OWNER
from pagein.errors import LogTooNew

VERSION = 1
"""Of the tables and of ``terms``: whoever changes either counts up, and an older index is built anew."""

TABLES = ("about", "sessions", "sizes", "own", "passages", "vectors")
_NEEDED = [*(f"archive_{each}" for each in TABLES[:-1]), "archive_words"]

WORDS: LiteralString = """array_to_tsvector(string_to_array(terms, ' ') || ARRAY['=' || role,
    '=' || left(md5(tenant), 8), '=' || left(md5(tenant), 8) || '.' || (id >> 24)::text,
    '=' || left(md5(tenant), 8) || ':' || (id >> 11)::text])"""
"""What a passage is found by. Terms come ready made, so no parser of PostgreSQL's touches them; behind them stand the
role, the tenant, the session and the block of 2,048 passages: a search within one of these reads no more than that."""

_SCHEMA: tuple[LiteralString, ...] = (
    "CREATE TABLE {0}.archive_about (version integer NOT NULL)",
    # ``number`` counts a tenant's sessions; ids are led by it, as those of the archive in SQLite.
    f"""CREATE TABLE {{0}}.archive_sessions ({OWNER}, name text NOT NULL, number bigint NOT NULL,
        position bigint NOT NULL, digest text NOT NULL, next integer NOT NULL, PRIMARY KEY (tenant, session))""",
    f"""CREATE TABLE {{0}}.archive_sizes ({OWNER}, role text NOT NULL, number bigint NOT NULL,
        passages bigint NOT NULL, size bigint NOT NULL, PRIMARY KEY (tenant, session, role))""",
    f"""CREATE TABLE {{0}}.archive_own ({OWNER}, position bigint NOT NULL, part integer NOT NULL,
        PRIMARY KEY (tenant, session, position, part))""",
    f"""CREATE TABLE {{0}}.archive_passages ({OWNER}, id bigint NOT NULL, position bigint NOT NULL,
        part integer NOT NULL, role text NOT NULL, at double precision NOT NULL, said double precision,
        start integer NOT NULL, whole boolean NOT NULL, size integer NOT NULL, same bigint NOT NULL,
        terms text NOT NULL, text text NOT NULL, PRIMARY KEY (tenant, session, id))""",
    # Not led by tenant and session: of indexes that begin alike the planner may take the wrong one for a key.
    "CREATE INDEX archive_places ON {0}.archive_passages ((id >> 24), tenant, position)",
    "CREATE INDEX archive_times ON {0}.archive_passages ((id >> 24), tenant, at)",
    # Not stored: the terms are. Without a list of what is pending, which every look would have to read through.
    f"CREATE INDEX archive_words ON {{0}}.archive_passages USING gin (({WORDS})) WITH (fastupdate = off)",
)
_VECTORS: LiteralString = f"""CREATE TABLE IF NOT EXISTS {{0}}.archive_vectors ({OWNER}, id bigint NOT NULL,
    model text NOT NULL, vector {{1}}.halfvec NOT NULL, PRIMARY KEY (tenant, session, id))"""
_THERE: LiteralString = """SELECT count(*) FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
    WHERE nspname = %(schema)s AND relname = ANY(%(names)s)"""
_FOUND: LiteralString = """SELECT nspname FROM pg_type JOIN pg_namespace ON typnamespace = pg_namespace.oid
    JOIN pg_extension ON extname = 'vector' AND extnamespace = typnamespace WHERE typname = 'halfvec'"""


def prepare(connection: Connection, schema: str, where: str) -> None:
    """The tables of this release, made, or made anew where they are older or in pieces; the log's must be there.

    Two that do it at once take turns. Raises LogTooNew.
    """
    if not is_trusted(connection, schema, where):
        with connection.transaction():
            lock(connection, schema)
            if not is_trusted(connection, schema, where):  # another may have been first
                make_anew(connection, schema)


def is_trusted(connection: Connection, schema: str, where: str) -> bool:
    """True where the tables are there, and of this release. Raises LogTooNew where they are of a later one."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        # The catalogue itself is read: what to_regclass remembers may be older than the lock that was waited for.
        cursor.execute(_THERE, {"schema": schema, "names": _NEEDED})
        if cursor.fetchone() != (len(_NEEDED),):
            return False
        found = cursor.execute(_made("SELECT version FROM {0}.archive_about", schema)).fetchone()
    if found is not None and found[0] > VERSION:
        raise LogTooNew(
            f"{where}: the index has version {found[0]}, this release of pagein knows {VERSION}; upgrade pagein"
        )
    return bool(found == (VERSION,))


def make_anew(connection: Connection, schema: str) -> None:
    """Drop whatever is there under our names, and create the tables, empty; within the caller's transaction."""
    for name in reversed(TABLES):
        connection.execute(_made("DROP TABLE IF EXISTS {0}.archive_" + name + " CASCADE", schema))
    for statement in _SCHEMA:
        connection.execute(_made(statement, schema))
    connection.execute(_made("INSERT INTO {0}.archive_about VALUES (%s)", schema), (VERSION,))


def lock(connection: Connection, name: str) -> None:
    """Wait for one's turn at what the name says, to the end of the transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"pagein {name}",))


def vectors_in(connection: Connection, schema: str) -> str | None:
    """The schema of pgvector's types, with a table for vectors in ours; None where the server has none for us."""
    try:
        with connection.transaction():
            lock(connection, "vector")
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (
        psycopg.errors.FeatureNotSupported,
        psycopg.errors.UndefinedFile,
        psycopg.errors.InsufficientPrivilege,
    ):
        return None
    with connection.cursor(row_factory=tuple_row) as cursor:
        found = cursor.execute(_FOUND).fetchone()
    if found is None:
        return None
    place: str = found[0]
    with connection.transaction():
        lock(connection, schema)
        connection.execute(sql.SQL(_VECTORS).format(sql.Identifier(schema), sql.Identifier(place)))
    return place


def _made(statement: LiteralString, schema: str) -> sql.Composed:
    return sql.SQL(statement).format(sql.Identifier(schema))
