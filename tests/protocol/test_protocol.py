"""The order of events in a run, and the matching of observations to calls."""

import pytest

from pagein.errors import ProtocolError
from pagein.events.protocol import (
    TRANSITIONS,
    EventKind,
    OpenCall,
    RunPhase,
    advance,
    check_action,
    event_kind,
    find_call,
    open_calls,
    unknown_observation,
    with_observations,
)
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Observation,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)


def test_the_table_has_a_row_for_each_state_and_leads_only_to_states():
    assert set(TRANSITIONS) == set(RunPhase)
    assert {state for row in TRANSITIONS.values() for state in row.values()} <= set(RunPhase)


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        TRANSITIONS[RunPhase.IDLE] = {}  # type: ignore[index]
    with pytest.raises(TypeError):
        TRANSITIONS[RunPhase.IDLE][EventKind.TASK] = RunPhase.CALLING  # type: ignore[index]


@pytest.mark.parametrize("kind", [EventKind.RESULT, EventKind.LAST_RESULT])
def test_a_result_may_not_come_while_nothing_waits(kind):
    with pytest.raises(ProtocolError, match="may not follow while idle; allowed: system"):
        advance(RunPhase.IDLE, kind)


@pytest.mark.parametrize("kind", [EventKind.TASK, EventKind.CALLED, EventKind.ANSWER])
def test_nothing_but_results_and_notes_may_come_while_calls_wait(kind):
    with pytest.raises(ProtocolError, match="allowed: result, last result, note"):
        advance(RunPhase.CALLING, kind)


def test_calls_open_and_the_last_result_closes():
    assert advance(RunPhase.IDLE, EventKind.CALLED) is RunPhase.CALLING
    assert advance(RunPhase.CALLING, EventKind.RESULT) is RunPhase.CALLING
    assert advance(RunPhase.CALLING, EventKind.LAST_RESULT) is RunPhase.IDLE


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (SystemPromptStep("x"), EventKind.SYSTEM),
        (TaskStep("x"), EventKind.TASK),
        (PlanningStep("x"), EventKind.PLAN),
        (ActionStep("x"), EventKind.SAID),
        (ActionStep("x", (ToolCall("a", "b"),)), EventKind.CALLED),
        (ActionStep("x", (ToolCall("a", "b"),), (Observation("a"),)), EventKind.SAID),
        (FinalAnswerStep("x"), EventKind.ANSWER),
    ],
)
def test_each_step_has_its_kind(step, kind):
    assert event_kind(step) is kind


def test_a_summary_is_never_recorded_by_a_host():
    with pytest.raises(ProtocolError, match="written by a compaction"):
        event_kind(SummaryStep("x"))


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
