"""The command line ``pagein``. Modules with a leading underscore are shared by the commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes
from pagein._common.version import __version__

if TYPE_CHECKING:
    from pagein.cli._app import build_app, new_app, run_app

__all__ = ["build_app", "main", "new_app", "run_app"]

__getattr__ = lazy_attributes(__name__, dict.fromkeys(("build_app", "new_app", "run_app"), "pagein.cli._app"))


INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Return its exit code: 0, 1 for an error, which is one line on stderr, 2 for wrong usage."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the start, as by >&-
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for the rest of the process
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        sys.stdout.write(f"pagein {__version__}\n")
        return 0
    try:
        from pagein.cli._app import run_words  # noqa: PLC0415 - the commands load only where one is run

        return run_words(words)
    except KeyboardInterrupt:  # while they load
        return INTERRUPTED
