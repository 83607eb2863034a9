"""pydantic-ai's messages to steps and back: every kind of part equal, and what is broken refused by place."""

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from pagein.errors import FormatError
from pagein.events.steps import ActionStep, Image, Observation
from pagein.integrations.pydantic_ai.messages import to_items, to_rows
from pagein.testing.conversations import items_to_messages

pytestmark = pytest.mark.slow

PNG = BinaryContent(data=b"\x89PNG\xff\xfe", media_type="image/png")
ASK = ModelRequest(parts=[UserPromptPart(content="Go.")], instructions="Be brief.", run_id="r1")
LAST = ModelRequest(parts=[UserPromptPart(content="And now?")])

CONVERSATIONS = {
    "plain": [
        ModelRequest(parts=[SystemPromptPart(content="Be kind."), UserPromptPart(content="Hi")]),
        ModelResponse(parts=[TextPart(content="Hello.")], model_name="m", provider_name="p"),
        LAST,
    ],
    "calls and results": [
        ASK,
        ModelResponse(
            parts=[
                ThinkingPart(content="hm", signature="c2ln", provider_name="anthropic"),
                TextPart(content="I look.", id="msg_1", provider_name="openai"),
                ToolCallPart(tool_name="look", args={"n": 1}, tool_call_id="c1"),
                TextPart(content="And there."),
                ToolCallPart(tool_name="look", args='{"n" : 2}', tool_call_id="c2"),
                ToolCallPart(tool_name="look", args=None, tool_call_id="c3"),
                ToolCallPart(tool_name="look", args={}, tool_call_id="c4"),
            ]
        ),
        ModelRequest(
            parts=[
                ToolReturnPart(tool_name="look", content="one", tool_call_id="c1", metadata={"a": [1]}),
                ToolReturnPart(tool_name="look", content={"rows": [1, None]}, tool_call_id="c2"),
                ToolReturnPart(tool_name="look", content="gone", tool_call_id="c3", outcome="failed"),
                ToolReturnPart(tool_name="look", content=["a", PNG], tool_call_id="c4"),
                UserPromptPart(content="Go on."),
            ]
        ),
    ],
    "what a user shows": [
        ModelRequest(
            parts=[
                UserPromptPart(
                    content=[
                        "Look:",
                        PNG,
                        ImageUrl(url="https://example.org/a.png"),
                        DocumentUrl(url="https://example.org/a.pdf"),
                        BinaryContent(data=b"%PDF", media_type="application/pdf"),
                    ]
                )
            ]
        )
    ],
    "what the provider ran": [
        ASK,
        ModelResponse(
            parts=[
                NativeToolCallPart(tool_name="web_search", args={"q": "x"}, tool_call_id="s1", provider_name="p"),
                NativeToolReturnPart(tool_name="web_search", content="y", tool_call_id="s1", provider_name="p"),
                FilePart(content=PNG),
            ]
        ),
        LAST,
    ],
}


def rows_of(messages):
    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_messages_come_back_equal(name):
    rows = rows_of(CONVERSATIONS[name])
    back = to_rows(items_to_messages(to_items(rows)))
    given = ModelMessagesTypeAdapter.validate_python(back)
    assert rows_of(given) == rows


def test_steps_say_what_the_messages_said():
    items = to_items(rows_of(CONVERSATIONS["calls and results"]))
    action = next(each for each in items if isinstance(each, ActionStep))
    assert [call.arguments for call in action.tool_calls] == ['{"n":1}', '{"n" : 2}', "{}", "{}"]
    answers = [each for each in items if isinstance(each, Observation)]
    assert [each.status for each in answers] == ["ok", "ok", "error", "ok"]
    shown = to_items(rows_of(CONVERSATIONS["what a user shows"]))[0]
    assert isinstance(shown.content[1], Image)
    assert shown.content[1].data == PNG.data


def test_a_part_nobody_knows_is_kept_and_given_back():
    odd = {"part_kind": "hologram", "content": {"a": 1}, "beam": [None]}
    rows = [
        {"kind": "request", "parts": [odd]},
        {"kind": "response", "parts": [odd, {"part_kind": "text", "content": "x"}]},
    ]
    back = to_rows(items_to_messages(to_items(rows)))
    assert back[0]["parts"] == [odd]
    assert back[1]["parts"][0] == odd


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ("x", r"messages\[0\]"),
        ({"kind": "request"}, r"messages\[0\]"),
        ({"kind": "request", "parts": [{"content": "x"}]}, r"parts\[0\]"),
        ({"kind": "request", "parts": [{"part_kind": "tool-return", "content": "x"}]}, r"parts\[0\]"),
    ],
)
def test_what_is_no_message_is_refused_by_place(row, place):
    with pytest.raises(FormatError, match=place):
        to_items([row])
