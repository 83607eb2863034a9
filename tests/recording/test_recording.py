"""Admission: what the log takes, strictly by type and with named repairs by transcript."""

import pytest

from pagein import AgentMemory
from pagein.errors import FormatError, ProtocolError
from pagein.events.entries import Observed
from pagein.events.protocol import fingerprint
from pagein.events.steps import ActionStep, Image, Observation, Opaque, TaskStep, Text, ToolCall, Usage
from pagein.memory.operations.record import NO_ACTION


def bodies(log):
    return [entry.body for entry in log.read()]


def call(call_id, name="t"):
    return ToolCall(call_id, name)


def test_an_action_is_in_the_log_before_its_results(memory, log):
    memory.record(ActionStep("x", (call("a"),)))
    assert log.head() == 1
    memory.record(Observation("a", "done"))
    assert bodies(log) == [ActionStep("x", (call("a"),)), Observed(0, 0, Observation("a", "done"))]


def test_a_batch_is_recorded_whole_or_not_at_all(memory, log):
    with pytest.raises(ProtocolError, match="no open call 'b' to observe; open calls: 'a'"):
        memory.record(TaskStep("x"), ActionStep("y", (call("a"),)), Observation("b"))
    assert log.head() == 0
    memory.record(TaskStep("x"), ActionStep("y", (call("a"),)), Observation("a"))
    assert log.head() == 3


def test_what_the_user_says_closes_open_calls_as_unknown_and_the_repair_is_named(memory, log):
    memory.record(ActionStep("x", (call("a"), call("b"))), Observation("b", "done"))
    written = memory.record(TaskStep("stop"))
    assert bodies(log)[2:] == [Observed(0, 0, Observation("a", "", "unknown", 0)), TaskStep("stop")]
    assert (written.first, written.last) == (2, 4)
    assert written.repairs == ("s0.0: call 'a' had no result; marked unknown",)
    assert memory.repairs == written.repairs


def test_a_late_result_is_a_note_once(memory, log):
    memory.record(ActionStep("x", (call("a"),)), TaskStep("stop"))
    memory.record(Observation("a", "late"))
    assert bodies(log)[-1] == Observed(0, 0, Observation("a", "late"), late=True)
    head = log.head()
    with pytest.raises(ProtocolError):
        memory.record(Observation("a", "later"))
    assert log.head() == head
    assert memory.steps[0].observations[0].content == "late"


def test_two_late_results_in_one_batch_are_refused(memory, log):
    memory.record(ActionStep("x", (call("a"),)), TaskStep("stop"))
    head = log.head()
    with pytest.raises(ProtocolError):
        memory.record(Observation("a", "late"), Observation("a", "later"))
    assert log.head() == head


def test_late_results_of_one_id_go_to_their_calls_in_order(memory):
    memory.record(ActionStep("x", (call("a"), call("a"))), TaskStep("stop"))
    memory.record(Observation("a", "second", index=1))
    memory.record(Observation("a", "first"))
    assert [seen.content for seen in memory.steps[0].observations] == ["first", "second"]


def test_empty_and_repeated_ids_are_answered_in_the_order_of_their_calls(memory):
    memory.record(ActionStep("x", (call(""), call(""), call("a"), call("a"))))
    for text in ("one", "two"):
        memory.record(Observation("", text), Observation("a", f"a {text}"))
    assert [seen.content for seen in memory.steps[0].observations] == ["one", "two", "a one", "a two"]


def test_an_id_that_is_used_again_is_never_merged_with_its_first_use(memory):
    for number in range(3):
        memory.record(ActionStep(str(number), (call("a"),)), Observation("a", f"result {number}"))
    assert [step.observations[0].content for step in memory.steps] == ["result 0", "result 1", "result 2"]
    sent = [each["tool_call_id"] for each in memory.to_messages() if each["role"] == "tool"]
    assert len(set(sent)) == 3


def test_a_stray_result_in_a_transcript_is_kept_as_a_note_and_named(memory, log):
    written = memory.record_messages([{"role": "tool", "tool_call_id": "z", "content": "stray"}])
    assert bodies(log) == [Observed(NO_ACTION, 0, Observation("z", "stray"), late=True)]
    assert written.repairs == ("a result for 'z' answers no open call; kept as a note",)
    assert "stray" in str(memory.to_messages())


TRANSCRIPT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "a", "content": "done"},
    {"role": "assistant", "content": "Done."},
]


@pytest.mark.parametrize("whole", [None, True])
@pytest.mark.parametrize("stop", range(1, len(TRANSCRIPT) + 1))
def test_a_whole_history_records_only_what_is_new(memory, stop, whole):
    memory.record_messages(TRANSCRIPT[:stop], whole=whole)
    before = len(memory.steps)
    assert memory.record_messages(TRANSCRIPT[:stop], whole=whole).first == stop
    memory.record_messages(TRANSCRIPT, whole=whole)
    assert len(memory.steps) == 4 >= before


def test_only_what_is_new_may_be_handed_over_message_by_message(memory):
    for each in TRANSCRIPT:
        memory.record_messages([each])
    assert len(memory.steps) == 4
    memory.record_messages(TRANSCRIPT)
    assert len(memory.steps) == 4, "the whole history after its parts is nothing new"


def test_a_history_that_was_changed_goes_on_in_a_branch(memory):
    memory.record_messages(TRANSCRIPT)
    before = memory.steps
    changed = [TRANSCRIPT[0], {"role": "user", "content": "Bye."}, *TRANSCRIPT[2:]]
    written = memory.record_messages(changed)
    assert written.branch == "branch-1"
    assert written.repairs == ("the list was edited at s1: it goes on in 'branch-1'",)
    assert [step.content for step in memory.steps] == ["Be brief.", "Bye.", None, "Done."]
    assert memory.record_messages(changed).branch is None, "the edited list is known now"
    memory.switch("main")
    assert memory.steps == before


def test_a_whole_history_that_shares_nothing_is_refused(memory, log):
    memory.record_messages(TRANSCRIPT)
    head = log.head()
    for other in (
        [{"role": "user", "content": "Other."}],
        [{"role": "user", "content": "Other."}, {"role": "assistant", "content": "Yes."}],
    ):
        with pytest.raises(FormatError, match="whole=False"):
            memory.record_messages(other, whole=True)
    assert log.head() == head


def test_a_whole_history_is_known_again_after_reopening(memory, log):
    from pagein.memory.agent_memory import AgentMemory

    memory.record_messages(TRANSCRIPT)
    memory.pin("beside it")
    again = AgentMemory(log, budget=100_000)
    assert again.record_messages(TRANSCRIPT).first == again.record_messages(TRANSCRIPT).last == log.head()


def answer(call_id):
    return {"role": "tool", "tool_call_id": call_id, "content": f"answer {call_id}"}


TWO_CALLS = [
    {"role": "user", "content": "Hi."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": each, "type": "function", "function": {"name": "t", "arguments": "{}"}} for each in "ab"],
    },
]


def test_results_recorded_as_they_came_are_known_in_the_order_of_the_calls(memory):
    memory.record_messages(TWO_CALLS)
    memory.record_messages([answer("b")])
    memory.record_messages([*TWO_CALLS, answer("a"), answer("b")])
    assert [seen.content for seen in memory.steps[1].observations] == ["answer a", "answer b"]
    end = {"role": "assistant", "content": "Done."}
    memory.record_messages([*TWO_CALLS, answer("a"), answer("b"), end])
    memory.record_messages([*TWO_CALLS, answer("b"), answer("a"), end])
    assert len(memory.steps) == 3
    assert memory.repairs == ()


@pytest.mark.parametrize("other", [[], ["c"]])
def test_a_history_with_another_result_goes_on_in_a_branch(memory, other):
    memory.record_messages([*TWO_CALLS, answer("a"), answer("b")])
    memory.record_messages([*TWO_CALLS, answer("a"), *map(answer, other), {"role": "user", "content": "And?"}])
    statuses = [seen.status for seen in memory.steps[1].observations]
    assert statuses == ["ok", "unknown"]
    assert memory.branches()[-1].is_current
    assert [step.content for step in memory.steps if isinstance(step, TaskStep)] == ["Hi.", "And?"]


def test_the_users_first_words_said_again_are_new(memory):
    memory.record_messages(TWO_CALLS)
    memory.record_messages([{"role": "user", "content": "Hi."}])
    assert len(memory.steps) == 3


def test_fingerprints_know_images_by_their_bytes_and_do_not_know_usage():
    one, other = (TaskStep((Text("x"), Image(data, "image/png"))) for data in (b"1", b"2"))
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(ActionStep("x", usage=Usage(1))) == fingerprint(ActionStep("x", model="m"))
    assert fingerprint(Observation("a", "x", index=1)) == fingerprint(Observation("a", "x"))
    assert fingerprint(TaskStep("a\ud800")) != fingerprint(TaskStep("a"))


def test_all_of_a_list_is_new_where_the_host_says_so(memory):
    for _ in range(2):
        memory.record_messages(TRANSCRIPT[:2], whole=False)
    assert len(memory.steps) == 4
    assert memory.record_messages(TRANSCRIPT[:2], whole=True).first == 4 == len(memory.steps)


def test_a_result_under_an_id_that_the_client_made_anew_answers_its_call(memory):
    def calls(prefix):
        functions = [
            {"id": f"{prefix}{n}", "type": "function", "function": {"name": "t", "arguments": "{}"}} for n in "12"
        ]
        return {"role": "assistant", "content": "I look.", "tool_calls": functions}

    user = {"role": "user", "content": "Hi."}
    memory.record_messages([user, calls("a")])
    new = [{"role": "tool", "tool_call_id": f"b{n}", "content": f"result {n}"} for n in "21"]
    assert memory.record_messages([user, calls("b"), *new]).repairs == ()
    assert [seen.content for seen in memory.steps[1].observations] == ["result 1", "result 2"]
    ids = [row["tool_call_id"] for row in memory.to_messages() if row["role"] == "tool"]
    assert ids == ["a1", "a2"]


def test_other_names_of_roles_are_read_and_written():
    from pagein import AgentMemory
    from pagein.errors import ConfigurationError

    memory = AgentMemory.open(
        ":memory:", budget=4_000, roles={"human": "user", "bot": "assistant", "tool-response": "user"}
    )
    rows = [
        {"role": "human", "content": "Hi."},
        {"role": "bot", "content": "Yes?"},
        {"role": "human", "content": "Hi."},
    ]
    memory.record_messages(rows)
    assert memory.to_messages() == rows
    memory.record_messages(
        [*memory.to_messages(), {"role": "bot", "content": "Hm."}, {"role": "human", "content": "Hi."}]
    )
    assert [type(step) for step in memory.steps] == [TaskStep, ActionStep, TaskStep, ActionStep, TaskStep]
    with pytest.raises(ConfigurationError, match="roles maps"):
        AgentMemory.open(":memory:", budget=4_000, roles={"human": "person"})


@pytest.mark.parametrize("body", ['{"name":"a\tb"}', '{"title":"\\u12"}', "no JSON"])
def test_a_file_whose_body_is_no_json_is_recorded_and_has_no_name(tmp_path, body):
    with AgentMemory.open(tmp_path / "run.db") as memory:
        memory.record(TaskStep((Opaque("mine", "document", body), Text("Read it."))))
    with AgentMemory.open(tmp_path / "run.db") as memory:
        assert str(memory.expand("s0")) == "[document]\nRead it."


AI_SDK = [
    {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "read", "input": {}}]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "read", "output": {}}]},
]
AG_UI = [
    {
        "role": "assistant",
        "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}}],
    },
    {"role": "tool", "toolCallId": "c1", "content": "Line 1."},
]


@pytest.mark.parametrize("rows", [AI_SDK, AI_SDK[1:], AG_UI, AG_UI[1:]])
def test_messages_of_a_format_whose_calls_would_be_lost_are_refused(rows):
    with AgentMemory.open(":memory:") as memory:
        with pytest.raises(FormatError, match="which is not read; convert them"):
            memory.record_messages([{"role": "user", "content": "Read it."}, *rows])
        assert memory.steps == ()


@pytest.mark.parametrize(
    "row", [{"type": {}, "output": "x"}, {"role": "user", "content": [{"type": {}, "text": "x"}]}], ids=["item", "part"]
)
def test_a_type_that_is_no_text_is_refused(row):
    with AgentMemory.open(":memory:") as memory:
        with pytest.raises(FormatError):
            memory.record_messages([row])
        assert memory.steps == ()


def test_an_application_may_keep_such_fields_beside_the_calls():
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    rows = [{"role": "user", "content": "Read it."}, {"role": "assistant", "tool_calls": [call], "toolCalls": [1]}]
    with AgentMemory.open(":memory:") as memory:
        memory.record_messages([*rows, {"role": "tool", "tool_call_id": "c1", "toolCallId": "x", "content": "Line 1."}])
        assert memory.steps[1].observations[0].content == "Line 1."
