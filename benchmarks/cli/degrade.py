"""``python -m benchmarks degrade``: scripted agents that know only what they can read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from benchmarks.degrade.contexts import FULL
from benchmarks.degrade.measure import Experiment, Played, averages, bench_degrade, summary
from benchmarks.degrade.plot import check_plot, write_plot
from pagein.cli import _output as screen
from pagein.cli._options import AsJson, ModelName, counter_of

Several = Parameter(consume_multiple=True)


def degrade(
    *,
    worlds: Annotated[tuple[str, ...], Several, Parameter(help="search, hunt, desk.")] = (),
    policies: Annotated[
        tuple[str, ...],
        Several,
        Parameter(help="sliding window, head+recency, masking, or a policy's name; without it all of them."),
    ] = (),
    lengths: Annotated[tuple[int, ...], Several, Parameter(help="Steps with full context.")] = (40, 120, 400),
    seeds: Annotated[int, Parameter(help="Worlds of each kind and length.")] = 3,
    budget_share: Annotated[
        tuple[float, ...],
        Several,
        Parameter(help="Budgets, as shares of the longest request with full context."),
    ] = (0.25, 0.125),
    model: ModelName = None,
    expand: Annotated[
        bool,
        Parameter(help="Let agents expand a handle they see, as a step of its own.", show_default=False),
    ] = False,
    quick: Annotated[
        bool, Parameter(help="One length and two seeds: seconds, not minutes.", show_default=False)
    ] = False,
    plot: Annotated[
        Path | None, Parameter(help="Draw success and cost into this .png, .svg or .pdf.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Find out whether paging helps: long tasks, by agents that know only what they can read.

    No model: a scripted agent decides each step from the request alone. What it
    cannot read there it looks up again, at the cost of steps, or does again. In
    search, codes found early open lockers late; in hunt, suspects are ruled out
    and leads mislead; in desk, many orders wait for an answer, and rules given
    once hold to the end. Agents stop when done, or at 2 x length + 20 steps.

    Won is the share of runs that succeed; steps and costs are against the same
    world with full context; dead is dead ends tried again, drift actions against
    the task, again look-ups repeated, all three a run. Cached is the cost with a
    prompt cache, a token read at 0.1 and written at 1.25. Kept is the share of
    each request that the next one keeps.

    For example:

      python -m benchmarks degrade --quick
      python -m benchmarks degrade --worlds hunt --policies ladder masking --seeds 10
      python -m benchmarks degrade --lengths 100 --budget-share 0.5 0.25 --plot a.png
    """
    given = Experiment(lengths=lengths, seeds=seeds, shares=budget_share, expand=expand)
    experiment = Experiment(
        worlds or given.worlds, policies or given.policies, lengths, seeds, budget_share, expand
    )
    experiment = experiment.quick if quick else experiment
    counter = counter_of(model)
    if plot is not None:
        check_plot(plot)
    with screen.progress("worlds", experiment.plays) as advance:
        played = bench_degrade(experiment, counter, lambda world: _one_further(advance, world))
    if json:
        facts = {"lengths": experiment.lengths, "seeds": experiment.seeds, "counter": counter.name}
        screen.show_json(facts | {"expand": expand, "rows": summary(played)})
    else:
        _print(played, experiment)
    if plot is not None:
        write_plot(played, plot)
        if not json:
            screen.show(f"The picture is in {plot}.")
    return 0


def _one_further(advance: screen.Advance, world: str) -> None:
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
    out = screen.console()
    full = [each for each in played if each.policy == FULL]
    for share in experiment.shares:
        made = screen.table(f"budget {share:g} of the full length, {len(full)} runs a row", "", *_COLUMNS)
        for policy, group in _groups(played, share):
            found = averages(group)
            screen.row(made, policy, *(form(found.get(name)) for name, form in _COLUMNS.values()))
        out.print(made)
    for share in experiment.shares:
        title = f"won, by world and by length, at {share:g}"
        made = screen.table(title, "", *experiment.worlds, *map(str, experiment.lengths))
        for policy, group in _groups(played, share):
            cells = [_won(each for each in group if each.world == world) for world in experiment.worlds]
            cells += [_won(each for each in group if each.length == length) for length in experiment.lengths]
            screen.row(made, policy, *cells)
        out.print(made)
    tokens = screen.short(sum(each.outcome.tokens for each in full) // max(1, len(full)))
    out.print(
        f"{len(played):,} runs. With full context a run sends {tokens} tokens;\nsteps and costs are shares of the same world's."
    )


def _groups(played: Sequence[Played], share: float) -> list[tuple[str, list[Played]]]:
    """The runs by policy, full context first."""
    here = [each for each in played if each.policy == FULL or each.share == share]
    return [
        (name, [each for each in here if each.policy == name])
        for name in dict.fromkeys(each.policy for each in here)
    ]


def _won(group: Iterable[Played]) -> str:
    return _share(averages(group).get("success"))
