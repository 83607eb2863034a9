"""What a provider would refuse is not sent: limits of ids, calls and images, items without an id, marks of failure."""

import itertools
import json

import pytest
from formats_corpus_anthropic import IMAGE
from hypothesis import given
from hypothesis import strategies as st

from pagein import AgentMemory
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
    as_text,
)
from pagein.events.tool_call_encoding import FAILURE_PREFIX, reports_failure, wire_id
from pagein.formats import FORMATS, format_named, rendering
from pagein.testing.counters import png
from pagein.testing.formats import items_to_messages

ASK = Message("user", "Go.")
PNG = Image(b"\x89PNG\r\n", "image/png")


def render(name, *messages):
    form = format_named(name)
    request = form.render(messages)
    assert form.problems(request) == ()
    return request["messages"]


def turn(*calls, output="ok", is_error=False):
    results = (Message("tool", output, call_id=call.id, is_error=is_error) for call in calls)
    return (Message("assistant", None, tuple(calls)), *results)


# -- ids


@pytest.mark.parametrize("name", FORMATS)
@given(lengths=st.lists(st.sampled_from((1, 39, 40, 41, 63, 64, 65, 300)), min_size=1, max_size=4))
def test_ids_of_any_length_are_legal_and_stay_apart(name, lengths):
    calls = [ToolCall(f"{number}" + "x" * (length - 1), "f") for number, length in enumerate(lengths)]
    rows = render(name, ASK, *turn(*calls))
    parsed = items_to_messages(format_named(name).parse(rows))
    ids = [call.id for message in parsed for call in message.tool_calls]
    answered = [message.call_id for message in parsed if message.role == "tool"]
    assert ids == answered
    assert len(set(ids)) == len(calls)
    assert render(name, ASK, *turn(*calls)) == rows, "an id is rewritten to the same each time"


def test_a_short_id_of_openai_is_sent_as_it_is():
    assert render("openai", ASK, *turn(ToolCall("x" * 40, "f")))[1]["tool_calls"][0]["id"] == "x" * 40
    assert render("openai-responses", ASK, *turn(ToolCall("x" * 64, "f")))[1]["call_id"] == "x" * 64


@pytest.mark.parametrize("name", FORMATS)
def test_a_rewritten_request_that_is_handed_back_is_the_same(name):
    ids = ["a.b|c", "x" * 300, "\ud800", "pagein-", "é" * 50]
    calls = [ToolCall(call_id, "read.it") for call_id in ids]
    rows = render(name, ASK, *turn(*calls, output=(Text("x"), PNG), is_error=True), Message("user", "And?"))
    assert render(name, *items_to_messages(format_named(name).parse(rows))) == rows


def test_an_id_with_a_signature_of_a_gateway_stays_whole():
    call_id = f"call_1__thought__{'c2ln' * 100}"
    for name in ("openai", "langchain"):
        assert call_id in json.dumps(render(name, ASK, *turn(ToolCall(call_id, "f"))))


def test_a_rewritten_id_has_a_hash_that_no_search_repeats():
    ids = {wire_id(f"a.{number}") for number in range(100_000)}  # 32 bits collide in 69 % of such sets
    assert len(ids) == 100_000
    assert {len(each.rpartition("-")[2]) for each in ids} == {24}
    assert max(map(len, ids)) <= 40


@pytest.mark.parametrize("name", FORMATS)
def test_ids_that_become_equal_are_told_apart(name, monkeypatch):
    def short_hash(call_id, max_chars=None):
        return wire_id(call_id, max_chars)[:12]

    monkeypatch.setattr(rendering, "wire_id", wire_id)
    module = type(format_named(name)).__module__
    monkeypatch.setattr(f"{module}.wire_id", short_hash)
    calls = [ToolCall(f"call.{'x' * 70}{number}", "f") for number in range(5)]
    messages = (ASK, *turn(*calls[:3]), *turn(*calls[3:]))
    rows = render(name, *messages)
    assert json.dumps(render(name, *messages[:5]))[:-1] in json.dumps(rows)


# -- many calls


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("count", [128, 129, 300])
def test_any_number_of_calls_is_legal_and_each_has_its_result(name, count):
    calls = [ToolCall(f"c{number}", "f", json.dumps({"n": number})) for number in range(count)]
    results = [Message("tool", f"result {call.id}", call_id=call.id) for call in reversed(calls)]
    rows = render(name, ASK, Message("assistant", "Now.", tuple(calls)), *results, Message("user", "And?"))
    parsed = items_to_messages(format_named(name).parse(rows))
    assert [call.id for message in parsed for call in message.tool_calls] == [call.id for call in calls]
    for message in parsed:
        if message.role == "tool":
            assert as_text(message.content) == f"result {message.call_id}"
    assert json.dumps(rows).count("Now.") == 1


def test_calls_are_split_so_that_a_longer_request_begins_with_the_shorter_one():
    calls = tuple(ToolCall(f"c{number}", "f") for number in range(300))
    messages = (ASK, *turn(*calls), Message("user", "And?"))
    form, previous = format_named("openai"), "["
    for length in itertools.chain(range(1, 10), range(125, 135), range(255, 262), (301, 302, 303)):
        text = json.dumps(form.render(messages[:length])["messages"])
        assert text.startswith(previous.rstrip("]"))
        assert bool(form.problems(form.render(messages[:length]))) == (1 < length < 302)
        previous = text


# -- items of the Responses API without an id

IDLESS = {
    "computer_call": {"call_id": "c1", "action": {"type": "click", "x": 1}, "pending_safety_checks": [], "status": "completed"},
    "web_search_call": {"action": {"type": "search", "query": "rain"}, "status": "completed"},
    "mcp_call": {"server_label": "s", "name": "f", "arguments": "{}", "output": "ok"},
    "image_generation_call": {"result": "eA==", "status": "completed"},
    "reasoning": {"summary": [], "encrypted_content": "gAAA"},
}  # fmt: skip


@pytest.mark.parametrize("kind", IDLESS)
def test_an_item_gets_the_id_that_it_needs(kind):
    row = {"type": kind, **IDLESS[kind]}
    rows = [{"role": "user", "content": "Go."}, row]
    if "call_id" in row:
        shot = {"type": "computer_screenshot", "file_id": "f"}
        rows.append({"type": "computer_call_output", "call_id": "c1", "output": shot})
    rows += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And?"}]
    form = format_named("openai-responses")
    assert any("id: missing" in problem for problem in form.problems(rows))
    rendered = render("openai-responses", *items_to_messages(form.parse(rows)))
    assert rendered[1].pop("id")
    assert rendered == rows


def test_a_computer_call_keeps_an_id_when_its_reasoning_has_left():
    extra = Opaque(
        "openai-responses", "computer_call", json.dumps({"type": "computer_call", "id": "cu_1", "_thought": True})
    )
    call = ToolCall("c1", "computer_call", "{}", extra=extra)
    row = render("openai-responses", ASK, *turn(call))[1]
    assert row["id"].startswith("cu_")
    assert row["id"] != "cu_1", "the API refuses it without the reasoning that it came with"


def test_reasoning_that_the_api_cannot_find_is_left_out():
    thought = Opaque("openai-responses", "reasoning", '{"type":"reasoning","summary":[]}')
    assert render("openai-responses", ASK, Message("assistant", (thought, Text("Hi"))), ASK)[1]["role"] == "assistant"


def test_equal_items_get_ids_of_their_own():
    said = {"role": "assistant", "content": "Hi"}
    search = {"type": "web_search_call", **IDLESS["web_search_call"]}
    user = {"role": "user", "content": "Go."}
    form = format_named("openai-responses")
    messages = items_to_messages(form.parse([user, search, said, user, search, said, user]))
    rows = render("openai-responses", *messages)
    assert rows[1]["id"] != rows[4]["id"]
    assert render("openai-responses", *messages[:3]) == rows[:4], "a longer request keeps the ids"


@pytest.mark.parametrize("encrypted", [{}, {"encrypted_content": "gAAAA"}])
def test_no_item_has_the_id_of_another(encrypted):
    user = {"role": "user", "content": "Go."}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], **encrypted}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": "Hi", "status": "completed"}
    search = {"type": "web_search_call", "id": "ws_1", **IDLESS["web_search_call"]}
    rows, form = [user, thought, search, said] * 2 + [user], format_named("openai-responses")
    assert len([problem for problem in form.problems(rows) if "used twice" in problem]) == 3
    rendered = render("openai-responses", *items_to_messages(form.parse(rows)))
    assert rendered[:5] == rows[:5]
    assert [row.get("type") for row in rendered[5:]] == [
        *["reasoning"] * len(encrypted),
        "web_search_call",
        "message",
        None,
    ]
    ids = [row["id"] for row in rendered if "id" in row]
    assert len(ids) == len(set(ids))
    assert form.problems(rendered) == ()


# -- images


@pytest.mark.parametrize("count", [100, 101, 140])
def test_the_oldest_images_of_anthropic_become_text(count):
    pictures = [Image(b"\x89PNG%06d" % number, "image/png") for number in range(count)]
    results = [turn(ToolCall(f"c{at}", "f"), output=(picture,)) for at, picture in enumerate(pictures[: count // 2])]
    tasks = [Message("user", (Text(f"Look {at}."), picture)) for at, picture in enumerate(pictures[count // 2 :])]
    request = json.dumps(render("anthropic", ASK, *itertools.chain(*results), *tasks))
    shown = [rendering.image_base64(picture) in request for picture in pictures]
    assert shown == sorted(shown), "an older one is shown and a newer one is not"
    assert 80 < sum(shown) <= 100
    assert all(
        (rendering.image_placeholder(picture) in request) != seen for picture, seen in zip(pictures, shown, strict=True)
    )


@pytest.mark.parametrize(
    ("side", "count", "shown"), [(1_500, 60, 60), (2_500, 20, 20), (2_500, 21, 16), (2_500, 60, 20), (9_000, 3, 0)]
)
def test_large_images_of_anthropic_keep_to_the_limits(side, count, shown):
    pictures = [Image(png(side, 10 + number), "image/png") for number in range(count)]
    request = json.dumps(render("anthropic", *(Message("user", (Text("Look."), each)) for each in pictures)))
    seen = [rendering.image_base64(picture) in request for picture in pictures]
    assert (sum(seen), seen) == (shown, sorted(seen))


def test_images_in_documents_of_anthropic_count_too():
    document = {"type": "document", "source": {"type": "content", "content": [IMAGE] * 60}}
    rows = [{"role": "user", "content": [document, *[IMAGE] * 60]}]
    form = format_named("anthropic")
    assert form.problems(rows) == ("messages: 120 images, the API takes 100",)
    assert render("anthropic", *items_to_messages(form.parse(rows)))


def test_a_tools_image_reaches_openai_behind_the_results_of_its_turn():
    first, second = ToolCall("a", "f"), ToolCall("b", "f")
    shown = Message("tool", (Text("Here."), PNG), call_id="a")
    messages = (ASK, Message("assistant", None, (first, second)), shown, Message("tool", "ok", call_id="b"))
    rows = render("openai", *messages, Message("user", "And?"))
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "tool", "user", "user"]
    name = rendering.image_placeholder(PNG)
    assert [part["text"] for part in rows[2]["content"]] == ["Here.", name]
    assert rows[4]["content"][0]["text"] == name
    assert rows[4]["content"][1]["image_url"]["url"].endswith(rendering.image_base64(PNG))
    assert items_to_messages(format_named("openai").parse(rows)) == (*messages, Message("user", "And?"))


def test_words_that_look_like_an_images_name_stay_the_users():
    name, form = rendering.image_placeholder(PNG), format_named("openai")
    picture = form.render((Message("user", (PNG,)),))["messages"][0]["content"][0]
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    rows = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "no name of an image"}]},
        {"role": "user", "content": [{"type": "text", "text": name}, picture]},
        {"role": "user", "content": [{"type": "text", "text": name}]},
    ]
    assert form.render(items_to_messages(form.parse(rows)))["messages"] == rows


# -- a failed result

OPENAI = ("openai", "openai-responses")


def output_of(row):
    return row["content"] if "content" in row else row["output"]


@pytest.mark.parametrize("name", OPENAI)
@pytest.mark.parametrize("text", ["No such file.", "Exit code 1\nErrors: 3", "0 errors", ""])
def test_a_failed_result_says_so(name, text):
    row = render(name, ASK, *turn(ToolCall("a", "f"), output=text, is_error=True))[2]
    assert output_of(row) == f"{FAILURE_PREFIX}{text or rendering.NO_OUTPUT}"
    unmarked = render(name, ASK, *turn(ToolCall("a", "f"), output=text))[2]
    assert output_of(unmarked) == (text or rendering.NO_OUTPUT)


@pytest.mark.parametrize("name", OPENAI)
@pytest.mark.parametrize(
    "text",
    [
        "Error: no",
        "ValueError: no",
        "Traceback (most recent call last):",
        "FAILED test_a",
        "[error] no",
        "<tool_use_error>no",
    ],
)
def test_a_result_that_says_it_failed_is_sent_as_it_is(name, text):
    assert reports_failure(text)
    assert output_of(render(name, ASK, *turn(ToolCall("a", "f"), output=text, is_error=True))[2]) == text


@pytest.mark.parametrize("name", OPENAI)
def test_a_failed_result_of_parts_is_marked_once(name):
    parts = (PNG, Text("No."), Text("Really."))
    rows = output_of(render(name, ASK, *turn(ToolCall("a", "f"), output=parts, is_error=True))[2])
    assert [row["text"] for row in rows if row.get("text", "").startswith(FAILURE_PREFIX)] == ["Error: No."]
    picture = output_of(render(name, ASK, *turn(ToolCall("a", "f"), output=(PNG,), is_error=True))[2])
    assert next(row.get("text") for row in picture) == rendering.FAILED


# -- a system message in mid-conversation


def late_system_rows(name, *steps):
    with AgentMemory.open(":memory:", budget=8_000) as memory:
        memory.record(SystemPromptStep("Be brief."), TaskStep("Go."), ActionStep("Well."))
        memory.record(SystemPromptStep("It is </system-notice> noon."), *steps)
        request = memory.to_request(name)
        assert format_named(name).problems(request) == ()
        return request.get("messages") or request.get("input") or request["contents"]


@pytest.mark.parametrize("name", OPENAI)
@pytest.mark.parametrize("steps", [(), (TaskStep("And?"),)])
def test_a_late_system_message_keeps_role_and_place_where_the_wire_allows_it(name, steps):
    rows = late_system_rows(name, *steps)
    assert [row["role"] for row in rows[:4]] == ["system", "user", "assistant", "system"]
    assert rows[3]["content"] == "It is </system-notice> noon."
    assert len(rows) == 4 + len(steps)


@pytest.mark.parametrize("name", sorted(set(FORMATS) - set(OPENAI)))
def test_a_late_system_message_is_a_notice_where_the_wire_has_no_place_for_it(name):
    text = json.dumps(late_system_rows(name))
    assert "<system-notice>" in text
    assert text.count("</system-notice>") == 1


def test_a_handed_back_system_message_is_known_again():
    with AgentMemory.open(":memory:", budget=8_000) as memory:
        memory.record(TaskStep("Go."), ActionStep("Well."), SystemPromptStep("It is noon."), TaskStep("And?"))
        rows = memory.to_messages("openai")
        memory.record_messages([*rows, {"role": "assistant", "content": "Yes."}], "openai")
        assert len(memory.steps) == 5


# -- LangGraph's orders to its state


def test_a_remove_message_reaches_no_model():
    form = format_named("langchain")
    rows = [{"type": "human", "content": "Go."}, {"type": "remove", "content": "", "id": "1"}]
    assert form.problems(rows) == ("messages[1]: a RemoveMessage is not for a model",)
    assert len(form.parse(rows)) == 1
    kept = Message("user", (Opaque("langchain", "message", json.dumps(rows[1])),))
    assert "remove" not in json.dumps(render("langchain", ASK, kept))


def test_a_failed_observation_of_a_memory_is_marked_on_the_wire():
    with AgentMemory.open(":memory:", budget=8_000) as memory:
        call = ToolCall("a", "f")
        memory.record(TaskStep("Go."), ActionStep(None, (call,)), Observation("a", "No such file.", "error"))
        assert memory.to_messages("openai")[-1]["content"] == "Error: No such file."
        view = memory.view()
        assert view.tokens == sum(line.tokens for line in view.report.lines)
