"""Each framework bare and with pagein, one after the other, in this process and now."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.frameworks import alone
from benchmarks.frameworks.meter import Meter
from pagein.errors import ConfigurationError

FRAMEWORKS: Final = ("smolagents", "langchain", "openai-agents", "pydantic-ai")
BUDGET: Final = 4_000
CALLS, STEPS, LONG = 60, 200, 2_000
"""Tool calls of the run whose tokens are counted, of the one whose turns are timed, and of the long one."""

Play = Callable[[int, int | None, Meter], None]
Tick = Callable[[str, int, int], None]
"""Called with what is being measured, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One framework beside itself with pagein. Times are CPU milliseconds of the process, tokens those of all requests.

    ``turn`` is the median of the last turns of the shorter run, ``mean`` its mean with compactions in it, ``core`` what
    the same turns take through AgentMemory alone, in the mean. ``long`` is the long run's total, ``long_own`` with the
    framework's own way to stay within the budget, where bare it has none; 0 where it was not run.
    """

    framework: str
    turn_bare: float = 0.0
    turn: float = 0.0
    mean_bare: float = 0.0
    mean: float = 0.0
    core: float = 0.0
    long_bare: float = 0.0
    long: float = 0.0
    long_own: float = 0.0
    tokens_bare: int = 0
    tokens: int = 0
    note: str = ""

    @property
    def share(self) -> float:
        """The tokens sent, as a share of the bare framework's."""
        return self.tokens / self.tokens_bare if self.tokens_bare else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON-safe values."""
        return asdict(self) | {"share": self.share}


def bench_frameworks(names: Sequence[str], tick: Tick, *, steps: int = STEPS, long: int = LONG) -> Iterator[Cost]:
    """A row for each framework, as it is measured; one that is not installed says so in ``note``.

    ``long`` 0 leaves the long runs out. Raises ConfigurationError for a framework there is not.
    """
    if unknown := [name for name in names if name not in FRAMEWORKS]:
        raise ConfigurationError(f"no framework {unknown[0]!r}; there are {', '.join(FRAMEWORKS)}")
    core = _run_framework(alone.play, steps, BUDGET).total / steps
    for at, name in enumerate(names):
        tick(name, at, len(names))
        try:
            player = importlib.import_module(f"benchmarks.frameworks.{name.replace('-', '_')}")
        except (ImportError, ConfigurationError):
            yield Cost(name, note=f"pip install 'pagein[{name}]'")
            continue
        yield _cost(name, player.play, getattr(player, "run_trimmed", None), core, steps, long)
    tick("", len(names), len(names))


def _cost(name: str, play: Play, own: Play | None, core: float, steps: int, long: int) -> Cost:
    play(3, BUDGET, Meter())  # what loads once
    sent_bare, sent = (_run_framework(play, CALLS, budget, counts=True) for budget in (None, BUDGET))
    bare, ours = (_run_framework(play, steps, budget) for budget in (None, BUDGET))
    long_bare, long_ours = (
        (_run_framework(play, long, budget).total for budget in (None, BUDGET)) if long else (0.0, 0.0)
    )
    return Cost(
        name,
        turn_bare=bare.turn,
        turn=ours.turn,
        mean_bare=bare.total / steps,
        mean=ours.total / steps,
        core=core,
        long_bare=long_bare,
        long=long_ours,
        long_own=_run_framework(own, long, BUDGET).total if own is not None and long else 0.0,
        tokens_bare=sum(sent_bare.tokens),
        tokens=sum(sent.tokens),
    )


def _run_framework(play: Play, calls: int, budget: int | None, *, counts: bool = False) -> Meter:
    meter = Meter(counts)
    play(calls, budget, meter)
    return meter
