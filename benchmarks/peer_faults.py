"""Faults of other libraries: their agents play recorded runs, and what their provider received is measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from benchmarks.peer_agents import SUMMARIZER, CpuMeter, Peer, Place, Script
from pagein.evaluation.faults import PAGEIN, measure_strategies
from pagein.evaluation.requests import Scale, Wire
from pagein.evaluation.runs import Run
from pagein.evaluation.strategies import PageinStrategy, Strategy
from pagein.evaluation.tally import Tally
from pagein.memory.agent_memory import AgentMemory
from pagein.testing.provider import Answer, Call, ScriptedProvider, serve_app
from pagein.testing.provider.scripts import Question
from pagein.tokens import TokenCounter

SUMMARY_CHARACTERS, SUMMARY_LINE = 3_000, 160
"""Characters of a summary, and of a line of it, by the stand-in for a model that writes summaries."""


@dataclass(slots=True)
class RecordedModel:
    """Answers as a recorded run did, whatever is asked; keeps what it was asked, and counts what it was asked to summarise."""

    answers: Sequence[Wire]
    counter: TokenCounter
    requests: list[Sequence[Wire]] = field(default_factory=list)
    summaries: int = 0
    summary_tokens: int = 0
    """Tokens that the summaries took, input and output."""

    def __call__(self, question: Question) -> Answer:
        """Give the next answer, or a summary to the model that writes them."""
        if question.body["model"] == SUMMARIZER:
            return Answer(self._summarize(question.text))
        number = len(self.requests)
        self.requests.append(question.body["messages"])
        if number >= len(self.answers):
            return Answer("Done.")
        answer = self.answers[number]
        calls = tuple(_call_of(call) for call in answer.get("tool_calls") or ())
        return Answer(str(answer.get("content") or ("" if calls else "-")), calls)

    def _summarize(self, text: str) -> str:
        summary = sample_lines(text)
        self.summaries += 1
        self.summary_tokens += self.counter.text(text) + self.counter.text(summary)
        return summary


@dataclass(slots=True)
class ReplayedRequests:
    """A strategy whose requests were made before: those that a provider received."""

    requests: Sequence[Sequence[Wire]]
    problem: str
    _next: int = 0

    def take(self, messages: Sequence[Wire]) -> None:
        """Record nothing: the agent that made the requests had the messages."""
        del messages

    def request(self) -> Sequence[Wire]:
        """The next request. Raises ValueError where the agent had ended."""
        if self._next >= len(self.requests):
            raise ValueError(f"the agent ended after {len(self.requests)} requests: {self.problem}")
        self._next += 1
        return self.requests[self._next - 1]


@dataclass(slots=True)
class MeteredStrategy:
    """pagein, with the processor time of each request: recording and the view."""

    strategy: PageinStrategy
    meter: CpuMeter
    _new: Sequence[Wire] = ()

    def take(self, messages: Sequence[Wire]) -> None:
        """Keep the messages for the request, in which they are measured."""
        self._new = messages

    def request(self) -> Sequence[Wire]:
        """Record the new messages and make the request."""
        with self.meter.measure():
            self.strategy.take(self._new)
            return self.strategy.request()


@dataclass(slots=True)
class PeerTally:
    """The tally of one library, with the summaries that it asked for and its processor time before each request."""

    tally: Tally = field(default_factory=Tally)
    meter: CpuMeter = field(default_factory=CpuMeter)
    summaries: int = 0
    summary_tokens: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The tally as JSON-safe values."""
        turns, above = self.meter.turns, self.tally.above
        return {
            **self.tally.as_dict(),
            "summaries": self.summaries,
            "summary_tokens_a_request_above": self.summary_tokens / above if above else None,
            "cpu_ms_a_request": {"median": 1_000 * median(turns), "mean": 1_000 * fmean(turns)} if turns else None,
        }


def bench_peer_faults(
    runs: Iterable[Run],
    budget: int,
    counter: TokenCounter,
    peers: Mapping[str, Peer],
    tick: Callable[[], None] = lambda: None,
) -> dict[str, PeerTally]:
    """Measure pagein and the peers over all runs; return tallies by name."""
    totals = {name: PeerTally() for name in (PAGEIN, *peers)}

    def make_strategies(run: Run, memory: AgentMemory, scale: Scale) -> dict[str, Strategy]:
        del scale
        strategies: dict[str, Strategy] = {PAGEIN: MeteredStrategy(PageinStrategy(memory), totals[PAGEIN].meter)}
        for name, peer in peers.items():
            model, problem = play_run(run, peer, budget, totals[name].meter, counter)
            totals[name].summaries += model.summaries
            totals[name].summary_tokens += model.summary_tokens
            strategies[name] = ReplayedRequests(model.requests, problem)
        return strategies

    for name, tally in measure_strategies(runs, budget, counter, make_strategies, tick).items():
        totals[name].tally = tally
    return totals


def play_run(run: Run, peer: Peer, budget: int, meter: CpuMeter, counter: TokenCounter) -> tuple[RecordedModel, str]:
    """Have the agent of a peer play a run; return the model that it asked, and the error that ended it, or ""."""
    answers = [message for message in run.wire[1:] if message.get("role") == "assistant"]
    model = RecordedModel(answers, counter)
    provider = ScriptedProvider(model)
    with serve_app(provider) as url:
        try:
            peer.play(Script.of(run.wire), Place(url, budget, counter, meter))
        except Exception as error:  # noqa: BLE001 - whatever ends another library's agent is its result
            return model, f"{type(error).__name__}: {error}"
    return model, ""


def sample_lines(text: str) -> str:
    """Write a summary of a text without a model: lines from all of it, evenly, each cut short."""
    lines = [line.strip()[:SUMMARY_LINE] for line in text.replace("\\n", "\n").splitlines() if len(line.strip()) >= 20]
    step = max(1, sum(map(len, lines)) // SUMMARY_CHARACTERS + 1)
    return "\n".join(lines[::step])[:SUMMARY_CHARACTERS]


def _call_of(call: Mapping[str, Any]) -> Call:
    return Call(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
