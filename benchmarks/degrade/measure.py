"""Every world under every context, counted: who succeeds, what it takes, what it costs beside full context.

Steps, tokens and costs are shares of what the same world took with full context, so that long runs weigh as short ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from benchmarks.degrade.contexts import FULL, check_contexts, context, default_contexts
from benchmarks.degrade.play import WORLDS, Outcome, play_run
from pagein.errors import ConfigurationError
from pagein.evaluation.requests import Scale
from pagein.formats import format_named
from pagein.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Experiment:
    """The runs to play: every world at every length, seed, and share of the full length as budget.

    Raises ConfigurationError for an impossible experiment.
    """

    worlds: tuple[str, ...] = tuple(WORLDS)
    policies: tuple[str, ...] = field(default_factory=default_contexts)
    lengths: tuple[int, ...] = (40, 120, 400)
    seeds: int = 3
    shares: tuple[float, ...] = (0.25, 0.125)
    expand: bool = False

    def __post_init__(self) -> None:
        check_contexts(self.policies)
        for world in self.worlds:
            if world not in WORLDS:
                raise ConfigurationError(f"no world {world!r}; there are {', '.join(WORLDS)}")
        for length in self.lengths:
            if not 20 <= length <= 1_000:
                raise ConfigurationError(f"a length is 20 to 1,000 steps, not {length}")
        for share in self.shares:
            if not 0 < share <= 1:
                raise ConfigurationError(f"a budget share is above 0 and at most 1, not {share}")
        if not 1 <= self.seeds <= 1_000:
            raise ConfigurationError(f"seeds are 1 to 1,000, not {self.seeds}")

    @property
    def quick(self) -> Experiment:
        """The same, with one length and two seeds: seconds, not minutes."""
        return replace(self, lengths=(40,), seeds=2)

    @property
    def plays(self) -> int:
        """The number of runs."""
        paged = sum(policy != FULL for policy in self.policies)
        return len(self.worlds) * len(self.lengths) * self.seeds * (1 + paged * len(self.shares))


@dataclass(frozen=True, slots=True)
class Played:
    """One run, and the same world's run with full context beside it. Full context has the budget share 1."""

    world: str
    length: int
    seed: int
    policy: str
    share: float
    outcome: Outcome
    full: Outcome

    @property
    def row(self) -> dict[str, float | None]:
        """The values to average over runs; the prefix share is None for a single request."""
        out, full = self.outcome, self.full
        return {
            "success": float(out.score.success),
            "steps": out.steps / full.steps,
            "dead_ends": float(out.score.dead_ends),
            "drift": float(out.score.drift),
            "again": float(out.score.again),
            "tokens": float(out.tokens),
            "cost": out.tokens / full.tokens,
            "cost_cached": out.cost_cached / full.cost_cached,
            "prefix": out.kept / out.previous if out.previous else None,
            "expanded": float(out.expanded),
            "over": float(out.over),
        }


def bench_degrade(
    experiment: Experiment, counter: TokenCounter, tick: Callable[[str], None] = lambda _: None
) -> tuple[Played, ...]:
    """Every run of an experiment, in its order; ``tick`` is called behind each. Raises BudgetError."""
    return tuple(
        game
        for world in experiment.worlds
        for length in experiment.lengths
        for seed in range(experiment.seeds)
        for game in _games(experiment, world, length, seed, counter, tick)
    )


def _games(
    experiment: Experiment, world: str, length: int, seed: int, counter: TokenCounter, tick: Callable[[str], None]
) -> Iterator[Played]:
    """One world, with full context first: what it takes is what the budgets are shares of."""
    kind, scale = WORLDS[world], Scale(counter, format_named("openai"))
    with context(FULL, 1, scale) as strategy:
        full = play_run(kind, length, seed, strategy, scale)
    tick(world)
    yield Played(world, length, seed, FULL, 1.0, full, full)
    for policy in experiment.policies:
        for share in experiment.shares if policy != FULL else ():
            with context(policy, max(1, int(full.longest * share)), scale) as strategy:
                out = play_run(kind, length, seed, strategy, scale, expand=experiment.expand)
            tick(world)
            yield Played(world, length, seed, policy, share, out, full)


def averages(played: Iterable[Played]) -> dict[str, float | None]:
    """The mean of each figure over runs; None where no run has it."""
    rows = [each.row for each in played]
    names = rows[0] if rows else {}
    results = {name: [row[name] for row in rows] for name in names}
    return {name: _mean([value for value in values if value is not None]) for name, values in results.items()}


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def summary(played: Sequence[Played]) -> list[dict[str, Any]]:
    """The averages by budget share and policy: over all worlds, and of each world and each length by itself."""
    results: list[dict[str, Any]] = []
    for share, policy in dict.fromkeys((each.share, each.policy) for each in played):
        here = [each for each in played if (each.share, each.policy) == (share, policy)]
        groups: list[tuple[str, int | None, list[Played]]] = [("all", None, here)]
        groups += [
            (world, None, [each for each in here if each.world == world])
            for world in dict.fromkeys(each.world for each in here)
        ]
        groups += [
            ("all", length, [each for each in here if each.length == length])
            for length in dict.fromkeys(each.length for each in here)
        ]
        results += [
            {"budget_share": share, "policy": policy, "world": world, "length": length, "runs": len(group)}
            | averages(group)
            for world, length, group in groups
        ]
    return results
