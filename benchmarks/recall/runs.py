"""Measure the needs of recorded runs from far back, with page-in and without it."""

from __future__ import annotations

from collections.abc import Sequence

from pagein.evaluation.faults import PAGEIN, Tick, bench_faults
from pagein.evaluation.runs import Run
from pagein.evaluation.tally import Tally
from pagein.memory.options import PAGE_IN_SHARE
from pagein.tokens import TokenCounter


def bench_runs(
    runs: Sequence[Run],
    budget: int,
    counter: TokenCounter,
    *,
    policy: str = "ladder",
    page_in: float = PAGE_IN_SHARE,
    tick: Tick = lambda: None,
) -> dict[str, Tally]:
    """The tallies of the runs without page-in and with it, under these names; a tick for each request of either.

    Raises ConfigurationError, BudgetError.
    """
    results = {}
    for name, share in (("without", 0.0), ("with", page_in)):
        tallies = bench_faults(runs, budget, counter, policy=policy, page_in=share, baselines=False, tick=tick)
        results[name] = tallies[PAGEIN]
    return results
