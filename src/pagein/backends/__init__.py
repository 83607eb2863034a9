"""Stores: in memory, SQLite and PostgreSQL. The only package with SQL."""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes

if TYPE_CHECKING:
    from pagein.backends.base import Store, store_of
    from pagein.backends.memory import InMemoryLog
    from pagein.backends.open import open_log, open_store
    from pagein.backends.postgres.log import PostgresLog
    from pagein.backends.postgres.search import PostgresSearchIndex
    from pagein.backends.sqlite.log import SQLiteLog
    from pagein.backends.sqlite.search import SqliteSearchIndex

__all__ = [
    "InMemoryLog",
    "PostgresLog",
    "PostgresSearchIndex",
    "SQLiteLog",
    "SqliteSearchIndex",
    "Store",
    "open_log",
    "open_store",
    "store_of",
]

_MODULES = {
    "InMemoryLog": "memory",
    "PostgresSearchIndex": "postgres.search",
    "PostgresLog": "postgres.log",
    "SQLiteLog": "sqlite.log",
    "SqliteSearchIndex": "sqlite.search",
    "Store": "base",
    "open_log": "open",
    "open_store": "open",
    "store_of": "base",
}

__getattr__ = lazy_attributes(__name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()})
