"""The tables in PostgreSQL: the log's migrations, and the derived search tables with their version."""

from __future__ import annotations

import contextlib
from itertools import chain
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from pagein.backends.postgres.connection import Connection, for_schema
from pagein.errors import ConfigurationError, LogTooNew, LogUnreadable, LogUnwritable
from pagein.log.codec import hash_bytes

# Names compare by their bytes ("C"): an index in the order of a language breaks when that order is upgraded.
OWNER = 'tenant text COLLATE "C" NOT NULL, session text COLLATE "C" NOT NULL'
"""What every table's columns, and its primary key, begin with."""

MIGRATIONS: tuple[tuple[LiteralString, ...], ...] = (
    (
        # ``batch`` names the append that wrote a row: after a lost connection it tells whose the row is.
        f"""CREATE TABLE {{0}}.entries ({OWNER}, position bigint NOT NULL,
            at double precision NOT NULL, kind text NOT NULL, version integer NOT NULL, body text NOT NULL,
            digest text NOT NULL, batch uuid NOT NULL, PRIMARY KEY (tenant, session, position))""",
        f"""CREATE TABLE {{0}}.blobs ({OWNER}, digest text COLLATE "C" NOT NULL, data bytea NOT NULL,
            PRIMARY KEY (tenant, session, digest))""",
        f"""CREATE TABLE {{0}}.sessions ({OWNER}, tenant_name text NOT NULL, session_name text NOT NULL,
            PRIMARY KEY (tenant, session))""",
    ),
    (
        # ``run`` is the session of the run that a branch is of. The bodies are compressed already.
        f"""CREATE TABLE {{0}}.snapshots ({OWNER}, run text COLLATE "C" NOT NULL, position bigint NOT NULL,
            digest text NOT NULL, key text NOT NULL, body bytea NOT NULL, "check" text NOT NULL,
            PRIMARY KEY (tenant, session))""",
        "ALTER TABLE {0}.snapshots ALTER COLUMN body SET STORAGE EXTERNAL",
        "CREATE INDEX snapshots_of_runs ON {0}.snapshots (tenant, run)",
        f"CREATE TABLE {{0}}.runs ({OWNER}, dropped bigint NOT NULL, PRIMARY KEY (tenant, session))",
    ),
)
"""``MIGRATIONS[n]`` brings a schema of version n to n + 1. A released one is never edited."""

READABLE = 1
"""The oldest version that is read as it stands, where nothing may be written."""

SNAPSHOTS = 2
"""The first version that keeps snapshots."""

KEY_BYTES = 512
"""The most a name may take, in bytes of UTF-8, and be its own key: an index row may take 2,704."""

_META: LiteralString = "CREATE TABLE {0}.meta (application text NOT NULL, version integer NOT NULL)"
_LOOK = """SELECT to_regnamespace(quote_ident(%(schema)s)) IS NOT NULL,
    to_regclass(quote_ident(%(schema)s) || '.meta') IS NOT NULL,
    (SELECT count(*) FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
        WHERE nspname = %(schema)s),
    current_setting('server_encoding'), current_setting('server_version_num')::integer"""
_NEEDED = 120000  # doubles in their shortest exact spelling


def key_of(name: str) -> str:
    """The key of a tenant or a session: the name itself or, for a long one, its beginning and its hash.

    Two names never share a key: a key with a hash is longer than any key that is a name.
    """
    raw = name.encode()
    if len(raw) <= KEY_BYTES:
        return name
    return f"{raw[:KEY_BYTES].decode(errors='ignore')}...{hash_bytes(raw)}"


def checked_schema(schema: str) -> str:
    """The name, unchanged. Raises ConfigurationError for a name that PostgreSQL would cut or refuse."""
    if not isinstance(schema, str) or not 0 < len(schema.encode()) <= 63 or "\0" in schema:
        raise ConfigurationError(f"schema is the name of a PostgreSQL schema, 1 to 63 bytes, not {schema!r}")
    if schema.startswith("pg_"):
        raise ConfigurationError(f"schema {schema!r}: names that begin with pg_ are PostgreSQL's own")
    return schema


def prepare(connection: Connection, schema: str, where: str, *, readonly: bool) -> int:
    """Create or migrate the tables of the log; return their version. With ``readonly`` they stay as they are.

    Concurrent calls take turns. Raises LogTooNew, LogUnreadable for a foreign schema, LogUnwritable.
    """
    version = _version(connection, schema, where)
    if version == len(MIGRATIONS) or (readonly and version >= READABLE):
        return version
    if readonly:
        if version:
            raise LogUnwritable(f"{where}: written by an earlier release; open it once without readonly=True")
        raise LogUnreadable(f"{where}: the database has no store of pagein; check the address")
    with connection.transaction():
        # Held to the end of this transaction, so that a pooler in between cannot part lock and work.
        take_lock(connection, schema)
        _migrate(connection, schema, _version(connection, schema, where))
    return len(MIGRATIONS)


def _version(connection: Connection, schema: str, where: str) -> int:
    """The version of the tables in the schema; 0 where there are none."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        columns = cursor.execute(_LOOK, {"schema": schema}).fetchone() or ()
        there, has_meta, tables, encoding, server = columns
        if encoding != "UTF8" or server < _NEEDED:
            raise ConfigurationError(
                f"{where}: pagein needs a database in UTF8 of PostgreSQL 12 or later; this is {encoding}, {server}"
            )
        if not there or not tables:
            return 0
        row: tuple[Any, ...] | None = None
        if has_meta:
            with contextlib.suppress(psycopg.errors.UndefinedColumn), connection.transaction():
                statement = for_schema("SELECT version FROM {0}.meta WHERE application = 'pagein'", schema)
                row = cursor.execute(statement).fetchone()
    if row is None:
        raise LogUnreadable(f"{where}: a schema, but not of pagein. Nothing was changed.")
    if row[0] > len(MIGRATIONS):
        raise LogTooNew(
            f"{where}: the schema has version {row[0]}, this release of pagein knows {len(MIGRATIONS)}; upgrade pagein"
        )
    return int(row[0])


def _migrate(connection: Connection, schema: str, version: int) -> None:
    if version == 0:
        # Asked for only where it is missing: it needs a right that the owner of one schema need not have.
        if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None:
            connection.execute(for_schema("CREATE SCHEMA {0}", schema))
        connection.execute(for_schema(_META, schema))
        connection.execute(for_schema("INSERT INTO {0}.meta VALUES ('pagein', 0)", schema))
    for statement in chain.from_iterable(MIGRATIONS[version:]):
        connection.execute(for_schema(statement, schema))
    connection.execute(for_schema("UPDATE {0}.meta SET version = %s", schema), (len(MIGRATIONS),))


# The search index

INDEX_VERSION = 2
"""The version of the tables and of ``terms``: raise it with each change, so that an older index is built again."""

INDEX_TABLES = ("about", "sessions", "sizes", "own", "passages", "vectors")
_INDEX_NAMES = [*(f"archive_{name}" for name in INDEX_TABLES[:-1]), "archive_words"]

WORDS: LiteralString = """array_to_tsvector(string_to_array(terms, ' ') || ARRAY['=' || role,
    '=' || left(md5(tenant), 8), '=' || left(md5(tenant), 8) || '.' || (id >> 24)::text,
    '=' || left(md5(tenant), 8) || ':' || (id >> 11)::text])"""
"""What a passage is found by. Terms come ready made, so no parser of PostgreSQL's touches them; behind them stand the
role, the tenant, the session and the block of 2,048 passages: a search within one of these reads no more than that."""

_INDEX_SCHEMA: tuple[LiteralString, ...] = (
    "CREATE TABLE {0}.archive_about (version integer NOT NULL)",
    # ``number`` counts a tenant's sessions; ids are led by it, as those of the index in SQLite.
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
_COUNT_TABLES: LiteralString = """SELECT count(*) FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
    WHERE nspname = %(schema)s AND relname = ANY(%(names)s)"""
_FIND_HALFVEC: LiteralString = """SELECT nspname FROM pg_type JOIN pg_namespace ON typnamespace = pg_namespace.oid
    JOIN pg_extension ON extname = 'vector' AND extnamespace = typnamespace WHERE typname = 'halfvec'"""


def prepare_index(connection: Connection, schema: str, where: str) -> None:
    """Create this release's index tables; recreate older or incomplete ones. The log's tables must exist.

    Concurrent calls take turns. Raises LogTooNew.
    """
    if not is_index_current(connection, schema, where):
        with connection.transaction():
            take_lock(connection, schema)
            if not is_index_current(connection, schema, where):  # another may have been first
                recreate_index(connection, schema)


def is_index_current(connection: Connection, schema: str, where: str) -> bool:
    """True where the index tables exist in this release's version. Raises LogTooNew for a later version."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        # The catalogue itself is read: what to_regclass remembers may be older than the lock that was waited for.
        cursor.execute(_COUNT_TABLES, {"schema": schema, "names": _INDEX_NAMES})
        if cursor.fetchone() != (len(_INDEX_NAMES),):
            return False
        row = cursor.execute(for_schema("SELECT version FROM {0}.archive_about", schema)).fetchone()
    if row is not None and row[0] > INDEX_VERSION:
        raise LogTooNew(
            f"{where}: the index has version {row[0]}, this release of pagein knows {INDEX_VERSION}; upgrade pagein"
        )
    return bool(row == (INDEX_VERSION,))


def recreate_index(connection: Connection, schema: str) -> None:
    """Drop the index tables, and create them empty, within the caller's transaction."""
    for name in reversed(INDEX_TABLES):
        connection.execute(for_schema("DROP TABLE IF EXISTS {0}.archive_" + name + " CASCADE", schema))
    for statement in _INDEX_SCHEMA:
        connection.execute(for_schema(statement, schema))
    connection.execute(for_schema("INSERT INTO {0}.archive_about VALUES (%s)", schema), (INDEX_VERSION,))


def take_lock(connection: Connection, name: str) -> None:
    """Take the advisory lock of this name until the end of the transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"pagein {name}",))


def create_worker_tables(connection: Connection, schema: str, script: LiteralString) -> None:
    """Create procrastinate's tables by its own script where they are missing."""
    with connection.transaction():
        take_lock(connection, f"{schema} worker")
        with connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(_COUNT_TABLES, {"schema": schema, "names": ["procrastinate_jobs"]})
            is_there = cursor.fetchone() == (1,)
        if not is_there:
            connection.execute(for_schema("SET LOCAL search_path = {0}", schema))
            connection.execute(script)


def create_vector_table(connection: Connection, schema: str) -> str | None:
    """Create the table for vectors; return the schema of pgvector's types, or None where pgvector is not available."""
    try:
        with connection.transaction():
            take_lock(connection, "vector")
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile, psycopg.errors.InsufficientPrivilege):
        return None
    with connection.cursor(row_factory=tuple_row) as cursor:
        row = cursor.execute(_FIND_HALFVEC).fetchone()
    if row is None:
        return None
    place: str = row[0]
    with connection.transaction():
        take_lock(connection, schema)
        connection.execute(sql.SQL(_VECTORS).format(sql.Identifier(schema), sql.Identifier(place)))
    return place
