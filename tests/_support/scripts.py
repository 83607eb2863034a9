"""Run a script inside this process: what a new one would spend on imports is most of a test's time."""

import asyncio
import contextlib
import gc
import io
import logging
import os
import runpy
import sys
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FinishedScript:
    """The exit code of a script and what it printed, as ``subprocess.run`` gives them."""

    returncode: int
    stdout: str
    stderr: str


def run_script(
    path: Path, *arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> FinishedScript:
    """Run a script as ``__main__``; its working directory, arguments, environment and log handlers end with it."""
    stdout, stderr = io.StringIO(), io.StringIO()
    argv, variables, handlers = sys.argv, dict(os.environ), logging.root.handlers[:]
    os.environ.update(environment or {})
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    loaded = set(sys.modules)
    code = 0
    try:
        with (
            contextlib.chdir(folder or Path.cwd()),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # as an interpreter does that nobody asked
            gc.freeze()
            try:
                runpy.run_path(str(path), run_name="__main__")
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else int(error.code is not None)
            except Exception:  # noqa: BLE001 - as a process does: the traceback, and 1
                code = 1
                traceback.print_exc()
            _close_event_loop()
            gc.collect()  # what the script left open is closed here, and not in another test
    finally:
        sys.argv = argv
        sys.path.remove(str(path.parent))
        for name in set(sys.modules) - loaded:  # a script's neighbours are its own
            if str(getattr(sys.modules[name], "__file__", "")).startswith(f"{path.parent}/"):
                del sys.modules[name]
        os.environ.clear()
        os.environ.update(variables)
        logging.root.handlers[:] = handlers
    return FinishedScript(code, stdout.getvalue(), stderr.getvalue())


def _close_event_loop() -> None:
    """Close the event loop that a script's ``run_sync`` left as the thread's own."""
    with contextlib.suppress(RuntimeError):
        asyncio.get_event_loop_policy().get_event_loop().close()
    asyncio.set_event_loop(None)
