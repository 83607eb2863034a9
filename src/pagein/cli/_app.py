"""The app behind ``pagein``: its commands, and how one is run."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, UnusedCliTokensError

from pagein._common.version import __version__
from pagein.cli import INTERRUPTED, _output
from pagein.errors import PageinError

USAGE = 2
FAILED = 1
PIPE_CLOSED = 141

_COMMANDS: Mapping[str, str] = {
    "demo": "replay:demo", "replay": "replay:replay", "compare": "replay:compare", "log": "inspect:log", "view": "inspect:view",
    "cost": "cost:cost", "expand": "inspect:expand", "verify": "inspect:verify", "inspect": "inspector:inspect",
    "watch": "inspector:watch", "ledger": "ledger:ledger", "recall": "recall:recall", "checkpoint": "checkpoint:checkpoint",
    "resume": "checkpoint:resume", "worker": "worker:worker", "serve": "serve:serve", "mcp": "serve:mcp", "run": "run:run",
    "export": "transfer:export", "import": "transfer:import_file", "erase": "erase:erase", "retain": "erase:retain",
    "facts": "facts:build_facts_app", "config": "config:config", "bench": "bench:build_bench_app",
}  # fmt: skip
"""Where each command is. It alone loads where it is run: all of them take longer than most of them need."""

_GROUPS = ("facts", "bench")
"""Commands that have commands of their own, for which a function builds an app."""


def run_words(words: list[str]) -> int:
    """Run the command that the words of a command line name; return its exit code."""
    if words[:1] == ["facts"]:
        from pagein.cli.facts import reorder_arguments  # noqa: PLC0415 - loaded for its own commands only

        words = reorder_arguments(words)
    app = build_app(words[0] if words else "")
    if words[:1] == ["bench"] and len(words) > 1 and words[1] not in tuple(app["bench"]):
        _output.print_error(
            f"no command {words[1]!r} in pagein bench, see pagein bench --help. Other benchmarks are in the "
            f"repository: run python -m benchmarks {words[1]} in a checkout."
        )
        return USAGE
    return run_app(app, words)


def run_app(app: App, arguments: Sequence[str] | None = None) -> int:
    """Run one command of an app; return its exit code, as ``main`` does."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a pipe, too, has each line of a worker or a server at once
        sys.stdout.reconfigure(line_buffering=True)
    try:
        with _output.logs_on_stderr():
            code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        _output.print_error(f"{_usage_message(app, error)} Try --help.")
        return USAGE
    except PageinError as error:
        _output.print_error(str(error))
        return FAILED
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            _output.silence_stdout()
            return PIPE_CLOSED
        _output.print_error(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # cyclopts ends so at Ctrl-C
            return INTERRUPTED
        # The console that prints the help exits so where the pipe was closed.
        _output.silence_stdout()
        return PIPE_CLOSED
    return code if isinstance(code, int) else 0


def _usage_message(app: App, error: CycloptsError) -> str:
    """What is wrong with the words of a command line, with an example of the command where one is missing."""
    if isinstance(error, UnusedCliTokensError):
        return f"More words than the command takes: {' '.join(map(repr, error.unused_tokens or ()))}."
    if not isinstance(error, MissingArgumentError) or error.argument is None or not error.command_chain:
        return str(error)
    command = app
    for name in error.command_chain:
        command = command[name]
    example = re.search(r"For example:\s+(\S.*)", command.help)
    words = f"{' '.join(error.command_chain)} needs {'a value for ' * error.argument.name.startswith('--')}{error.argument.name}."
    return f"{words} For example: {example[1]}." if example else words


def new_app(name: str, help: str) -> App:
    """Create an app with the version, the help format and the parameters that all commands share."""
    return App(
        name=name,
        help=help,
        version=f"pagein {__version__}",
        version_flags=["--version"],
        help_format="plaintext",
        default_parameter=Parameter(negative="", show_default=_default_in_help),
    )


def _default_in_help(value: object) -> str | None:
    """The default that the help of an option names: none of a flag, or of an option that is empty without a value."""
    return None if isinstance(value, bool) or value in (None, "", ()) else str(value)


def build_app(only: str = "") -> App:
    """Build the command line; where ``only`` names a command, of that one alone."""
    app = new_app(
        "pagein",
        "Working memory for LLM agents. pagein records a run in full, and sends the model a view of it that fits a "
        "token budget. Each step that is out of view can be read by its handle.",
    )
    for name in (only,) if only in _COMMANDS else _COMMANDS:
        module, _, function = _COMMANDS[name].partition(":")
        command = getattr(import_module(f"pagein.cli.{module}"), function)
        app.command(command() if name in _GROUPS else command, name=name)
    if only not in _COMMANDS:
        app.register_install_completion_command(
            help="Install completion for the shell that runs: bash, zsh, fish or PowerShell."
        )
    return app
