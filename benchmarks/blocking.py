"""Measure the time of a turn with a background summarizer, and without one.

The slow summarizer works at most turns, for a simulated 30 seconds, and answers only between two turns: no turn can have
its answer, and none may wait for it. The decent one answers after a few turns, as a model that takes seconds does in a
run whose turns take seconds. The share of each request that the next one keeps is measured with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.evaluation.requests import Scale, canonical_json, prefix_share
from pagein.evaluation.runs import Run, turns_of
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.testing.scripted_writer import ScriptedModel
from pagein.tokens import TokenCounter

NOBODY, SLOW, DECENT = "nobody", "slow", "decent"
WRITERS: Final = (NOBODY, SLOW, DECENT)

WORKS: Final = 6
"""Turns that a summariser is at work: 30 seconds, at five a turn."""

ANSWERS: Final = 3
"""Turns after which the decent one answers."""

Tick = Callable[[], None]


@dataclass(slots=True)
class Timed:
    """The requests with one kind of summarizer at one budget."""

    seconds: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)
    asked: int = 0
    at_work: int = 0
    """Requests that were made while the writer was at work."""

    def at(self, share: float) -> float:
        """The quantile of the request times, in milliseconds."""
        items = sorted(self.seconds)
        return 1e3 * items[min(len(items) - 1, int(share * len(items)))] if items else 0.0

    @property
    def prefix(self) -> float | None:
        """The mean share of each request that is a prefix of the next."""
        return sum(self.kept) / len(self.kept) if self.kept else None

    def as_dict(self) -> dict[str, Any]:
        """The measurements as JSON-safe values."""
        return {
            "requests": len(self.seconds), "at_work": self.at_work, "asked": self.asked, "prefix": self.prefix,
            "ms": {"p50": self.at(0.5), "p95": self.at(0.95), "max": self.at(1.0)},
        }  # fmt: skip


def bench_blocking(
    runs: Sequence[Run], budgets: Iterable[int], policy: str, counter: TokenCounter, tick: Tick, *, page_in: float = 0.0
) -> dict[int, dict[str, Timed]]:
    """Measure the requests of the runs, by budget and by summarizer. ``page_in``: share of the budget."""
    results: dict[int, dict[str, Timed]] = {}
    for budget in budgets:
        results[budget] = {name: Timed() for name in WRITERS}
        for run in runs:
            for name, timed in results[budget].items():
                options: dict[str, Any] = {"budget": budget, "policy": policy, "counter": counter, "page_in": page_in}
                _play(run, name, options, timed)
                tick()
    return results


def _play(run: Run, writer: str, options: dict[str, Any], timed: Timed) -> None:
    model = ScriptedModel(gate=threading.Event())
    if writer != NOBODY:
        options = {**options, "summarizer": model}
    scale = Scale(options["counter"], format_named("openai"))
    with AgentMemory.open(":memory:", **options) as memory:
        earlier: str | None = None
        for new in _between(memory, model, WORKS if writer == SLOW else ANSWERS, turns_of(run)):
            memory.record_messages(new, run.format, whole=False)
            timed.at_work += not memory.wait(0.0)
            start = time.perf_counter()
            memory.view()
            timed.seconds.append(time.perf_counter() - start)
            request = canonical_json(scale.measure_request(memory.to_messages("openai")))
            if earlier is not None:
                timed.kept.append(prefix_share(earlier, request))
            earlier = request
    timed.asked += len(model.requests)


def _between(
    memory: AgentMemory, model: ScriptedModel, turns: int, given: Iterable[list[dict[str, Any]]]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the turns; after so many turns of work, the model answers before the next one."""
    since = 0
    for each in given:
        if not memory.wait(0.0):
            since += 1
        if since >= turns and model.gate is not None:
            model.gate.set()
            memory.wait(30)
            model.gate.clear()
            since = 0
        yield each
