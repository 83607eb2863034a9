"""One agent with its whole history and with a view of it, side by side: what it did, and what its requests cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Unpack

from pagein.context.compaction.step_scores import word_relevance
from pagein.evaluation.runs import Run, turns_of
from pagein.evaluation.strategies import PageinStrategy
from pagein.events.identifiers import argument_text
from pagein.events.normal_form import normal_arguments
from pagein.events.steps import ActionStep, TaskStep, as_text
from pagein.formats import FormatName
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options
from pagein.tokens.prices import Prices, prices_named

WHOLE_BUDGET: Final = 100_000_000
"""Tokens under which no run is compacted."""

Agent = Callable[[AgentMemory], object]
"""An agent's loop: it records what happens in the memory it is given, and sends what ``to_messages`` returns."""


@dataclass(frozen=True, slots=True)
class AgentFigures:
    """The figures of one run of an agent: its actions, its requests and their input tokens, the price of these in fresh tokens.

    ``repeated`` counts the calls that the run had made before, arguments included. ``drift`` is how much less the last third
    of the actions says of the user's words than the first third: at most 1, below 0 where it says more.
    """

    steps: int
    requests: int
    tokens: int
    highest: int
    price: float
    repeated: int
    drift: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of an agent with its ``whole`` history and with a ``view``, and the two memories, still open."""

    whole: AgentFigures
    view: AgentFigures
    whole_memory: AgentMemory
    view_memory: AgentMemory


@contextmanager
def compare(agent: Agent, **options: Unpack[Options]) -> Iterator[Comparison]:
    """Play the agent twice, with its whole history and with these options of ``AgentMemory.open``; close both memories after.

    What the agent changes outside its memory it changes twice. Raises what the agent raises, and ConfigurationError.
    """
    whole: Options = {**options, "budget": WHOLE_BUDGET, "page_in": 0.0, "summarizer": None, "facts": False}
    prices = prices_named(options.get("prices", "default"))
    with AgentMemory.open(":memory:", **whole) as first, AgentMemory.open(":memory:", **options) as second:
        for memory in (first, second):
            agent(memory)
            memory.wait()
        yield Comparison(_figures_of(first, prices), _figures_of(second, prices), first, second)


def replaying(run: Run, renders: FormatName = "openai") -> Agent:
    """The agent that did what a recorded run did, one request before each of its answers."""

    def agent(memory: AgentMemory) -> None:
        strategy, (*turns, rest) = PageinStrategy(memory, speaks=run.format, renders=renders), turns_of(run)
        for new in turns:
            strategy.take(new)
            strategy.request()
        strategy.take(rest)

    return agent


def _figures_of(memory: AgentMemory, prices: Prices) -> AgentFigures:
    requests, acted = memory.requests(), [step for step in memory.steps if isinstance(step, ActionStep)]
    calls = [(call.name, normal_arguments(call.arguments)) for step in acted for call in step.tool_calls]
    texts = [
        " ".join((as_text(step.content or ""), *(argument_text(call.arguments) for call in step.tool_calls)))
        for step in acted
    ]
    task = "\n".join(as_text(step.content) for step in memory.steps if isinstance(step, TaskStep))
    return AgentFigures(
        len(acted),
        len(requests),
        sum(request.tokens for request in requests),
        max((request.tokens for request in requests), default=0),
        sum(prices.price(request.tokens, request.prefix) for request in requests),
        len(calls) - len(set(calls)),
        _drift(task, texts),
    )


def _drift(task: str, texts: list[str]) -> float:
    third, relevance = len(texts) // 3, word_relevance(task, texts)
    return fmean(relevance[:third]) - fmean(relevance[-third:]) if third else 0.0
