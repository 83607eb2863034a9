"""The tables of a log in PostgreSQL: made, recognised, brought to this release's version under a lock."""

from __future__ import annotations

import contextlib
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from pagein.errors import ConfigurationError, LogTooNew, LogUnreadable, LogUnwritable
from pagein.log.hash_chain import blob_name

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

_META = "CREATE TABLE {0}.meta (application text NOT NULL, version integer NOT NULL)"
_LOOK = """SELECT to_regnamespace(quote_ident(%(schema)s)) IS NOT NULL,
    to_regclass(quote_ident(%(schema)s) || '.meta') IS NOT NULL,
    (SELECT count(*) FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
        WHERE nspname = %(schema)s),
    current_setting('server_encoding'), current_setting('server_version_num')::integer"""
_NEEDED = 120000  # doubles in their shortest exact spelling

Connection = psycopg.Connection[Any]


def key_of(name: str) -> str:
    """The key of a tenant or a session: the name itself, or, of a long one, its beginning and its hash.

    Two names never share a key: a key with a hash is longer than any that is a name.
    """
    raw = name.encode()
    if len(raw) <= KEY_BYTES:
        return name
    return f"{raw[:KEY_BYTES].decode(errors='ignore')}...{blob_name(raw)}"


def checked_schema(schema: str) -> str:
    """The name, unchanged. Raises ConfigurationError for one that PostgreSQL would cut or refuse."""
    if not isinstance(schema, str) or not 0 < len(schema.encode()) <= 63 or "\0" in schema:
        raise ConfigurationError(f"schema is the name of a PostgreSQL schema, 1 to 63 bytes, not {schema!r}")
    if schema.startswith("pg_"):
        raise ConfigurationError(f"schema {schema!r}: names that begin with pg_ are PostgreSQL's own")
    return schema


def prepare(connection: Connection, schema: str, where: str, *, readonly: bool) -> int:
    """The version of the tables: this release's, made or migrated, or where ``readonly`` what is there.

    Two that do it at once take turns. Raises LogTooNew, LogUnreadable for a schema that is not ours, LogUnwritable.
    """
    version = _version(connection, schema, where)
    if version == len(MIGRATIONS) or (readonly and version >= READABLE):
        return version
    if readonly:
        if version:
            raise LogUnwritable(f"{where}: written by an earlier release; open it once without readonly=True")
        raise LogUnreadable(f"{where}: there is no log here")
    with connection.transaction():
        # Held to the end of this transaction, so that a pooler in between cannot part lock and work.
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"pagein {schema}",))
        _migrate(connection, schema, _version(connection, schema, where))
    return len(MIGRATIONS)


def _version(connection: Connection, schema: str, where: str) -> int:
    """The version of the tables in the schema; 0 where there are none."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        found = cursor.execute(_LOOK, {"schema": schema}).fetchone() or ()
        there, has_meta, tables, encoding, server = found
        if encoding != "UTF8" or server < _NEEDED:
            raise ConfigurationError(
                f"{where}: pagein needs a database in UTF8 of PostgreSQL 12 or later; this is {encoding}, {server}"
            )
        if not there or not tables:
            return 0
        row: tuple[Any, ...] | None = None
        if has_meta:
            with contextlib.suppress(psycopg.errors.UndefinedColumn), connection.transaction():
                row = cursor.execute(
                    sql.SQL("SELECT version FROM {}.meta WHERE application = 'pagein'").format(
                        sql.Identifier(schema)
                    )
                ).fetchone()
    if row is None:
        raise LogUnreadable(f"{where}: a schema, but not of pagein. Nothing was changed.")
    if row[0] > len(MIGRATIONS):
        raise LogTooNew(
            f"{where}: the schema has version {row[0]}, this release of pagein knows {len(MIGRATIONS)}; upgrade pagein"
        )
    return int(row[0])


def _migrate(connection: Connection, schema: str, version: int) -> None:
    name = sql.Identifier(schema)
    if version == 0:
        # Asked for only where it is missing: it needs a right that the owner of one schema need not have.
        if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        connection.execute(sql.SQL(_META).format(name))
        connection.execute(sql.SQL("INSERT INTO {}.meta VALUES ('pagein', 0)").format(name))
    for statement in (each for step in MIGRATIONS[version:] for each in step):
        connection.execute(sql.SQL(statement).format(name))
    connection.execute(sql.SQL("UPDATE {}.meta SET version = %s").format(name), (len(MIGRATIONS),))
