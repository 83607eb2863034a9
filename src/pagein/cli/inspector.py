"""``pagein inspect``: a store in the browser, read-only."""

from __future__ import annotations

import os
import sys
import threading
import time
import webbrowser
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from pagein.backends.open import display_name
from pagein.cli import _output, _stores
from pagein.cli._options import AsJson
from pagein.cli._settings import ANY_RUN, ConfiguredTenant, RunOptions
from pagein.cli._stores import ReadonlyStoreAddress
from pagein.errors import ConfigurationError
from pagein.log.encryption import KEY_VARIABLE

if TYPE_CHECKING:
    from pagein.server.inspector.data import InspectorData

DEFAULT_PORT = 8791

WATCH_SECONDS, BAR_CELLS = 0.5, 24
"""Seconds between two looks at a run, and characters of a bar."""

SECRET_VARIABLE = "PAGEIN_INSPECT_KEY"  # noqa: S105 - its name, not the secret
"""The environment variable with the secret that other machines need."""


def inspect(
    db: ReadonlyStoreAddress,
    /,
    *,
    port: Annotated[int, Parameter(help="Port to listen on. 0: any that is free.")] = DEFAULT_PORT,
    host: Annotated[
        str, Parameter(help=f"Address to listen on. Any but this machine's own needs {SECRET_VARIABLE}.")
    ] = "127.0.0.1",
    tenant: ConfiguredTenant = None,
    browser: Annotated[bool, Parameter(help="Open the page in a browser.")] = False,
    export: Annotated[Path | None, Parameter(help="Write one run to this HTML file instead, and end.")] = None,
    session: Annotated[str | None, Parameter(help="The run to write with --export.")] = None,
) -> int:
    """Show in a browser what the model was sent, why, what left and what it cost.

    The store is only read, and may be written to meanwhile: the pages follow.
    It needs pip install 'pagein[serve]'. With --export, one run becomes an HTML
    file that opens without a server, and nothing more is needed.

    For example:

      pagein inspect run.db
      pagein inspect run.db --export run.html --session web-app
    """
    session, tenant = RunOptions(session, tenant).resolve()
    names = _stores.list_sessions(db, tenant)
    if export is not None:
        return _write_export(db, tenant, _stores.choose_session(db, names, session), export)
    return serve_inspector(db, tenant=tenant, host=host, port=port, opens_browser=browser)


def watch(
    db: ReadonlyStoreAddress,
    /,
    *,
    run: RunOptions = ANY_RUN,
    most: Annotated[int | None, Parameter(help="End after this many requests. Default: on Ctrl-C.")] = None,
    json: AsJson = False,
) -> int:
    """Follow a run: a line for each request, with a bar of its tokens and where its prefix broke.

    For example:

      pagein watch run.db
      pagein watch runs.db --session web-app
      pagein watch run.db --json
    """
    if most is not None and most < 1:
        raise ConfigurationError(f"--most is a number of requests, 1 or more, not {most}")
    name, tenant = run.find(db)
    number, shown = 0, 0
    with closing(open_data(db, tenant)) as data:
        while most is None or shown < most:
            for row in data.requests(name, number)["requests"][: None if most is None else most - shown]:
                number, shown = row["number"], shown + 1
                if json:
                    _output.print_json_line(row)
                    continue
                is_cut = sys.stdout.isatty()  # a request is one line, whole where no terminal breaks it
                _output.console().print(_request_line(row), no_wrap=is_cut, overflow="ellipsis", soft_wrap=not is_cut)
            if most is None or shown < most:
                time.sleep(WATCH_SECONDS)
    return 0


def _request_line(row: dict[str, Any]) -> Text:
    """A request on one line; letters and words say what colours do."""
    full = round(BAR_CELLS * row["tokens"] / max(1, row["limit"]))
    line = Text(f"{row['number']:>5}  {row['tokens']:>9,} / {row['limit']:,}  ")
    line.append("#" * full, "green" if full < BAR_CELLS * 0.9 else "yellow").append("." * (BAR_CELLS - full), "dim")
    share = 100 * row["prefix"] // max(1, row["tokens"])
    why = f"{row['broke']}: {row['why']}" if row["broke"] else "goes on" if row["number"] > 1 else "the first"
    line.append(f"  {share:>3} % the same  ").append(_output.strip_control(why), "dim")
    return line.append(f"  {_output.strip_control(row['outcome'])}" if row["outcome"] else "")


def serve_inspector(db: str, *, tenant: str = "", host: str = "127.0.0.1", port: int, opens_browser: bool) -> int:
    """Serve the inspector of a store until it is interrupted. Raises ConfigurationError without the extra."""
    try:
        import uvicorn  # noqa: PLC0415 - needs the extra serve

        from pagein.server.inspector import InspectorApp, InspectorSettings  # noqa: PLC0415
        from pagein.server.inspector.data import load_modules  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(f"pagein inspect needs {error.name}: pip install 'pagein[serve]'") from None
    settings = InspectorSettings(
        db, host=host, port=port, tenant=tenant, secret=os.environ.get(SECRET_VARIABLE, ""),
        key=os.environ.get(KEY_VARIABLE) or None,
    )  # fmt: skip
    from pagein.server.run import Server, open_listener  # noqa: PLC0415 - needs the extra serve

    with closing(InspectorApp(settings)) as app, closing(open_listener(host, port)) as listener:
        threading.Thread(target=load_modules, daemon=True).start()
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/inspect"
        needed = "?key=..." if settings.secret else ""
        _output.print_text(f"{display_name(db)} at {address}{needed} (Ctrl-C ends it)")
        sys.stdout.flush()
        if opens_browser:
            webbrowser.open(address)
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", server_header=False, lifespan="off",
                                timeout_graceful_shutdown=1)  # fmt: skip
        Server(config).run(sockets=[listener])
    return 0


def open_data(db: str, tenant: str) -> InspectorData:
    """Open the inspector's data of a store, with the key in the environment."""
    from pagein.server.inspector.data import InspectorData  # noqa: PLC0415 - loads where it is looked at

    return InspectorData(db, tenant=tenant, key=os.environ.get(KEY_VARIABLE) or None)


def _write_export(db: str, tenant: str, session: str, path: Path) -> int:
    from pagein.memory.export import replace_file  # noqa: PLC0415 - loads for an export alone
    from pagein.server.inspector.export import export_page  # noqa: PLC0415

    with closing(open_data(db, tenant)) as data, _output.progress_bar(session, None) as advance:
        replace_file(path, export_page(data, session, lambda done, total: advance(done, total=total)))
    _output.print_text(f"{path}: {session}, {path.stat().st_size:,} bytes; it opens without a server")
    return 0
