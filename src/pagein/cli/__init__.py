"""The command line: ``pagein``. Each module has the commands of its name; a leading underscore marks what they share."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from pagein._common.version import __version__
from pagein.cli import _output as screen
from pagein.errors import PageinError

USAGE = 2
FAILED = 1
INTERRUPTED = 130
PIPE_CLOSED = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0; 1 for an error of ours, which is one line on stderr; 2 for usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["facts"]:
        from pagein.cli.facts import in_order  # noqa: PLC0415 - loaded for its own commands only

        given = in_order(given)
    return run_app(_app(), given)


def run_app(app: App, arguments: Sequence[str] | None = None) -> int:
    """Run one command of an app; return its exit code, as ``main`` does."""
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        screen.complain(f"{error} Try --help.")
        return USAGE
    except PageinError as error:
        screen.complain(str(error))
        return FAILED
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            screen.hang_up()
            return PIPE_CLOSED
        screen.complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as error:  # rich leaves so where the pipe was closed
        return error.code if isinstance(error.code, int) else FAILED
    return code if isinstance(code, int) else 0


def new_app(name: str, help: str) -> App:
    """Create an app with the version, the help format and the parameters that all our commands share."""
    return App(
        name=name,
        help=help,
        version=f"pagein {__version__}",
        version_flags=["--version"],
        help_format="plaintext",
        default_parameter=Parameter(negative=""),
    )


def _app() -> App:
    """Build the command line, at each call: nothing of it outlives one."""
    from pagein.cli import bench as benching
    from pagein.cli import checkpoint as branching
    from pagein.cli import config as configuring
    from pagein.cli import erase as erasing
    from pagein.cli import facts as facting
    from pagein.cli import inspect as looking
    from pagein.cli import recall as recalling
    from pagein.cli import replay as playing
    from pagein.cli import transfer as moving
    from pagein.cli import worker as working

    app = new_app(
        "pagein",
        "Demand paging for an LLM agent's context: a run is recorded whole, the model sees a view of it that "
        "never exceeds its budget, and what left the view comes back by its handle.",
    )
    for command in (
        playing.demo,
        playing.replay,
        looking.log,
        looking.view,
        looking.expand,
        looking.verify,
        recalling.recall,
        branching.checkpoint,
        branching.resume,
    ):
        app.command(command)
    app.command(working.worker)
    app.command(moving.export)
    app.command(moving.restore, name="import")
    app.command(erasing.erase)
    app.command(erasing.retain)
    app.command(facting.app())
    app.command(configuring.config)
    bench = App(
        name="bench",
        help="Measure recorded runs of your own. More benchmarks, in a checkout: python -m benchmarks.",
    )
    bench.command(benching.faults)
    bench.command(benching.savings)
    app.command(bench)
    return app
