"""Measure strategies over recorded runs, request by request.

At each assistant step, every strategy gets the new messages and makes a request, as in an application. If the history
alone exceeds the budget, the request is compared with the needs of the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pagein.context.compaction.registry import policy_named
from pagein.errors import PageinError
from pagein.evaluation import requests
from pagein.evaluation.needs import Faults, History, Needs, find_faults
from pagein.evaluation.retrieval import check_retrieval
from pagein.evaluation.runs import Run, replay_clock
from pagein.evaluation.strategies import BASELINES, Baseline, PageinStrategy, Strategy, recency_start
from pagein.evaluation.tally import Tally
from pagein.formats import Format, format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import PAGE_IN_SHARE
from pagein.tokens import TokenCounter

Tick = Callable[[], None]
"""Called once for each request of a run."""


@dataclass(slots=True)
class Lane:
    """One strategy in one run: its tally, and its last request."""

    strategy: Strategy
    scale: requests.Scale
    tally: Tally = field(default_factory=Tally)
    previous: str | None = None
    handles: set[str] = field(default_factory=set)

    @property
    def memory(self) -> AgentMemory | None:
        """The memory, if the strategy is pagein."""
        return self.strategy.memory if isinstance(self.strategy, PageinStrategy) else None

    def next_request(self, new: Sequence[Mapping[str, Any]]) -> tuple[requests.MeasuredMessage, ...] | None:
        """Make the next request; None where this one or an earlier one of the run raised."""
        if self.tally.raised:
            return None
        start = time.perf_counter()
        try:
            self.strategy.take(new)
            request = self.strategy.request()
        except (PageinError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.tally.raised = (f"{type(error).__name__}: {error}",)
            return None
        self.tally.seconds += time.perf_counter() - start
        if self.memory is not None:
            self.handles.update(out.handle for out in self.memory.report().out)
        return self.scale.measure_request(request)


@dataclass(frozen=True, slots=True)
class RequestPoint:
    """One request of a run: the run so far, the needs of the next step, the far ones among them, and the budget."""

    history: History
    tokens: int
    needs: Needs
    far: Needs
    budget: int

    @property
    def above(self) -> bool:
        """True where the history alone exceeds the budget."""
        return self.tokens > self.budget


def measure_run(run: Run, lanes: Sequence[Lane], budget: int, counter: TokenCounter, tick: Tick) -> None:
    """Measure one run in every lane, and add to its tally."""
    scale = requests.Scale(counter, format_named(run.format))
    messages = scale.measure_request(run.wire)
    history = History()
    tokens = requests.request_tokens(())
    delivered = 0
    for at, message in enumerate(messages):
        if message.role == "assistant" and at:
            new = run.wire[delivered:at]
            delivered = at
            point = _request_point(history, messages[:at], message, tokens, budget)
            results = [earlier.reading.text for earlier in messages[at - len(new) : at] if earlier.answers]
            for lane in lanes:
                _compare(lane, lane.next_request(new), point, results)
            tick()
        history.add(message.reading)
        tokens += message.tokens
    for lane in lanes:
        _finish(lane, run, run.wire[delivered:])


def request_points(run: Run) -> int:
    """The number of requests in a run."""
    return sum(1 for message in run.wire[1:] if message.get("role") == "assistant")


def _request_point(
    history: History,
    before: Sequence[requests.MeasuredMessage],
    step: requests.MeasuredMessage,
    tokens: int,
    budget: int,
) -> RequestPoint:
    if tokens <= budget:
        return RequestPoint(history, tokens, Needs(), Needs(), budget)
    needs = history.needs(step.reading)
    return RequestPoint(history, tokens, needs, history.outside(needs, recency_start(before, budget)), budget)


def _compare(
    lane: Lane, request: tuple[requests.MeasuredMessage, ...] | None, point: RequestPoint, results: Sequence[str]
) -> None:
    """Compare one request with the needs at its point and with the ``results`` new in it, and add it to the tally."""
    tally = lane.tally
    tally.results += len(results)
    if request is None:
        tally.add_needs(point.needs, Faults.all_of(point.needs), point.far)
        return
    tally.whole_results += sum(any(result in message.reading.text for message in request) for result in results)
    text = requests.canonical_json(request)
    share = None if lane.previous is None else requests.prefix_share(lane.previous, text)
    cached = 0.0 if share is None or lane.previous is None else share * len(lane.previous) / len(text)
    lane.previous = text
    tally.add_request(point.tokens, requests.request_tokens(request), point.budget, share, cached)
    tally.orphans += requests.count_orphans(request)
    tally.illegal += bool(lane.scale.format.problems(_to_provider(request)))
    if point.above:
        missing = find_faults(point.needs, [message.reading for message in request], point.history)
        tally.add_needs(point.needs, missing, point.far)


def _to_provider(request: Iterable[requests.MeasuredMessage]) -> dict[str, Any]:
    """Convert a measured request to the provider's fields."""
    messages = [message.wire for message in request]
    if messages and "role" not in messages[0]:
        return {"system": messages[0]["system"], "messages": messages[1:]}
    return {"messages": messages}


def _finish(lane: Lane, run: Run, rest: Sequence[Mapping[str, Any]]) -> None:
    """Record the messages after the last request, and check retrieval."""
    lane.tally.runs = 1
    if lane.memory is None or lane.tally.raised:
        return
    try:
        lane.strategy.take(rest)
        lane.tally.handles = tuple(sorted(lane.handles))
        lane.tally.retrieval = check_retrieval(lane.memory, run, lane.tally.handles)
    except PageinError as error:
        lane.tally.raised = (f"{type(error).__name__}: {error}",)


PAGEIN: Final = "pagein"


def bench_faults(
    runs: Iterable[Run],
    budget: int,
    counter: TokenCounter,
    *,
    policy: str = "ladder",
    page_in: float = PAGE_IN_SHARE,
    baselines: bool = True,
    tick: Tick = lambda: None,
) -> dict[str, Tally]:
    """Measure pagein and the baselines over all runs; return tallies by name. Raises ConfigurationError, BudgetError.

    ``page_in`` is the share of the budget for the page-in; 0 turns it off.
    """

    def make_strategies(run: Run, memory: AgentMemory, scale: requests.Scale) -> dict[str, Strategy]:
        del run
        shapes = BASELINES if baselines else {}
        return {PAGEIN: PageinStrategy(memory)} | {name: Baseline(budget, scale, shapes[name]) for name in shapes}

    return measure_strategies(runs, budget, counter, make_strategies, tick, policy=policy, page_in=page_in)


def measure_strategies(
    runs: Iterable[Run],
    budget: int,
    counter: TokenCounter,
    make_strategies: Callable[[Run, AgentMemory, requests.Scale], Mapping[str, Strategy]],
    tick: Tick,
    *,
    policy: str = "ladder",
    page_in: float = PAGE_IN_SHARE,
) -> dict[str, Tally]:
    """Measure strategies over all runs, each with a memory of its own; return tallies by name."""
    form, totals = format_named("openai"), dict[str, Tally]()
    for run in runs:
        converted, scale = convert_to_openai(run, form), requests.Scale(counter, form)
        with AgentMemory.open(
            ":memory:", budget=budget, policy=policy_named(policy), counter=counter, page_in=page_in,
            clock=replay_clock(),
        ) as memory:  # fmt: skip
            strategies = make_strategies(converted, memory, scale)
            lanes = {name: Lane(strategy, scale) for name, strategy in strategies.items()}
            measure_run(converted, tuple(lanes.values()), budget, counter, tick)
        for name, lane in lanes.items():
            totals.setdefault(name, Tally()).add(lane.tally, run.where or run.id)
    return totals


def convert_to_openai(run: Run, form: Format) -> Run:
    """Convert a run to OpenAI chat messages, which the baselines need."""
    if run.format == form.name:
        return run
    items = format_named(run.format).parse(run.request)
    messages = form.render([requests.as_message(item) for item in items])["messages"]
    return replace(run, messages=tuple(messages), system=None, format=form.name)
