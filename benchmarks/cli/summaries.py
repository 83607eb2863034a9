"""``python -m benchmarks fidelity`` and ``python -m benchmarks blocking``: what summaries keep, and whether a turn waits for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from benchmarks.blocking import NOBODY, Timed, bench_blocking
from benchmarks.cli._writers import WriterName, writer
from benchmarks.fidelity import BUDGET, ROUNDS, STRATEGIES, Kept, Setting, bench_fidelity, made_up
from pagein.cli import _output as screen
from pagein.cli._options import AsJson, check_budget, counter_of
from pagein.context.compaction.registry import policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation.runs import Run, demo_run, read_runs
from pagein.summaries.key_items import KINDS

Several = Parameter(consume_multiple=True)
Runs = Annotated[
    Path | None,
    Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.", show_default=False),
]
FirstRuns = Annotated[int | None, Parameter(help="Read only the first runs of the file.", show_default=False)]


def fidelity(
    file: Runs = None,
    /,
    *,
    model: WriterName = None,
    local: Annotated[bool, Parameter(help="As --model local.", show_default=False)] = False,
    policies: Annotated[tuple[str, ...], Several, Parameter(help="The strategies to compare.")] = STRATEGIES,
    rounds: Annotated[tuple[int, ...], Several, Parameter(help="Compactions after which to look.")] = ROUNDS,
    budget: Annotated[int, Parameter(help="Tokens a request may have.")] = BUDGET,
    limit_runs: FirstRuns = None,
    json: AsJson = False,
) -> int:
    """What is still in sight after one compaction, and after fifty, kind by kind.

    After so many compactions all that left the view by then is held against the
    request: the rules of the user and the host, and errors, decisions, paths,
    identifiers and numbers of the steps that left; two pins as well. Everything
    comes back by its handle; this counts what needs no asking. Runs that end
    before are not counted in a row; without a file one run is made up.

    Exit code 1 where a rule or a pin is out of sight.

    For example:

      python -m benchmarks fidelity
      python -m benchmarks fidelity runs.jsonl.gz --limit-runs 10 --model openai:gpt-4o-mini
      python -m benchmarks fidelity --local --policies tiers --rounds 1 3
    """
    check_budget(budget)
    for each in policies:
        policy_named(each)
    if not rounds or min(rounds) < 1:
        raise ConfigurationError("--rounds are numbers of compactions, 1 or more")
    runs = (made_up(),) if file is None else read_runs(file, limit=limit_runs)
    name = "local" if local else model
    with writer(name) as author, screen.progress("runs", len(runs) * len(policies)) as advance:
        setting = Setting(counter_of(None), budget, author, tuple(sorted(set(rounds))))
        found = bench_fidelity(runs, policies, setting, advance)
    if json:
        rows = {each: {count: kept.as_dict() for count, kept in of.items()} for each, of in found.items()}
        screen.show_json({"budget": budget, "model": name, "runs": len(runs), "policies": rows})
    else:
        _print_fidelity(found, f"in sight at {budget:,} tokens, {name or 'extracts'}")
    whole = (
        kept.share(kind) for of in found.values() for kept in of.values() for kind in ("constraint", "pin")
    )
    return 0 if all(each in (None, 1.0) for each in whole) else 1


_KINDS = ("constraint", "pin", *(each for each in KINDS if each != "constraint"))
_HEADS = {"constraint": "rules", "identifier": "names", "number": "nums", "decision": "decided"}


def _print_fidelity(found: Mapping[str, Mapping[int, Kept]], title: str) -> None:
    heads = (_HEADS.get(each, f"{each}s") for each in _KINDS)
    made = screen.table(title, "policy, times", "runs", *heads)
    for name, of in found.items():
        for count, kept in of.items():
            shares = (_percent(kept.share(kind)) if kept.runs else "-" for kind in _KINDS)
            screen.row(made, f"{name} {count}", f"{kept.runs}", *shares)
        made.add_section()
    screen.console().print(made)


def _percent(value: float | None) -> str:
    """A share in whole percent, rounded down, so that 100 % is all."""
    return "-" if value is None else f"{int(value * 100)}%"


def blocking(
    file: Runs = None,
    /,
    *,
    budgets: Annotated[tuple[int, ...], Several, Parameter(help="Tokens a request may have.")] = (
        4_000,
        8_000,
    ),
    policy: Annotated[str, Parameter(help="What leaves.")] = "tiers",
    limit_runs: FirstRuns = None,
    page_in: Annotated[float, Parameter(help="Share of the budget for what comes back by itself.")] = 0.0,
    json: AsJson = False,
) -> int:
    """Whether a turn waits for the model that writes summaries.

    The same runs three times: nobody writes; a slow writer, which takes 30 seconds
    and is at work at most turns (simulated: it answers between two turns, never
    within one); a decent one, which answers after three turns. Milliseconds are
    what making a request takes. Kept is the share of each request that the next
    one begins with. No model is asked: the writers are scripted.

    For example:

      python -m benchmarks blocking
      python -m benchmarks blocking runs.jsonl.gz --limit-runs 10 --budgets 4000 16000
    """
    for each in budgets:
        check_budget(each)
    policy_named(policy)
    runs: Sequence[Run] = (demo_run(),) if file is None else read_runs(file, limit=limit_runs)
    with screen.progress("runs", 3 * len(runs) * len(budgets)) as advance:
        found = bench_blocking(runs, budgets, policy, counter_of(None), advance, page_in=page_in)
    if json:
        rows = {
            f"{budget}": {name: each.as_dict() for name, each in of.items()} for budget, of in found.items()
        }
        screen.show_json({"policy": policy, "runs": len(runs), "page_in": page_in, "budgets": rows})
        return 0
    made = screen.table(
        f"a request under {policy}",
        "budget",
        "writer",
        "reqs",
        "at work",
        "p50 ms",
        "p95 ms",
        "added",
        "max ms",
        "kept",
        left=2,
    )
    for budget, of in found.items():
        for name, timed in of.items():
            screen.row(made, f"{budget:,}", name, *_timed_cells(timed, of[NOBODY]))
        made.add_section()
    screen.console().print(made)
    return 0


def _timed_cells(each: Timed, nobody: Timed) -> tuple[str, ...]:
    added = "-" if each is nobody else f"{each.at(0.95) - nobody.at(0.95):+.1f}"
    times = (f"{each.at(0.5):.1f}", f"{each.at(0.95):.1f}", added, f"{each.at(1.0):.1f}")
    return (f"{len(each.seconds)}", f"{each.at_work}", *times, screen.rate(each.prefix))
