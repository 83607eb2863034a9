"""Each fault of a server at each point of a run: the turn is served, the log is whole, and the fault is told once."""

import itertools
import json

import pytest
from writing_runs import GOOD, NAMES, compactions, records
from writing_runs import served as held

from pagein.models import RetryingModel, RetryPolicy
from pagein.models.openai_chat import OpenAIModel
from pagein.testing.models import SECRET
from tests._support.faulty_server import ECHO, Reaction, failure

pytestmark = pytest.mark.slow

LONG = json.dumps({"done": [{"text": f"did {number} things to {NAMES[0]} at once"} for number in range(290)]})
FAULTS = {
    "500": (failure(500, f"internal; the key was {SECRET}"), "ModelUnavailable"),
    "429": (failure(429, "slow down", retry_after="3600"), "ModelUnavailable"),
    "truncated": (Reaction(GOOD, broken="truncate"), "Model"),
    "reset": (Reaction(GOOD, broken="reset"), "ModelUnavailable"),
    "empty": (Reaction(""), "ModelEmpty"),
    "echo": (Reaction(ECHO), "rejected"),
    "cut at its length": (Reaction(GOOD[:200], finish="length"), "rejected"),
    "prose": (Reaction("Here is the summary: the parser is being mended."), "not json"),
    "too long": (Reaction(LONG), "longer"),
    "about something else": (Reaction(json.dumps({"done": [{"text": "the weather was fine " * 20}]})), "unfaithful"),
    "refused": (
        failure(401, f"Incorrect API key provided: {SECRET}. 'Authorization: Bearer {SECRET}'"),
        "ModelRefused",
    ),
}


def model_of(server, **waits):
    model = OpenAIModel("fake", base_url=server.openai, key_variable="TEST_MODEL_KEY", window=16_000)
    return RetryingModel(model, retry=RetryPolicy(attempts=1, **waits))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_once_and_the_run_goes_on(host, served, heard, name, colour):
    point = 0 if colour == "async" else 1
    fault, said = FAULTS[name]
    server = served(*[Reaction(GOOD)] * point, fault, then=Reaction(GOOD))
    memory = host(summarizer=model_of(server))
    for number in range(26):
        memory.turns(number, number + 1)
    assert memory.verify().ok
    assert len(server.heard) > point + 1
    assert len(compactions(memory)) > 2
    assert records(memory), "nothing a model wrote was taken in, before or after the fault"
    (problem,) = memory.report().problems
    (line,) = heard
    assert said in problem
    assert problem in line
    assert SECRET not in problem + line
    assert SECRET[3:] not in problem + line


@pytest.mark.slow
def test_each_fault_at_each_point_of_a_run(host, served, heard, colour):
    turned = 6 if colour == "async" else 0
    names = [*list(FAULTS)[turned:], *list(FAULTS)[:turned]]
    script = [reaction for name in names for reaction in (FAULTS[name][0], Reaction(GOOD))]
    server = served(*script, then=Reaction(GOOD))
    # Of a job of two requests the second may fail, so three jobs in a row may. A day passes between two looks at the clock:
    # every rest is over, and every fault is asked for.
    memory = host(summarizer=model_of(server), clock=itertools.count(0, 86_400).__next__)
    number = told = 0
    while len(server.heard) < len(script) and number < 200:
        memory.turns(number, number + 1)
        assert len(heard) - told <= 1, heard[told:]
        assert len(heard) == told or memory.verify().ok
        number, told = number + 1, len(heard)
    assert memory.verify().ok
    assert records(memory)
    assert number < 200, "the run went on and the writer was not asked"
    assert len(heard) == len(set(heard)), "once for a kind of fault; an echo and prose are both no JSON"
    # What is about something else, merged with a record that was good, shows enough of what left.
    for name in set(names) - {"about something else"}:
        assert any(FAULTS[name][1] in line for line in heard), name
    assert SECRET[3:] not in "".join((*heard, *memory.report().problems))


@pytest.mark.parametrize(
    ("name", "colour"),
    [*((name, "sync") for name in FAULTS), ("500", "async"), ("prose", "async")],
    indirect=["colour"],
)
def test_a_fault_that_stays_leaves_extracts_and_is_told_once(host, served, heard, name):
    fault, _ = FAULTS[name]
    memory = host(summarizer=model_of(served(then=fault)))
    plain = host()
    plain.memory._runtime.state.page_in.extract_worth = 0.0  # where a model writes, extracts fill the low mark
    for number in range(20):
        memory.turns(number, number + 1)
        plain.turns(number, number + 1)
    assert not records(memory)
    assert {each.author for made in compactions(memory) for each in made.replacements} == {"extractive"}
    assert [each.body for each in memory.memory._runtime.log.read()] == [
        each.body for each in plain.memory._runtime.log.read()
    ]
    assert len(memory.report().problems) == len(heard) <= 2, "once for the fault, once for the rest after three"
    assert not any(SECRET in each for each in heard)


@pytest.mark.parametrize("broken", ["drip", ""])
def test_a_server_that_never_ends_its_answer_keeps_no_turn(host, served, broken):
    memory = host(summarizer=model_of(served(then=Reaction(GOOD, broken=broken, delay=0 if broken else 60))))
    memory.turns(0, 20, settle=False)
    assert len(compactions(memory)) > 1
    assert memory.wait(0.01) is False
    assert memory.report().problems == ()
    held(memory)


def test_an_overflow_is_asked_again_in_smaller_pieces_never_as_it_was(host, served):
    overflow = failure(400, "prompt is too long: 9000 tokens > 8192 maximum")
    server = served(overflow, overflow, then=Reaction(GOOD))
    memory = host(summarizer=model_of(server), budget=4_000, policy="tiers")
    memory.turns(0, 34)
    bodies = [json.dumps(each.body["messages"]) for each in server.heard]
    assert len(set(bodies)) == len(bodies), "a request that overflowed was sent again"
    assert records(memory)
    assert memory.report().problems == ()


def test_a_writer_rests_after_three_failures_and_nothing_is_sent_twice(host, served, heard):
    server = served(then=failure(503, "overloaded"))
    memory = host(summarizer=model_of(server), clock=lambda: 0.0)
    memory.turns(0, 40)
    assert len(server.heard) == 3
    assert len({json.dumps(each.body) for each in server.heard}) == 3
    fault, rest = heard
    assert "fake wrote no summary, an extract stands instead: ModelUnavailable: fake is not available" in fault
    assert rest == "3 answers of fake in a row were of no use; it rests for 60 s"
    assert memory.report().problems == (fault, rest)


def test_a_model_with_patience_of_ours_is_asked_again_and_nothing_is_told(host, served, heard):
    server = served(failure(500, "a hiccup"), then=Reaction(GOOD))
    model = OpenAIModel("fake", base_url=server.openai, key_variable="TEST_MODEL_KEY", window=16_000)
    memory = host(summarizer=model)
    memory.turns(0, 16)
    assert records(memory)
    assert memory.report().problems == ()
    assert heard == []
