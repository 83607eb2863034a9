"""Running a server until a signal ends it."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from pagein.errors import ConfigurationError
from pagein.server.app import ServerApp
from pagein.server.http import StreamBroken
from pagein.server.memories import warm_up
from pagein.server.settings import LOOPBACK

START_SECONDS = 30
KEEP_ALIVE_SECONDS = 75
"""Time after which an idle connection is closed: later than by clients, which otherwise ask just then, and read no answer."""
_THREAD_DRAIN_SECONDS = 2


def run_server(app: ServerApp, on_start: Callable[[int], None]) -> bool:
    """Serve until SIGINT or SIGTERM; streams have time to end. ``on_start`` gets the port; True if the server started.

    Raises ConfigurationError where the port is taken.
    """
    settings = app.settings
    config, listener = _listen(app, settings.host, settings.port, settings.limits.drain_seconds)
    server = _ProxyServer(config, lambda: on_start(listener.getsockname()[1]))
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
    return server.started


@contextmanager
def serve_in_thread(app: Any) -> Iterator[str]:
    """Serve an ASGI app in a thread, on a free port, while the context is open; gives its address, without a path.

    Raises RuntimeError where the app does not start.
    """
    config, listener = _listen(app, LOOPBACK[0], 0, _THREAD_DRAIN_SECONDS)
    server = _ClosingServer(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True, name="pagein-server")
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    try:
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the server did not start")
            time.sleep(0.005)
        yield f"http://{LOOPBACK[0]}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_SECONDS + _THREAD_DRAIN_SECONDS)
        listener.close()


def _listen(app: Any, host: str, port: int, drain_seconds: int) -> tuple[uvicorn.Config, socket.socket]:
    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, ws="none", server_header=False, date_header=False,
        timeout_graceful_shutdown=drain_seconds, timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )  # fmt: skip
    listener = open_listener(host, port, config.backlog)
    logging.getLogger("uvicorn.error").addFilter(_is_no_broken_stream)
    return config, listener


def open_listener(host: str, port: int, backlog: int = 128) -> socket.socket:
    """Listen on an address. Raises ConfigurationError where that cannot be."""
    family, why = socket.AF_INET6 if ":" in host else socket.AF_INET, "a port is at most 65535"
    if 0 <= port < 65_536:
        try:
            is_any = host == "::" and socket.has_dualstack_ipv6()  # any address, the old ones too
            return socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=is_any)
        except OSError as error:
            why = "another program listens there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
    cure = "choose another with --port, 0 for any that is free"
    raise ConfigurationError(f"port {port} of {host} cannot be used: {why}; {cure}")


class _ClosingServer(uvicorn.Server):
    """A server that closes its connections when it ends: uvicorn leaves those open that do not read what they were sent."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in self.server_state.connections:
            connection.transport.abort()
        await asyncio.sleep(0)  # a transport closes its socket in the next turn of the loop


class Server(_ClosingServer):
    """A server that SIGINT and SIGTERM end, and that does not raise them again: to be ended so is no failure."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM while it serves."""
        signals = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, earlier in previous.items():
                signal.signal(number, earlier)


class _ProxyServer(Server):
    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            threading.Thread(target=warm_up, daemon=True, name="pagein-warm-up").start()
            self._on_start()


def _is_no_broken_stream(record: logging.LogRecord) -> bool:
    """False for the trace of an answer that its upstream broke off: that is no error of the server."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, StreamBroken)
