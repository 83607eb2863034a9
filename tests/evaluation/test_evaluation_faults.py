"""The measure on whole runs: what is counted, what a run that raises costs, what is lost is found."""

import pytest

from benchmarks.synthetic_run import opening, turns
from pagein.errors import ConfigurationError
from pagein.evaluation.faults import Lane, bench_faults, measure_run
from pagein.evaluation.requests import Scale
from pagein.evaluation.retrieval import check_retrieval
from pagein.evaluation.runs import Run
from pagein.evaluation.strategies import BASELINES, PageinStrategy
from pagein.formats import format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens.encodings import Encoding

COUNTER = Encoding("o200k_base")
MESSAGES = (*opening(), *(message for turn in turns(30) for message in turn.messages))
RUN = Run("made-up", MESSAGES)


class Fixed:
    """Sends the same request each time, or raises after a while."""

    def __init__(self, request, fails_after=10**9):
        self.answer, self.left = request, fails_after

    def take(self, messages):
        self.left -= 1
        if self.left < 0:
            raise ConfigurationError("on purpose")

    def request(self):
        return self.answer


def measured(strategy, budget=2_000, run=RUN):
    lane = Lane(strategy, Scale(COUNTER, format_named("openai")))
    measure_run(run, (lane,), budget, COUNTER, lambda: None)
    return lane.tally


def test_everything_in_sight_meets_every_need():
    tally = measured(Fixed(MESSAGES), budget=2_000)
    assert tally.needs.identifiers > 0
    assert tally.needs.rates()["grounded"] == 0
    assert tally.over == tally.requests == 30
    assert tally.prefix == 1


def test_nothing_in_sight_meets_none():
    tally = measured(Fixed([{"role": "user", "content": "go"}]))
    assert tally.needs.rates()["bare"] == 1
    assert tally.far.rates()["bare"] == 1
    assert tally.over == 0


def test_only_steps_whose_history_exceeds_the_budget_count():
    assert measured(Fixed(MESSAGES), budget=10**6).needs.counts() == {
        "identifiers": 0,
        "lines": 0,
        "met_bare": None,
        "met": None,
    }


@pytest.mark.slow
def test_page_in_can_be_turned_off_and_costs_prefix_where_it_is_on():
    found = {share: bench_faults([RUN], 2_000, COUNTER, page_in=share, baselines=False)["pagein"] for share in (0, 0.2)}
    assert found[0].prefix > found[0.2].prefix
    assert found[0].tokens < found[0.2].tokens
    assert found[0.2].over == 0


def test_a_run_that_raises_is_named_and_its_needs_are_not_met():
    whole = measured(Fixed(MESSAGES))
    tally = measured(Fixed(MESSAGES, fails_after=5))
    assert tally.requests == 5
    assert tally.raised == ("ConfigurationError: on purpose",)
    assert tally.needs.identifiers == whole.needs.identifiers
    assert tally.needs.rates()["bare"] > 0.5


def test_orphans_and_illegal_requests_are_counted():
    tally = measured(Fixed([MESSAGES[3]]))
    assert tally.orphans == tally.illegal == tally.requests


@pytest.mark.slow
def test_pagein_stays_within_budget_legal_and_retrievable_beside_the_baselines():
    ticks = []
    found = bench_faults([RUN, RUN], 3_000, COUNTER, tick=lambda: ticks.append(1))
    ours = found.pop("pagein")
    assert len(ticks) == ours.requests == 60
    assert (ours.over, ours.orphans, ours.illegal, ours.raised) == (0, 0, 0, ())
    assert ours.retrieval.ok
    assert ours.retrieval.handles > 0
    assert ours.tokens < ours.tokens_without
    assert set(found) == set(BASELINES)
    assert all(each.requests == 60 and each.retrieval is None for each in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("renders", ["openai", "anthropic"])
def test_requests_can_be_measured_in_any_format(renders):
    with AgentMemory.open(":memory:", budget=3_000, counter=COUNTER) as memory:
        lane = Lane(PageinStrategy(memory, renders=renders), Scale(COUNTER, format_named(renders)))
        measure_run(RUN, (lane,), 3_000, COUNTER, lambda: None)
    tally = lane.tally
    assert (tally.illegal, tally.orphans, tally.raised) == (0, 0, ())
    assert tally.retrieval.ok


def test_what_does_not_come_back_is_found():
    with AgentMemory.open(":memory:", budget=3_000) as memory:
        memory.record_messages(list(MESSAGES[:-2]), whole=False)
        assert check_retrieval(memory, Run("short", MESSAGES[:-2]), ["s2"]).ok
        lacking = check_retrieval(memory, RUN, ["s2", "s900"])
    assert len(lacking.lost) == 3
    assert "s900" in lacking.lost


def test_what_comes_back_changed_is_found():
    changed = list(MESSAGES)
    changed[3] = {**changed[3], "content": "something else"}
    with AgentMemory.open(":memory:", budget=3_000) as memory:
        memory.record_messages(changed, whole=False)
        assert check_retrieval(memory, RUN, []).lost == ("the result of 'call_0'",)
