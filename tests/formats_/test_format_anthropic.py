import base64
import json
import re

import pytest
from formats_corpus_anthropic import (
    DOCUMENT,
    FOUND,
    IMAGE,
    MARK,
    NAMED,
    PNG,
    REDACTED,
    SEARCH,
    TRANSCRIPTS,
    assistant,
    canonical,
    result,
    text,
    thinking,
    use,
    user,
)
from hypothesis import given
from hypothesis import strategies as st

from pagein.events.messages import Message
from pagein.events.steps import (
    ActionStep,
    Image,
    Observation,
    Opaque,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    Usage,
)
from pagein.events.tool_call_encoding import wire_id
from pagein.formats.anthropic.wire import Anthropic
from pagein.formats.parsing import compact_json
from pagein.testing.formats import FormatTests, items_to_messages


class TestAnthropic(FormatTests):
    cannot_carry = frozenset(
        {
            "arguments",
            "boundaries",
            "call id",
            "empty text",
            "error flag beside images",
            "foreign parts",
            "image detail",
            "image from the assistant",
            "image in instructions",
            "image type",
            "lone surrogates",
            "message fields",
            "tool name",
            "white space",
        }
    )

    @pytest.fixture
    def format(self):
        return Anthropic()

    @pytest.fixture
    def transcripts(self):
        return TRANSCRIPTS

    def canonical(self, request):
        return canonical(request)


def parse(*rows, **more):
    return Anthropic().parse({"messages": list(rows), **more})


def render(*messages):
    return Anthropic().render(messages)["messages"]


def opaque(block_):
    return Opaque("anthropic", block_["type"], json.dumps(block_), block_.get("thinking", ""))


HELLO = Message("user", "Hello")

# -- what becomes of what


def test_what_each_message_becomes():
    items = parse(
        user(text("Hi", **MARK)),
        assistant(thinking(), text("a"), use("t1", "f", {"x": None}), text("b"), use("t2", "g", {})),
        user(result("t1", [IMAGE], is_error=False), text("and"), result("t2", None, is_error=True), IMAGE),
        {"role": "system", "content": "From now on, in French."},
        system=[text("Be brief.")],
    )
    image = Image(base64.b64decode(PNG), "image/png")
    assert items == (
        SystemPromptStep((Text("Be brief."),)),
        TaskStep((Text("Hi", Opaque("anthropic", "cache_control", '{"cache_control":{"type":"ephemeral"}}')),)),
        ActionStep(
            (Opaque("anthropic", "thinking", compact_json(thinking()), "Hm."), Text("a"), Text("b")),
            (ToolCall("t1", "f", '{"x":null}', at=2), ToolCall("t2", "g", "{}")),
        ),
        Observation("t1", (image,)),
        Observation("t2", "", "error"),
        TaskStep((Text("and"), image)),
        SystemPromptStep("From now on, in French."),
    )


def test_of_a_response_its_model_and_usage_are_kept_and_its_envelope_is_not():
    step = parse(*NAMED["a whole response"]["messages"])[1]
    assert (step.model, step.usage) == ("claude-opus-5", Usage(115, 3, 100))
    assert step.extra is None
    assert parse({"role": "user", "content": "x", "seen": 1})[0].extra.body == '{"seen":1}'
    odd = {"role": "assistant", "content": "x", "model": 3, "usage": {"input_tokens": "many", "output_tokens": -1}}
    assert parse(odd)[0].usage == Usage(0)
    assert parse({**odd, "usage": 3})[0].usage is None


def test_a_count_that_is_no_number_is_none():
    (turn,) = parse({**assistant(text("Hi")), "usage": {"input_tokens": True, "output_tokens": 3}})
    assert repr(turn.usage) == repr(Usage(0, 3))


def test_an_answer_of_nothing_is_read_and_marked():
    assert parse({"role": "assistant", "content": []}) == (ActionStep(()),)
    assert parse({"role": "user", "content": []}) == (TaskStep(()),)
    assert render(HELLO, Message("assistant", ()), Message("user", ()))[1:] == [
        assistant(text("(no content)")),
        user(text("(no content)")),
    ]


def test_a_document_has_its_text_and_a_scan_has_none():
    """A part counts by its text: a title must not stand for pages."""
    scan = {
        "type": "document",
        "title": "Plan",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE" * 99},
    }
    search_result = {
        **FOUND,
        "content": [{"type": "web_search_result", "title": "Rain", "encrypted_content": "ZW5j" * 99}],
    }
    long = {**DOCUMENT, "source": {**DOCUMENT["source"], "data": "Ship. " * 99}}
    run = {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {"code": "print()" * 99}}
    texts = [
        part.text
        for part in parse(user(DOCUMENT, scan, search_result, long, run, SEARCH, thinking("Hm. " * 99, "c2ln" * 99)))[
            0
        ].content
    ]
    assert texts == ["Plan\nShip.", "", "", "Plan\n" + "Ship. " * 99, "", "web_search\nrain", "Hm. " * 99]


# -- arguments


@pytest.mark.parametrize(
    ("arguments", "parsed_input"),
    [
        ("", {}),
        (" \n", {}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("{oops", {"_unparsed_arguments": "{oops"}),
        ("[1]", {"_unparsed_arguments": "[1]"}),
        ("null", {"_unparsed_arguments": "null"}),
        ('{"a": NaN}', {"_unparsed_arguments": '{"a": NaN}'}),
        ('{"a": 1e999}', {"_unparsed_arguments": '{"a": 1e999}'}),
        ("1" * 5000, {"_unparsed_arguments": "1" * 5000}),
        ("[" * 100_000, {"_unparsed_arguments": "[" * 100_000}),
        ('{"a":' * 200 + "1" + "}" * 200, {"_unparsed_arguments": '{"a":' * 200 + "1" + "}" * 200}),
        ('{"\\ud800": "\\ud800"}', {"\ufffd": "\ufffd"}),
    ],
)
def test_arguments_are_an_object_whatever_the_model_wrote(arguments, parsed_input):
    block_ = render(Message("assistant", None, (ToolCall("a", "f", arguments),)))[0]["content"][0]
    assert block_["input"] == parsed_input


# -- order


def test_calls_stand_where_they_stood_and_never_overtake():
    calls = (ToolCall("a", "f", at=1), ToolCall("b", "f", at=0), ToolCall("c", "f", at=9), ToolCall("d", "f"))
    blocks = render(Message("assistant", (Text("1"), Text(" "), Text("2")), calls))[0]["content"]
    assert [block_.get("text") or block_["id"] for block_ in blocks] == ["1", "a", "b", "2", "c", "d"]


def test_messages_of_one_role_merge_and_results_come_first():
    turns = render(
        HELLO,
        Message("user", "again"),
        Message("assistant", "I"),
        Message("assistant", None, (ToolCall("a", "f"), ToolCall("b", "f"))),
        Message("tool", "1", call_id="a"),
        Message("tool", "2", call_id="b"),
        Message("user", "thanks"),
    )
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[2] == user(result("a", "1"), result("b", "2"), text("thanks"))


def test_thinking_is_not_pushed_behind_an_earlier_answer():
    turns = render(
        HELLO, Message("assistant", "Plan."), Message("assistant", (opaque(thinking()),), (ToolCall("a", "f"),))
    )
    assert turns[1:3] == [assistant(text("Plan.")), user(text("(continue)"))]
    assert turns[3]["content"][0] == thinking()


def test_thinking_that_opened_the_turn_goes_on_in_it():
    turns = render(
        HELLO,
        Message("assistant", (opaque(thinking()), Text("a"))),
        Message("assistant", (opaque(thinking()), Text("b"))),
    )
    assert turns[1:] == [assistant(thinking(), text("a"), thinking(), text("b"))]


def test_thinking_alone_gets_an_answer_behind_it():
    for block_ in (thinking(), REDACTED):
        assert render(HELLO, Message("assistant", (opaque(block_),)))[1] == assistant(block_, text("(no content)"))


def test_thinking_without_a_signature_is_left_out():
    for block_ in ({"type": "thinking", "thinking": "x"}, thinking(signature=""), thinking(signature=None)):
        assert render(HELLO, Message("assistant", (opaque(block_), Text("a"))))[1] == assistant(text("a"))


def test_thinking_loses_a_cache_marker_and_nothing_else():
    assert render(HELLO, Message("assistant", (opaque({**thinking(), **MARK}), Text("a"))))[1] == assistant(
        thinking(), text("a")
    )


# -- what the API refuses


@pytest.mark.parametrize("silence", ["", " \n", None, (), (Text(""),), (Text(" "),), (Opaque("openai", "item", "{}"),)])
def test_a_silent_tool_gets_a_marker(silence):
    for failed in (False, True):
        block_ = render(Message("tool", silence, call_id="a", is_error=failed))[0]["content"][0]
        assert block_["content"] == "(no output)"
        assert block_.get("is_error", False) is failed


def test_a_failed_result_with_a_picture_says_error_in_words():
    message = Message("tool", (Text("Crash."), Image(base64.b64decode(PNG), "image/png")), call_id="a", is_error=True)
    assert render(message) == [user(result("a", [text("(error)"), text("Crash."), IMAGE]))]


def test_instructions_are_text_alone_and_may_be_none():
    turn = Message(
        "system",
        (
            Text(" "),
            Text("a", Opaque("anthropic", "text", json.dumps(MARK))),
            opaque(DOCUMENT),
            Image(b"x", "image/png"),
        ),
    )
    request = Anthropic().render([Message("system", ""), turn, HELLO])
    assert request["system"][0] == text("a", **MARK)
    assert [block_["type"] for block_ in request["system"]] == ["text", "text"]
    assert "system" not in Anthropic().render([Message("system", " "), HELLO])


@pytest.mark.parametrize(
    "image", [Image(b"x", "image/bmp"), Image(b"x"), Image(url="http://e.org/a.png"), Image(url="gs://b/a"), Image()]
)
def test_an_image_the_api_does_not_take_is_named_by_its_hash(image):
    assert render(Message("user", (image,))) == [user(text(f"[image {image.digest[:12]}]"))]


@pytest.mark.parametrize("place", ["user", "tool", "assistant", "system"])
@pytest.mark.parametrize(
    "block_", [thinking(), REDACTED, use("x"), result("x"), SEARCH, IMAGE], ids=lambda block_: block_["type"]
)
def test_our_own_blocks_stand_only_where_they_may(place, block_):
    call = Message("assistant", None, (ToolCall("a", "f"),))
    messages = {
        "user": [Message("user", (opaque(block_),))],
        "tool": [HELLO, call, Message("tool", (opaque(block_),), call_id="a")],
        "assistant": [HELLO, Message("assistant", (opaque(block_),)), HELLO],
        "system": [Message("system", (opaque(block_), Text("x"))), HELLO],
    }
    assert Anthropic().problems(Anthropic().render(messages[place])) == ()


@pytest.mark.parametrize("body", ["", "{", "[1]", "null", "[" * 100_000, '{"type":3}', "{}"])
def test_a_kept_part_that_is_no_object_is_left_out(body):
    part = Opaque("anthropic", "odd", body)
    messages = [
        Message("user", (part, Text("Hi", part), Image(b"x", "image/png", extra=part))),
        Message("assistant", (part,), (ToolCall("a", "f", extra=part),)),
        Message("tool", (part,), call_id="a", extra=part),
    ]
    if body == '{"type":3}':  # an object is sent, but never as another type than ours
        assert json.dumps(Anthropic().render(messages)).count('"type": 3') == 0
    assert Anthropic().problems(Anthropic().render(messages)) == ()


def test_the_last_cache_markers_stay():
    mark = Opaque("anthropic", "text", json.dumps(MARK))
    messages = [
        Message("system", (Text("s", mark),)),
        Message(
            "user",
            (
                opaque({**DOCUMENT, "source": {"type": "content", "content": [text("d", **MARK)]}, **MARK}),
                Text("1", mark),
            ),
        ),
        Message("assistant", (Text("2", mark),), (ToolCall("a", "f", extra=mark),)),
        Message("tool", (Text("3", mark),), call_id="a", extra=mark),
    ]
    for markers in range(8):
        request = Anthropic(cache_markers=markers).render(messages)
        assert json.dumps(request).count("cache_control") == markers
    rows = Anthropic().render(messages)["messages"]
    assert "cache_control" not in json.dumps(rows[0])
    assert rows[2]["content"][0]["cache_control"] == MARK["cache_control"]
    assert Anthropic().problems(Anthropic().render(messages)) == ()
    assert Anthropic().problems(Anthropic(cache_markers=5).render(messages))


def test_a_cache_marker_inside_arguments_is_no_marker():
    calls = tuple(
        ToolCall(f"t{n}", "edit", json.dumps({"cache_control": {"a": n}, "content": [MARK]})) for n in range(6)
    )
    blocks = render(Message("assistant", None, calls))[0]["content"]
    assert all(block_["input"]["cache_control"] for block_ in blocks)
    assert (
        Anthropic().problems(
            [user(), {"role": "assistant", "content": blocks}, user(*(result(f"t{n}") for n in range(6)))]
        )
        == ()
    )


def test_ids_of_any_letters_reach_the_wire_and_stay_apart():
    ids = [
        "toolu_1",
        "functions.f:0",
        "functions_f_0",
        "\ud800",
        "\ud801",
        "\ufffd",
        "pagein-x",
        "pagein-",
        "",
        "é",
        " ",
    ]
    calls = tuple(ToolCall(call_id, "a.b") for call_id in ids)
    turns = render(
        HELLO, Message("assistant", None, calls), *(Message("tool", "x", call_id=call_id) for call_id in ids)
    )
    assert Anthropic().problems(turns) == ()
    assert turns[1]["content"][0]["id"] == "toolu_1"


def test_a_refusal_made_elsewhere_is_said_and_reasoning_is_not():
    content = (
        Opaque("openai", "reasoning_content", "{}", "secret"),
        Opaque("openai", "refusal", "{}", "No."),
        Text("x", Opaque("openai", "t", '{"k":1}')),
    )
    assert render(HELLO, Message("assistant", content))[1] == assistant(text("No."), text("x"))


@given(st.lists(st.text(alphabet=st.sampled_from("a2-:f\ud800é_")), unique=True, max_size=6))
def test_two_ids_never_become_one(ids):
    wire_ids = [wire_id(f"{prefix}{call_id}") for call_id in ids for prefix in ("", "pagein-")]
    assert len(set(wire_ids)) == len({f"{prefix}{call_id}" for call_id in ids for prefix in ("", "pagein-")})
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", call_id) for call_id in wire_ids)
    assert all(len(call_id) <= 64 for call_id in map(wire_id, ("é" * 500, "a." * 500, "pagein-" * 100)))


def test_a_search_result_without_its_search_leaves_what_can_be_read_in_it():
    search_result = {**FOUND, "content": [{"type": "web_search_result", "title": "Rain", "url": "https://e.org"}]}
    for row, words in ((search_result, ["Rain\nhttps://e.org", "So."]), ({**search_result, "content": []}, ["So."])):
        turn = assistant(row, text("So."))
        turns = render(*items_to_messages(Anthropic().parse([user(text("Hi")), turn, user(text("?"))])))
        assert [block["text"] for block in turns[1]["content"]] == words
        assert Anthropic().problems(turns) == ()
    whole = render(HELLO, Message("assistant", (opaque(SEARCH), opaque(FOUND), Text("So."))), HELLO)
    assert whole[1]["content"] == [SEARCH, FOUND, text("So.")]


def test_empty_text_and_unsigned_thinking_are_not_in_the_way_of_thinking():
    unsigned = {"type": "thinking", "thinking": "hm", "signature": ""}
    rows = [user(), assistant(text(" "), unsigned, thinking(), use("toolu_a")), user(result("toolu_a"))]
    turns = render(*items_to_messages(Anthropic().parse(rows)))
    assert turns[1]["content"] == [thinking(), use("toolu_a")]


def test_thinking_a_host_put_behind_its_text_is_left_out():
    call = (ToolCall("a", "f"),)
    turns = render(
        HELLO, Message("assistant", (Text("So."), opaque(thinking())), call), Message("tool", "x", call_id="a")
    )
    assert [block["type"] for block in turns[1]["content"]] == ["text", "tool_use"]
    assert Anthropic().problems(turns) == ()


def test_a_call_does_not_join_a_turn_that_thought_behind_its_text():
    turn = Message("assistant", (Text("So."), opaque(thinking()), Text("Yes.")))
    call = Message("assistant", None, (ToolCall("a", "f"),))
    turns = render(HELLO, turn, call, Message("tool", "x", call_id="a"))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant", "user"]
    assert Anthropic().problems(turns) == ()


@pytest.mark.parametrize(
    "row",
    [
        {"type": "redacted_thinking"},
        {"type": "thinking", "thinking": 3, "signature": "s"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
    ],
)
def test_a_block_recorded_before_it_was_refused_blocks_nothing(row):
    turns = render(Message("user", (opaque(row),)), Message("assistant", (opaque(row),)), HELLO)
    assert Anthropic().problems(turns) == ()
