"""``pagein bench``: measure recorded runs of your own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.cli import _output
from pagein.cli._options import (
    AsJson,
    BudgetTokens,
    LimitRuns,
    ModelName,
    PageIn,
    PolicyName,
    check_budget,
    check_page_in,
    resolve_counter,
)
from pagein.context.compaction.registry import policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import bench_faults, request_points
from pagein.evaluation.runs import read_runs
from pagein.evaluation.savings import averages, bench_missing_needs, bench_savings
from pagein.evaluation.tally import NeedCounts, Tally
from pagein.memory.options import PAGE_IN_SHARE


def faults(
    *files: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    budget: BudgetTokens,
    policy: PolicyName = "ladder",
    page_in: PageIn = PAGE_IN_SHARE,
    model: ModelName = None,
    limit_runs: LimitRuns = None,
    json: AsJson = False,
) -> int:
    """Count the text that the model would have missed, with pagein and with baselines.

    At each step of a recorded run whose history exceeds the budget, the needs are
    the identifiers and the lines of 25 characters or more in the step's tool
    arguments that occurred earlier in the run. A need that the request lacks is a
    fault. An identifier is grounded where a line with it also has three other words
    of a line in which it occurred. Far needs are outside the most recent tokens
    that fit the budget.

    The baselines: head+recency keeps the opening and the newest turns that fit,
    like langchain's trim_messages; masking also hides all but the last ten results;
    clipping also cuts long results to head and tail. All three keep the opening
    messages whole at any cost; pagein clips long ones.

    Needs met is the share of far needs that the request has: identifiers bare,
    then identifiers grounded and lines. --page-in 0 turns the automatic insertion
    of steps off.

    For example:

      pagein bench faults runs.jsonl.gz --budget 4000
      pagein bench faults runs.jsonl.gz --budget 4000 --page-in 0
      pagein bench faults *.jsonl.gz --budget 8000 --limit-runs 20 --json
    """
    check_budget(budget)
    check_page_in(page_in)
    policy_named(policy)
    counter = resolve_counter(model)
    if not files:
        raise ConfigurationError("give at least one file of recorded runs")
    if limit_runs is not None and limit_runs < 1:
        raise ConfigurationError(f"--limit-runs must be 1 or more, not {limit_runs}")
    results: dict[str, dict[str, Tally]] = {}
    runs_by_file = {str(path): read_runs(path, limit=limit_runs) for path in files}
    for name, runs in runs_by_file.items():
        with _output.progress_bar(Path(name).name, sum(map(request_points, runs))) as advance:
            results[name] = bench_faults(runs, budget, counter, policy=policy, page_in=page_in, tick=advance)
        if not json:
            _print_faults(Path(name).name, results[name], budget, policy)
    if json:
        rows = {
            name: {strategy: tally.as_dict() for strategy, tally in tallies.items()}
            for name, tallies in results.items()
        }
        _output.print_json(
            {"budget": budget, "policy": policy, "page_in": page_in, "counter": counter.name, "files": rows}
        )
    return 0


_ROWS: Mapping[str, Callable[[Tally], str]] = {
    "identifiers missing": lambda tally: _output.format_share(tally.needs.rates()["bare"]),
    "identifiers not grounded": lambda tally: _output.format_share(tally.needs.rates()["grounded"]),
    "lines missing": lambda tally: _output.format_share(tally.needs.rates()["lines"]),
    "far identifiers missing": lambda tally: _output.format_share(tally.far.rates()["bare"]),
    "far identifiers not grounded": lambda tally: _output.format_share(tally.far.rates()["grounded"]),
    "far lines missing": lambda tally: _output.format_share(tally.far.rates()["lines"]),
    "far identifiers met": lambda tally: _output.format_share(tally.far.met_bare_share),
    "far needs met": lambda tally: _output.format_share(tally.far.met_share),
    "tokens a request": lambda tally: _output.format_count(tally.as_dict()["tokens_a_request_above"]),
    "highest request": lambda tally: _output.format_count(tally.highest),
    "requests over budget": lambda tally: _output.format_count(tally.over),
    "orphans": lambda tally: _output.format_count(tally.orphans),
    "illegal requests": lambda tally: _output.format_count(tally.illegal),
    "runs that raised": lambda tally: _output.format_count(len(tally.raised)),
    "prefix kept, all requests": lambda tally: _output.format_share(tally.prefix),
    "prefix kept, above budget": lambda tally: _output.format_share(tally.prefix_above),
    "ms a step": lambda tally: "-" if tally.milliseconds is None else f"{tally.milliseconds:.2f}",
}


def _print_faults(file: str, tallies: Mapping[str, Tally], budget: int, policy: str) -> None:
    pagein = next(iter(tallies.values()))
    table = _output.new_table(f"{file}, {budget:,} tokens, {policy}", "faults a need", *tallies)
    for label, format_cell in _ROWS.items():
        if label in ("far identifiers missing", "tokens a request"):
            table.add_section()
        _output.add_row(table, label, *map(format_cell, tallies.values()))
    out = _output.console()
    out.print(table)
    needs, far = pagein.needs, pagein.far
    out.print(
        f"{pagein.runs:,} runs, {pagein.requests:,} requests, {pagein.above:,} with a history above the budget; they need "
        f"{needs.identifiers:,} identifiers and {needs.lines:,} lines, {far.identifiers:,} and {far.lines:,} far."
    )
    retrieval = pagein.retrieval
    if retrieval is not None:
        answer = "yes" if retrieval.ok else f"NO, {len(retrieval.lost):,} are lost"
        out.print(
            f"Everything retrievable: {answer} ({retrieval.items:,} recorded, {retrieval.handles:,} handles tried).\n"
        )
    for name, tally in tallies.items():
        for error in tally.raised:
            _output.print_error(f"{name}: {error}")


def savings(
    *files: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    policy: PolicyName = "rounds",
    budget: Annotated[
        int | None, Parameter(help="Limit in tokens. Default: 0.4 of the tokens of a run of 100 calls.")
    ] = None,
    model: ModelName = None,
    limit_runs: LimitRuns = None,
    json: AsJson = False,
) -> int:
    """Count the tokens that a policy saves in a request after 50 and 100 tool calls.

    Runs with fewer calls are joined until they have 100; the table says how many.
    The default limit is 40 % of the tokens of a run of 100 calls. The second table
    has the faults, as in bench faults, of the policy and of the ladder at the same
    limit.

    For example:

      pagein bench savings runs.jsonl.gz
      pagein bench savings runs.jsonl.gz --policy ladder --json
    """
    if budget is not None:
        check_budget(budget)
    policy_named(policy)
    counter = resolve_counter(model)
    if not files:
        raise ConfigurationError("give at least one file of recorded runs")
    results, faults_by_file = {}, {}
    for path in files:
        runs = tuple(read_runs(path, limit=limit_runs))
        results[str(path)] = averages(bench_savings(runs, counter, policy=policy, limit=budget))
        tallies = bench_missing_needs(runs, counter, policies=dict.fromkeys((policy, "ladder")), limit=budget)
        faults_by_file[str(path)] = {name: tally.needs.rates() for name, tally in tallies.items()}
    if json:
        _output.print_json({"policy": policy, "counter": counter.name, "files": results, "missed": faults_by_file})
        return 0
    for name, rows in results.items():
        columns = ("calls", "runs", "of recorded", "limit", "without", "with", "saved")
        table = _output.new_table(f"{Path(name).name}, {policy}", *columns)
        for row in rows:
            counts = (row["runs"], row["recorded_runs"])
            tokens = (row["limit"], row["without"], row["within"])
            cells = (*map(str, counts), *map(_output.format_count, tokens), f"{row['saved']:.0%}")
            _output.add_row(table, f"{row['calls']}", *cells)
        _output.console().print(table)
        fault_table = _output.new_table("missing in the requests above the limit", "policy", *NeedCounts().rates())
        for policy_name, rates in faults_by_file[name].items():
            _output.add_row(fault_table, policy_name, *map(_output.format_share, rates.values()))
        _output.console().print(fault_table)
    return 0
