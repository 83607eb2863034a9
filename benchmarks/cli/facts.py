"""``python -m benchmarks facts``: facts in the block, their cost for the prefix, and the time of a ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from benchmarks import facts as bench
from benchmarks import facts_prefix as prefix
from benchmarks import procedures as procedures_bench
from pagein.cli import _output
from pagein.cli._options import AsJson, BudgetTokens, LimitRuns, ModelName, check_budget, resolve_counter
from pagein.evaluation.faults import request_points
from pagein.evaluation.runs import read_runs
from pagein.evaluation.tally import Tally


def measure(
    *files: Annotated[Path, Parameter(help="LoCoMo's or LongMemEval's JSON files, plain or gzipped.")],
    pool: Annotated[Path | None, Parameter(help="Sessions by id to draw LongMemEval's distractors from.")] = None,
    haystack: Annotated[int, Parameter(help="Sessions of a LongMemEval question, with a pool.")] = 50,
    limit: Annotated[int | None, Parameter(help="Maximum questions of each conversation.")] = None,
    refit: Annotated[bool, Parameter(negative="--no-refit", help="Compare with scikit-learn.")] = True,
    speed: Annotated[bool, Parameter(negative="--no-speed", help="Measure the time of a ranking.")] = True,
    runs: Annotated[
        tuple[Path, ...], Parameter(consume_multiple=True, help="Recorded runs, for the cost of facts for the prefix.")
    ] = (),
    budget: BudgetTokens = 8_000,
    known: Annotated[int, Parameter(help="Facts known at the start of a run.")] = 200,
    limit_runs: LimitRuns = None,
    model: ModelName = None,
    json: AsJson = False,
) -> int:
    """Measure whether the facts that a question needs are in the block, and the time of a ranking.

    The facts are turns (in LongMemEval the user's), and the needed ones are the
    evidence. Their share is measured in blocks of 300 to 2,000 tokens, for
    pagein; for confidence alone, filled up to the first that does not fit
    (deer-flow as it is); and for scikit-learn's TfidfVectorizer, fitted at each
    call. "Apart" is the largest difference between our cosines and scikit-learn's
    on the same terms.

    --runs measures the share of each request that is a prefix of the next:
    without facts, with facts in the run, and with facts frozen at its head. The
    facts are sentences of the other runs' users, with a new one every five
    requests.

    For example:

      python -m benchmarks facts locomo10.json
      python -m benchmarks facts longmemeval_s.json --no-refit --no-speed
      python -m benchmarks facts --no-speed --runs runs.jsonl.gz --limit-runs 20
      python -m benchmarks facts
    """
    check_budget(budget)
    counter = resolve_counter(model)
    shares: dict[str, bench.Shares] = {}
    for file in files:
        asked = bench.read_asked(file, pool, haystack)
        if limit is not None:
            asked = [bench.Asked(each.facts, each.questions[: max(1, limit)]) for each in asked]
        with _output.progress_bar(file.name, sum(len(each.questions) for each in asked)) as advance:
            shares[file.name] = bench.bench_facts(asked, counter, refit=refit, tick=advance)
    costs = {}
    for file in runs:
        played = read_runs(file, limit=limit_runs)
        with _output.progress_bar(file.name, sum(map(request_points, played))) as advance:
            costs[file.name] = prefix.bench_prefix(played, budget, counter, known=known, tick=advance)
    sizes = (10_000, 100_000) if speed else ()
    with _output.progress_bar("ranking", len(sizes)) as advance:
        speeds = bench.bench_speed_of_facts(sizes, refit=refit, tick=advance)
    if json:
        kept = {name: prefix.as_dict(each) for name, each in costs.items()}
        _output.print_json(bench.as_dict(shares, speeds) | {"prefix": kept})
        return 0
    for name, each in costs.items():
        _print_prefix(f"{name}, {budget:,} tokens, {known:,} facts and more", each)
    for name, shared in shares.items():
        _print_shares(name, shared)
    _print_speeds(speeds)
    return 0


def _print_shares(name: str, shares: bench.Shares) -> None:
    title = f"{name}: {shares.questions:,} questions, share of the needed facts in the block"
    table = _output.new_table(title, "system", *(f"{budget:,} tokens" for budget in bench.BUDGETS))
    for system in (bench.OURS, bench.CONFIDENCE, bench.REFIT):
        if (system, bench.BUDGETS[0]) in shares.sums:
            _output.add_row(
                table, system, *(_output.format_share(shares.mean(system, budget)) for budget in bench.BUDGETS)
            )
    _output.console().print(table)
    _output.console().print(f"Apart from scikit-learn on the same terms: {shares.apart:.1e}")


def _print_prefix(title: str, tallies: Mapping[str, Tally]) -> None:
    table = _output.new_table(
        title, "facts", "prefix kept", "above budget", "tokens a request", "requests", "over, illegal, raised"
    )
    for name, each in tallies.items():
        wrong = f"{each.over}, {each.illegal + each.orphans}, {len(each.raised)}"
        tokens = _output.format_count(each.tokens // max(1, each.requests))
        kept = _output.format_share(each.prefix), _output.format_share(each.prefix_above)
        _output.add_row(table, name, *kept, tokens, _output.format_count(each.requests), wrong)
    _output.console().print(table)


def _print_speeds(speeds: Sequence[bench.Speed]) -> None:
    if not speeds:
        return
    table = _output.new_table(
        "one ranking, ms (medians)",
        "facts",
        "ours",
        "of the processor",
        "after one more",
        "injection",
        "again",
        "refit",
        "times",
    )
    for speed in speeds:
        again: Any = "-" if speed.refit is None else f"{speed.refit:,.0f}"
        times = "-" if speed.times is None else f"{speed.times:,.0f}"
        took = (
            f"{ms:.1f}" for ms in (speed.ours, speed.processor, speed.after_one_more, speed.injection, speed.repeated)
        )
        _output.add_row(table, _output.format_count(speed.facts), *took, again, times)
    _output.console().print(table)


def procedures(
    *files: Annotated[Path, Parameter(help="Recorded runs: JSON lines, plain or gzipped.")],
    saved: Annotated[int | None, Parameter(help="Runs whose procedures are saved. Default: half of them.")] = None,
    show: Annotated[int, Parameter(help="Procedures to print.")] = 0,
    json: AsJson = False,
) -> int:
    """Measure how often a new task finds the procedure of a run of its own group, and what procedures cost.

    The group of a run is its id up to the last hyphen: the repository of a
    SWE-bench instance. Runs are drawn ten times; the task of each other run is a
    query, where a procedure of its group was saved. "By chance" is the share of
    its group among those.

    For example:

      python -m benchmarks procedures runs.jsonl.gz --saved 60 --show 2
    """
    known, without = procedures_bench.read_procedures(files)
    found = procedures_bench.measure_finding(known, saved or len(known) // 2)
    tokens = procedures_bench.count_tokens(known)
    row = {
        "runs": len(known) + len(without), "with a procedure": len(known), "queries": found.queries, "first": found.first,
        "by chance": found.chance, "first, mean of groups": found.by_group, "shown": found.shown, "right of shown": found.right,
        "tokens": sum(tokens) / len(tokens), "tokens p95": tokens[int(0.95 * len(tokens))],
    }  # fmt: skip
    if json:
        _output.print_json(row)
        return 0
    table = _output.new_table("procedures", "", "", text_columns=1)
    for name, figure in row.items():
        _output.add_row(table, name, f"{figure:.3g}" if isinstance(figure, float) else f"{figure}")
    _output.console().print(table)
    for item in known[:show]:
        _output.print_text(f"{item.fact.content}\n")
    return 0
