"""The command line: ``pagein demo | replay | log | view | expand | verify | export | import | facts | config | bench``.

told      what a command was not told: the environment, the configuration file
screen    what is printed, and how: tables, progress, JSON, errors
playing   demo and replay: recorded runs through a memory
stores    a file or an address, and the session in it that is meant
looking   log, view, expand and verify: into a database
branching checkpoint and resume
moving    export and import: a session out of its store and into another
benching  bench faults, bench savings and bench speed
degrading bench degrade
summarising  bench fidelity and bench blocking
enduring  bench crash and bench load
erasing   erase and retain
recalling recall
working   worker
facting   facts
benching_facts  bench facts
configuring  config
benching_recall  bench recall and bench search
benching_frameworks  bench frameworks
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from pagein.cli import screen
from pagein.errors import PageinError

USAGE = 2
FAILED = 1
INTERRUPTED = 130
PIPE_CLOSED = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and give its exit code: 0; 1 for an error of ours, which is one line on stderr; 2 for usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["facts"]:
        from pagein.cli.facting import in_order  # noqa: PLC0415 - loaded for its own commands only

        given = in_order(given)
    try:
        code = _app()(given, exit_on_error=False, print_error=False, result_action="return_value")
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


def _app() -> App:
    """Every command, under its name. Built at each call: nothing of it outlives one."""
    from pagein import __version__  # noqa: PLC0415 - names every room of the library
    from pagein.cli import (  # noqa: PLC0415
        benching,
        benching_facts,
        benching_frameworks,
        benching_recall,
        branching,
        configuring,
        degrading,
        enduring,
        erasing,
        facting,
        looking,
        moving,
        playing,
        recalling,
        summarising,
        working,
    )

    app = App(
        name="pagein",
        help=(
            "Demand paging for an LLM agent's context: a run is recorded whole, the model sees a view of it that "
            "never exceeds its budget, and what left the view comes back by its handle."
        ),
        version=f"pagein {__version__}",
        version_flags=["--version"],
        help_format="plaintext",
        default_parameter=Parameter(negative=""),
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
    bench = App(name="bench", help="The measurements you can repeat.")
    bench.command(benching.faults)
    bench.command(benching.savings)
    bench.command(benching.speed)
    bench.command(degrading.degrade)
    bench.command(summarising.fidelity)
    bench.command(summarising.blocking)
    bench.command(benching_facts.measure, name="facts")
    bench.command(enduring.crash)
    bench.command(enduring.load)
    bench.command(enduring.opening, name="open")
    bench.command(benching_recall.search)
    bench.command(benching_frameworks.frameworks)
    recall = App(name="recall", help="How much of what a question needs is found again.")
    recall.command(benching_recall.locomo)
    recall.command(benching_recall.longmemeval)
    recall.command(benching_recall.runs)
    bench.command(recall)
    app.command(bench)
    return app
