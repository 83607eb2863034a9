"""``pagein run``: an agent behind the proxy, with one command."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast

from cyclopts import Parameter

from pagein.cli import _output
from pagein.cli._settings import ConfigFile
from pagein.cli.serve import DEFAULT_PORT, ServeOptions, ServerWindow, UpstreamAddresses, make_app, server_settings
from pagein.errors import ConfigurationError
from pagein.memory.config import load
from pagein.server.clients import UPSTREAMS, Client, check_gemini_login, client_process


def run(
    client: Annotated[Client, Parameter(help="The agent to run.")],
    /,
    *arguments: Annotated[str, Parameter(help="Its own arguments, after --.", allow_leading_hyphen=True)],
    store: Annotated[
        str | None,
        Parameter(help="Store of the runs. Default: pagein/runs.db in the user's data folder.", show_default=False),
    ] = None,
    port: Annotated[int, Parameter(help="Port of a proxy that may be running already.")] = DEFAULT_PORT,
    upstream: UpstreamAddresses = None,
    window: ServerWindow = None,
    config: ConfigFile = None,
) -> int:
    """Run an agent behind the proxy: Claude Code, Codex, opencode or Gemini CLI.

    Uses the proxy on the port if one is running, else starts one for as long as
    the agent runs. The base URL is set for that process alone. No file is changed.
    It needs pip install 'pagein[serve]'.

    For example:

      pagein run claude
      pagein run codex -- exec "Fix the failing test."
    """
    program = shutil.which(client)
    if program is None:
        raise ConfigurationError(f"there is no {client} on the PATH: install it first")
    if client == "gemini":
        check_gemini_login(os.environ)
    with _proxy(client, store, port, upstream, window, config) as url:
        process = client_process(client, url, arguments, os.environ, secrets.token_hex(8))
        return _wait_for([program, *process.command[1:]], {**os.environ, **process.environment})


@contextmanager
def _proxy(
    client: Client, store: str | None, port: int, upstream: list[str] | None, window: int | None, config: Path | None
) -> Iterator[str]:
    """The address of the proxy that is running, or of one of our own."""
    running = _running_upstreams(port)
    if running is not None:
        _check_running(client, port, running, has_options=any((store, upstream, window, config)))
        yield f"http://127.0.0.1:{port}"
        return
    addresses = upstream or [f"{name}={url}" for name, url in UPSTREAMS[client].items()]
    options = ServeOptions(upstream=addresses, port=0, window=window)
    settings = server_settings(store or _default_store(), load(config), options)
    app = make_app(settings)
    from pagein.server.run import serve_in_thread  # noqa: PLC0415 - needs the extra serve

    with serve_in_thread(app) as url:
        yield url


def _running_upstreams(port: int) -> Mapping[str, str] | None:
    """The upstreams of the proxy that runs on a port; None for no proxy."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/livez")
        answer = connection.getresponse()
        found = answer.getheader("x-pagein-upstreams", "{}") if answer.getheader("x-pagein") else "null"
        return cast("Mapping[str, str] | None", json.loads(found))
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _check_running(client: Client, port: int, running: Mapping[str, str], *, has_options: bool) -> None:
    """Raise ConfigurationError for a proxy that would send the agent's key elsewhere, or that cannot take the options."""
    cure = "give another --port, and a proxy is started for this agent"
    if has_options:
        raise ConfigurationError(f"a proxy runs on port {port}, and has its own store and settings: {cure}")
    providers = {url for urls in UPSTREAMS.values() for url in urls.values()}
    for name, url in UPSTREAMS[client].items():
        found = next(iter(running.values()), url) if name == "default" else running.get(name, "nowhere")
        if found == "nowhere" or found in providers - {url}:
            raise ConfigurationError(f"the proxy on port {port} forwards to {found}, and {client} needs {url}: {cure}")


def _default_store() -> str:
    base = os.environ.get("XDG_DATA_HOME")
    folder = (Path(base) if base else Path.home() / ".local" / "share") / "pagein"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / "runs.db")


def _wait_for(command: list[str], environment: dict[str, str]) -> int:
    """Run the agent on this terminal, and return its exit code; Ctrl-C is for the agent, and SIGTERM ends it first."""
    child: subprocess.Popen[bytes] | None = None
    is_ended = False

    def end_agent(*_: object) -> None:
        nonlocal is_ended
        is_ended = True
        if child is not None:
            child.terminate()

    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Before the agent starts: a signal between would leave it behind.
    previous_end = signal.signal(signal.SIGTERM, end_agent)
    try:
        child = subprocess.Popen(command, env=environment, preexec_fn=_default_interrupts)  # noqa: S603, PLW1509 - the user's own
        if is_ended:
            child.terminate()
        code = child.wait()
        return code if code >= 0 else 128 - code  # as a shell tells of a signal
    except OSError as error:
        _output.print_error(f"{command[0]} did not start: {error.strerror or error}")
        return 1
    finally:
        signal.signal(signal.SIGINT, previous)
        signal.signal(signal.SIGTERM, previous_end)


def _default_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
