"""Connections to a PostgreSQL server: its address without the password, retries, and errors as LogErrors."""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, LiteralString, TypeVar

import psycopg
import psycopg_pool
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from pagein.errors import (
    ConfigurationError,
    LogBusy,
    LogClosed,
    LogError,
    LogUncertain,
    LogUnreachable,
    LogUnreadable,
    LogUnwritable,
    PageinError,
)

T = TypeVar("T")
Connection = psycopg.Connection[Any]
Pool = psycopg_pool.ConnectionPool[Any]

# So that a server that is gone without a word is noticed in half a minute, not after two hours.
_KEEPALIVES = {
    "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "30000",
}  # fmt: skip
_MINE = sql.SQL("tenant = %(tenant)s AND session = %(session)s")
_ROW = sql.SQL("position, at, kind, version, convert_to(body, 'UTF8'), digest")
_SYNCHRONOUS = {"OFF": "off", "NORMAL": "off", "FULL": "on", "EXTRA": "on"}
_SETTINGS = """SELECT set_config('lock_timeout', %(wait)s, false),
    set_config('default_transaction_read_only', %(readonly)s, false),
    CASE WHEN %(commit)s = 'off' OR current_setting('synchronous_commit') = 'off'
        THEN set_config('synchronous_commit', %(commit)s, false) END"""


_UNSYNCHRONOUS = "SELECT current_setting('synchronous_commit') = 'off'"

_POOLER = re.compile(r"(?P<before>[?&\s])pooler\s*=\s*(?P<mode>[^&\s]*)(?P<after>&?)")
"""pagein's own parameter of an address, which libpq does not know."""


@lru_cache(maxsize=256)
def for_schema(statement: LiteralString, schema: str) -> bytes:
    """The statement for the tables of a schema, ``{0}``; ``{mine}`` are the rows of one session, ``{row}`` is an entry."""
    return sql.SQL(statement).format(sql.Identifier(schema), mine=_MINE, row=_ROW).as_bytes()


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a database: libpq's parameters, which no repr shows, and a name without the password.

    ``is_pooled`` where a pooler behind it gives each transaction another session of the server.
    """

    name: str
    parameters: Mapping[str, Any] = field(repr=False)
    is_pooled: bool = False

    def clean(self, text: str) -> str:
        """The text on one line, without the passwords of this address."""
        secrets = (str(self.parameters.get(name) or "") for name in ("password", "sslpassword"))
        for secret in filter(None, secrets):
            text = text.replace(secret, "***")
        return " ".join(text.split())


def address_of(url: str) -> Address:
    """Parse a URL or a connection string as libpq does. Raises ConfigurationError, which quotes nothing of it."""
    pooler = _POOLER.search(url)
    if pooler is not None and pooler["mode"] not in ("transaction", "session"):
        raise ConfigurationError(
            "pooler=transaction says that a pooler is in between; pooler=session, as without it, that none matters"
        )
    with contextlib.suppress(psycopg.Error, UnicodeError):
        parameters = conninfo_to_dict(_without_pooler(url))
        user = f"{parameters['user']}@" if parameters.get("user") else ""
        port = f":{parameters['port']}" if parameters.get("port") else ""
        host = parameters.get("host") or parameters.get("hostaddr") or ""
        is_pooled = pooler is not None and pooler["mode"] == "transaction"
        return Address(f"postgresql://{user}{host}{port}/{parameters.get('dbname') or ''}", parameters, is_pooled)
    # Raised here, without libpq's message: that quotes what it could not parse, which may be the password.
    raise ConfigurationError(
        "this is no address of a PostgreSQL database: it is postgresql://user:password@host:5432/database, with "
        "special characters as %40 and the like. It is not repeated here, as it may hold a password."
    )


def _without_pooler(url: str) -> str:
    match = _POOLER.search(url)
    if match is None:
        return url
    between = match["before"] if match["after"] or match["before"].isspace() else ""
    return url[: match.start()] + between + url[match.end() :]


@contextlib.contextmanager
def _closed_if_cut_off(connection: Connection) -> Iterator[None]:
    """Close a connection that Ctrl-C or a time limit cut off: it may be in the middle of a statement."""
    try:
        yield
    except (psycopg.Error, PageinError):
        raise
    except BaseException:
        connection.close()
        raise


class DirectConnection:
    """One connection, opened when it is needed, and again when it was lost; closed when the last of its users has left."""

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
        self._users = 0

    @contextlib.contextmanager
    def lease(self) -> Iterator[Connection]:
        """Lease the connection, for this thread alone."""
        with self._lock:
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            with _closed_if_cut_off(self._connection):
                yield self._connection

    def join(self) -> None:
        """Count one more user."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """Count one user less; without any the connection is closed."""
        with self._lock:
            self._users -= 1
            if not self._users and self._connection is not None:
                self._connection.close()
                self._connection = None

    def _connect(self) -> Connection:
        parameters = self.address.parameters
        defaults: dict[str, Any] = {
            **_KEEPALIVES, "connect_timeout": max(2, math.ceil(self._timeout)), "application_name": "pagein",
        }  # fmt: skip
        connection = psycopg.connect(**{**defaults, **parameters, "client_encoding": "UTF8", "autocommit": True})
        try:
            self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: Connection) -> None:
        if not self.address.is_pooled:
            connection.execute(_SETTINGS, self._settings)
            return
        # The next transaction is in another session of the server: it would not know what was prepared here, and a
        # setting made here would be another client's.
        connection.prepare_threshold = None
        row = connection.execute(_UNSYNCHRONOUS).fetchone()
        if self._settings["commit"] == "on" and row is not None and row[0]:
            raise ConfigurationError(
                f"{self.address.name}: the server's synchronous_commit is off, and behind a pooler no client can set it. Set "
                "it for the user (ALTER ROLE ... SET synchronous_commit = on), or open with synchronous='NORMAL'."
            )


class PooledConnections:
    """Connections leased from the application's pool, which the application closes."""

    def __init__(self, pool: Pool, *, timeout: float) -> None:
        self._pool, self._timeout = pool, timeout
        self.address = Address(f"PostgreSQL through the pool {pool.name!r}", _parameters(pool))

    @contextlib.contextmanager
    def lease(self) -> Iterator[Connection]:
        """Lease a connection of the pool in autocommit mode; it is returned in the mode it had."""
        with self._pool.connection(timeout=max(self._timeout, 0.001)) as connection:
            before = connection.autocommit
            connection.set_autocommit(True)
            try:
                with _closed_if_cut_off(connection):
                    yield connection
            finally:
                if not connection.closed:
                    connection.set_autocommit(before)

    def join(self) -> None:
        """Do nothing: the pool is its owner's."""

    def leave(self) -> None:
        """Do nothing: the pool stays open."""


Source = DirectConnection | PooledConnections


def _parameters(pool: Pool) -> Mapping[str, Any]:
    conninfo = pool.conninfo
    with contextlib.suppress(psycopg.Error):
        return conninfo_to_dict(conninfo) if isinstance(conninfo, str) else {}
    return {}


def is_connection_lost(error: psycopg.Error) -> bool:
    """True where the connection, and not the statement, has failed."""
    if isinstance(error, psycopg_pool.PoolTimeout | psycopg_pool.TooManyRequests | psycopg_pool.PoolClosed):
        return False
    state = error.sqlstate or ""
    # 08: connection exceptions; 57P: an administrator, a crash, a server that is starting; 25P03, 25P04: the server ended
    # the session, as a transaction was idle or took too long.
    unsaid = isinstance(error, psycopg.OperationalError) and not state
    return unsaid or state.startswith(("08", "57P")) or state in ("25P03", "25P04")


_NO_SLOT = re.compile("too many (?:clients|connections)|remaining connection slots")
"""The words of a server that has no connection left; the driver gives no code for an error at the login."""


def to_log_error(address: Address, error: psycopg.Error, *, writing: bool) -> LogError:
    """The LogError for a driver's error; it names the database."""
    message = f"{address.name}: {address.clean(str(error))}"
    nothing = " Nothing was written." if writing else ""
    state = error.sqlstate or ""
    match error:
        case psycopg_pool.PoolClosed():
            return LogClosed(f"{message}. Open a new pool.")
        case psycopg_pool.PoolTimeout() | psycopg_pool.TooManyRequests():
            return LogBusy(f"{message}.{nothing} Give the pool more connections, or wait longer.")
        case _ if _NO_SLOT.search(message):
            return LogBusy(f"{message}.{nothing} Try again; raise max_connections, or use a pool or a pooler.")
        case _ if is_connection_lost(error):
            return LogUnreachable(f"{message}.{nothing} See that the server runs and that the address is right.")
    if state[:2] in ("40", "55") or state in ("57014", "53300"):
        return LogBusy(f"{message}.{nothing} Try again.")
    if state[:2] in ("28", "3D"):
        return LogUnreachable(f"{message}. See that the address, the user and the password are right.")
    if writing and state[:2] not in ("3F", "XX") and state not in ("42P01", "42703"):
        return LogUnwritable(f"{message}.{nothing}")
    return LogUnreadable(message)


_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


def source_of(
    where: str | Pool | Source, *, timeout: float, synchronous: str = "FULL", readonly: bool = False
) -> Source:
    """One connection to an address, those of a pool, or the source itself. Raises ConfigurationError for an invalid address."""
    if isinstance(where, str):
        return DirectConnection(address_of(where), timeout=timeout, synchronous=synchronous, readonly=readonly)
    return where if isinstance(where, Source) else PooledConnections(where, timeout=timeout)


class RetryingConnection:
    """Calls to one server, on a new connection where one was lost, waiting ``timeout`` seconds for the server."""

    def __init__(self, source: Source, *, timeout: float) -> None:
        self._source, self._timeout = source, timeout
        self._reached = self._is_closed = False
        source.join()
        self._process = os.getpid()

    @property
    def path(self) -> str:
        """The address of the database, without the password."""
        return self._source.address.name

    def call(self, work: Callable[[Connection, bool], T], *, writing: bool = False) -> T:
        """Run the work on a connection; where that is lost, run it again on a new one.

        The work must be repeatable: its second argument is True where an earlier call may have reached the
        server. Raises LogError.
        """
        if os.getpid() != self._process:
            raise LogClosed(f"{self.path}: opened before this process was forked; open it again in here")
        if self._is_closed:
            raise LogClosed(f"{self.path}: this log was closed; open it again")
        pause, is_repeated, deadline = _FIRST_PAUSE, False, math.inf
        while True:
            leased = False
            try:
                with self._source.lease() as using:
                    leased = self._reached = True
                    return work(using, is_repeated)
            except psycopg.Error as error:
                fault = error
            deadline = min(deadline, time.monotonic() + self._timeout)
            is_repeated = is_repeated or (leased and is_connection_lost(fault))
            if not is_connection_lost(fault) or not self._may_wait(fault) or time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        ours = to_log_error(self._source.address, fault, writing=writing)
        if writing and is_repeated and isinstance(ours, LogUnreachable):
            ours = LogUncertain(
                f"{self.path}: the connection was lost while this call was written, and the server did not come back "
                f"within {self._timeout:g} s. Either all of it was written or none; the next call that gets through "
                "tells, and a memory then folds in what is there. Look before you call again."
            )
        # Out here, so that the driver's error, whose text may hold a password, is not this one's context.
        raise ours

    def _may_wait(self, fault: psycopg.Error) -> bool:
        """True where waiting may help: not where the server was never reached, as the address may be wrong."""
        return self._reached or bool(fault.sqlstate) or "starting up" in str(fault) or bool(_NO_SLOT.search(str(fault)))

    def close(self) -> None:
        """Leave the connection, which its last user closes; a second call does nothing. A pool stays open."""
        if os.getpid() == self._process and not self._is_closed:  # else the connection is the parent's
            self._is_closed = True
            self._source.leave()
