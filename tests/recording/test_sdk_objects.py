"""The objects of the SDKs, as their own types: recorded like their messages. And messages whose format nobody named."""

import base64
import collections

import pytest
from anthropic.types import Message
from anthropic.types import Usage as AnthropicUsage
from google.genai.types import Content, GenerateContentResponse, GenerateContentResponseUsageMetadata
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ParsedChatCompletion
from openai.types.responses import ParsedResponse, Response, ResponseCompletedEvent, ResponseTextDeltaEvent
from pydantic import BaseModel

from pagein import AgentMemory
from pagein.errors import ConfigurationError, FormatError
from pagein.events.steps import ActionStep, Image, TaskStep, Text, Usage, as_text
from pagein.formats import validate
from pagein.formats.sdk_objects import read_usage

pytestmark = pytest.mark.slow

TASK = {"role": "user", "content": "Read a.py."}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
COMPLETION = ChatCompletion.model_validate({
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o",
    "choices": [{
        "index": 0, "finish_reason": "tool_calls", "logprobs": None,
        "message": {
            "role": "assistant", "content": "I look.", "refusal": None, "annotations": [],
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"p": 1}'}}],
        },
    }],
    "usage": {
        "prompt_tokens": 31, "completion_tokens": 7, "total_tokens": 38, "prompt_tokens_details": {"cached_tokens": 16},
    },
})  # fmt: skip
RESPONSE = Response.model_validate({
    "id": "resp_1", "object": "response", "created_at": 1.0, "model": "gpt-4o", "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [], "status": "completed",
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": []},
        {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"p": 1}', "status": "completed"},
    ],
    "usage": {
        "input_tokens": 31, "output_tokens": 7, "total_tokens": 38,
        "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 3},
    },
})  # fmt: skip
ANTHROPIC = Message.model_validate({
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use", "stop_sequence": None,
    "content": [
        {"type": "text", "text": "I look.", "citations": None},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"p": 1}},
    ],
    "usage": {"input_tokens": 10, "output_tokens": 7, "cache_read_input_tokens": 16, "cache_creation_input_tokens": 5},
})  # fmt: skip
ANSWERS = {
    "openai": {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    "openai-responses": {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
}
CASES = [
    ("openai", COMPLETION),
    ("openai", COMPLETION.choices[0].message),
    ("openai-responses", RESPONSE),
    ("openai-responses", RESPONSE.output),
    ("anthropic", ANTHROPIC),
]


@pytest.mark.parametrize(("form", "reply"), CASES)
@pytest.mark.parametrize("named", [True, False])
def test_a_reply_is_recorded_as_its_sdk_gives_it(form, reply, named):
    memory = AgentMemory.open(":memory:", budget=4_000)
    name = form if named else None
    memory.record_messages([TASK], name)
    memory.record_messages(reply, name, usage=reply.usage if hasattr(reply, "usage") else None)
    memory.record_messages(ANSWERS[form], name)
    step = memory.steps[1]
    assert isinstance(step, ActionStep)
    assert [(call.id, call.name) for call in step.tool_calls] == [("c1", "read")]
    assert step.observations[0].content == "ok"
    assert memory.repairs == ()
    validate(memory.to_request(form), form)


@pytest.mark.parametrize(("form", "reply"), CASES)
def test_a_list_of_dicts_and_objects_is_known_in_the_next_turn(form, reply):
    memory = AgentMemory.open(":memory:", budget=4_000, format=form)
    rows = [TASK, *(reply if isinstance(reply, list) else [reply]), ANSWERS[form]]
    for turn in range(3):
        rows.append({"role": "user", "content": "And now?"})
        memory.record_messages(rows)
        assert [step.content for step in memory.steps if isinstance(step, TaskStep)][1:] == ["And now?"] * (turn + 1)
    dumped = [row if isinstance(row, dict) else row.model_dump() for row in rows]
    if form != "openai" or reply is not COMPLETION:
        assert memory.record_messages(dumped).first == memory.record_messages(dumped).last


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (COMPLETION.usage, Usage(31, 7, 16)),
        (RESPONSE.usage, Usage(31, 7, 16)),
        (ANTHROPIC.usage, Usage(31, 7, 16)),
        (AnthropicUsage(input_tokens=3, output_tokens=2), Usage(3, 2)),
        ({"prompt_tokens": 3, "completion_tokens": 2}, Usage(3, 2)),
        (
            GenerateContentResponseUsageMetadata(
                prompt_token_count=31, candidates_token_count=5, thoughts_token_count=2, cached_content_token_count=16
            ),
            Usage(31, 7, 16),
        ),
        (
            {"inputTokens": 10, "outputTokens": 7, "cacheReadInputTokens": 16, "cacheWriteInputTokens": 5},
            Usage(31, 7, 16),
        ),
        ({"input_tokens": 31, "output_tokens": 7, "input_token_details": {"cache_read": 16}}, Usage(31, 7, 16)),
        (Usage(1), Usage(1)),
    ],
)
def test_the_usage_of_every_provider_is_read(usage, expected):
    assert read_usage(usage) == expected


@pytest.mark.parametrize("usage", [3, "many", {}, {"tokens": 1}, object()])
def test_what_is_no_usage_is_refused(usage):
    memory = AgentMemory.open(":memory:", budget=4_000)
    with pytest.raises(ConfigurationError, match="usage is a Usage"):
        memory.record_messages([TASK], usage=usage)
    assert memory.steps == ()


def test_a_completion_with_several_choices_is_refused_with_the_cure():
    two = COMPLETION.model_copy(update={"choices": COMPLETION.choices * 2})
    with pytest.raises(FormatError, match="the message of the one that was taken"):
        AgentMemory.open(":memory:", budget=4_000).record_messages(two)


class City(BaseModel):
    name: str


def test_what_an_sdk_parsed_of_a_structured_output_is_not_sent_again():
    """The Responses API answers 400 ("Unknown parameter") to it; it is the text, or the arguments, a second time."""
    city = '{"name": "Ulm"}'
    call = {"name": "read", "arguments": '{"p": 1}', "parsed_arguments": {"p": 1}}
    message = {"role": "assistant", "content": city, "parsed": {"name": "Ulm"}}
    message |= {"tool_calls": [{"id": "c1", "type": "function", "function": call}]}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    chat = ParsedChatCompletion[City].model_validate({**COMPLETION.model_dump(), "choices": [choice]})
    part = {"type": "output_text", "text": city, "annotations": [], "parsed": {"name": "Ulm"}}
    items = [
        {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]},
        {"id": "f1", "type": "function_call", "call_id": "c1", **call},
    ]
    response = ParsedResponse[City].model_validate({**RESPONSE.model_dump(), "output": items})
    block = {"type": "text", "text": city, "parsed_output": {"name": "Ulm"}}
    use = {"type": "tool_use", "id": "c1", "name": "read", "input": {"p": 1}}
    for form, reply in (
        ("openai", chat),
        ("openai-responses", response),
        ("anthropic", {"role": "assistant", "content": [block, use]}),
    ):
        memory = AgentMemory.open(":memory:", budget=4_000, format=form)
        memory.record_messages([TASK])
        memory.record_messages(reply)
        memory.record_messages(ANSWERS[form])
        assert "Ulm" in str(memory.to_messages())
        assert "parsed" not in str(memory.to_messages())


def test_the_last_event_of_a_stream_is_its_response_and_another_piece_is_refused():
    memory = AgentMemory.open(":memory:", budget=4_000, format="openai-responses")
    last = ResponseCompletedEvent(type="response.completed", sequence_number=2, response=RESPONSE)
    memory.record_messages([TASK])
    memory.record_messages(last)
    assert memory.steps[1].tool_calls[0].id == "c1"
    delta = {
        "type": "response.output_text.delta",
        "item_id": "m",
        "output_index": 0,
        "content_index": 0,
        "logprobs": [],
    }
    piece = ResponseTextDeltaEvent.model_validate({**delta, "delta": "Hel", "sequence_number": 1})
    choice = {"index": 0, "delta": {"role": "assistant", "content": "Hel"}}
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    for event in (piece, piece.model_dump(), ChatCompletionChunk.model_validate(chunk), {"type": "message_start"}):
        for handed in (event, [event, event]):
            with pytest.raises(FormatError, match="hand over the whole reply"):
                memory.record_messages(handed)
    assert len(memory.steps) == 2


def test_a_blocked_response_of_gemini_is_refused_with_its_reason():
    memory = AgentMemory.open(":memory:", budget=4_000, format="gemini")
    with pytest.raises(FormatError, match="finish reason is SAFETY"):
        memory.record_messages(GenerateContentResponse.model_validate({"candidates": [{"finish_reason": "SAFETY"}]}))


def test_an_artifact_of_any_kind_does_not_keep_a_tools_result_out():
    memory = AgentMemory.open(":memory:", budget=4_000, format="langchain")
    rows = [
        HumanMessage("Read."),
        AIMessage("", tool_calls=[{"id": "c1", "name": "read", "args": {}}]),
        ToolMessage("ok", tool_call_id="c1", artifact={"frame": object()}),
    ]
    memory.record_messages(rows)
    memory.record_messages([*rows, HumanMessage("And?")])
    assert [len(memory.steps), memory.steps[1].observations[0].content] == [3, "ok"]


# Formats that nobody named


def test_an_anthropic_request_is_read_without_its_name():
    memory = AgentMemory.open(":memory:", budget=4_000)
    request = {
        "model": "claude", "max_tokens": 100, "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            TASK,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"p": 1}}]},
            ANSWERS["anthropic"],
        ],
    }  # fmt: skip
    memory.record_messages(request)
    assert [as_text(step.content) for step in memory.steps] == ["Be brief.", "Read a.py.", ""]
    assert memory.steps[2].observations[0].content == "ok"
    for form in ("openai", "anthropic"):
        validate(memory.to_request(form), form)


@pytest.mark.parametrize(
    ("request_", "words"),
    [([{"role": "assistant", "content": [{"type": "tool_use"}], "tool_calls": [{"id": "a"}]}], "anthropic and openai")],
)
def test_a_format_that_is_not_certain_or_not_read_is_refused_with_the_cure(request_, words):
    memory = AgentMemory.open(":memory:", budget=4_000)
    with pytest.raises(FormatError, match=words):
        memory.record_messages(request_)
    assert memory.steps == ()


@pytest.mark.parametrize(
    "request_",
    [{"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}, [{"role": "user", "parts": [{"text": "Hi."}]}]],
)
def test_a_request_for_gemini_is_known_by_its_parts(request_):
    memory = AgentMemory.open(":memory:", budget=4_000)
    memory.record_messages(request_)
    assert [as_text(step.content) for step in memory.steps] == ["Hi."]


def test_messages_of_langchain_are_known_by_their_types():
    memory = AgentMemory.open(":memory:", budget=4_000)
    memory.record_messages(
        [HumanMessage("Read."), AIMessage("", tool_calls=[{"id": "c1", "name": "read", "args": {}}])]
    )
    memory.record_messages([ToolMessage("ok", tool_call_id="c1")])
    assert [step.content for step in memory.steps] == ["Read.", None]
    assert memory.steps[1].observations[0].content == "ok"
    validate(memory.to_request("openai"), "openai")


def test_a_request_for_bedrock_is_known_by_its_blocks():
    rows = [
        {"role": "user", "content": [{"text": "Read."}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "read", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "ok"}]}}]},
    ]
    memory = AgentMemory.open(":memory:", budget=4_000)
    memory.record_messages(rows[:1])
    memory.record_messages(rows)
    assert [as_text(memory.steps[0].content), as_text(memory.steps[1].observations[0].content)] == ["Read.", "ok"]


def test_a_request_for_bedrock_with_a_system_prompt_is_known_by_its_blocks():
    memory = AgentMemory.open(":memory:", budget=4_000)
    rows = [{"role": "user", "content": [{"text": "Read."}]}]
    for _ in range(2):
        memory.record_messages({"system": [{"text": "Be brief."}], "messages": rows})
        rows.append({"role": "assistant", "content": [{"text": "Done."}]})
    assert [as_text(step.content) for step in memory.steps] == ["Be brief.", "Read.", "Done."]


GEMINI_REPLY = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"p": 1}}}]}
CONVERSE_REPLY = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "read", "input": {"p": 1}}}]}


@pytest.mark.parametrize("wrapped", [lambda reply: reply, lambda reply: [reply]])
@pytest.mark.parametrize(
    "reply",
    [
        GenerateContentResponse.model_validate({"candidates": [{"content": GEMINI_REPLY, "finishReason": "STOP"}]}),
        {"output": {"message": CONVERSE_REPLY}, "stopReason": "tool_use", "usage": {"inputTokens": 5}},
    ],
)
def test_a_reply_of_gemini_or_bedrock_is_known_in_a_memory_of_another_format(reply, wrapped):
    memory = AgentMemory.open(":memory:", budget=4_000)
    memory.record_messages([TASK])
    memory.record_messages(wrapped(reply))
    assert [call.name for call in memory.steps[1].tool_calls] == ["read"]


@pytest.mark.parametrize("form", ["gemini", "bedrock"])
def test_the_request_with_an_image_as_its_sdk_takes_it_is_known_when_it_comes_back(form):
    """The SDKs of Google and AWS take bytes; the line at the end of the request was recorded as the user's words."""
    memory = AgentMemory.open(":memory:", budget=4_000)
    memory.record(TaskStep((Text("Look."), Image(base64.b64decode(PIXEL), "image/png"))), ActionStep("I see it."))
    request = memory.to_request(form)
    key, block = (
        ("contents", {"parts": [{"text": "Why?"}]})
        if form == "gemini"
        else ("messages", {"content": [{"text": "Why?"}]})
    )
    memory.record_messages([*request[key], {"role": "user", **block}], form)
    assert [as_text(step.content) for step in memory.steps][1:] == ["I see it.", "Why?"]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("bedrock", {"content": [{"image": {"format": "png", "source": {"bytes": base64.b64decode(PIXEL)}}}]}),
        ("gemini", {"parts": [{"inlineData": {"mimeType": "image/png", "data": base64.b64decode(PIXEL)}}]}),
    ],
)
def test_one_message_with_bytes_is_taken_as_a_list_of_it_is(form, message):
    row = {"role": "user", **message}
    memory = AgentMemory.open(":memory:", budget=4_000, format=form)
    for messages in (row, [row]):
        memory.record_messages(messages)
        assert [step.content[0].data for step in memory.steps] == [base64.b64decode(PIXEL)]


@pytest.mark.parametrize(
    "as_the_host_has_it",
    [
        lambda contents: contents,
        lambda contents: [Content.model_validate(row) for row in contents],
        lambda contents: [Content.model_validate(row).model_dump(mode="json") for row in contents],
    ],
)
def test_a_request_of_gemini_is_known_in_every_spelling_of_its_sdk(as_the_host_has_it):
    """The SDK has objects with bytes, and writes them as JSON with other keys and another alphabet of base64."""
    signed = {"functionCall": {"name": "read", "args": {"a_b": 1}}, "thoughtSignature": "-_8="}
    memory = AgentMemory.open(":memory:", budget=4_000, format="gemini")
    memory.record_messages(
        [{"role": "user", "parts": [{"text": "Look."}]}, {"role": "model", "parts": [{"text": "I look."}, signed]}]
    )
    contents = as_the_host_has_it(memory.to_request("gemini")["contents"])
    answer = {"functionResponse": {"name": "read", "response": {"output": "ok"}}}
    memory.record_messages([*contents, {"role": "user", "parts": [answer]}])
    assert [as_text(result.content) for result in memory.steps[1].observations] == ["ok"]
    assert memory.repairs == ()


@pytest.mark.parametrize("kind", ["image/png", "audio/wav"])
@pytest.mark.parametrize("first", ["python", "json"])
def test_what_geminis_sdk_has_as_bytes_is_known_as_its_json_after_a_restart(tmp_path, kind, first):
    data = base64.b64decode(PIXEL) if kind == "image/png" else b"RIFF\xfb\xef\xff\xfe"
    parts = [{"inline_data": {"mime_type": kind, "data": data}}, {"text": "Look."}]
    contents = [Content.model_validate({"role": role, "parts": parts}) for role in ("user", "model", "user")]
    spelled = {mode: [content.model_dump(mode=mode) for content in contents] for mode in ("python", "json")}
    with AgentMemory.open(tmp_path / "run.db", budget=4_000, format="gemini") as memory:
        memory.record_messages(spelled.pop(first))
    with AgentMemory.open(tmp_path / "run.db", budget=4_000, format="gemini") as memory:
        memory.record_messages([*spelled.popitem()[1], {"role": "model", "parts": [{"text": "I see it."}]}])
        assert (len(memory.steps), len(memory.branches())) == (4, 1)


def test_a_message_with_bytes_and_a_cache_marker_is_known_again():
    memory = AgentMemory.open(":memory:", budget=4_000, format="bedrock")
    content = [{"text": "Look."}, {"document": {"format": "pdf", "name": "a", "source": {"bytes": b"%PDF-1.4"}}}]
    marker = {"cachePoint": {"type": "default"}}
    for rows in ([*content, marker], content):
        memory.record_messages([{"role": "user", "content": rows}])
        assert len(memory.steps) == 1


def test_a_format_that_was_named_is_never_guessed():
    memory = AgentMemory.open(":memory:", budget=4_000, format="langchain")
    row = {"type": "ai", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}], "tool_calls": []}
    memory.record_messages([row])
    assert isinstance(memory.steps[0], ActionStep)


@pytest.mark.parametrize(
    "kind",
    [tuple, iter, collections.deque, lambda rows: (row for row in rows), lambda rows: dict(enumerate(rows)).values()],
)
def test_any_collection_of_messages_is_a_list_of_them(kind):
    memory = AgentMemory.open(":memory:", budget=4_000)
    rows = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}]
    memory.record_messages(kind(rows))
    memory.record_messages(kind([*rows, {"role": "user", "content": "Go on."}]))
    assert [step.content for step in memory.steps] == ["Hi.", "Yes?", "Go on."]
