"""``python -m benchmarks clients``: real agents through the proxy."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from benchmarks.clients import WINDOWS, NotInstalled, install, run_client
from pagein.cli import _output
from pagein.errors import ConfigurationError
from pagein.server.clients import Client


def clients(
    *names: Annotated[Client, Parameter(help="The agents: claude, codex, opencode. Default: all.")],
    calls: Annotated[int, Parameter(help="Calls of a tool in each run.")] = 100,
    window: Annotated[int | None, Parameter(help="Window in tokens. Default: one for each client.")] = None,
    proxied: Annotated[bool, Parameter(help="Run each through the proxy alone, not directly too.")] = False,
) -> int:
    """Run Claude Code, Codex and opencode against a scripted provider, directly and through the proxy."""
    try:
        packages = install()
    except NotInstalled as error:
        raise ConfigurationError(str(error)) from None
    table = _output.new_table(
        f"{calls} calls", "", "exit", "requests", "over", "illegal", "compact", "price", "prefix", "p50 ms", "p95 ms"
    )
    for name in names or tuple(WINDOWS):
        plain = 0.0
        for is_proxied in (True,) if proxied else (False, True):
            run = run_client(name, packages, calls=calls, window=window or WINDOWS[name], proxied=is_proxied)
            price = run.price / max(1, run.calls)
            plain = plain or price
            middle, late = (f"{seconds * 1_000:.0f}" if is_proxied else "" for seconds in run.measures.percentiles)
            table.add_row(
                f"{name}{', proxied' if is_proxied else ''}", str(run.exit_code), str(run.measures.requests),
                str(run.measures.over), str(run.measures.illegal), str(run.compactions), f"{price / plain:.2f}",
                f"{run.measures.prefix:.2f}", middle, late,
            )  # fmt: skip
    _output.console().print(table)
    return 0
