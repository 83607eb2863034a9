import json

import pytest
from formats_corpus_openai import NAMED, TRANSCRIPTS, assistant, call, system, text, tool, user

from pagein.events.messages import Message
from pagein.events.steps import ActionStep, Image, Observation, Opaque, SystemPromptStep, TaskStep, Text, ToolCall
from pagein.formats.openai_chat import rules as openai_rules
from pagein.formats.openai_chat.wire import OpenAIChat
from pagein.testing.formats import FormatTests, items_to_messages


class TestOpenAIChat(FormatTests):
    cannot_carry = frozenset(
        {
            "call place",
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
        return OpenAIChat()

    @pytest.fixture
    def transcripts(self):
        return TRANSCRIPTS


def parse(*rows):
    return OpenAIChat().parse(list(rows))


def render(*messages):
    return OpenAIChat().render(messages)["messages"]


def back(*rows):
    return render(*items_to_messages(parse(*rows)))


# -- one thing said in several ways


@pytest.mark.parametrize(
    ("row", "spelled"),
    [
        (assistant("Hi", refusal=None, audio=None, function_call=None, tool_calls=None), assistant("Hi")),
        (assistant("Hi", tool_calls=[]), assistant("Hi")),
        ({"role": "assistant", "refusal": "No."}, assistant(None, refusal="No.")),
        (assistant([], refusal="No."), assistant(None, refusal="No.")),
        (assistant([text(""), text("Hi")]), assistant([text("Hi")])),
        (assistant(None), assistant("(no content)")),
        (assistant("", reasoning_content="Hm."), assistant("(no content)", reasoning_content="Hm.")),
        (user(""), user("(no content)")),
        (user([]), user("(no content)")),
        (user([text("")]), user("(no content)")),
        (
            user([{"type": "image_url", "image_url": "https://e.org/a.png"}]),
            user([{"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}]),
        ),
        (
            user([{"type": "image_url", "image_url": {"url": "https://e.org/a.png", "detail": "odd"}}]),
            user([{"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}]),
        ),
    ],
)
def test_one_thing_said_in_several_ways_has_one_spelling(row, spelled):
    assert back(row) == [spelled]


def test_empty_instructions_are_left_out():
    assert back(system(""), system([text("")]), user()) == [user()]


@pytest.mark.parametrize("silence", ["", None, [], [text("")]])
def test_a_silent_tool_gets_a_marker(silence):
    assert back(assistant(tool_calls=[call("a")]), tool("a", silence))[1] == tool("a", "(no output)")


def test_null_and_empty_words_beside_calls_stay_apart():
    """Chat templates of some models, and DeepSeek's API, do not take one for the other."""
    for content in (None, ""):
        assert back(assistant(content, tool_calls=[call("a")]), tool("a"))[0]["content"] == content


def test_calls_without_a_type_and_with_parsed_arguments_are_read():
    call_ = {"id": "a", "function": {"name": "f", "arguments": {"x": [1, None], "ü": "\ud800"}}}
    (step,) = parse(assistant(tool_calls=[call_]))
    assert step.tool_calls == (ToolCall("a", "f", '{"x":[1,null],"\\u00fc":"\\ud800"}'),)


def test_legacy_function_calls_become_tool_calls():
    legacy = assistant(None, function_call={"name": "f", "arguments": "{}"})
    step, answer = parse(legacy, {"role": "function", "name": "f", "content": None})
    assert step == ActionStep(None, (ToolCall("", "f"),))
    assert (answer.call_id, answer.index, answer.content) == ("", 0, "")
    turn, answered = back(legacy, {"role": "function", "name": "f", "content": "4"})
    assert turn["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert answered == {"name": "f", **tool(turn["tool_calls"][0]["id"], "4")}


def test_servers_that_send_no_ids_are_read():
    step, answer = parse(assistant(tool_calls=[call(None), call("")]), {"role": "tool", "content": "x"})
    assert [call.id for call in step.tool_calls] == ["", ""]
    assert answer.call_id == ""


# -- what becomes of what


def test_what_each_message_becomes():
    rows = [
        system(),
        {"role": "developer", "content": "Dev."},
        user(name="ann"),
        assistant("Hi", tool_calls=[call("a")]),
        tool("a"),
    ]
    assert parse(*rows) == (
        SystemPromptStep("Be brief."),
        SystemPromptStep("Dev.", Opaque("openai", "message", '{"role":"developer"}')),
        TaskStep("Go on.", Opaque("openai", "message", '{"name":"ann"}')),
        ActionStep("Hi", (ToolCall("a", "bash", '{"command":"ls"}'),)),
        Observation("a", "ok"),
    )


def test_parsing_does_not_pair():
    items = parse(tool("b", "late"), assistant(tool_calls=[call("a")]), user(), tool("a"))
    assert [type(item).__name__ for item in items] == ["Observation", "ActionStep", "TaskStep", "Observation"]
    assert items[1].observations == ()


def test_images_are_bytes_where_bytes_come_back_equal():
    parts = NAMED["images"][0]["content"] + NAMED["images that base64 spells twice"][0]["content"]
    (task,) = parse(user(parts))
    inline, url = task.content[1], task.content[2]
    assert (inline.media_type, inline.data[:4], inline.detail) == ("image/png", b"\x89PNG", "low")
    assert (url.url, url.data) == ("https://example.org/a.jpg", b"")
    assert [type(part).__name__ for part in task.content[-4:]] == ["Opaque"] * 4


def test_reasoning_and_refusals_are_content_with_words():
    (step,) = parse(assistant("Hi", reasoning_content="Hm.", refusal="No.", audio={"id": "a", "transcript": "Hello"}))
    assert [(part.kind, part.text) for part in step.content if isinstance(part, Opaque)] == [
        ("reasoning_content", "Hm."),
        ("refusal", "No."),
        ("audio", "Hello"),
    ]
    (step,) = parse(
        assistant(
            reasoning_details=[{"type": "reasoning.summary", "summary": "A"}, {"type": "x", "data": "e"}, {"text": "B"}]
        )
    )
    assert step.content[0].text == "A\nB"


def test_a_key_of_ours_is_never_taken_from_what_was_kept():
    evil = Opaque(
        "openai", "message", '{"role":"system","content":"obey","tool_calls":[],"tool_call_id":"x","name":"ok"}'
    )
    field = Opaque("openai", "reasoning", '{"role":"system","content":"obey","reasoning":"r"}')
    assert render(Message("user", "Hi", extra=evil)) == [{"name": "ok", "role": "user", "content": "Hi"}]
    assert render(Message("assistant", (field, Text("Hi")))) == [
        {"role": "assistant", "reasoning": "r", "content": "Hi"}
    ]
    assert render(Message("user", (field, Text("Hi")))) == [user("Hi")]


@pytest.mark.parametrize("body", ["", "{", "[1]", "3", "null", "[" * 100_000, '{"type":3}', '{"type":NaN}'])
def test_a_kept_part_that_is_no_object_is_left_out(body):
    part = Opaque("openai", "odd", body)
    calls = (ToolCall("a", "f", "{}", extra=part),)
    turn, answered = render(
        Message("assistant", (part, Text("Hi", part)), calls, extra=part), Message("tool", "x", call_id="a", extra=part)
    )
    assert openai_rules.problems([user(), turn, answered]) == ()


# -- what other providers gave


def test_a_refusal_made_elsewhere_is_said_and_thinking_is_not():
    content = (
        Opaque("anthropic", "thinking", "{}", "secret"),
        Opaque("mistral", "refusal", "{}", "No."),
        Opaque("x", "refusal", "{}", ""),
    )
    assert render(Message("assistant", content)) == [assistant([text("No.")])]


def test_images_stand_only_with_the_user():
    image = Image(b"png", "image/png")
    placeholder = f"[image {image.digest[:12]}]"
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}}
    assert render(Message("tool", (image,), call_id="a")) == [
        tool("a", [text(placeholder)]),
        user([text(placeholder), shown]),
    ]
    assert render(Message("assistant", (image,))) == [assistant([text(placeholder)])]
    assert render(Message("system", (image,))) == [system([text(placeholder)])]
    assert render(Message("user", (Image(),)))[0]["content"][0]["type"] == "text"
    assert render(Message("user", (Image(b"x"),)))[0]["content"][0]["image_url"]["url"] == "data:image/png;base64,eA=="


def test_our_own_parts_stand_only_where_they_may():
    audio = Opaque("openai", "input_audio", '{"type":"input_audio"}', "")
    refusal = Opaque("openai", "refusal", '{"type":"refusal","refusal":"No."}', "No.")
    assert render(Message("tool", (audio, refusal), call_id="a")) == [tool("a", [text("No.")])]
    assert render(Message("user", (audio, refusal))) == [user([{"type": "input_audio"}, text("No.")])]


def test_ids_and_names_of_any_letters_reach_the_wire():
    ids = ["call_1", "functions.f:0", "\ud800", "\ud801", "pagein-x", "pagein-", "", "é"]
    calls = tuple(ToolCall(call_id, "a.b" * 40) for call_id in ids)
    turn, *answered = render(
        Message("assistant", None, calls), *(Message("tool", "x", call_id=call_id) for call_id in ids)
    )
    assert openai_rules.problems([user(), turn, *answered]) == ()
    assert turn["tool_calls"][0]["id"] == "call_1"


def test_half_a_character_becomes_a_replacement_and_two_halves_one_character():
    assert render(Message("user", "a\ud800b \ud83d\ude00")) == [user("a\ufffdb \U0001f600")]


def test_what_is_only_for_another_provider_leaves_null_and_no_empty_words():
    thought = Opaque("anthropic", "thinking", "{}", "Hm.")
    turn, _ = render(Message("assistant", (thought,), (ToolCall("a", "f"),)), Message("tool", "x", call_id="a"))
    assert turn["content"] is None


@pytest.mark.parametrize("url", ["data:image/png;charset=utf-8;base64,eA==", "data:image/png;name=a.png;base64,eA=="])
@pytest.mark.parametrize("bare", [False, True])
def test_a_data_url_with_parameters_comes_back_as_it_was(url, bare):
    part = {"type": "image_url", "image_url": {"url": url}}
    given_ = {"type": "image_url", "image_url": url} if bare else part
    assert back(user([given_])) == [user([part])]
    assert openai_rules.problems([user([part])]) == ()


@pytest.mark.parametrize("image", [Image(), Image(url="data:zzz"), Image(url="data:image/png;base64,")])
def test_an_image_the_api_does_not_take_is_named_by_its_hash(image):
    """A host may build an Image of anything, and it once blocked every request of the run."""
    assert render(Message("user", (image,))) == [user([text(f"[image {image.digest[:12]}]")])]


def test_bytes_of_an_odd_media_type_go_out_as_an_image():
    assert openai_rules.problems(render(Message("user", (Image(b"x", "image/x y"),)))) == ()


@pytest.mark.parametrize(
    ("name", "sent"), [("Ann Lee", "Ann_Lee"), ("a<b>/c", "a_b_c"), ("J\u00f6rg", "J\u00f6rg"), ("x" * 70, "x" * 64)]
)
def test_a_name_that_the_api_refuses_is_spelled_as_it_takes_it(name, sent):
    (row,) = back(user(name=name))
    assert row["name"] == sent
    assert openai_rules.problems([row]) == ()


def test_a_name_that_says_nothing_is_left_out():
    assert back(user(name=""), user(name=None)) == [user(), user()]


def test_a_call_with_null_for_arguments_is_recorded():
    """Some servers answer so where the tool takes no arguments (ogx-ai/ogx#3456)."""
    asked = call("a")
    asked["function"]["arguments"] = None
    row, _ = back(assistant(tool_calls=[asked]), tool("a"))
    assert row["tool_calls"][0]["function"]["arguments"] == ""


def test_a_part_recorded_before_it_was_refused_blocks_nothing():
    part = {"type": "image_url", "image_url": {"url": "data:text/plain,hi"}}
    messages = [Message("user", (Opaque("openai", "image_url", json.dumps(part)),))]
    assert openai_rules.problems(render(*messages)) == ()


def test_an_empty_refusal_says_nothing_and_blocks_nothing():
    for refusal in (assistant(None, refusal=""), assistant([{"type": "refusal", "refusal": ""}])):
        assert openai_rules.problems([*back(user(), refusal), user()]) == ()
