"""LangChain's messages there and back: the suite, the corpus as LangChain itself dumps it, and what comes broken."""

import json

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    messages_to_dict,
)

from pagein import AgentMemory, Image, Opaque
from pagein.errors import FormatError
from pagein.formats.langchain.wire import LangChain
from pagein.testing.formats import FormatTests, items_to_messages

pytestmark = pytest.mark.slow

PNG = "iVBORw0KGgo="
JPEG, GIF = "/9j/4A==", "R0lGODlh"
CALL = {"name": "look", "args": {"path": "a.py", "depth": None}, "id": "call_1"}
OTHER = {"name": "look", "args": {}, "id": "call_2"}

CONVERSATIONS = {
    "plain": [SystemMessage("Be brief."), HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("Bye")],
    "parallel calls": [
        HumanMessage("Look.", name="ann"),
        AIMessage("", tool_calls=[CALL, OTHER]),
        ToolMessage("one", tool_call_id="call_1", name="look"),
        ToolMessage("gone", tool_call_id="call_2", name="look", status="error"),
    ],
    "an artifact": [
        HumanMessage("Look."),
        AIMessage("I look.", tool_calls=[CALL]),
        ToolMessage("a table", tool_call_id="call_1", artifact={"rows": [[1, 2], [3, None]]}),
    ],
    "images in four spellings": [
        HumanMessage(
            [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
                {"type": "image", "base64": PNG, "mime_type": "image/png", "id": "img_1"},
                {"type": "image", "source_type": "base64", "data": JPEG, "mime_type": "image/jpeg"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": GIF}},
                {"type": "image", "url": "https://example.org/a.png"},
                {"type": "image", "source_type": "url", "url": "https://example.org/a.png"},
                {"type": "image", "file_id": "file-1"},
            ]
        )
    ],
    "an image from a tool": [
        HumanMessage("Look."),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage(
            [{"type": "text", "text": "here"}, {"type": "image", "base64": PNG, "mime_type": "image/png"}],
            tool_call_id="call_1",
        ),
    ],
    "thinking and a call, as Anthropic says them": [
        HumanMessage("Look."),
        AIMessage(
            [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "I look.", "citations": [{"type": "page", "page": 3}]},
                {"type": "tool_use", "id": "call_1", "name": "look", "input": CALL["args"], "caller": {"type": "direct"}},
            ],
            tool_calls=[CALL],
            response_metadata={"model_provider": "anthropic"},
        ),
        ToolMessage("ok", tool_call_id="call_1"),
    ],
    "reasoning and a call, as the Responses API says them": [
        HumanMessage("Look."),
        AIMessage(
            [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="},
                {"type": "function_call", "id": "fc_1", "call_id": "call_2", "name": "look", "arguments": "{}"},
            ],
            tool_calls=[OTHER],
        ),
        ToolMessage("ok", tool_call_id="call_2"),
    ],
    "standard blocks": [
        HumanMessage("Look."),
        AIMessage(
            [
                {"type": "reasoning", "reasoning": "hm"},
                {"type": "text", "text": "One"},
                {"type": "tool_call", "id": "call_1", "name": "look", "args": CALL["args"]},
                {"type": "text", "text": "two"},
                {"type": "tool_call", "id": "call_2", "name": "look", "args": {}},
            ],
            tool_calls=[CALL, OTHER],
            response_metadata={"output_version": "v1", "model_provider": "openai"},
        ),
        ToolMessage("ok", tool_call_id="call_1"),
        ToolMessage("ok", tool_call_id="call_2"),
    ],
    "reasoning beside the content": [
        HumanMessage("Hi"),
        AIMessage("Hello", additional_kwargs={"reasoning_content": "A greeting."}),
        HumanMessage("Bye"),
        AIMessage("", additional_kwargs={"refusal": "No."}),
        HumanMessage("Why?"),
    ],
    "blocks nobody knows": [
        HumanMessage([{"type": "file", "base64": "eA==", "mime_type": "application/pdf"}, {"type": "hologram", "w": [1, None]}]),
        AIMessage([{"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {"query": "q"}}, {"type": "non_standard", "value": {"a": 1}}]),
        HumanMessage([{"type": "text", "text": "alone"}]),
    ],
    "a message nobody knows": [HumanMessage("Hi"), ChatMessage(role="critic", content="Too short."), HumanMessage("So?")],
    "OpenAI's developer": [SystemMessage("Be brief.", additional_kwargs={"__openai_role__": "developer"}), HumanMessage("Hi")],
}  # fmt: skip

_SAID = ("content", "tool_calls", "tool_call_id", "status", "artifact", "name", "type", "role")


def said(message):
    """What a message says: everything but ids, counts and what a response tells of itself."""
    row = message if isinstance(message, dict) else message.model_dump()
    found = {key: row[key] for key in _SAID if row.get(key)}
    found["kwargs"] = row.get("additional_kwargs") or {}
    found["read with"] = row.get("response_metadata") or {}
    return found


def back(messages):
    form = LangChain()
    return form.render(items_to_messages(form.parse(messages)))["messages"]


class TestLangChain(FormatTests):
    cannot_carry = frozenset(
        {
            "arguments",
            "call id",
            "call place",
            "empty text",
            "foreign parts",
            "image from the assistant",
            "image in instructions",
            "lone surrogates",
            "tool name",
        }
    )

    @pytest.fixture
    def format(self):
        return LangChain()

    @pytest.fixture
    def transcripts(self):
        return [{"messages": back(messages)} for messages in CONVERSATIONS.values()]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_what_langchain_dumps_comes_back_as_langchain_reads_it(name):
    messages = CONVERSATIONS[name]
    rows = back(messages)
    assert [said(row) for row in rows] == [said(each) for each in messages]
    assert [said(row) for row in back(messages_to_dict(messages))] == [said(row) for row in rows]
    if name != "a message nobody knows":  # convert_to_messages does not know it either
        assert [said(each) for each in convert_to_messages(json.loads(json.dumps(rows)))] == [
            said(each) for each in messages
        ]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_memory_gives_back_what_it_was_given(name):
    messages = CONVERSATIONS[name]
    with AgentMemory.open(":memory:", budget=50_000, format="langchain") as memory:
        memory.record_messages(messages)
        assert [said(row) for row in memory.to_messages()] == [said(each) for each in messages]
        assert memory.record_messages(messages, whole=True).repairs == ()
        assert memory.verify().ok


def test_every_spelling_of_an_image_is_an_image():
    (step,) = LangChain().parse(CONVERSATIONS["images in four spellings"])
    images = [part for part in step.content if isinstance(part, Image)]
    assert len(images) == 6
    assert {image.media_type for image in images if image.data} == {"image/png", "image/jpeg", "image/gif"}


def test_what_langchain_holds_and_no_model_is_sent_costs_nothing():
    big = {"rows": ["x" * 1_000] * 20}
    told = [
        HumanMessage("Look."),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("a table", tool_call_id="call_1", artifact=big),
    ]
    with AgentMemory.open(":memory:", budget=2_000, format="langchain") as memory:
        memory.record_messages(told)
        assert memory.view().tokens < 100
        assert memory.to_messages()[-1]["artifact"] == big


def test_arguments_that_are_no_json_are_answered_and_legal():
    broken = AIMessage("", invalid_tool_calls=[{"name": "look", "args": "{oops", "id": "call_1", "error": "bad"}])
    with AgentMemory.open(":memory:", budget=2_000, format="langchain") as memory:
        memory.record_messages([HumanMessage("Look."), broken])
        rows = memory.to_messages()
    assert rows[1]["tool_calls"][0]["args"] == {"_unparsed_arguments": "{oops"}
    assert (rows[2]["type"], rows[2]["tool_call_id"], rows[2]["status"]) == ("tool", "call_1", "error")


def test_a_streamed_answer_and_a_raw_one_say_the_same():
    chunk = AIMessageChunk("", tool_call_chunks=[{"name": "look", "args": "{}", "id": "call_2", "index": 0}])
    raw = {"type": "function", "id": "call_2", "function": {"name": "look", "arguments": "{}"}}
    doubled = {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [raw]}}
    once, again, third = (LangChain().parse([each])[0] for each in (AIMessage("", tool_calls=[OTHER]), chunk, doubled))
    assert (again.tool_calls, third.tool_calls) == (once.tool_calls, once.tool_calls)
    assert once.content is again.content is third.content is None


def test_usage_is_read_with_what_the_cache_served():
    usage = {"input_tokens": 90, "output_tokens": 8, "total_tokens": 98, "input_token_details": {"cache_read": 50}}
    (step,) = LangChain().parse([AIMessage("Hi", usage_metadata=usage)])
    assert (step.usage.input_tokens, step.usage.output_tokens, step.usage.cached_tokens) == (90, 8, 50)


def test_a_single_message_is_a_list_of_one():
    with AgentMemory.open(":memory:", budget=2_000, format="langchain") as memory:
        memory.record_messages(HumanMessage("Hi"))
        assert memory.to_messages() == [{"type": "human", "content": "Hi"}]


def test_another_provider_s_thinking_is_not_sent_to_langchain_s_model():
    with AgentMemory.open(":memory:", budget=2_000) as memory:
        memory.record_messages(
            [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "reasoning_content": "secret", "content": "Hello"},
            ]
        )
        assert "secret" not in json.dumps(memory.to_messages("langchain"))


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([{"type": "human"}, {"type": "martian"}], r"messages\[1\]\.type: 'martian' is no kind"),
        ([{"type": "ai", "content": 3}], r"messages\[0\]\.content: expected text or a list of blocks, not int"),
        ([{"type": "human", "content": [3]}], r"messages\[0\]\.content\[0\]: expected text or a block, not int"),
        ([{"type": "ai", "content": "", "tool_calls": "f"}], r"messages\[0\]\.tool_calls: expected a list"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_named_with_its_place(messages, place):
    with AgentMemory.open(":memory:", budget=2_000, format="langchain") as memory:
        with pytest.raises(FormatError, match=place):
            memory.record_messages(messages)
        assert memory.steps == ()


def test_an_opaque_part_keeps_what_can_be_read_in_it():
    (step,) = LangChain().parse([AIMessage([{"type": "reasoning", "reasoning": "A long thought."}])])
    (part,) = step.content
    assert isinstance(part, Opaque)
    assert part.kind == "reasoning"
    assert "A long thought." in (part.text or part.body)
