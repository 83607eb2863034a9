"""Tokens that a policy saves in a request after 50 and 100 tool calls, compared with no memory.

Mini-Agent promises 37 % after 50 calls and 67 % after 100, at a limit of 80,000 tokens. Here the limit is scaled to the
runs: the same share of the tokens of a run of 100 calls. Shorter runs are joined; the figures say how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from pagein.context.compaction.registry import policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import PAGEIN, bench_faults, convert_to_openai
from pagein.evaluation.requests import MeasuredMessage, Scale, request_tokens
from pagein.evaluation.runs import Run, replay_clock
from pagein.evaluation.strategies import PageinStrategy
from pagein.evaluation.tally import Tally
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens import TokenCounter

CALLS: Final = (50, 100)
"""Numbers of tool calls after which a request is measured."""

LIMIT_SHARE: Final = 0.4
"""The limit as a share of the tokens of a run of 100 calls: 80,000 of some 200,000 tokens; our choice."""


@dataclass(frozen=True, slots=True)
class RunSavings:
    """The tokens of one request without and with a memory, after so many tool calls."""

    calls: int
    without: int
    within: int
    limit: int
    recorded_runs: int
    """Number of recorded runs that were joined."""

    @property
    def share(self) -> float:
        """The share of the tokens that the memory saves."""
        return 1 - self.within / self.without


def join_runs(runs: Sequence[Run], calls: int) -> Iterator[tuple[Run, int]]:
    """Yield runs of at least so many tool calls, joining shorter ones, with the number of recorded runs in each."""
    form = format_named("openai")
    messages: list[dict[str, Any]] = []
    number = 0
    for run in runs:
        converted = convert_to_openai(run, form)
        messages += [dict(message) for message in converted.wire if not messages or message.get("role") != "system"]
        number += 1
        if sum(len(message.get("tool_calls") or ()) for message in messages) >= calls:
            yield Run(run.id, tuple(messages), where=run.where), number
            messages, number = [], 0


def bench_savings(
    runs: Sequence[Run], counter: TokenCounter, *, policy: str = "rounds", limit: int | None = None
) -> tuple[RunSavings, ...]:
    """Measure the policy's savings in each run of 100 calls. Raises ConfigurationError.

    ``limit`` is the budget in tokens; without it, a share of the tokens of each run.
    """
    results = [
        saved
        for run, number in join_runs(runs, CALLS[-1])
        for saved in _measure_run(run, number, counter, policy, limit)
    ]
    if not results:
        raise ConfigurationError(f"all runs together have fewer than {CALLS[-1]} tool calls")
    return tuple(results)


def _measure_run(run: Run, number: int, counter: TokenCounter, policy: str, limit: int | None) -> Iterator[RunSavings]:
    scale = Scale(counter, format_named("openai"))
    messages = scale.measure_request(run.wire)
    calls_at = {_end_of_calls(messages, calls): calls for calls in CALLS}
    budget = limit or _scaled_limit(messages)
    with AgentMemory.open(
        ":memory:", budget=budget, policy=policy_named(policy), counter=counter, clock=replay_clock()
    ) as memory:
        strategy, delivered = PageinStrategy(memory), 0
        for at in range(1, max(calls_at) + 1):
            calls = calls_at.get(at)
            if calls or messages[at].role == "assistant":
                strategy.take(run.wire[delivered:at])
                request, delivered = scale.measure_request(strategy.request()), at
                if calls:
                    yield RunSavings(calls, request_tokens(messages[:at]), request_tokens(request), budget, number)


def bench_missing_needs(
    runs: Sequence[Run], counter: TokenCounter, *, policies: Iterable[str], limit: int | None = None
) -> dict[str, Tally]:
    """Count the needs that requests of the same runs lack under the same limit, by policy.

    The tallies are those of ``bench_faults``. Raises ConfigurationError.
    """
    scale = Scale(counter, format_named("openai"))
    tallies = {name: Tally() for name in policies}
    for run, _ in join_runs(runs, CALLS[-1]):
        budget = limit or _scaled_limit(scale.measure_request(run.wire))
        for name, tally in tallies.items():
            tally.add(bench_faults([run], budget, counter, policy=name, baselines=False)[PAGEIN])
    return tallies


def _scaled_limit(messages: Sequence[MeasuredMessage]) -> int:
    """The limit for a run: 40 % of its tokens after 100 calls."""
    return max(1, int(LIMIT_SHARE * request_tokens(messages[: _end_of_calls(messages, CALLS[-1])])))


def _end_of_calls(messages: Sequence[MeasuredMessage], calls: int) -> int:
    """The position after the results of the turn with that many tool calls in all."""
    count, at = 0, 0
    while at < len(messages) and count < calls:
        count += len(messages[at].calls)
        at += 1
    while at < len(messages) and messages[at].answers:
        at += 1
    return at


def averages(saved: Sequence[RunSavings]) -> list[dict[str, Any]]:
    """Average by number of calls: runs, recorded runs joined, tokens without and with memory, share saved."""
    rows = []
    for calls in CALLS:
        group = [result for result in saved if result.calls == calls]
        if group:
            rows.append(
                {
                    "calls": calls,
                    "runs": len(group),
                    "recorded_runs": sum(result.recorded_runs for result in group),
                    "limit": fmean(result.limit for result in group),
                    "without": fmean(result.without for result in group),
                    "within": fmean(result.within for result in group),
                    "saved": fmean(result.share for result in group),
                }
            )
    return rows
