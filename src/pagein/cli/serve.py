"""``pagein serve``: a proxy between agents and their provider."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pagein.backends.open import check_store, display_name
from pagein.cli import _output
from pagein.cli._options import AsJson, SummarizerName, resolve_summarizer
from pagein.cli._settings import ConfigFile, ConfiguredPolicy, ConfiguredTenant, option_or_setting
from pagein.cli._stores import StoreAddress
from pagein.errors import ConfigurationError
from pagein.memory.config import Config, load
from pagein.memory.config.build import build_options, build_summarizer

if TYPE_CHECKING:
    from pagein.server import ServerApp, ServerSettings

DEFAULT_PORT = 8790

TENANT_SECRET = "PAGEIN_TENANT_SECRET"  # noqa: S105 - its name
"""The environment variable of the key with which credentials are hashed to tenants."""

UpstreamAddresses = Annotated[
    list[str] | None,
    Parameter(
        name="--upstream",
        help="Address of the provider, such as https://api.anthropic.com. Give NAME=ADDRESS for several: the first is "
        "the default, the others are served under /NAME.",
        negative_iterable=(),
    ),
]
ServerWindow = Annotated[
    int | None, Parameter(help="Window of every model, in tokens. Default: the model's, by its name.")
]
ServerMode = Annotated[
    Literal["view", "observe", "off"] | None,
    Parameter(help="view: send views. observe: record, and forward unchanged. off: forward unchanged. Default: view."),
]

_MEMORY_OPTIONS = (
    "policy", "budget", "page_in", "embedder", "user", "project", "facts", "checkpoints", "prompts", "timeout", "synchronous",
    "telemetry",
)  # fmt: skip


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of a proxy. The configuration completes them."""

    upstream: UpstreamAddresses = None
    port: Annotated[int, Parameter(help="Port to listen on. 0: any that is free.")] = DEFAULT_PORT
    host: Annotated[str, Parameter(help="Address to listen on. Any but this machine's own needs proxy keys.")] = (
        "127.0.0.1"
    )
    window: ServerWindow = None
    mode: ServerMode = None
    strict: Annotated[bool, Parameter(help="Answer 502 where pagein fails, instead of forwarding the original.")] = (
        False
    )
    tenant: ConfiguredTenant = None
    policy: ConfiguredPolicy = None
    summarizer: SummarizerName = None


DEFAULTS = ServeOptions()


def serve(db: StoreAddress, /, *, options: ServeOptions = DEFAULTS, config: ConfigFile = None) -> int:
    """Serve a proxy between agents and their provider, so that no request is over the model's window.

    Point your agent's base URL at it. Every conversation is recorded in the
    store. Once it no longer fits the window, the provider gets a view of it
    in place of the history.

    SIGINT and SIGTERM end it after the answers that are being sent. It needs
    pip install 'pagein[serve]'.

    For example:

      pagein serve runs.db --upstream https://api.anthropic.com
      ANTHROPIC_BASE_URL=http://127.0.0.1:8790 claude
    """
    settings = server_settings(db, load(config), options)
    app = make_app(settings)
    from pagein.server.run import run_server  # noqa: PLC0415 - needs the extra serve

    def announce(port: int) -> None:
        address = f"http://{f'[{settings.host}]' if ':' in settings.host else settings.host}:{port}"
        _output.print_text(f"serving {display_name(db)} at {address} ({settings.mode}); Ctrl-C ends it")
        for number, (name, target) in enumerate(settings.upstreams.items()):
            _output.print_text(f"  {address}{f'/{name}' if number else ''} -> {target}")
        _output.print_text(
            f"  for example: ANTHROPIC_BASE_URL={address} or OPENAI_BASE_URL={address}/v1, or GOOGLE_GEMINI_BASE_URL={address}"
        )
        sys.stdout.flush()

    started = run_server(app, announce)
    _print_summary(app)
    return 0 if started else 1


def mcp(
    db: StoreAddress,
    /,
    *,
    run: Annotated[str | None, Parameter(help="Run of calls that name none. Default: the one recorded last.")] = None,
    tenant: ConfiguredTenant = None,
    user: Annotated[str | None, Parameter(help="User whose facts are read and remembered.")] = None,
    config: ConfigFile = None,
) -> int:
    """Serve the memory's tools to an agent over MCP, on standard input and output.

    The tools are recall, expand, pin, note, remember and forget. pagein serve
    has the same at /mcp, over HTTP. It needs pip install 'pagein[mcp]'.

    For example:

      pagein mcp runs.db
    """
    settings = load(config)
    try:
        from pagein.server.mcp import McpSettings, serve_stdio  # noqa: PLC0415 - its SDK is an extra
    except ImportError as error:
        raise ConfigurationError(f"pagein mcp needs {error.name}: pip install 'pagein[mcp]'") from None
    options = {name: option for name, option in build_options(settings.values).items() if name in _MEMORY_OPTIONS}
    options |= {} if user is None else {"user": user}
    served = McpSettings(db, option_or_setting(settings, "tenant", tenant), run or "", options)
    check_store(db, served.tenant)
    # A thread waits for the client's next line, and no exception ends that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(serve_stdio(served))
    return 0


def bench_serve(
    *,
    calls: Annotated[int, Parameter(help="Calls of a tool in each run.")] = 100,
    size: Annotated[int, Parameter(help="Characters of a result.")] = 2_000,
    window: Annotated[int, Parameter(help="Window, in tokens.")] = 20_000,
    json: AsJson = False,
) -> int:
    """Run an agent directly, passed through, and through the proxy, in each protocol, and compare.

    The provider is a scripted one with a prompt cache: what it has costs a tenth,
    other tokens 1.25. The agent never compacts, and the provider takes any
    length: over are the requests that the window would not have fitted. The times
    are those that the proxy adds before a request is forwarded. CPU is what its
    threads take for a request in all, ratio that over a proxy that only passes on.

    For example:

      pagein bench serve --json
    """
    try:
        from pagein.testing.provider.agent import PROTOCOLS, bench_protocol  # noqa: PLC0415 - needs extras

        rows = {name: bench_protocol(name, calls=calls, size=size, window=window) for name in PROTOCOLS}
    except ImportError as error:
        raise ConfigurationError(f"this bench needs {error.name}: pip install 'pagein[serve]'") from None
    if json:
        values = {
            name: {
                way: asdict(measures) | {"added": measures.percentiles, "cpu_ratio": measures.cpu / (ways[1].cpu or 1)}
                for way, measures in zip(_WAYS, ways, strict=True)
            }
            for name, ways in rows.items()
        }
        _output.print_json(values)
        return 0
    title = f"{calls} calls, window {window:,}; times in ms"
    table = _output.new_table(title, "", "over", "illegal", "price", "prefix", "p50", "p95", "CPU", "ratio")
    for name, ways in rows.items():
        for way, measures in zip(_WAYS, ways, strict=True):
            times = (*measures.percentiles, measures.cpu / measures.requests) if measures.added else ()
            table.add_row(
                f"{name} {way}", str(measures.over), str(measures.illegal), f"{measures.price / ways[0].price:.2f}",
                f"{measures.prefix:.2f}", *(f"{seconds * 1_000:.1f}" for seconds in times),
                f"{measures.cpu / (ways[1].cpu or 1):.1f}" if times else "",
            )  # fmt: skip
    _output.console().print(table)
    return 0


_WAYS = ("direct", "passed", "proxied")


def server_settings(db: str, config: Config, options: ServeOptions) -> ServerSettings:
    """The settings of the command line, completed from the configuration. Raises ConfigurationError."""
    from pagein.server import ServerSettings  # noqa: PLC0415 - loads for the server alone

    memory_options = {name: option for name, option in build_options(config.values).items() if name in _MEMORY_OPTIONS}
    writer = resolve_summarizer(options.summarizer) or build_summarizer(config.values)
    memory_options |= {} if options.policy is None else {"policy": options.policy}
    memory_options |= {} if writer is None else {"summarizer": writer}
    return ServerSettings(
        db,
        _parse_upstreams(options.upstream) or _text_table(config, "server.upstreams"),
        host=options.host.strip("[]"),
        port=options.port,
        window=option_or_setting(config, "server.window", options.window),
        mode=option_or_setting(config, "server.mode", options.mode),
        strict=options.strict,
        tenant=option_or_setting(config, "tenant", options.tenant),
        keys=_text_table(config, "server.clients"),
        origins=config.value("server.origins"),
        tenant_secret=os.environ.get(TENANT_SECRET, ""),
        options=memory_options,
    )


def make_app(settings: ServerSettings) -> ServerApp:
    """The app of a server. Raises ConfigurationError without the extra."""
    try:
        from pagein.server.app import ServerApp, check_settings  # noqa: PLC0415 - needs the extra serve
    except ImportError as error:
        raise ConfigurationError(f"pagein serve needs {error.name}: pip install 'pagein[serve]'") from None
    check_settings(settings)
    return ServerApp(settings)


def _parse_upstreams(addresses: list[str] | None) -> dict[str, str]:
    upstreams: dict[str, str] = {}
    for address in addresses or ():
        name, equals, url = address.partition("=")
        name, url = (name, url) if equals and "/" not in name else ("default", address)
        if name in upstreams:
            raise ConfigurationError(f"two upstreams are called {name!r}: give NAME=ADDRESS for all but one")
        upstreams[name] = url
    return upstreams


def _text_table(config: Config, key: str) -> dict[str, str]:
    table: Mapping[str, Any] = config.value(key) or {}
    wrong = [name for name, value in table.items() if not isinstance(value, str)]
    if wrong:
        raise ConfigurationError(f"{key}.{wrong[0]} is a text")
    return dict(table)


def _print_summary(app: ServerApp) -> None:
    """Print what was done for each run."""
    for run, totals in app.metrics.runs.items():
        views = f", {totals.views} as views" if totals.views else ""
        _output.print_text(
            f"{run}: {_output.count_of(totals.requests, 'request')}{views}, {totals.tokens:,} tokens of messages"
        )
    failures = [f"{kind} {count}" for (name, kind), count in app.metrics.counts.items() if name == "failures"]
    if failures:
        _output.print_text(f"failures: {', '.join(failures)}")
