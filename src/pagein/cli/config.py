"""``pagein config``: what holds here, and where it was set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.cli import _output as screen
from pagein.cli._options import AsJson


def config(
    *,
    file: Annotated[
        Path | None, Parameter(help="This file; without it the nearest from here upwards.")
    ] = None,
    docs: Annotated[
        bool, Parameter(help="Print the page of every key, as Markdown.", show_default=False)
    ] = False,
    json: AsJson = False,
) -> int:
    """Show every setting that holds here, and where it was set.

    Read from pagein.toml, or [tool.pagein] in pyproject.toml, and from PAGEIN_...
    in the environment. A mistake in them is an error with what may be there.

    For example:

      pagein config
      pagein config --file pagein.toml --json
    """
    from pagein.memory.config import KEYS, load  # noqa: PLC0415 - names every part of the library; for this command only
    from pagein.memory.config.page import page, told  # noqa: PLC0415

    if docs:
        screen.show(page())
        return 0
    found = load(file)
    rows = [
        (name, found.value(name), found.values[name].source if name in found.values else "default")
        for name in KEYS
    ]
    if json:
        screen.show_json(
            {
                "file": None if found.file is None else str(found.file),
                "keys": [dict(zip(("key", "value", "from"), each, strict=True)) for each in rows],
            }
        )
        return 0
    made = screen.table(f"Read from {found.file or 'no file'}", "key", "value", "from", left=3)
    for name, value, source in rows:
        screen.row(made, name, told(value), source)
    screen.console().print(made)
    return 0
