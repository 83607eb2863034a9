"""What a policy saves: tokens of the request after so many tool calls, beside the run without a memory.

Mini-Agent promises 37 % after 50 calls and 67 % after 100, at a limit of 80,000 tokens; here the limit
is scaled to the runs: the same share of what a run of 100 calls comes to. Runs shorter than that are put one behind the
other, and the figures say how many were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from pagein.errors import ConfigurationError
from pagein.evaluation.faults import Lane, in_openai, measure_run
from pagein.evaluation.requests import Said, Scale, tokens_of
from pagein.evaluation.runs import Run
from pagein.evaluation.strategies import Paged
from pagein.evaluation.tally import Tally
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens import TokenCounter

CALLS: Final = (50, 100)
"""Tool calls after which is measured."""

SCALED: Final = 0.4
"""The limit, as a share of what a run of the most calls comes to: 80,000 of some 200,000 tokens; our choice."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The tokens of one request without a memory and with one, after so many tool calls."""

    calls: int
    without: int
    within: int
    limit: int
    joined: int
    """Recorded runs of which the run was made."""

    @property
    def share(self) -> float:
        """The share of the tokens that was saved."""
        return 1 - self.within / self.without


def joined(runs: Sequence[Run], calls: int) -> Iterator[tuple[Run, int]]:
    """Runs of at least so many tool calls: long ones as they are, shorter ones one behind the other; with their number."""
    form = format_named("openai")
    held: list[dict[str, Any]] = []
    number = 0
    for run in runs:
        spelled = in_openai(run, form)
        held += [dict(each) for each in spelled.wire if not held or each.get("role") != "system"]
        number += 1
        if _calls(held) >= calls:
            yield Run(run.id, tuple(held), where=run.where), number
            held, number = [], 0


def _calls(messages: Sequence[Any]) -> int:
    return sum(len(each.get("tool_calls") or ()) for each in messages)


def bench_savings(
    runs: Sequence[Run], counter: TokenCounter, *, policy: str = "rounds", limit: int | None = None
) -> tuple[Saved, ...]:
    """What the policy saves in each run long enough, after each number of calls. Raises ConfigurationError.

    ``limit`` is the budget in tokens; without it, a share of what each run comes to.
    """
    found = [
        saved
        for run, number in joined(runs, CALLS[-1])
        for saved in _measured(run, number, counter, policy, limit)
    ]
    if not found:
        raise ConfigurationError(f"all runs together have fewer than {CALLS[-1]} tool calls")
    return tuple(found)


def _measured(
    run: Run, number: int, counter: TokenCounter, policy: str, limit: int | None
) -> Iterator[Saved]:
    scale = Scale(counter, format_named("openai"))
    said = scale.request(run.wire)
    ends = [_behind(said, each) for each in CALLS]
    budget = limit or _scaled(said)
    with AgentMemory.open(":memory:", budget=budget, policy=policy, counter=counter) as memory:
        paged, handed = Paged(memory), 0
        for at, each in enumerate(said[: ends[-1] + 1]):
            is_end = at in ends
            if (each.role == "assistant" and at) or is_end:
                paged.take(run.wire[handed:at])
                request, handed = scale.request(paged.request()), at
                if is_end:
                    calls = CALLS[ends.index(at)]
                    yield Saved(calls, tokens_of(said[:at]), tokens_of(request), budget, number)
        if ends[-1] == len(said):
            paged.take(run.wire[handed:])
            request = scale.request(paged.request())
            yield Saved(CALLS[-1], tokens_of(said), tokens_of(request), budget, number)


def bench_missed(
    runs: Sequence[Run], counter: TokenCounter, *, policies: Iterable[str], limit: int | None = None
) -> dict[str, Tally]:
    """What requests of the same runs under the same limit lack, by policy: what is saved is not to be missed.

    The tallies are those of ``bench_faults``. Raises ConfigurationError.
    """
    scale = Scale(counter, format_named("openai"))
    found = {name: Tally() for name in policies}
    for run, _ in joined(runs, CALLS[-1]):
        budget = limit or _scaled(scale.request(run.wire))
        with ExitStack() as stack:
            lanes = {}
            for name in found:
                opened = AgentMemory.open(":memory:", budget=budget, policy=name, counter=counter)
                lanes[name] = Lane(Paged(stack.enter_context(opened)), scale)
            measure_run(run, tuple(lanes.values()), budget, counter, lambda: None)
        for name, lane in lanes.items():
            found[name].add(lane.tally, run.where or run.id)
    return found


def _scaled(said: Sequence[Said]) -> int:
    """The limit for a run: to its most calls as 80,000 tokens to those of a run of as many."""
    return max(1, int(SCALED * tokens_of(said[: _behind(said, CALLS[-1])])))


def _behind(said: Sequence[Said], calls: int) -> int:
    """The position behind the results of the turn that brought the tool calls to so many."""
    made, at = 0, 0
    while at < len(said) and made < calls:
        made += len(said[at].calls)
        at += 1
    while at < len(said) and said[at].answers:
        at += 1
    return at


def averages(saved: Sequence[Saved]) -> list[dict[str, Any]]:
    """For each number of calls: runs, how many were joined, tokens without and with, and the mean share saved."""
    rows = []
    for calls in CALLS:
        here = [each for each in saved if each.calls == calls]
        if here:
            rows.append(
                {
                    "calls": calls,
                    "runs": len(here),
                    "recorded_runs": sum(each.joined for each in here),
                    "limit": fmean(each.limit for each in here),
                    "without": fmean(each.without for each in here),
                    "within": fmean(each.within for each in here),
                    "saved": fmean(each.share for each in here),
                }
            )
    return rows
