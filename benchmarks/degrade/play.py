"""One agent in one world under one context, step by step: a request, what the agent reads in it, what it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from benchmarks.degrade import desk, hunt, search
from benchmarks.degrade.prose import Score
from benchmarks.degrade.reader import Act, Answer, Decide, Patterns, Reader
from pagein.errors import OverBudget, UnknownHandle
from pagein.evaluation.requests import MeasuredMessage, Scale, Wire, request_tokens
from pagein.evaluation.strategies import PageinStrategy, Strategy

CACHED, WRITTEN = 0.1, 1.25
"""What a token read from a prompt cache costs, and one written to it, where one without a cache costs 1.

Anthropic's published ratios for its models (Claude API documentation, "Prompt caching": "Pricing").
"""


class World(Protocol):
    """The world of a scripted agent."""

    score: Score

    @property
    def opening(self) -> tuple[Wire, ...]:
        """The first messages of a run."""
        ...

    @property
    def is_finished(self) -> bool:
        """True once there is nothing more to do."""
        ...

    def act(self, act: Act) -> str:
        """Run a tool and return its result."""
        ...

    def answer(self, text: str) -> None:
        """Take the agent's last words."""
        ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of world: how one is made, what its lines say, and the agent for it."""

    make: Callable[[int, int], World]
    patterns: Patterns
    decide: Decide


WORLDS: Mapping[str, Kind] = MappingProxyType(
    {
        "search": Kind(search.make, search.PATTERNS, search.decide),
        "hunt": Kind(hunt.make, hunt.PATTERNS, hunt.decide),
        "desk": Kind(desk.make, desk.PATTERNS, desk.decide),
    }
)
"""The worlds by name."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one run, and the cost of its requests."""

    score: Score
    steps: int
    tokens: int
    """Of all requests."""
    kept: int
    """Of these, tokens that stood at the same place in the request before, with nothing changed in front of them."""
    previous: int
    """Tokens of the messages of every request that another followed."""
    longest: int
    """Tokens of the longest request."""
    expanded: int
    over: int
    """Requests above the budget, which were refused."""

    @property
    def cost_cached(self) -> float:
        """The price of all requests with a prompt cache, in tokens at the price without one."""
        return CACHED * self.kept + WRITTEN * (self.tokens - self.kept)


@dataclass(slots=True)
class Meter:
    """Adds up the requests of a run."""

    tokens: int = 0
    kept: int = 0
    previous: int = 0
    longest: int = 0
    _last: Sequence[MeasuredMessage] = ()

    def take(self, request: Sequence[MeasuredMessage]) -> None:
        """Take in one request, as it is sent."""
        size = request_tokens(request)
        if self._last:
            self.previous += sum(each.tokens for each in self._last)
        # A cache is looked up block by block; a message is the block here.
        for old, new in zip(self._last, request, strict=False):
            if old.canonical != new.canonical:
                break
            self.kept += new.tokens
        self.tokens += size
        self.longest = max(self.longest, size)
        self._last = request


def step_limit(length: int) -> int:
    """Steps after which a run of that length has failed."""
    return 2 * length + 20


def play_run(kind: Kind, length: int, seed: int, strategy: Strategy, scale: Scale, *, expand: bool = False) -> Outcome:
    """Play one agent in one world with one context. Equal arguments give equal outcomes."""
    world, reader, meter = kind.make(length, seed), Reader(kind.patterns), Meter()
    memory = strategy.memory if expand and isinstance(strategy, PageinStrategy) else None
    steps = expanded = over = 0
    strategy.take(world.opening)
    while not world.is_finished and steps < step_limit(length):
        try:
            request = scale.measure_request(strategy.request())
        except OverBudget:
            over += 1
            break
        meter.take(request)
        decision = kind.decide(reader.parse(request))
        steps += 1
        if isinstance(decision, Answer):
            world.answer(decision.text)
            break
        handle = reader.handle(request, decision.seeks) if memory and decision.seeks else None
        if memory and handle is not None:
            expanded += 1
            decision = Act(f"I have lost {decision.seeks}.", "expand", {"handle": handle})
            try:
                result = f"Behind {handle}:\n" + _quote(memory.expand(handle))
            except UnknownHandle as error:
                result = f"Behind {handle}:\n{error}"
        else:
            result = world.act(decision)
        strategy.take(_call_messages(steps, decision, result))
    return Outcome(world.score, steps, meter.tokens, meter.kept, meter.previous, meter.longest, expanded, over)


def _quote(text: str) -> str:
    return "\n".join(f"| {line}" for line in text.splitlines())


def _call_messages(number: int, act: Act, result: str) -> tuple[Wire, Wire]:
    """A tool call and its result, as OpenAI chat has them."""
    id = f"call_{number}"
    function = {"name": act.tool, "arguments": json.dumps(dict(act.arguments))}
    call = {"id": id, "type": "function", "function": function}
    return (
        {"role": "assistant", "content": act.thought, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": result},
    )
