"""The PostgreSQL server behind a log: its address without its password, connections to it, its errors in our words."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
import psycopg_pool
from psycopg.conninfo import conninfo_to_dict

from pagein.errors import (
    ConfigurationError,
    LogBusy,
    LogClosed,
    LogError,
    LogUnreachable,
    LogUnreadable,
    LogUnwritable,
)

Connection = psycopg.Connection[Any]
Pool = psycopg_pool.ConnectionPool[Any]

# So that a server that is gone without a word is noticed in half a minute, not after two hours.
_PATIENCE = {
    "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "30000",
}  # fmt: skip
_SYNCHRONOUS = {"OFF": "off", "NORMAL": "off", "FULL": "on", "EXTRA": "on"}
_SETTINGS = """SELECT set_config('lock_timeout', %(wait)s, false),
    set_config('default_transaction_read_only', %(readonly)s, false),
    CASE WHEN %(commit)s = 'off' OR current_setting('synchronous_commit') = 'off'
        THEN set_config('synchronous_commit', %(commit)s, false) END"""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is: libpq's parameters, which nothing prints, and a name that may be printed."""

    name: str
    parameters: Mapping[str, Any] = field(repr=False)

    def clean(self, text: str) -> str:
        """The text on one line, without the passwords of this address."""
        secrets = (str(self.parameters.get(each) or "") for each in ("password", "sslpassword"))
        for secret in filter(None, secrets):
            text = text.replace(secret, "***")
        return " ".join(text.split())


def address_of(url: str) -> Address:
    """The address that libpq reads in a URL or a connection string. Raises ConfigurationError, which quotes nothing."""
    with contextlib.suppress(psycopg.Error, UnicodeError):
        found = conninfo_to_dict(url)
        user = f"{found['user']}@" if found.get("user") else ""
        port = f":{found['port']}" if found.get("port") else ""
        host = found.get("host") or found.get("hostaddr") or ""
        return Address(f"postgresql://{user}{host}{port}/{found.get('dbname') or ''}", found)
    # Out here, and in our words alone: libpq's quote what they stumbled over, which may be the password.
    raise ConfigurationError(
        "this is no address of a PostgreSQL database: it is postgresql://user:password@host:5432/database, with "
        "special characters as %40 and the like. It is not repeated here, as it may hold a password."
    )


class Direct:
    """One connection of a log's own, opened when it is needed and again when it was lost."""

    def __init__(self, address: Address, *, timeout: float, synchronous: str, readonly: bool) -> None:
        self.address = address
        self._settings = {
            # To PostgreSQL a wait of 0 is one without end.
            "wait": f"{max(1, math.ceil(timeout * 1000))}ms",
            "readonly": "on" if readonly else "off",
            "commit": _SYNCHRONOUS[synchronous],
        }
        self._timeout = timeout
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._closed = False

    @contextlib.contextmanager
    def lease(self) -> Iterator[Connection]:
        """The connection, for this thread alone."""
        with self._lock:
            if self._closed:
                raise LogClosed(f"{self.address.name}: this log was closed; open it again")
            if self._connection is None or self._connection.closed:
                self._connection = self._connected()
            yield self._connection

    def close(self) -> None:
        """Let the connection go; a second call does nothing."""
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _connected(self) -> Connection:
        known = self.address.parameters
        defaults: dict[str, Any] = {
            **_PATIENCE, "connect_timeout": max(2, math.ceil(self._timeout)), "application_name": "pagein",
        }  # fmt: skip
        connection = psycopg.connect(**{**defaults, **known, "client_encoding": "UTF8", "autocommit": True})
        try:
            connection.execute(_SETTINGS, self._settings)
        except BaseException:
            connection.close()
            raise
        return connection


class Pooled:
    """Connections lent by a pool of the host's, who also closes it."""

    def __init__(self, pool: Pool, *, timeout: float) -> None:
        self._pool, self._timeout = pool, timeout
        self._closed = False
        self.address = Address(f"PostgreSQL through the pool {pool.name!r}", _parameters(pool))

    @contextlib.contextmanager
    def lease(self) -> Iterator[Connection]:
        """A connection of the pool in autocommit mode, given back as it came."""
        if self._closed:
            raise LogClosed(f"{self.address.name}: this log was closed; open it again")
        with self._pool.connection(timeout=max(self._timeout, 0.001)) as connection:
            before = connection.autocommit
            connection.set_autocommit(True)
            try:
                yield connection
            finally:
                if not connection.closed:
                    connection.set_autocommit(before)

    def close(self) -> None:
        """Ask the pool for no more."""
        self._closed = True


def _parameters(pool: Pool) -> Mapping[str, Any]:
    conninfo = pool.conninfo
    with contextlib.suppress(psycopg.Error):
        return conninfo_to_dict(conninfo) if isinstance(conninfo, str) else {}
    return {}


def was_lost(error: psycopg.Error) -> bool:
    """Whether the error says that the connection, and not the statement, has failed."""
    if isinstance(error, psycopg_pool.PoolTimeout | psycopg_pool.TooManyRequests | psycopg_pool.PoolClosed):
        return False
    state = error.sqlstate or ""
    # 08: connection exceptions; 57P: an administrator, a crash, a server that is starting.
    unsaid = isinstance(error, psycopg.OperationalError) and not state
    return unsaid or state.startswith(("08", "57P"))


def in_our_words(address: Address, error: psycopg.Error, *, writing: bool) -> LogError:
    """The driver's error as one of ours that names the database; nothing was written."""
    said = f"{address.name}: {address.clean(str(error))}"
    nothing = " Nothing was written." if writing else ""
    state = error.sqlstate or ""
    match error:
        case psycopg_pool.PoolClosed():
            return LogClosed(f"{said}. Open a new pool.")
        case psycopg_pool.PoolTimeout() | psycopg_pool.TooManyRequests():
            return LogBusy(f"{said}.{nothing} Give the pool more connections, or wait longer.")
        case _ if was_lost(error):
            return LogUnreachable(f"{said}.{nothing} See that the server runs and that the address is right.")
    if state[:2] in ("40", "55") or state in ("57014", "53300"):
        return LogBusy(f"{said}.{nothing} Try again.")
    if state[:2] in ("28", "3D"):
        return LogUnreachable(f"{said}. See that the address, the user and the password are right.")
    if writing and state[:2] not in ("3F", "XX") and state not in ("42P01", "42703"):
        return LogUnwritable(f"{said}.{nothing}")
    return LogUnreadable(said)
