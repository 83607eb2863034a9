"""``python -m benchmarks clients`` and ``wire-faults``: agents and recorded runs through the proxy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from benchmarks.clients import WINDOWS, Client, NotInstalled, install, run_client
from benchmarks.wire_faults import bench_wire_faults
from pagein.cli import _output
from pagein.cli._options import AsJson, check_budget
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import request_points
from pagein.evaluation.runs import demo_run, read_runs


def clients(
    *names: Annotated[
        Client, Parameter(help="The agents: claude, codex, opencode, qwen, cline, pi, gemini. Default: all.")
    ],
    calls: Annotated[int, Parameter(help="Calls of a tool in each run.")] = 100,
    window: Annotated[int | None, Parameter(help="Window in tokens. Default: one for each client.")] = None,
    proxied: Annotated[bool, Parameter(help="Run each through the proxy alone, not directly too.")] = False,
) -> int:
    """Run agents from npm against a scripted provider, directly and through the proxy."""
    try:
        packages = install()
    except NotInstalled as error:
        raise ConfigurationError(str(error)) from None
    table = _output.new_table(
        f"{calls} calls", "", "exit", "sent", "over", "illegal", "compact", "price", "prefix", "added ms"
    )
    for name in names or tuple(WINDOWS):
        plain = 0.0
        for is_proxied in (True,) if proxied else (False, True):
            run = run_client(name, packages, calls=calls, window=window or WINDOWS[name], proxied=is_proxied)
            price = run.price / max(1, run.calls)
            plain = plain or price
            added = " / ".join(f"{seconds * 1_000:.0f}" for seconds in run.measures.percentiles)
            table.add_row(
                f"{name}, proxied" if is_proxied else name, str(run.exit_code), str(run.measures.requests),
                str(run.measures.over), str(run.measures.illegal), str(run.compactions), f"{price / plain:.2f}",
                f"{run.measures.prefix:.2f}", added if is_proxied else "",
            )  # fmt: skip
    _output.console().print(table)
    return 0


def wire_faults(
    *files: Annotated[Path, Parameter(help="Files of recorded runs. Default: the run of pagein demo.")],
    budget: Annotated[int, Parameter(help="Tokens of the messages of a request.")] = 4_000,
    limit_runs: Annotated[int | None, Parameter(help="Take this many runs of each file.")] = None,
    json: AsJson = False,
) -> int:
    """Count the text that a model behind the proxy would have missed, beside the library at the same budget.

    See pagein bench faults. The runs are handed over in HTTP requests, whole at
    each turn.

    For example:

      python -m benchmarks wire-faults runs.jsonl.gz --budget 8000 --limit-runs 20
    """
    check_budget(budget)
    runs = [run for file in files for run in read_runs(file, limit=limit_runs)] or [demo_run()]
    with _output.progress_bar("wire-faults", sum(map(request_points, runs))) as advance:
        tallies = bench_wire_faults(runs, budget, advance)
    if json:
        _output.print_json({"budget": budget, **{name: tally.as_dict() for name, tally in tallies.items()}})
        return 0
    table = _output.new_table(
        f"{_output.count_of(len(runs), 'run')}, {budget:,} tokens", "", "identifiers missing", "not grounded", "lines missing", "over", "illegal", "prefix"
    )  # fmt: skip
    for name, tally in tallies.items():
        rates = (_output.format_share(tally.needs.rates()[kind]) for kind in ("bare", "grounded", "lines"))
        table.add_row(name, *rates, str(tally.over), str(tally.illegal), _output.format_share(tally.prefix))
    _output.console().print(table)
    return 0
