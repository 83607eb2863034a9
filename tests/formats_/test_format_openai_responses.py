"""Items of the Responses API there and back: the suite, every kind of item, and what comes broken."""

import json

import pytest
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

from pagein import AgentMemory, Illegal, Observation, Opaque, TaskStep, Text
from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, Image, ToolCall
from pagein.formats import validate
from pagein.formats.openai_responses.wire import OpenAIResponses
from pagein.testing.formats import FormatTests, items_to_messages

pytestmark = pytest.mark.slow

PNG = "data:image/png;base64,iVBORw0KGgo="


def user(content="Go.", **fields):
    return {"role": "user", "content": content, **fields}


def model_message(*texts, number=1, **fields):
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": parts,
        **fields,
    }


def call(number=1, name="look", arguments="{}", **fields):
    return {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": arguments, **fields}


def output(number=1, output="found", **fields):
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": output, **fields}


REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "I look first."}],
    "encrypted_content": "gAAAA" * 30,
}
LAST = user("And now?")

TRANSCRIPTS = {
    "plain": [{"role": "developer", "content": "Be brief."}, user(), model_message("Hello."), LAST],
    "spelled shortly": [user(), {"role": "assistant", "content": "Hello."}, LAST],
    "a message with a type": [user(type="message"), {"type": "message", "role": "assistant", "content": "Hi"}, LAST],
    "two messages of the model's": [user(), model_message("One."), model_message("Two.", number=2), LAST],
    "two short ones behind a call": [
        user(),
        call(),
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
        output(),
    ],
    "one message of two parts": [user(), model_message("One.", "Two."), LAST],
    "a refusal": [
        user(),
        model_message("Well.", content=[{"type": "refusal", "refusal": "No."}, {"type": "output_text", "text": "Sorry."}]),
        LAST,
    ],
    "a message of nothing": [user(), model_message("x", content=[]), LAST],
    "a message of parts nobody knows": [user(), model_message("x", content=[{"type": "output_hologram", "h": [1]}]), LAST],
    "reasoning, parallel calls, text between": [
        user(),
        REASONING,
        model_message("I look."),
        call(1, id="fc_1", status="completed"),
        model_message("And there.", number=2),
        call(2, arguments='{"path" : "a.py"}', id="fc_2", namespace="files"),
        output(1),
        output(2, [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PNG, "detail": "low"}]),
    ],
    "a tool of text": [
        user(),
        {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done", "id": "ctco_1"},
    ],
    "a computer": [
        user(),
        {"type": "computer_call", "call_id": "c", "id": "cu_1", "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
         "pending_safety_checks": [], "status": "completed"},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": PNG},
         "acknowledged_safety_checks": []},
    ],
    "shells": [
        user(),
        {"type": "local_shell_call", "call_id": "l", "id": "lsh_1", "status": "completed",
         "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}},
        {"type": "apply_patch_call", "call_id": "p", "status": "completed",
         "operation": {"type": "delete_file", "path": "a.py"}},
        {"type": "local_shell_call_output", "id": "l", "output": "a.py"},
        {"type": "shell_call_output", "call_id": "s", "max_output_length": 10,
         "output": [{"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        {"type": "apply_patch_call_output", "call_id": "p", "status": "completed"},
    ],
    "what the server ran": [
        user(),
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "mcp_call", "id": "mcp_1", "name": "n", "server_label": "s", "arguments": "{}", "output": "o"},
        model_message("Found."),
        LAST,
    ],
    "approvals and references": [
        user(),
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "n", "arguments": "{}", "server_label": "s"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "item_reference", "id": "msg_9"},
        LAST,
    ],
    "kinds nobody knows": [user(), {"type": "hologram_call", "id": "h", "deep": [{"a": None}]}, model_message("Done."), LAST],
    "parts of a user": [
        user(
            [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
                {"type": "input_image", "image_url": PNG},
                {"type": "input_image", "file_id": "file_1", "detail": "low"},
                {"type": "input_file", "file_id": "file_2"},
                {"type": "input_smell", "smell": "rose"},
            ]
        )
    ],
}  # fmt: skip


class TestOpenAIResponses(FormatTests):
    cannot_carry = frozenset(
        {
            "boundaries",
            "empty text",
            "error flag",
            "foreign parts",
            "image from the assistant",
            "image in instructions",
            "image type",
            "lone surrogates",
            "tool name",
        }
    )

    @pytest.fixture
    def format(self):
        return OpenAIResponses()

    @pytest.fixture
    def transcripts(self):
        return [{"messages": rows} for rows in TRANSCRIPTS.values()]


def parse(*rows):
    return OpenAIResponses().parse(list(rows))


def render(*rows):
    return OpenAIResponses().render(items_to_messages(parse(*rows)))["messages"]


def test_a_turn_of_the_model_is_one_step():
    items = parse(*TRANSCRIPTS["reasoning, parallel calls, text between"])
    assert [type(item) for item in items] == [TaskStep, ActionStep, Observation, Observation]
    assert [(item.name, item.at) for item in items[1].tool_calls] == [("look", 2), ("look", 3)]
    assert items[1].content[0].kind == "reasoning"


def test_reasoning_comes_back_byte_for_byte():
    _, reasoning, *_ = render(user(), REASONING, call(), output())
    assert json.dumps(reasoning) == json.dumps(REASONING)


def test_what_came_with_reasoning_loses_its_id_with_it():
    turn = parse(user(), REASONING, model_message("I look."), call(id="fc_1"), output())
    without = ActionStep(turn[1].content[1:], turn[1].tool_calls)
    rows = OpenAIResponses().render(items_to_messages([turn[0], without, turn[2]]))["messages"]
    assert [row.get("id") for row in rows] == [None, None, None, None]
    plain = render(user(), model_message("I look."), call(id="fc_1"), output())
    assert [row.get("id") for row in plain] == [None, "msg_1", "fc_1", None]


def test_reasoning_that_led_to_nothing_is_not_sent():
    assert REASONING not in render(user(), REASONING, user())
    with pytest.raises(Illegal, match="reasoning without the item"):
        validate([user(), REASONING, user()], "openai-responses")


@pytest.mark.parametrize("name", ["a computer", "shells", "a tool of text"])
def test_an_output_that_left_the_view_still_has_the_shape_of_one(name):
    items = [
        Observation(item.call_id, "[s2.0 left]", extra=item.extra) if isinstance(item, Observation) else item
        for item in parse(*TRANSCRIPTS[name])
    ]
    rows = OpenAIResponses().render(items_to_messages(items))["messages"]
    validate(rows, "openai-responses")
    assert [row.get("type") for row in rows] == [row.get("type") for row in TRANSCRIPTS[name]]
    assert [row.keys() - {"output"} for row in rows] == [row.keys() - {"output"} for row in TRANSCRIPTS[name]]


def test_a_call_without_a_record_of_its_result_is_answered_in_its_own_kind():
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record_messages(TRANSCRIPTS["a computer"][:2], "openai-responses")
        memory.record(TaskStep("And now?"))
        rows = memory.to_messages("openai-responses")
    assert rows[2]["type"] == "computer_call_output"
    assert rows[2]["output"]["type"] == "computer_screenshot"


def test_a_whole_request_and_what_the_sdk_returns_are_read():
    assert OpenAIResponses().parse({"input": "Hi", "instructions": "Be brief.", "model": object()}) == parse(
        {"role": "system", "content": "Be brief."}, user("Hi")
    )
    answered = [
        ResponseReasoningItem(id="rs_1", type="reasoning", summary=[]),
        ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed",
            content=[ResponseOutputText(type="output_text", text="Hi", annotations=[])],
        ),
        ResponseFunctionToolCall(type="function_call", call_id="call_1", name="look", arguments="{}"),
    ]  # fmt: skip
    (step,) = OpenAIResponses().parse(answered)
    assert (step.tool_calls[0].name, step.content[1].text) == ("look", "Hi")


def test_what_others_recorded_is_said_in_items():
    messages = (
        Message("user", (Text("Look."), Image(b"\x89PNG", "image/png"))),
        Message("assistant", "I look.", (ToolCall("x" * 80, "browser.open"),)),
        Message("tool", "", call_id="x" * 80),
    )
    rows = OpenAIResponses().render(messages)["messages"]
    validate(rows, "openai-responses")
    assert [row.get("type", row.get("role")) for row in rows] == [
        "user", "assistant", "function_call", "function_call_output",
    ]  # fmt: skip
    assert rows[2]["call_id"] == rows[3]["call_id"]
    assert rows[2]["name"] == "browser_open"


BROKEN = {
    "no role": ([{"content": "x"}], "is no role"),
    "no content": ([{"role": "user"}], r"input\[0\].content"),
    "a call without a name": ([call(name=None)], r"input\[0\].name"),
    "an output that is a number": ([user(), call(), output(output=1)], r"input\[2\].output"),
    "a part without a type": ([user([{"text": "x"}])], r"content\[0\].type"),
    "a type that is a list": ([{"type": ["x"]}], r"input\[0\].type"),
    "no object": (["x"], "expected an object"),
    "input of another kind": ({"input": 7}, "expected text or a list"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_refused_by_place(name):
    request, place = BROKEN[name]
    with pytest.raises(FormatError, match=place):
        OpenAIResponses().parse(request)


def test_an_answer_of_another_kind_is_illegal():
    rows = [user(), call(), {"type": "shell_call_output", "call_id": "call_1", "output": []}]
    with pytest.raises(Illegal, match="shell_call_output does not answer the function_call"):
        validate(rows, "openai-responses")


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_memory_gives_back_what_it_was_handed(name, tmp_path):
    rows = TRANSCRIPTS[name]
    with AgentMemory.open(tmp_path / "run.db", budget=40_000) as memory:
        memory.record_messages(rows, "openai-responses", whole=False)
    with AgentMemory.open(tmp_path / "run.db", budget=40_000) as memory:
        assert memory.to_messages("openai-responses") == rows


def test_a_long_run_stays_legal_and_under_budget():
    with AgentMemory.open(":memory:", budget=3_000) as memory:
        memory.record_messages([user("Read on.")], "openai-responses")
        for number in range(40):
            turn = [
                {**REASONING, "id": f"rs_{number}"},
                call(number, id=f"fc_{number}"),
                output(number, f"line {number} " * 60),
            ]
            memory.record_messages(turn, "openai-responses", whole=False)
            validate(memory.to_messages("openai-responses"), "openai-responses")
            assert memory.view().tokens <= 3_000


def test_no_opaque_of_another_maker_is_sent():
    part = Opaque("anthropic", "thinking", '{"type":"thinking"}', "hm")
    rows = OpenAIResponses().render(
        (Message("user", "x"), Message("assistant", (part, Text("y"))), Message("user", "z"))
    )
    assert "hm" not in json.dumps(rows)


def test_an_item_of_instructions_stays_in_its_place_and_is_the_systems():
    from pagein import AgentMemory
    from pagein.formats import format_named

    tools = {
        "type": "additional_tools",
        "id": "at_1",
        "role": "developer",
        "tools": [{"type": "namespace", "name": "f"}],
    }
    said = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are terse."}]}
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read all."}]}
    rows = [tools, said, user]
    assert format_named("openai-responses").problems(rows) == ()
    with AgentMemory.open(":memory:", budget=3_000, format="openai-responses") as memory:
        memory.record_messages(rows)
        assert memory.to_messages() == rows
        for number in range(20):
            call = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"}
            result = {
                "type": "function_call_output",
                "call_id": f"c{number}",
                "output": f"line {number} of text\n" * 60,
            }
            memory.record_messages([call, result])
        assert memory.to_messages()[:2] == [tools, said]
