"""What recorded runs need from far back, with what comes back by itself and without it, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from pagein.evaluation.faults import PAGEIN, Tick, bench_faults
from pagein.evaluation.runs import Run
from pagein.evaluation.tally import Tally
from pagein.memory.options import SHARE
from pagein.tokens import TokenCounter


def bench_runs(
    runs: Sequence[Run],
    budget: int,
    counter: TokenCounter,
    *,
    policy: str = "ladder",
    page_in: float = SHARE,
    tick: Tick = lambda: None,
) -> dict[str, Tally]:
    """The tallies of the runs without page-in and with it, under these names; a tick for each request of either.

    Raises ConfigurationError, BudgetError.
    """
    found = {}
    for name, share in (("without", 0.0), ("with", page_in)):
        tallies = bench_faults(
            runs, budget, counter, policy=policy, page_in=share, baselines=False, tick=tick
        )
        found[name] = tallies[PAGEIN]
    return found
