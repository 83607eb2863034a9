"""The order of events in a run, and the matching of observations to calls."""

import pytest

from pagein.errors import ProtocolError
from pagein.events.protocol import (
    OpenCall,
    check_action,
    check_item,
    find_call,
    open_calls,
    unknown_observation,
    with_observations,
)
from pagein.events.steps import ActionStep, Observation, SummaryStep, TaskStep, ToolCall


def test_a_summary_is_never_recorded_by_a_host():
    with pytest.raises(ProtocolError, match="written by a compaction"):
        check_item(SummaryStep("x"))


def test_calls_without_an_observation_are_open():
    step = ActionStep("x", (ToolCall("a", "t"), ToolCall("", "t"), ToolCall("a", "t")), (None, Observation("")))
    assert open_calls(step, 7) == (OpenCall(7, 0, "a"), OpenCall(7, 2, "a"))
    assert open_calls(TaskStep("x"), 7) == ()


def test_an_answer_finds_the_first_open_call_of_its_id_or_the_one_its_index_names():
    calls = [OpenCall(1, 0, ""), OpenCall(1, 1, "a"), OpenCall(1, 2, "a")]
    assert find_call(Observation("a"), calls) == calls[1]
    assert find_call(Observation("a", index=2), calls) == calls[2]
    assert find_call(Observation(""), calls) == calls[0]
    assert find_call(Observation("a", index=0), calls) is None
    assert find_call(Observation("b"), calls) is None


def test_an_observation_beside_the_wrong_call_is_refused():
    calls = (ToolCall("a", "t"), ToolCall("b", "t"))
    check_action(ActionStep(None, calls, (None, Observation("b"))))
    with pytest.raises(ProtocolError, match="answers call 'b', but call 0 is 'a'"):
        check_action(ActionStep(None, calls, (Observation("b"),)))


def test_more_observations_than_calls_are_refused():
    with pytest.raises(ProtocolError, match="1 observations for 0 calls"):
        ActionStep(None, (), (Observation("a"),))


def test_answers_fill_their_places_and_leave_the_rest_open():
    step = ActionStep(None, tuple(ToolCall(call_id, "t") for call_id in "abc"))
    answered = with_observations(step, {2: Observation("c"), 0: unknown_observation(OpenCall(0, 0, "a"))})
    assert [observation and observation.status for observation in answered.observations] == ["unknown", None, "ok"]
    assert step.observations == ()
