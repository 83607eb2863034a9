"""Opens the store at an address."""

from __future__ import annotations

import os
import re
from contextlib import closing
from typing import Unpack

from pagein.backends.base import Store
from pagein.backends.database_store import StoreOptions
from pagein.backends.memory import InMemoryStore
from pagein.backends.sqlite.connection import MEMORY
from pagein.backends.sqlite.log import SQLiteStore
from pagein.errors import ConfigurationError
from pagein.log.base import StoredLog
from pagein.log.encryption import KEY_VARIABLE, Key

_ADDRESSES = '":memory:", a path, "sqlite:///path" or "postgresql://..."'
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL | re.IGNORECASE)
_WORD = r"(?:host|hostaddr|port|dbname|user|password|passfile|service|options|ssl\w+)\s*=\s*\S*"
_MISTYPED = re.compile(rf"""[\s"'<]*(?:postgres(?:ql)?\s*:|{_WORD}\s+{_WORD})""", re.IGNORECASE)
"""What is meant to be an address of a server: one with a blank or a quote before it, with a slash too few, or in libpq's
other spelling. Taken for a path it would be printed, and a file be named after it; it may hold a password."""


def open_log(url: str | os.PathLike[str], *, session: str = "default", **options: Unpack[StoreOptions]) -> StoredLog:
    """Open the log of a session at an address; see ``open_store``."""
    return open_store(url, **options).log(session)


def open_store(
    url: str | os.PathLike[str],
    *,
    tenant: str = "",
    timeout: float = 5.0,
    synchronous: str = "FULL",
    readonly: bool = False,
    key: Key | None = None,
) -> Store:
    """The store at an address: ``:memory:``, a path, ``sqlite:///`` and a path, or ``postgresql://``.

    ``sqlite:///run.db`` is a relative path, ``sqlite:////tmp/run.db`` an absolute one. ``timeout`` in seconds. With a
    ``key``, or one in the environment variable ``PAGEIN_KEY``, what is stored is encrypted; a store in memory is not.
    The address is reached when the first log is opened. Raises ConfigurationError for another address.
    """
    address = os.fspath(url) if isinstance(url, os.PathLike) else url
    if not isinstance(address, str) or not address:
        raise ConfigurationError(f"a log needs an address: {_ADDRESSES}; not {url!r}")
    key = os.environ.get(KEY_VARIABLE) or None if key is None else key
    if is_postgres(address):
        from pagein.backends.postgres.log import PostgresStore  # noqa: PLC0415 - its driver is an extra

        return PostgresStore(
            address, tenant=tenant, timeout=timeout, synchronous=synchronous, readonly=readonly, key=key
        )
    path = _path(address)
    if path != MEMORY:
        return SQLiteStore(path, tenant=tenant, timeout=timeout, synchronous=synchronous, readonly=readonly, key=key)
    if readonly:
        raise ConfigurationError("a new log in memory has nothing to read; open it without readonly=True")
    return InMemoryStore(tenant=tenant)


def is_postgres(address: str) -> bool:
    """True for the address of a PostgreSQL database; it may hold a password."""
    match = _ADDRESS.match(address)
    return match is not None and match[1].lower() in ("postgres", "postgresql")


def display_name(address: str) -> str:
    """The path of a store, or its address without the password."""
    if not is_postgres(address):
        return address
    from pagein.backends.postgres.connection import address_of  # noqa: PLC0415 - its driver is an extra

    return address_of(address).name


def _path(url: str) -> str:
    """The path of a SQLite file at an address. Raises ConfigurationError, without the address: it may hold a password."""
    if not (match := _ADDRESS.match(url)):
        if _MISTYPED.match(url):
            raise ConfigurationError(
                "no path, and no address as it stands: one of a server is postgresql://user:password@host:5432/database. "
                "It is not repeated here, as it may hold a password."
            )
        return os.path.expanduser(url)  # noqa: PTH111 - ":memory:" is no path
    scheme, rest = match[1].lower(), match[2]
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return rest[1:]
    raise ConfigurationError(f"no log at {scheme}://...: addresses are {_ADDRESSES}")


def check_store(url: str, tenant: str = "") -> None:
    """Read from a store, which is made where it is not there. Raises LogError where that cannot be."""
    with closing(open_store(url, tenant=tenant)) as store:
        store.head("default")
