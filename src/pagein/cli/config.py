"""``pagein config``: print every setting and its source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.cli import _output
from pagein.cli._options import AsJson


def config(
    *,
    file: Annotated[
        Path | None, Parameter(help="Configuration file. Default: the nearest one, from this folder upwards.")
    ] = None,
    docs: Annotated[bool, Parameter(help="Print the documentation of all keys, as Markdown.")] = False,
    json: AsJson = False,
) -> int:
    """Show every setting and its source.

    Settings come from pagein.toml, or [tool.pagein] in pyproject.toml, and from
    PAGEIN_... variables in the environment. The error for a wrong value lists the
    allowed values.

    For example:

      pagein config
      pagein config --file pagein.toml --json
    """
    from pagein.memory.config import KEYS, load  # noqa: PLC0415 - imports every part of the library; for this command only
    from pagein.memory.config.page import format_value, render_page  # noqa: PLC0415

    if docs:
        _output.print_text(render_page())
        return 0
    settings = load(file)
    rows = [
        (name, settings.value(name), settings.values[name].source if name in settings.values else "default")
        for name in KEYS
    ]
    if json:
        _output.print_json(
            {
                "file": None if settings.file is None else str(settings.file),
                "keys": [dict(zip(("key", "value", "from"), row, strict=True)) for row in rows],
            }
        )
        return 0
    cells = ((name, format_value(value), source) for name, value, source in rows)
    title = f"Read from {settings.file or 'no file'}"
    _output.print_table(title, "key", "value", "from", rows=cells, text_columns=3, wraps=("value",))
    return 0
