"""``python -m benchmarks fidelity``, ``checkpoints`` and ``blocking``: what summaries and checkpoints keep, and whether a turn waits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from benchmarks.blocking import NOBODY, Timed, bench_blocking
from benchmarks.checkpoints import bench_checkpoints
from benchmarks.cli._summarizer import BenchmarkSummarizer, open_summarizer
from benchmarks.fidelity import make_run
from pagein.cli import _output
from pagein.cli._options import AsJson, check_budget, resolve_counter
from pagein.cli.bench import check_fidelity_options, fidelity_rows, print_fidelity
from pagein.context.compaction.registry import policy_named
from pagein.evaluation.fidelity import BUDGET, ROUNDS, STRATEGIES, Setting, bench_fidelity
from pagein.evaluation.runs import Run, demo_run, read_runs

Several = Parameter(consume_multiple=True)
Runs = Annotated[
    Path | None, Parameter(help="Recorded runs: JSON lines, a JSON list, or either gzipped.", show_default=False)
]
FirstRuns = Annotated[int | None, Parameter(help="Read only the first runs of the file.", show_default=False)]


def fidelity(
    file: Runs = None,
    /,
    *,
    model: BenchmarkSummarizer = None,
    local: Annotated[bool, Parameter(help="Same as --model local.", show_default=False)] = False,
    policies: Annotated[tuple[str, ...], Several, Parameter(help="Policies to compare.")] = STRATEGIES,
    rounds: Annotated[
        tuple[int, ...], Several, Parameter(help="Numbers of compactions after which to measure.")
    ] = ROUNDS,
    budget: Annotated[int, Parameter(help="Maximum tokens of a request.")] = BUDGET,
    limit_runs: FirstRuns = None,
    json: AsJson = False,
) -> int:
    """Measure what a request still shows after 1 to 50 compactions, by kind.

    After so many compactions, the request is searched for the rules of the user
    and the application, and for the errors, decisions, paths, identifiers and
    numbers of the steps that left the view; also for two pins. Every step can be
    retrieved by its handle; this measures what needs no retrieval. A run with
    fewer compactions does not count in a row. Without a file, the benchmark makes
    up a run.

    Exit code 1 if a rule or a pin is not in the request.

    For example:

      python -m benchmarks fidelity
      python -m benchmarks fidelity runs.jsonl.gz --limit-runs 10 --model openai:gpt-4o-mini
      python -m benchmarks fidelity --local --policies tiers --rounds 1 3
    """
    check_fidelity_options(policies, rounds, budget)
    runs = (make_run(),) if file is None else read_runs(file, limit=limit_runs)
    name = "local" if local else model
    with open_summarizer(name) as author, _output.progress_bar("runs", len(runs) * len(policies)) as advance:
        setting = Setting(resolve_counter(None), budget, author, tuple(sorted(set(rounds))))
        survival = bench_fidelity(runs, policies, setting, advance)
    if json:
        _output.print_json({"budget": budget, "model": name, "runs": len(runs), "policies": fidelity_rows(survival)})
    else:
        print_fidelity(survival, f"in sight at {budget:,} tokens, {name or 'extracts'}")
    shares = (kept.share(kind) for of in survival.values() for kept in of.values() for kind in ("constraint", "pin"))
    return 0 if all(share in (None, 1.0) for share in shares) else 1


def checkpoints(
    folder: Annotated[Path, Parameter(help="The folder of the recorded runs that the lists are about.")],
    /,
    *,
    held_back: Annotated[bool, Parameter(help="The runs that nothing was tuned on.")] = False,
    told: Annotated[
        bool, Parameter(help="Print every item of the checkpoints, to judge by reading if it is true.")
    ] = False,
) -> int:
    """Measure what a checkpoint tells against lists written by reading the runs.

    The lists are in benchmarks/checkpoint_lists.json: what is open, decided, ruled
    out and next at a point of each run. The table has the share of their items that
    the checkpoint tells, and the number of its own items.

    For example:

      python -m benchmarks checkpoints data/trajectories
      python -m benchmarks checkpoints data/trajectories --held-back --told
    """
    scores = tuple(bench_checkpoints(folder, held_back=held_back))
    table = _output.new_table("told by a checkpoint", "list", "of written", "written", "told")
    for name in dict.fromkeys(score.name for score in scores):
        of = [score for score in scores if score.name == name]
        written, matched = sum(len(score.written) for score in of), sum(len(score.matched) for score in of)
        items = sum(len(score.told) for score in of)
        _output.add_row(table, name, _output.format_share(matched / max(1, written)), f"{written}", f"{items}")
    _output.console().print(table)
    for score in scores if told else ():
        for text in score.told:
            _output.console().print(f"{score.run}, {score.name}: {text}", markup=False, highlight=False)
    return 0


def blocking(
    file: Runs = None,
    /,
    *,
    budgets: Annotated[tuple[int, ...], Several, Parameter(help="Maximum tokens of a request.")] = (4_000, 8_000),
    policy: Annotated[str, Parameter(help="Compaction policy.")] = "tiers",
    limit_runs: FirstRuns = None,
    page_in: Annotated[float, Parameter(help="Share of the budget for the page-in.")] = 0.0,
    json: AsJson = False,
) -> int:
    """Measure whether a turn waits for the model that writes summaries.

    The same runs are played three times: without a summarizer; with a slow one,
    which takes 30 seconds and works at most turns (simulated: it answers between
    two turns, never within one); and with a decent one, which answers after three
    turns. The milliseconds are the time to make a request. Kept is the share of
    each request that the next one begins with. The summarizers are scripted, and
    no model is called.

    For example:

      python -m benchmarks blocking
      python -m benchmarks blocking runs.jsonl.gz --limit-runs 10 --budgets 4000 16000
    """
    for budget in budgets:
        check_budget(budget)
    policy_named(policy)
    runs: Sequence[Run] = (demo_run(),) if file is None else read_runs(file, limit=limit_runs)
    with _output.progress_bar("runs", 3 * len(runs) * len(budgets)) as advance:
        result = bench_blocking(runs, budgets, policy, resolve_counter(None), advance, page_in=page_in)
    if json:
        rows = {f"{budget}": {name: each.as_dict() for name, each in of.items()} for budget, of in result.items()}
        _output.print_json({"policy": policy, "runs": len(runs), "page_in": page_in, "budgets": rows})
        return 0
    table = _output.new_table(
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
        text_columns=2,
    )
    for budget, of in result.items():
        for name, timed in of.items():
            _output.add_row(table, f"{budget:,}", name, *_timed_cells(timed, of[NOBODY]))
        table.add_section()
    _output.console().print(table)
    return 0


def _timed_cells(each: Timed, nobody: Timed) -> tuple[str, ...]:
    added = "-" if each is nobody else f"{each.at(0.95) - nobody.at(0.95):+.1f}"
    times = (f"{each.at(0.5):.1f}", f"{each.at(0.95):.1f}", added, f"{each.at(1.0):.1f}")
    return (f"{len(each.seconds)}", f"{each.at_work}", *times, _output.format_share(each.prefix))
