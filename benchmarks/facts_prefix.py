"""Measure the cost of facts for a provider's cache: the prefix share of requests, without and with facts.

Each recorded run is played once per placement. The facts are sentences of users in the other runs of the file, so that
some are related to the run. Many are known at its start, and others are learnt during it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from pagein.errors import ConfigurationError
from pagein.evaluation.faults import Lane, convert_to_openai, measure_run
from pagein.evaluation.requests import Scale, Wire
from pagein.evaluation.runs import Run
from pagein.evaluation.strategies import PageinStrategy
from pagein.evaluation.tally import Tally
from pagein.facts.settings import Settings
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens import TokenCounter

OFF: Final = "off"
PLACES: Mapping[str, Settings | bool] = {
    OFF: False,
    "tail": Settings(placement="tail"),
    "head": Settings(placement="head"),
}
"""The lanes: no facts, and a placement each."""

SHORTEST, LONGEST = 24, 200
"""Characters of a sentence that is taken for a fact."""


class Growing(PageinStrategy):
    """pagein, with facts that are known from the start, and one more every so many requests."""

    def __init__(self, memory: AgentMemory, known: Sequence[str], later: Sequence[str], every: int) -> None:
        super().__init__(memory)
        self._later, self._every, self._requests = list(reversed(later)), every, 0
        memory.facts.import_([{"content": each, "category": "knowledge", "confidence": 0.8} for each in known])

    def request(self) -> Sequence[Wire]:
        """The view; every so often somebody states a fact before it."""
        self._requests += 1
        if self._later and self._requests % self._every == 0:
            self.memory.facts.add(self._later.pop(), category="knowledge", confidence=0.8)
        return super().request()


def bench_prefix(
    runs: Sequence[Run],
    budget: int,
    counter: TokenCounter,
    *,
    known: int = 200,
    every: int = 5,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Tally]:
    """The tallies by placement, over all runs: ``known`` facts at the start, one more ``every`` so many requests.

    Raises ConfigurationError where the runs say too little to make facts of.
    """
    form = format_named("openai")
    spelled = [convert_to_openai(run, form) for run in runs]
    said = [list(dict.fromkeys(_sentences(each))) for each in spelled]
    totals = {name: Tally() for name in PLACES}
    for number, run in enumerate(spelled):
        others = sorted({text for at, texts in enumerate(said) if at != number for text in texts})
        random.Random(run.id).shuffle(others)  # noqa: S311 - a draw, no secret
        if len(others) < known:
            raise ConfigurationError(f"the other runs say {len(others):,} sentences, and {known:,} facts are wanted")
        with ExitStack() as opened:
            lanes = {}
            for name, settings in PLACES.items():
                memory = opened.enter_context(
                    AgentMemory.open(
                        ":memory:", budget=budget, counter=counter, facts=settings,
                        user=None if name == OFF else "user",
                    )
                )  # fmt: skip
                played = (
                    PageinStrategy(memory) if name == OFF else Growing(memory, others[:known], others[known:], every)
                )
                lanes[name] = Lane(played, Scale(counter, form))
            measure_run(run, tuple(lanes.values()), budget, counter, tick)
        for name, lane in lanes.items():
            totals[name].add(lane.tally, run.where or run.id)
    return totals


def _sentences(run: Run) -> Iterator[str]:
    """The user's sentences in a run that are neither very short nor long."""
    for message in run.wire:
        content: Any = message.get("content")
        if message.get("role") == "user" and isinstance(content, str):
            for each in re.split(r"(?<=[.!?])\s+|\n+", content):
                text = " ".join(each.split())
                if SHORTEST <= len(text) <= LONGEST and sum(map(str.isalpha, text)) > len(text) / 2:
                    yield text


def as_dict(tallies: Mapping[str, Tally]) -> dict[str, Any]:
    """The tallies as JSON-safe values."""
    return {name: each.as_dict() for name, each in tallies.items()}
