"""Measure what a request still shows of the steps that left the view, by kind, after some number of compactions.

A run is played turn by turn. After so many compactions, the request is searched for the rules of the user and the
application anywhere in the run so far, and for the errors, decisions, paths, identifiers and numbers of the steps that
left. Pins must be in the request word for word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.backends.memory import InMemoryLog
from pagein.context.view.layout import Item
from pagein.context.view.view import View
from pagein.evaluation.runs import Run, turns_of
from pagein.events.entries import Compaction, RetentionScore
from pagein.events.identifiers import argument_text
from pagein.events.steps import Step, SummaryStep, SystemPromptStep, TaskStep, as_text
from pagein.log.base import Log
from pagein.memory.agent_memory import AgentMemory
from pagein.summaries.fidelity import measure_fidelity
from pagein.summaries.key_items import find_key_items
from pagein.summaries.sanitize import one_line
from pagein.summaries.spans import build_span
from pagein.tokens import TokenCounter

STRATEGIES: Final = ("rounds", "short_long", "rolling", "tiers", "ladder", "window")
ROUNDS: Final = (1, 3, 5, 10, 50)
"""Compactions after which a run is looked at."""

BUDGET: Final = 4_000
PINS: Final = ("Never push to the branch release-7.", "The customer's account is ACC-20931.")

Tick = Callable[[], None]


@dataclass(slots=True)
class SurvivalCounts:
    """Counts of what a request still shows after so many compactions, by kind and for pins, over runs."""

    runs: int = 0
    kinds: dict[str, RetentionScore] = field(default_factory=dict)
    pins: int = 0
    pins_kept: int = 0

    def add(self, scores: Iterable[RetentionScore], pins: int, pins_kept: int) -> None:
        """Add one run."""
        self.runs += 1
        self.pins += pins
        self.pins_kept += pins_kept
        for new in scores:
            old = self.kinds.get(new.kind, RetentionScore(new.kind, 0, 0, 0))
            sums = (old.total + new.total, old.in_sight + new.in_sight, old.reachable + new.reachable)
            self.kinds[new.kind] = RetentionScore(new.kind, *sums)

    def share(self, kind: str) -> float | None:
        """The share in sight of one kind, or of the pins; None if there is none."""
        if kind == "pin":
            return self.pins_kept / self.pins if self.pins else None
        score = self.kinds.get(kind)
        return score.share if score is not None and score.total else None

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON-safe values: by kind total, in sight, in sight or reachable."""
        kinds = {name: [score.total, score.in_sight, score.reachable] for name, score in self.kinds.items()}
        return {"runs": self.runs, "pins": [self.pins, self.pins_kept], "kinds": kinds}


Survival = Mapping[str, Mapping[int, SurvivalCounts]]
"""By policy and number of compactions, what is still shown."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of every policy: token counter, budget, summarizer (None: extracts), compactions, pins."""

    counter: TokenCounter
    budget: int = BUDGET
    summarizer: Any = None
    rounds: Sequence[int] = ROUNDS
    pins: Sequence[str] = PINS


def bench_fidelity(runs: Sequence[Run], policies: Iterable[str], setting: Setting, tick: Tick) -> Survival:
    """Measure every policy over the runs; return counts by number of compactions."""
    survival: dict[str, dict[int, SurvivalCounts]] = {}
    for name in policies:
        survival[name] = {round: SurvivalCounts() for round in setting.rounds}
        for run in runs:
            _play(run, name, setting, survival[name])
            tick()
    return survival


def _play(run: Run, policy: str, setting: Setting, into: Mapping[int, SurvivalCounts]) -> None:
    options: dict[str, Any] = {"budget": setting.budget, "policy": policy, "counter": setting.counter}
    if setting.summarizer is not None:
        options["summarizer"] = setting.summarizer
    log = InMemoryLog()
    with AgentMemory(log, **options) as memory:
        for pin in setting.pins:
            memory.pin(pin)
        rounds, compactions, at = sorted(setting.rounds), 0, 0
        for new in turns_of(run):
            memory.record_messages(new, run.format, whole=False)
            view = memory.view()
            memory.wait()
            compactions += sum(isinstance(entry.body, Compaction) for entry in log.read(at))
            at = log.head()
            while rounds and compactions >= rounds[0]:
                into[rounds.pop(0)].add(*measure_survival(memory, log, view, setting.pins))
            if not rounds:
                return


def measure_survival(
    memory: AgentMemory, log: Log, view: View, pins: Sequence[str]
) -> tuple[tuple[RetentionScore, ...], int, int]:
    """Measure what the request shows of every rule and of all that left the view; also count pins, and pins shown."""
    text = "\n".join(_texts(view))
    spoken: list[tuple[int, Item]] = []
    left: list[tuple[int, Item]] = []
    out = _out_of(view)
    for entry in log.read():
        if isinstance(entry.body, TaskStep | SystemPromptStep):
            spoken.append((entry.position, entry.body))
        elif isinstance(entry.body, Step) and entry.position in out:
            left.append((entry.position, memory.expand(entry.position).steps[0]))
    items = [item for item in find_key_items(build_span(spoken, 0, view.head)) if item.kind == "constraint"]
    items += [item for item in find_key_items(build_span(left, 0, view.head)) if item.kind != "constraint"]
    kept = sum(one_line(pin) in one_line(text, len(text) + 1) for pin in pins)
    return measure_fidelity(items, text).scores, len(pins), kept


def _out_of(view: View) -> frozenset[int]:
    """The positions that the view does not show whole."""
    return frozenset(
        position
        for entry in view.run
        if isinstance(entry.item, SummaryStep) or entry.stubs
        for position in range(entry.first, max(entry.last, entry.first + 1))
    )


def _texts(view: View) -> Iterator[str]:
    for message in view.messages():
        yield as_text(message.content)
        yield from (argument_text(call.arguments) for call in message.tool_calls)
