"""``python -m benchmarks degrade``: scripted agents that know only what they can read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from benchmarks.degrade.contexts import FULL
from benchmarks.degrade.measure import Experiment, Played, averages, bench_degrade, summary
from benchmarks.degrade.plot import check_plot, write_plot
from pagein.cli import _output
from pagein.cli._options import AsJson, ModelName, resolve_counter

Several = Parameter(consume_multiple=True)


def degrade(
    *,
    worlds: Annotated[tuple[str, ...], Several, Parameter(help="search, hunt or desk. Default: all.")] = (),
    policies: Annotated[
        tuple[str, ...], Several, Parameter(help="sliding window, head+recency, masking, or a policy. Default: all.")
    ] = (),
    lengths: Annotated[tuple[int, ...], Several, Parameter(help="Steps with full context.")] = (40, 120, 400),
    seeds: Annotated[int, Parameter(help="Worlds of each kind and length.")] = 3,
    budget_share: Annotated[
        tuple[float, ...], Several, Parameter(help="Budgets, as shares of the longest request with full context.")
    ] = (0.25, 0.125),
    model: ModelName = None,
    expand: Annotated[
        bool, Parameter(help="Let agents expand handles, at the cost of a step.", show_default=False)
    ] = False,
    quick: Annotated[
        bool, Parameter(help="One length and two seeds: takes seconds, not minutes.", show_default=False)
    ] = False,
    plot: Annotated[Path | None, Parameter(help="File for a plot of success and cost: .png, .svg or .pdf.")] = None,
    json: AsJson = False,
) -> int:
    """Compare success with and without paging: long tasks, by agents that know only their request.

    There is no model: a scripted agent decides each step from the request alone.
    What it cannot read there, it looks up again, which costs steps, or does
    again. In search, codes found early open lockers late. In hunt, suspects are
    ruled out and leads mislead. In desk, many orders wait for an answer, and
    rules given once hold to the end. Agents stop when done, or at 2 x length + 20
    steps.

    Columns: won is the share of runs that succeed. Steps and costs are relative
    to the same world with full context. Dead is the number of dead ends tried
    again, drift of actions against the task, again of repeated look-ups, each per
    run. Cached is the cost with a prompt cache, where a token costs 0.1 to read
    and 1.25 to write. Kept is the share of each request that the next one keeps.

    For example:

      python -m benchmarks degrade --quick
      python -m benchmarks degrade --worlds hunt --policies ladder masking --seeds 10
      python -m benchmarks degrade --lengths 100 --budget-share 0.5 0.25 --plot a.png
    """
    given = Experiment(lengths=lengths, seeds=seeds, shares=budget_share, expand=expand)
    experiment = Experiment(worlds or given.worlds, policies or given.policies, lengths, seeds, budget_share, expand)
    experiment = experiment.quick if quick else experiment
    counter = resolve_counter(model)
    if plot is not None:
        check_plot(plot)
    with _output.progress_bar("worlds", experiment.plays) as advance:
        played = bench_degrade(experiment, counter, lambda world: _one_further(advance, world))
    if json:
        facts = {"lengths": experiment.lengths, "seeds": experiment.seeds, "counter": counter.name}
        _output.print_json(facts | {"expand": expand, "rows": summary(played)})
    else:
        _print(played, experiment)
    if plot is not None:
        write_plot(played, plot)
        if not json:
            _output.print_text(f"The plot is in {plot}.")
    return 0


def _one_further(advance: _output.Advance, world: str) -> None:
    del world
    advance()


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _few(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{int(value * 100)}%"


_COLUMNS: Mapping[str, tuple[str, Callable[[float | None], str]]] = {
    "won": ("success", _share),
    "steps": ("steps", _times),
    "dead": ("dead_ends", _few),
    "drift": ("drift", _few),
    "again": ("again", _few),
    "cost": ("cost", _times),
    "cached": ("cost_cached", _times),
    "kept": ("prefix", _times),
}


def _print(played: Sequence[Played], experiment: Experiment) -> None:
    out = _output.console()
    full = [each for each in played if each.policy == FULL]
    for share in experiment.shares:
        table = _output.new_table(f"budget {share:g} of the full length, {len(full)} runs a row", "", *_COLUMNS)
        for policy, group in _groups(played, share):
            result = averages(group)
            _output.add_row(table, policy, *(form(result.get(name)) for name, form in _COLUMNS.values()))
        out.print(table)
    for share in experiment.shares:
        title = f"won, by world and by length, at {share:g}"
        table = _output.new_table(title, "", *experiment.worlds, *map(str, experiment.lengths))
        for policy, group in _groups(played, share):
            cells = [_won(each for each in group if each.world == world) for world in experiment.worlds]
            cells += [_won(each for each in group if each.length == length) for length in experiment.lengths]
            _output.add_row(table, policy, *cells)
        out.print(table)
    tokens = _output.format_short(sum(each.outcome.tokens for each in full) // max(1, len(full)))
    out.print(
        f"{len(played):,} runs. With full context a run sends {tokens} tokens;\nsteps and costs are relative to the same world with full context."
    )


def _groups(played: Sequence[Played], share: float) -> list[tuple[str, list[Played]]]:
    """Group the runs by policy, full context first."""
    here = [each for each in played if each.policy == FULL or each.share == share]
    return [
        (name, [each for each in here if each.policy == name]) for name in dict.fromkeys(each.policy for each in here)
    ]


def _won(group: Iterable[Played]) -> str:
    return _share(averages(group).get("success"))
