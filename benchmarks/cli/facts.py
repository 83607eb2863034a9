"""``python -m benchmarks facts``: what of the facts is in the block, what they cost of a prefix, and how fast they are ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from benchmarks import facts as bench
from benchmarks import facts_prefix as prefix
from pagein.cli import _output as screen
from pagein.cli._options import AsJson, BudgetTokens, LimitRuns, ModelName, check_budget, counter_of
from pagein.evaluation.faults import request_points
from pagein.evaluation.runs import read_runs
from pagein.evaluation.tally import Tally


def measure(
    *files: Annotated[Path, Parameter(help="LoCoMo's or LongMemEval's JSON files, plain or gzipped.")],
    pool: Annotated[
        Path | None, Parameter(help="Sessions by id to draw LongMemEval's distractors from.")
    ] = None,
    haystack: Annotated[int, Parameter(help="Sessions of a LongMemEval question, with a pool.")] = 50,
    limit: Annotated[int | None, Parameter(help="Only so many questions of each conversation.")] = None,
    refit: Annotated[bool, Parameter(negative="--no-refit", help="Beside scikit-learn, too.")] = True,
    speed: Annotated[bool, Parameter(negative="--no-speed", help="How long a ranking takes, too.")] = True,
    runs: Annotated[
        tuple[Path, ...],
        Parameter(
            consume_multiple=True, help="Recorded runs: what facts cost of their requests' prefix, too."
        ),
    ] = (),
    budget: BudgetTokens = 8_000,
    known: Annotated[int, Parameter(help="Facts that are known when a run begins.")] = 200,
    limit_runs: LimitRuns = None,
    model: ModelName = None,
    json: AsJson = False,
) -> int:
    """Measure whether the facts that a question needs are in the block, and how fast they are ranked.

    Turns are the facts (of LongMemEval the user's), the evidence is what is needed.
    The share of it is measured inside blocks of 500, 1,000 and 2,000 tokens: ours;
    confidence alone, filled to the first that does not fit (deer-flow as it is);
    and a TfidfVectorizer of scikit-learn's, fitted at each call. "Apart" is the
    largest difference between our cosines and scikit-learn's on the same terms.

    With --runs: the share of each request that is the next one's prefix, without
    facts, with facts in the run and with facts frozen at its head; sentences of the
    other runs' users are the facts, one more is learnt every five requests.

    For example:

      python -m benchmarks facts locomo10.json
      python -m benchmarks facts longmemeval_s.json --no-refit --no-speed
      python -m benchmarks facts --no-speed --runs runs.jsonl.gz --limit-runs 20
      python -m benchmarks facts
    """
    check_budget(budget)
    counter = counter_of(model)
    shares: dict[str, bench.Shares] = {}
    for file in files:
        asked = bench.read_asked(file, pool, haystack)
        if limit is not None:
            asked = [bench.Asked(each.facts, each.questions[: max(1, limit)]) for each in asked]
        with screen.progress(file.name, sum(len(each.questions) for each in asked)) as advance:
            shares[file.name] = bench.bench_facts(asked, counter, refit=refit, tick=advance)
    costs = {}
    for file in runs:
        played = read_runs(file, limit=limit_runs)
        with screen.progress(file.name, sum(map(request_points, played))) as advance:
            costs[file.name] = prefix.bench_prefix(played, budget, counter, known=known, tick=advance)
    sizes = (10_000, 100_000) if speed else ()
    with screen.progress("ranking", len(sizes)) as advance:
        speeds = bench.bench_speed_of_facts(sizes, refit=refit, tick=advance)
    if json:
        kept = {name: prefix.as_dict(each) for name, each in costs.items()}
        screen.show_json(bench.as_dict(shares, speeds) | {"prefix": kept})
        return 0
    for name, each in costs.items():
        _print_prefix(f"{name}, {budget:,} tokens, {known:,} facts and more", each)
    for name, shared in shares.items():
        _print_shares(name, shared)
    _print_speeds(speeds)
    return 0


def _print_shares(name: str, shares: bench.Shares) -> None:
    title = f"{name}: {shares.questions:,} questions, share of the needed facts in the block"
    made = screen.table(title, "system", *(f"{budget:,} tokens" for budget in bench.BUDGETS))
    for system in (bench.OURS, bench.CONFIDENCE, bench.REFIT):
        if (system, bench.BUDGETS[0]) in shares.sums:
            screen.row(made, system, *(screen.rate(shares.mean(system, budget)) for budget in bench.BUDGETS))
    screen.console().print(made)
    screen.console().print(f"Apart from scikit-learn on the same terms: {shares.apart:.1e}")


def _print_prefix(title: str, tallies: Mapping[str, Tally]) -> None:
    made = screen.table(
        title, "facts", "prefix kept", "above budget", "tokens a request", "requests", "over, illegal, raised"
    )
    for name, each in tallies.items():
        wrong = f"{each.over}, {each.illegal + each.orphans}, {len(each.raised)}"
        tokens = screen.number(each.tokens // max(1, each.requests))
        kept = screen.rate(each.prefix), screen.rate(each.prefix_above)
        screen.row(made, name, *kept, tokens, screen.number(each.requests), wrong)
    screen.console().print(made)


def _print_speeds(speeds: Sequence[bench.Speed]) -> None:
    if not speeds:
        return
    made = screen.table(
        "one ranking, ms (medians)", "facts", "ours", "of the processor", "after one more", "refit", "times"
    )
    for each in speeds:
        again: Any = "-" if each.refit is None else f"{each.refit:,.0f}"
        times = "-" if each.times is None else f"{each.times:,.0f}"
        took = (f"{ms:.1f}" for ms in (each.ours, each.processor, each.after_one_more))
        screen.row(made, screen.number(each.facts), *took, again, times)
    screen.console().print(made)
