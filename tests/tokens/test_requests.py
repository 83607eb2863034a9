"""The token cost of a request, part by part."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein.events.messages import Message
from pagein.events.steps import Image, Opaque, Text, ToolCall
from pagein.formats import FORMATS, format_named
from pagein.testing.formats import legal_conversations
from pagein.tokens.counter import content_tokens, message_tokens, request_tokens
from pagein.tokens.encodings import Encoding
from pagein.tokens.images import CLAUDE


@dataclass(frozen=True)
class Characters:
    """Each character is a token, each image 1000: sums can be read off."""

    name: str = "characters"
    margin: float = 0.0

    def text(self, text: str) -> int:
        return len(text)

    def image(self, image: Image) -> int:
        return 1000


COUNT = Characters()
CACHE = Opaque("anthropic", "cache_control", '{"type": "ephemeral"}')
OTHER = Opaque("openai", "fields", '{"name": "bob"}')


@pytest.mark.parametrize(
    ("message", "cost"),
    [
        (Message("user", "hello"), 4 + 5),
        (Message("assistant", None), 4 + 4),
        (Message("user", ()), 4 + 4),
        (Message("user", (Text("hello"), Text("you"))), 4 + 5 + 1 + 3 + 1),
        (Message("user", (Text("hello"), Image(b"x"))), 4 + 5 + 1 + 1000 + 1),
        (Message("assistant", None, (ToolCall("c1", "read", '{"a":1}'),)), 4 + 8 + 2 + 4 + 8),
        (Message("tool", "ok", call_id="c1"), 4 + 4 + 2),
        (Message("tool", "ok", call_id="c1", is_error=True), 4 + 4 + 2 + len("Error: ")),
        (Message("tool", "Error", call_id="c1", is_error=True), 4 + 5 + 2),
        (Message("tool", (Image(b"x"), Image(b"y")), call_id="c1"), 4 + 2 * 1001 + 2 + 4 + 2 * 33),
        (Message("tool", "ok", call_id="a.b"), 4 + 4 + len("pagein-a_b-") + 24),
        (Message("tool", "ok", call_id="a" * 41), 4 + 4 + 41),
        (Message("user", "<n>x</n>", as_system=Message("system", "x")), 4 + 8),
        (Message("assistant", None, (ToolCall("c1", "a.b", "{oops"),)), 4 + 8 + 2 + 3 + 32),
        (Message("assistant", None, (ToolCall("c1", "n" * 20, "{}"),)), 4 + 8 + 2 + 20 + 12 + 2),
        (Message("assistant", (Opaque("anthropic", "thinking", '{"signature": "long"}', "hm"),)), 4 + 4 + 8),
        (Message("assistant", (Opaque("anthropic", "redacted_thinking", "{12345}"),)), 4 + 1 + 7 + 8),
        (Message("user", (Text("hello", CACHE),)), 4 + 1 + 5),
        (Message("user", (Text("hello", OTHER),)), 4 + 1 + 5 + 15),
        (Message("user", (Image(b"x", extra=OTHER),)), 4 + 1 + 1000 + 15),
        (Message("user", "hello", extra=OTHER), 4 + 5 + 15),
        (Message("user", "hello", extra=CACHE), 4 + 5),
        (Message("assistant", None, (ToolCall("c", "f", "{}", extra=OTHER),)), 4 + 8 + 1 + 1 + 2 + 15),
    ],
)
def test_a_message_costs_what_the_rule_says(message, cost):
    assert message_tokens(message, COUNT) == cost
    assert request_tokens([message, message], COUNT) == 3 + 2 * cost


def test_an_empty_request_costs_its_frame_and_no_content_costs_nothing():
    assert request_tokens([], COUNT) == 3
    assert content_tokens(None, COUNT) == 0


texts = st.text(max_size=20)
opaques = st.builds(Opaque, texts, st.sampled_from(["cache_control", "thinking", "x"]), texts, texts)
parts = st.builds(Text, texts, st.none() | opaques) | st.builds(Image, st.binary(max_size=40)) | opaques
messages = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]),
    st.none() | texts | st.lists(parts, max_size=4).map(tuple),
    st.lists(st.builds(ToolCall, texts, texts, texts), max_size=3).map(tuple), texts,
)  # fmt: skip


@given(st.lists(messages, max_size=6), messages)
def test_a_request_costs_the_sum_of_its_messages_and_one_more_costs_what_it_costs_alone(request, more):
    before = request_tokens(request, COUNT)
    assert before == 3 + sum(message_tokens(message, COUNT) for message in request)
    assert request_tokens([*request, more], COUNT) - before == message_tokens(more, COUNT) >= 4


# What is sent, counted a second time by someone who reads only the wire

O200K = Encoding("o200k_base")


@dataclass(frozen=True)
class Free:
    """Images for one token, so that nothing hides behind their price."""

    def tokens(self, size, detail):
        return 1


def read_tokens(value):
    """The tokens a model reads in what was rendered: words, names, ids, arguments."""
    if isinstance(value, list):
        return sum(map(read_tokens, value))
    if isinstance(value, str):
        return O200K.text(value)
    match value:
        case {"type": "text", "text": text}:
            return O200K.text(text)
        case {"type": "tool_use", "id": call_id, "name": name, "input": arguments}:
            return O200K.text(call_id) + O200K.text(name) + O200K.text(json.dumps(arguments, ensure_ascii=False))
        case {"type": "tool_result", "tool_use_id": call_id, "content": content}:
            return O200K.text(call_id) + read_tokens(content)
        case {"id": call_id, "function": {"name": name, "arguments": arguments}}:
            return O200K.text(call_id) + O200K.text(name) + O200K.text(arguments)
        case {"id": call_id, "custom": {"name": name, "input": arguments}}:
            return O200K.text(call_id) + O200K.text(name) + O200K.text(arguments)
        case {"role": _}:
            rows = (value.get("content"), value.get("tool_calls"), value.get("tool_call_id"), value.get("refusal"))
            return sum(read_tokens(row) for row in rows if row)
        case _:
            return 0


def sent_tokens(messages, name):
    request = format_named(name).render(messages)
    return read_tokens(request.get("system", [])) + read_tokens(request["messages"])


def calls_and_results(calls):
    pairs = [(Message("assistant", None, (call,)), Message("tool", "ok", call_id=call.id)) for call in calls]
    return (Message("user", "Go."), *(message for pair in pairs for message in pair))


HOSTILE = {
    "ids with a colon": [ToolCall(f"functions.list_files:{n}", "list_files") for n in range(40)],
    "dotted ids": [ToolCall("a.b.c.d.e." * 6 + str(n), "f") for n in range(40)],
    "ids in another script": [ToolCall(f"呼び出し番号{n}号", "f") for n in range(40)],
    "ids with half a character": [ToolCall(f"\ud800{n}" * 4, "f") for n in range(40)],
    "names no provider takes": [ToolCall(f"c{n}", "読むé.書く " * 12) for n in range(40)],
    "arguments that are no JSON": [ToolCall(f"c{n}", "f", '{"a": "\\n\\"' * 30) for n in range(40)],
    "arguments that are a list": [ToolCall(f"c{n}", "f", '["a\\t", "b\\\\"]') for n in range(40)],
    "arguments that are a patch": [ToolCall(f"c{n}", "f", '*** "Begin"\n+\t"x"\n' * 20) for n in range(40)],
    "numbers that grow": [ToolCall(f"c{n}", "f", '{"a":[' + "1e15," * 90 + "1]}") for n in range(40)],
    "many short keys": [
        ToolCall(f"c{n}", "f", json.dumps({f"k{key}": -key for key in range(40)}, separators=(",", ":")))
        for n in range(10)
    ],
    "long and compact": [
        ToolCall(f"c{n}", "f", json.dumps({f"k{key}": [{}, "", -1, None, [0.5]] for key in range(200)}, separators=(",", ":")))
        for n in range(4)
    ],
    "too deep": [ToolCall("c", "f", '{"a":' * 125 + "1" + "}" * 125), ToolCall("d", "f", "[" * 10_000)],
    "none": [ToolCall("c", "", ""), ToolCall("d", " ", " ")],
}  # fmt: skip


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@pytest.mark.parametrize("calls", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_run_costs_no_more_than_was_counted(calls, name):
    messages = calls_and_results(calls)
    assert sent_tokens(messages, name) <= request_tokens(messages, O200K) - 8 * len(calls)
    assert format_named(name).problems(format_named(name).render(messages)) == ()


hostile = st.builds(
    ToolCall,
    st.text(max_size=12) | st.text(alphabet="aé.:-漢\ud800", max_size=80),
    st.text(max_size=12),
    st.text(max_size=60)
    | st.recursive(
        st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    ).map(lambda value: json.dumps({"a": value}, separators=(",", ":"))),
)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@given(messages=legal_conversations(), calls=st.lists(hostile, max_size=4), times=st.sampled_from((1, 200)))
def test_what_is_counted_is_no_less_than_what_is_sent(name, messages, calls, times):
    # Long arguments are counted once where they differ in spaces alone.
    long = [
        replace(call, arguments='{"a":[' + ",".join([call.arguments] * times) + "]}")
        for call in calls
        if call.arguments.startswith("{")
    ]
    both = (*messages, *calls_and_results(calls), *calls_and_results(replace(call, id=f"{call.id}+") for call in long))
    assert sent_tokens(both, name) <= request_tokens(both, O200K)


# Every wire, read by its leaves: what is text, a number or JSON counts, whatever the format calls it

FRAMING = {"type", "role", "mimeType", "media_type", "mime_type", "format", "status", "detail", "spelling"}
JSON_KEYS = {"input", "args", "arguments"}


def is_image_data(row):
    kinds = [str(row.get(key)) for key in ("type", "mimeType", "media_type")]
    return any(kind.startswith(("image", "input_image")) for kind in kinds) or "bytes" in row


def leaf_tokens(value, key=""):
    match value:
        case dict() if key in JSON_KEYS:
            return O200K.text(json.dumps(value, ensure_ascii=False))
        case dict() if is_image_data(value):
            return sum(leaf_tokens(item, name) for name, item in value.items() if name not in IMAGE_KEYS | FRAMING)
        case dict():
            return sum(leaf_tokens(item, name) for name, item in value.items() if name not in FRAMING)
        case list():
            return sum(leaf_tokens(item, key) for item in value)
        case str():
            return O200K.text(value)
        case int() | float():
            return O200K.text(str(value))
    return 0


IMAGE_KEYS = {"image_url", "data", "bytes", "url", "source", "base64", "fileUri"}


@pytest.mark.parametrize("name", FORMATS)
@given(messages=legal_conversations(), calls=st.lists(hostile, max_size=4))
def test_every_wire_costs_no_more_than_was_counted(name, messages, calls):
    both = (*messages, *calls_and_results(calls))
    request = format_named(name).render(both)
    assert leaf_tokens(request) <= request_tokens(both, replace(O200K, images=CLAUDE))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("calls", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_run_costs_no_more_than_was_counted_on_any_wire(calls, name):
    messages = calls_and_results(calls)
    assert leaf_tokens(format_named(name).render(messages)) <= request_tokens(messages, O200K)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("is_error", [True, False])
def test_results_with_images_and_failures_cost_what_is_sent(name, is_error):
    pictures = tuple(Image(b"\x89PNG%06d" % number, "image/png") for number in range(30))
    calls = [ToolCall(f"c{number}", "f") for number in range(30)]
    results = [
        Message("tool", (Text("x"), picture), call_id=call.id, is_error=is_error)
        for call, picture in zip(calls, pictures, strict=True)
    ]
    for number in range(1, 30):
        messages = (Message("user", "Go."), Message("assistant", None, tuple(calls[:number])), *results[:number])
        sent = leaf_tokens(format_named(name).render(messages))
        assert sent + number <= request_tokens(messages, replace(O200K, images=Free()))


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_the_name_that_stands_for_an_image_is_counted(name):
    tiny = replace(O200K, images=CLAUDE)
    pictures = tuple(Image(b"x%d" % n, "image/bmp") for n in range(200))
    messages = (Message("user", "Go."), Message("assistant", pictures), Message("user", "?"))
    assert sent_tokens(messages, name) <= request_tokens(messages, tiny)
