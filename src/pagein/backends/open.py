"""One address, one log: the place that knows which store an address means."""

from __future__ import annotations

import os
import re
from typing import TypedDict

from pagein.backends.memory import InMemoryLog
from pagein.backends.sqlite.connection import MEMORY
from pagein.backends.sqlite.log import SQLiteLog
from pagein.errors import ConfigurationError
from pagein.log.base import Log
from pagein.log.encryption import VARIABLE, Key

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL | re.IGNORECASE)
_WORD = r"(?:host|hostaddr|port|dbname|user|password|passfile|service|options|ssl\w+)\s*=\s*\S*"
_MISTYPED = re.compile(rf"""[\s"'<]*(?:postgres(?:ql)?\s*:|{_WORD}\s+{_WORD})""", re.IGNORECASE)
"""What is meant to be an address of a server: one with a blank or a quote before it, with a slash too few, or in libpq's
other spelling. Taken for a path it would be printed, and a file be named after it; it may hold a password."""


class _Store(TypedDict):
    """What every store of ours is opened with."""

    session: str
    tenant: str
    timeout: float
    synchronous: str
    readonly: bool
    key: Key | None


def open_log(
    url: str | os.PathLike[str],
    *,
    session: str = "default",
    tenant: str = "",
    timeout: float = 5.0,
    synchronous: str = "FULL",
    readonly: bool = False,
    key: Key | None = None,
) -> Log:
    """The log of a session at an address: ``:memory:``, a path, ``sqlite:///`` and a path, or ``postgresql://``.

    ``sqlite:///run.db`` is a relative path, ``sqlite:////tmp/run.db`` an absolute one. ``timeout`` in seconds. With a
    ``key``, or one in the environment variable ``PAGEIN_KEY``, what is stored is encrypted; a log in memory is not stored.
    Raises ConfigurationError for another address, and what opening the store raises.
    """
    address = _text(url)
    key = os.environ.get(VARIABLE) or None if key is None else key
    store: _Store = {
        "session": session, "tenant": tenant, "timeout": timeout, "synchronous": synchronous, "readonly": readonly,
        "key": key,
    }  # fmt: skip
    if is_postgres(address):
        from pagein.backends.postgres.log import PostgresLog  # noqa: PLC0415 - its driver is an extra

        return PostgresLog(address, **store)
    path = _path(address)
    if path != MEMORY:
        return SQLiteLog(path, **store)
    if readonly:
        raise ConfigurationError("a new log in memory has nothing to read; open it without readonly=True")
    return InMemoryLog(session=session, tenant=tenant)


def is_postgres(address: str) -> bool:
    """Whether an address is one of a PostgreSQL database; it may hold a password."""
    found = _ADDRESS.match(address)
    return found is not None and found[1].lower() in ("postgres", "postgresql")


def _text(url: object) -> str:
    path = os.fspath(url) if isinstance(url, os.PathLike) else url
    if not isinstance(path, str):
        raise ConfigurationError(
            f'a log needs an address: ":memory:", a path, "sqlite:///path" or "postgresql://..."; not {url!r}'
        )
    return path


def _path(url: str) -> str:
    if not url:
        raise ConfigurationError(
            'a log needs an address: ":memory:", a path, "sqlite:///path" or "postgresql://..."'
        )
    if not (found := _ADDRESS.match(url)):
        if _MISTYPED.match(url):
            raise ConfigurationError(
                "no path, and no address as it stands: one of a server is postgresql://user:password@host:5432/database. "
                "It is not repeated here, as it may hold a password."
            )
        return url
    scheme, rest = found[1].lower(), found[2]
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return rest[1:]
    # Not the address itself: of whatever kind it is, it may hold a password.
    raise ConfigurationError(
        f'no log at {scheme}://...: addresses are ":memory:", a path, "sqlite:///path" or "postgresql://..."'
    )
