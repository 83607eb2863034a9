"""Reported failures of other libraries that a wire format can have, each as the request that met it.

The names are of the issues where users met them.
"""

import json

import pytest
from formats_corpus_anthropic import FOUND, SEARCH, canonical, thinking, use
from formats_corpus_anthropic import assistant as model_turn
from formats_corpus_anthropic import result as res
from formats_corpus_anthropic import text as block
from formats_corpus_anthropic import user as user_turn
from formats_corpus_openai import assistant, call, system, text, tool, user

from pagein.errors import Illegal
from pagein.events.messages import Message
from pagein.events.steps import Opaque, Text, ToolCall
from pagein.formats import validate
from pagein.formats.anthropic.wire import Anthropic
from pagein.formats.openai_chat.wire import OpenAIChat
from pagein.testing.formats import items_to_messages

CUT = {
    "langchain#34282, deepagents#270: results without their calls": [user(), tool("a"), assistant("Done."), user()],
    "langchain#38352: one of two parallel calls survives the cut": [
        user(),
        assistant(tool_calls=[call("b")]),
        tool("a"),
        tool("b"),
    ],
    "langmem#126: the cut lands between parallel results": [
        user(),
        assistant(tool_calls=[call("a"), call("b")]),
        tool("a"),
        user(),
    ],
    "langmem#98: results twice": [user(), assistant(tool_calls=[call("a")]), tool("a"), tool("a")],
    "langmem#111, #77: only instructions are left": [system()],
    "langgraph#6302: an answer far from its call": [user(), assistant(tool_calls=[call("a")]), user(), tool("a")],
    "adk-python#4740: the pending call is gone": [user(), tool("adk-request-confirmation")],
    "deer-flow#4039: a request that begins with the assistant": [assistant("Earlier: ..."), user()],
    "holmesgpt#2173: a request that ends with the assistant": [user(), assistant("Shall I?")],
}


@pytest.mark.parametrize("rows", CUT.values(), ids=CUT)
def test_a_cut_transcript_is_refused_before_it_is_sent(rows):
    with pytest.raises(Illegal):
        validate(rows, "openai")


@pytest.mark.parametrize("name", CUT)
def test_a_cut_transcript_is_refused_by_the_other_provider_too(name):
    messages = [
        Message(
            row["role"],
            row["content"],
            tuple(ToolCall(c["id"], "f") for c in row.get("tool_calls", ())),
            row.get("tool_call_id", ""),
        )
        for row in CUT[name]
    ]
    with pytest.raises(Illegal):
        validate(Anthropic().render(messages), "anthropic")


def test_langchain_34794_thinking_survives_beside_its_call():
    rows = [user_turn(), model_turn(thinking(), use("toolu_a")), user_turn(res("toolu_a"))]
    request = Anthropic().render(items_to_messages(Anthropic().parse(rows)))
    assert request["messages"][1]["content"][0] == thinking()


def test_claude_code_13376_thinking_of_another_provider_is_not_sent():
    rows = [user(), assistant("Hi", reasoning_content="secret"), user()]
    request = Anthropic().render(items_to_messages(OpenAIChat().parse(rows)))
    assert "secret" not in json.dumps(request)
    assert Anthropic().problems(request) == ()


def test_headroom_2438_the_providers_own_calls_stay_with_their_results():
    rows = [user_turn(), model_turn(SEARCH, FOUND, block("It rained.")), user_turn()]
    assert Anthropic().render(items_to_messages(Anthropic().parse(rows))) == canonical({"messages": rows})
    assert Anthropic().problems([user_turn(), model_turn(FOUND, block("It rained.")), user_turn()])


def test_claude_code_6774_an_empty_block_never_reaches_the_api():
    rows = [
        user_turn(block("")),
        model_turn(block("")),
        user_turn(block(" ")),
        model_turn(use("toolu_a")),
        user_turn(res("toolu_a", [block("")])),
    ]
    assert Anthropic().problems(Anthropic().render(items_to_messages(Anthropic().parse(rows)))) == ()


def test_home_assistant_118577_no_empty_list_of_calls():
    (row,) = OpenAIChat().render(items_to_messages(OpenAIChat().parse([assistant("Hi", tool_calls=[])])))["messages"]
    assert "tool_calls" not in row


def test_pydantic_ai_4585_an_invented_tool_name_does_not_block_the_run():
    message = Message("assistant", None, (ToolCall("a", "browser.tabs open"),))
    assert "browser_tabs_open" in json.dumps(OpenAIChat().render([message]))
    assert "browser_tabs_open" in json.dumps(Anthropic().render([message]))


def test_markform_153_a_failed_and_silent_tool():
    block_ = Anthropic().render([Message("tool", "", call_id="a", is_error=True)])["messages"][0]["content"][0]
    assert (block_["content"], block_["is_error"]) == ("(no output)", True)


def test_claude_code_59812_more_than_four_cache_markers():
    mark = Opaque("anthropic", "text", '{"cache_control":{"type":"ephemeral"}}')
    turns = [Message(role, (Text("x", mark),)) for role in ("user", "assistant") * 5] + [Message("user", "y")]
    assert Anthropic().problems(Anthropic().render(turns)) == ()


def test_deepseek_739_empty_reasoning_goes_back_with_its_call():
    rows = [user(), assistant("", reasoning_content="", tool_calls=[call("a")]), tool("a")]
    assert OpenAIChat().render(items_to_messages(OpenAIChat().parse(rows)))["messages"] == rows


def test_llumiverse_462_half_a_character():
    request = OpenAIChat().render([Message("user", "cut \ud83d")])
    assert json.dumps(request, ensure_ascii=False).encode()


def test_a_run_changes_its_provider_in_the_middle_and_stays_legal():
    rows = [
        system([text("Be brief.", cache_control={"type": "ephemeral"})]),
        user([text("Look."), {"type": "file", "file": {"file_id": "f"}}]),
        assistant(None, reasoning="r", tool_calls=[call("functions.bash:0", arguments="{oops"), call("call_2")]),
        tool("functions.bash:0", ""),
        tool("call_2", [text("ok")]),
        assistant(None, refusal="No."),
        user("Go on."),
    ]
    request = Anthropic().render(items_to_messages(OpenAIChat().parse(rows)))
    assert Anthropic().problems(request) == ()
    returned = OpenAIChat().render(items_to_messages(Anthropic().parse(request)))
    assert OpenAIChat().problems(returned) == ()
    assert "No." in json.dumps(returned)
