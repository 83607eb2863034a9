"""``python -m benchmarks peers``: pagein beside other libraries, each through its own entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from benchmarks.peer_agents import PEERS
from benchmarks.peer_faults import PeerTally, bench_peer_faults
from pagein.cli import _options, _output
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import request_points
from pagein.evaluation.runs import demo_run, read_runs

CURE: Final = "pip install 'pagein[bench,serve]'"

PeerName = Literal["pydantic-ai-harness", "LangChain", "deepagents"]


def peers(
    *files: Annotated[Path, Parameter(help="Files of recorded runs. Default: the run of pagein demo.")],
    budget: _options.BudgetTokens = 4_000,
    only: Annotated[tuple[PeerName, ...], Parameter(help="Libraries. Default: all that are installed.")] = (),
    limit_runs: _options.LimitRuns = None,
    json: _options.AsJson = False,
) -> int:
    """Count the text that the model would have missed with pagein, and with the compaction of other libraries.

    See pagein bench faults for the measures. Each library's own agent plays the
    recorded runs against a scripted provider: its model repeats the run's answers
    and its tools the run's results. What the provider receives is measured.

    pydantic-ai-harness: TieredCompaction beyond the budget, which clears old
    results, then summarises. LangChain: SummarizationMiddleware beyond the
    budget. deepagents: SummarizationMiddleware beyond .85 of the budget. Each
    keeps the newest quarter of the budget whole where it summarises. CPU is the
    library's own before a request: pagein's has the recording as well.

    A stand-in writes the summaries: lines from all of the text, evenly, 3,000
    characters. Their tokens, input and output, have a column of their own; the
    price does not have them. pagein asks no model.

    For example:

      python -m benchmarks peers runs.jsonl.gz --budget 8000 --limit-runs 20
    """
    _options.check_budget(budget)
    chosen = {name: PEERS[name] for name in only or PEERS if only or PEERS[name].version}
    missing = [name for name, peer in chosen.items() if peer.version is None]
    if missing or not chosen:
        raise ConfigurationError(f"not installed: {', '.join(missing or PEERS)}; {CURE}")
    runs = [run for file in files for run in read_runs(file, limit=limit_runs)] or [demo_run()]
    counter = _options.resolve_counter(None)
    with _output.progress_bar("peers", sum(map(request_points, runs))) as advance:
        tallies = bench_peer_faults(runs, budget, counter, chosen, advance)
    versions = {name: f"{name} {peer.version}" for name, peer in chosen.items()}
    if json:
        rows = {versions.get(name, name): tally.as_dict() for name, tally in tallies.items()}
        _output.print_json({"budget": budget, "counter": counter.name, "libraries": rows})
        return 0
    _print_table(f"{_output.count_of(len(runs), 'run')}, {budget:,} tokens", tallies, versions)
    return 0


_ROWS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "identifiers missing": lambda row: _output.format_share(row["faults"]["bare"]),
    "identifiers not grounded": lambda row: _output.format_share(row["faults"]["grounded"]),
    "lines missing": lambda row: _output.format_share(row["faults"]["lines"]),
    "price a request": lambda row: _output.format_count(row["price_a_request_above"]),
    "tokens a request": lambda row: _output.format_count(row["tokens_a_request_above"]),
    "summaries' tokens a request": lambda row: _output.format_count(row["summary_tokens_a_request_above"]),
    "prefix kept": lambda row: _output.format_share(row["prefix_kept_above"]),
    "requests over budget": lambda row: _output.format_count(row["over_budget"]),
    "illegal requests": lambda row: _output.format_count(row["illegal"]),
    "runs that raised": lambda row: _output.format_count(len(row["raised"])),
    "CPU ms a request, median": lambda row: _format_cpu(row, "median"),
    "CPU ms a request, mean": lambda row: _format_cpu(row, "mean"),
}


def _format_cpu(row: Mapping[str, Any], kind: str) -> str:
    cpu = row["cpu_ms_a_request"]
    return "-" if cpu is None else f"{cpu[kind]:.1f}"


def _print_table(title: str, tallies: Mapping[str, PeerTally], versions: Mapping[str, str]) -> None:
    rows = {name: tally.as_dict() for name, tally in tallies.items()}
    table = _output.new_table(title, "", *rows)
    for label, format_cell in _ROWS.items():
        _output.add_row(table, label, *map(format_cell, rows.values()))
    out = _output.console()
    out.print(table)
    above = next(iter(tallies.values())).tally.above
    out.print(f"{_output.count_of(above, 'request')} with a history above the budget. {', '.join(versions.values())}.")
    for name, peer in tallies.items():
        for error in peer.tally.raised:
            _output.print_error(f"{name}: {error}")
