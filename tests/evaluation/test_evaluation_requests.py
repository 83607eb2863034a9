"""What is measured of a request: canonical JSON, tokens, prefix, orphans; and the baselines that make them."""

import json

import pytest

from benchmarks.synthetic_run import opening, turns
from pagein.evaluation.requests import Scale, canonical_json, count_orphans, prefix_share, request_tokens
from pagein.evaluation.strategies import BASELINES, OMITTED, Baseline, recency_start
from pagein.formats import format_named, validate
from pagein.tokens.encodings import Encoding


@pytest.fixture
def scale():
    return Scale(Encoding("o200k_base"), format_named("openai"))


RUN = [*opening(), *(message for turn in turns(40) for message in turn.messages)]


def call(*ids):
    function = {"name": "f", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": each, "type": "function", "function": function} for each in ids],
    }


def result(call_id):
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


@pytest.mark.parametrize(
    ("earlier", "later", "share"),
    [("abcd", "abcd", 1.0), ("abcd", "abcdef", 1.0), ("abcd", "abxx", 0.5), ("abcd", "", 0.0), ("", "a", 1.0)],
)
def test_the_prefix_share_is_of_the_earlier_request(earlier, later, share):
    assert prefix_share(earlier, later) == share


def test_canonical_json_is_that_of_the_whole_list(scale):
    expected = json.dumps(RUN, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical_json(scale.measure_request(RUN)) == expected


def test_equal_messages_are_weighed_once(scale):
    assert scale.measure(dict(RUN[3])) is scale.measure(dict(RUN[3]))


@pytest.mark.parametrize(
    ("messages", "count"),
    [
        ([call("a"), result("a")], 0),
        ([call("a", "b"), result("b"), result("a")], 0),
        ([call("a")], 1),
        ([result("a")], 1),
        ([call("a"), {"role": "user", "content": "x"}, result("a")], 2),
        ([call("a"), result("a"), result("a")], 1),
    ],
)
def test_orphans_are_results_without_calls_and_calls_without_results(scale, messages, count):
    assert count_orphans(scale.measure_request(messages)) == count


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("budget", [1_500, 4_000, 100_000])
def test_baselines_are_legal_within_budget_and_keep_the_head(scale, name, budget):
    baseline = Baseline(budget, scale, BASELINES[name])
    baseline.take(RUN)
    request = baseline.request()
    validate(list(request))
    assert list(request[:2]) == RUN[:2]
    assert request_tokens(scale.measure_request(request)) <= budget
    assert count_orphans(scale.measure_request(request)) == 0


def test_head_and_recency_keeps_everything_that_fits(scale):
    baseline = Baseline(10**9, scale, BASELINES["head+recency"])
    baseline.take(RUN[:5])
    baseline.take(RUN[5:])
    assert list(baseline.request()) == RUN


def test_masking_keeps_the_last_ten_results(scale):
    baseline = Baseline(10**9, scale, BASELINES["masking"])
    baseline.take(RUN)
    results = [each["content"] for each in baseline.request() if each["role"] == "tool"]
    assert [each == OMITTED for each in results] == [True] * 30 + [False] * 10


def test_clipping_leaves_head_and_tail_of_long_results(scale):
    long = {"role": "tool", "tool_call_id": "a", "content": "first " + "word " * 3_000 + "last"}
    baseline = Baseline(10**9, scale, BASELINES["clipping"])
    baseline.take([*RUN[:2], call("a"), long])
    clipped = baseline.request()[-1]
    assert clipped["content"].startswith("first ")
    assert clipped["content"].endswith(" last")
    assert 400 < scale.measure(clipped).tokens < 600


def test_a_recency_window_is_of_whole_turns(scale):
    said = scale.measure_request(RUN)
    first = recency_start(said, 3_000)
    assert said[first].role == "assistant"
    assert request_tokens(said[first:]) <= 3_000 < request_tokens(said[first - 2 :])
