"""The measure: strategies over recorded runs, request by request, and what each request lacked.

At each assistant step every strategy is handed what is new and asked for the request, as a host would; where the
history alone exceeds the budget, the request is held against what the step then needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pagein.errors import PageinError
from pagein.evaluation.needs import Faults, History, Needs, faults
from pagein.evaluation.requests import Said, Scale, as_message, canonical, orphans, prefix_share, tokens_of
from pagein.evaluation.retrieval import check_retrieval
from pagein.evaluation.runs import Run
from pagein.evaluation.strategies import BASELINES, Baseline, Paged, Strategy, recent
from pagein.evaluation.tally import Tally
from pagein.formats import Format, format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import SHARE
from pagein.tokens import TokenCounter

Tick = Callable[[], None]
"""Called once for each request point of a run."""


@dataclass(slots=True)
class Lane:
    """One strategy on its way through one run: its tally, and the request it made last."""

    strategy: Strategy
    scale: Scale
    tally: Tally = field(default_factory=Tally)
    previous: str | None = None
    handles: set[str] = field(default_factory=set)

    @property
    def memory(self) -> AgentMemory | None:
        """The memory behind it, where it is pagein."""
        return self.strategy.memory if isinstance(self.strategy, Paged) else None

    def turn(self, new: Sequence[Mapping[str, Any]]) -> tuple[Said, ...] | None:
        """The next request, or None where this one or an earlier one of the run raised."""
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
        return self.scale.request(request)


@dataclass(frozen=True, slots=True)
class Moment:
    """One request point of a run: the run so far, what the step then needs, what of that is far, and the budget."""

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
    """Play one run through every lane, and add to its tally."""
    scale = Scale(counter, format_named(run.format))
    said = scale.request(run.wire)
    history = History()
    tokens = tokens_of(())
    handed = 0
    for at, each in enumerate(said):
        if each.role == "assistant" and at:
            new = run.wire[handed:at]
            handed = at
            moment = _moment(history, said[:at], each, tokens, budget)
            for lane in lanes:
                _look(lane, lane.turn(new), moment)
            tick()
        history.add(each.reading)
        tokens += each.tokens
    for lane in lanes:
        _finish(lane, run, run.wire[handed:])


def request_points(run: Run) -> int:
    """How many requests a run makes."""
    return sum(1 for each in run.wire[1:] if each.get("role") == "assistant")


def _moment(history: History, before: Sequence[Said], step: Said, tokens: int, budget: int) -> Moment:
    if tokens <= budget:
        return Moment(history, tokens, Needs(), Needs(), budget)
    needs = history.needs(step.reading)
    return Moment(history, tokens, needs, history.outside(needs, recent(before, budget)), budget)


def _look(lane: Lane, request: tuple[Said, ...] | None, moment: Moment) -> None:
    """Hold one request against its moment."""
    tally = lane.tally
    if request is None:
        tally.needed(moment.needs, Faults.all_of(moment.needs), moment.far)
        return
    text = canonical(request)
    share = None if lane.previous is None else prefix_share(lane.previous, text)
    lane.previous = text
    tally.requested(moment.tokens, tokens_of(request), moment.budget, share)
    tally.orphans += orphans(request)
    tally.illegal += bool(lane.scale.format.problems(_request(request)))
    if moment.above:
        lacking = faults(moment.needs, [each.reading for each in request], moment.history)
        tally.needed(moment.needs, lacking, moment.far)


def _request(request: Iterable[Said]) -> dict[str, Any]:
    """The request as the provider's fields again."""
    messages = [each.wire for each in request]
    if messages and "role" not in messages[0]:
        return {"system": messages[0]["system"], "messages": messages[1:]}
    return {"messages": messages}


def _finish(lane: Lane, run: Run, rest: Sequence[Mapping[str, Any]]) -> None:
    """Hand over what came after the last request, and see whether everything comes back."""
    lane.tally.runs = 1
    if lane.memory is None or lane.tally.raised:
        return
    try:
        lane.strategy.take(rest)
        lane.tally.handles = tuple(sorted(lane.handles))
        lane.tally.retrieval = check_retrieval(lane.memory, run, lane.tally.handles)
    except PageinError as error:
        lane.tally.raised = (f"{type(error).__name__}: {error}",)


# -- the bench: pagein and the baselines side by side

PAGEIN: Final = "pagein"


def bench_faults(
    runs: Iterable[Run],
    budget: int,
    counter: TokenCounter,
    *,
    policy: str = "ladder",
    page_in: float = SHARE,
    baselines: bool = True,
    tick: Tick = lambda: None,
) -> dict[str, Tally]:
    """The tallies of pagein and of the baselines over all runs, by name. Raises ConfigurationError, BudgetError.

    ``page_in`` is the share of the budget for what comes back by itself, 0 for none.
    """
    form = format_named("openai")
    totals = {name: Tally() for name in (PAGEIN, *(BASELINES if baselines else ()))}
    for run in runs:
        spelled = in_openai(run, form)
        scale = Scale(counter, form)
        with AgentMemory.open(
            ":memory:", budget=budget, policy=policy, counter=counter, page_in=page_in
        ) as memory:
            lanes = {PAGEIN: Lane(Paged(memory), scale)}
            if baselines:
                for name, shape in BASELINES.items():
                    lanes[name] = Lane(Baseline(budget, scale, shape), scale)
            measure_run(spelled, tuple(lanes.values()), budget, counter, tick)
        for name, lane in lanes.items():
            totals[name].add(lane.tally, run.where or run.id)
    return totals


def in_openai(run: Run, form: Format) -> Run:
    """The run in OpenAI chat messages, which is what the baselines know."""
    if run.format == form.name:
        return run
    items = format_named(run.format).parse(run.request)
    messages = form.render([as_message(item) for item in items])["messages"]
    return replace(run, messages=tuple(messages), system=None, format=form.name)
