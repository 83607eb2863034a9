"""Stores: in memory, SQLite and PostgreSQL. The only package with SQL."""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazily

if TYPE_CHECKING:
    from pagein.backends.memory import InMemoryLog
    from pagein.backends.open import open_log
    from pagein.backends.postgres.log import PostgresLog
    from pagein.backends.postgres.search import PostgresArchive
    from pagein.backends.sqlite.log import SQLiteLog
    from pagein.backends.sqlite.search import SqliteArchive

__all__ = ["InMemoryLog", "PostgresArchive", "PostgresLog", "SQLiteLog", "SqliteArchive", "open_log"]

_MODULES = {
    "InMemoryLog": "memory",
    "PostgresArchive": "postgres.search",
    "PostgresLog": "postgres.log",
    "SQLiteLog": "sqlite.log",
    "SqliteArchive": "sqlite.search",
    "open_log": "open",
}

__getattr__ = lazily(__name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()})
