"""``pagein bench``: measure recorded runs of your own (faults, savings)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pagein.cli import _output as screen
from pagein.cli._options import (
    AsJson,
    BudgetTokens,
    LimitRuns,
    ModelName,
    PageIn,
    PolicyName,
    check_budget,
    check_page_in,
    counter_of,
)
from pagein.context.compaction.registry import policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import bench_faults, request_points
from pagein.evaluation.runs import read_runs
from pagein.evaluation.savings import averages, bench_missed, bench_savings
from pagein.evaluation.tally import Missed, Tally
from pagein.memory.options import SHARE


def faults(
    *files: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    budget: BudgetTokens,
    policy: PolicyName = "ladder",
    page_in: PageIn = SHARE,
    model: ModelName = None,
    limit_runs: LimitRuns = None,
    json: AsJson = False,
) -> int:
    """Count what the model would have missed: pagein beside what agents do today.

    At each step of a recorded run whose history exceeds the budget, the needs are
    the identifiers and the lines of 25 characters and more in the step's tool
    arguments that occurred earlier in the run. A need that the request does not
    hold is a fault. An identifier is grounded where a line that holds it also
    holds three other words of a line in which it occurred. Far needs are outside
    the most recent tokens that fit the budget.

    Beside pagein: head+recency, the opening and the newest turns that fit, as
    langchain's trim_messages; masking, the same with only the last ten results
    shown; clipping, the same with long results cut to head and tail. All three
    keep the opening messages whole, whatever they cost; pagein clips long ones.

    Needs met is the share of far needs that the request holds, identifiers bare,
    then identifiers grounded and lines. With --page-in 0 nothing that left comes
    back by itself.

    For example:

      pagein bench faults runs.jsonl.gz --budget 4000
      pagein bench faults runs.jsonl.gz --budget 4000 --page-in 0
      pagein bench faults *.jsonl.gz --budget 8000 --limit-runs 20 --json
    """
    check_budget(budget)
    check_page_in(page_in)
    policy_named(policy)
    counter = counter_of(model)
    if not files:
        raise ConfigurationError("give at least one file of recorded runs")
    if limit_runs is not None and limit_runs < 1:
        raise ConfigurationError(f"--limit-runs must be 1 or more, not {limit_runs}")
    found: dict[str, dict[str, Tally]] = {}
    loaded = {str(path): read_runs(path, limit=limit_runs) for path in files}
    for name, runs in loaded.items():
        with screen.progress(Path(name).name, sum(map(request_points, runs))) as advance:
            found[name] = bench_faults(runs, budget, counter, policy=policy, page_in=page_in, tick=advance)
        if not json:
            _print_faults(Path(name).name, found[name], budget, policy)
    if json:
        files_found = {
            name: {each: tally.as_dict() for each, tally in tallies.items()}
            for name, tallies in found.items()
        }
        screen.show_json(
            {
                "budget": budget,
                "policy": policy,
                "page_in": page_in,
                "counter": counter.name,
                "files": files_found,
            }
        )
    return 0


_ROWS: Mapping[str, Callable[[Tally], str]] = {
    "identifiers missing": lambda each: screen.rate(each.needs.rates()["bare"]),
    "identifiers not grounded": lambda each: screen.rate(each.needs.rates()["grounded"]),
    "lines missing": lambda each: screen.rate(each.needs.rates()["lines"]),
    "far identifiers missing": lambda each: screen.rate(each.far.rates()["bare"]),
    "far identifiers not grounded": lambda each: screen.rate(each.far.rates()["grounded"]),
    "far lines missing": lambda each: screen.rate(each.far.rates()["lines"]),
    "far identifiers met": lambda each: screen.rate(each.far.met_bare),
    "far needs met": lambda each: screen.rate(each.far.met),
    "tokens a request": lambda each: screen.number(each.as_dict()["tokens_a_request_above"]),
    "highest request": lambda each: screen.number(each.highest),
    "requests over budget": lambda each: screen.number(each.over),
    "orphans": lambda each: screen.number(each.orphans),
    "illegal requests": lambda each: screen.number(each.illegal),
    "runs that raised": lambda each: screen.number(len(each.raised)),
    "prefix kept, all requests": lambda each: screen.rate(each.prefix),
    "prefix kept, above budget": lambda each: screen.rate(each.prefix_above),
    "ms a step": lambda each: "-" if each.milliseconds is None else f"{each.milliseconds:.2f}",
}


def _print_faults(file: str, tallies: Mapping[str, Tally], budget: int, policy: str) -> None:
    ours = next(iter(tallies.values()))
    made = screen.table(f"{file}, {budget:,} tokens, {policy}", "faults a need", *tallies)
    for what, cell in _ROWS.items():
        if what in ("far identifiers missing", "tokens a request"):
            made.add_section()
        screen.row(made, what, *map(cell, tallies.values()))
    out = screen.console()
    out.print(made)
    needs, far = ours.needs, ours.far
    out.print(
        f"{ours.runs:,} runs, {ours.requests:,} requests, {ours.above:,} with a history above the budget; they need "
        f"{needs.identifiers:,} identifiers and {needs.lines:,} lines, {far.identifiers:,} and {far.lines:,} far."
    )
    kept = ours.retrieval
    if kept is not None:
        answer = "yes" if kept.ok else f"NO, {len(kept.lost):,} are lost"
        out.print(
            f"Everything retrievable: {answer} ({kept.said:,} recorded, {kept.handles:,} handles tried).\n"
        )
    for name, tally in tallies.items():
        for each in tally.raised:
            screen.complain(f"{name}: {each}")


def savings(
    *files: Annotated[Path, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.")],
    policy: PolicyName = "rounds",
    budget: Annotated[
        int | None,
        Parameter(help="Tokens of the limit; without it, 0.4 of what a run of 100 calls comes to."),
    ] = None,
    model: ModelName = None,
    limit_runs: LimitRuns = None,
    json: AsJson = False,
) -> int:
    """Count the tokens a request saves after 50 and after 100 tool calls, beside no memory at all.

    Runs with fewer calls are put one behind the other until there are 100; it is
    said how many. The limit stands to a run of 100 calls as 80,000 tokens to
    200,000. Missing are identifiers, bare and grounded, and lines, as in bench
    faults: the policy's beside the ladder's at the same limit.

    For example:

      pagein bench savings runs.jsonl.gz
      pagein bench savings runs.jsonl.gz --policy ladder --json
    """
    if budget is not None:
        check_budget(budget)
    policy_named(policy)
    counter = counter_of(model)
    if not files:
        raise ConfigurationError("give at least one file of recorded runs")
    found, missed = {}, {}
    for path in files:
        runs = tuple(read_runs(path, limit=limit_runs))
        found[str(path)] = averages(bench_savings(runs, counter, policy=policy, limit=budget))
        tallies = bench_missed(runs, counter, policies=dict.fromkeys((policy, "ladder")), limit=budget)
        missed[str(path)] = {name: each.needs.rates() for name, each in tallies.items()}
    if json:
        screen.show_json({"policy": policy, "counter": counter.name, "files": found, "missed": missed})
        return 0
    for name, rows in found.items():
        columns = ("calls", "runs", "of recorded", "limit", "without", "with", "saved")
        made = screen.table(f"{Path(name).name}, {policy}", *columns)
        for each in rows:
            counts = (each["runs"], each["recorded_runs"])
            tokens = (each["limit"], each["without"], each["within"])
            cells = (*map(str, counts), *map(screen.number, tokens), f"{each['saved']:.0%}")
            screen.row(made, f"{each['calls']}", *cells)
        screen.console().print(made)
        lacking = screen.table("missing in the requests above the limit", "policy", *Missed().rates())
        for one, rates in missed[name].items():
            screen.row(lacking, one, *map(screen.rate, rates.values()))
        screen.console().print(lacking)
    return 0
