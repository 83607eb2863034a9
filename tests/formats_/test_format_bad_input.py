"""Whatever a host hands over, it hears FormatError with a path, and nothing else."""

import copy
import enum
import json
import time

import pytest
from formats_corpus_anthropic import IMAGE, result, thinking, use
from formats_corpus_anthropic import TRANSCRIPTS as ANTHROPIC
from formats_corpus_openai import TRANSCRIPTS as OPENAI
from formats_corpus_openai import assistant, call, text, tool, user
from hypothesis import given
from hypothesis import strategies as st

from pagein import AgentMemory
from pagein.errors import FormatError, ProtocolError
from pagein.events.steps import ActionStep, TaskStep
from pagein.formats.anthropic.wire import Anthropic
from pagein.formats.openai_chat.wire import OpenAIChat
from pagein.formats.parsing import readable_text, to_plain_json
from pagein.testing.formats import items_to_messages

FORMATS = {"openai": OpenAIChat(), "anthropic": Anthropic()}


class Odd:
    pass


class Broken:
    def model_dump(self, **_):
        raise KeyError("inside")


class Endless:
    def model_dump(self, **_):
        return self


class Answer:
    """A response object as the SDKs make them."""

    def __init__(self, **fields):
        self.fields = fields

    def model_dump(self, *, exclude_none=False):
        def dump(value):
            return value.model_dump(exclude_none=exclude_none) if isinstance(value, Answer) else value

        fields = {
            key: [dump(item) for item in value] if isinstance(value, list) else dump(value)
            for key, value in self.fields.items()
        }
        return {key: value for key, value in fields.items() if value is not None or not exclude_none}


def deep(levels):
    value = "bottom"
    for _ in range(levels):
        value = [value]
    return value


EITHER = [
    (None, "messages: expected a list of messages, not null"),
    ("text", "messages: expected a list of messages, not str"),
    (b"bytes", "messages: expected a list of messages, not bytes"),
    (3, "messages: expected a list of messages, not int"),
    ({}, "messages: the request has no messages"),
    ({"role": "user", "content": 3}, "messages[0].content: expected text or a list of"),
    (Broken(), "messages: Broken.model_dump() failed: 'inside'"),
    ({"messages": None}, "messages: expected a list, not null"),
    ({"messages": "x"}, "messages: expected a list, not str"),
    ({"messages": {}}, "messages: expected a list, not dict"),
    (["text"], "messages[0]: expected an object, not str"),
    ([None], "messages[0]: expected an object, not null"),
    ([Odd()], "messages[0]: Odd is not JSON"),
    ([Odd], "messages[0]: type is not JSON"),
    ([Broken()], "messages[0]: Broken.model_dump() failed: 'inside'"),
    ([{3: "x"}], "messages[0]: a key of an object must be text, not int"),
    ([{"content": "x"}], "messages[0].role: expected text, not null"),
    ([{"role": 3}], "messages[0].role: expected text, not int"),
    ([{"role": "narrator", "content": "x"}], "messages[0].role: unknown role 'narrator'"),
    ([{"role": "user", "content": 3}], "messages[0].content: expected text or a list of"),
    ([{"role": "user", "content": True}], "messages[0].content: expected text or a list of"),
    ([{"role": "user", "content": {"type": "text"}}], "messages[0].content: expected text or a list of"),
    ([{"role": "user", "content": b"x"}], "messages[0].content: bytes is not JSON"),
    ([{"role": "user", "content": {1, 2}}], "messages[0].content: set is not JSON"),
    ([{"role": "user", "content": (x for x in "x")}], "messages[0].content: generator is not JSON"),
    ([{"role": "user", "content": ["x"]}], "messages[0].content[0]: expected an object, not str"),
    ([{"role": "user", "content": [{}]}], "messages[0].content[0].type: expected text, not null"),
    ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text: expected text, not null"),
    (
        [{"role": "user", "content": [{"type": "text", "text": 3}]}],
        "messages[0].content[0].text: expected text, not int",
    ),
    (
        [{"role": "user", "content": [{"type": "text", "text": "x", "y": float("nan")}]}],
        "messages[0].content[0].y: nan is not a JSON number",
    ),
    ([{"role": "user", "content": "x", "y": -float("inf")}], "messages[0].y: -inf is not a JSON number"),
]

SPELLED_WRONG = "messages[0].content[0].image_url.url: a data URL must be data:image/...;base64,...; send the"
OPENAI_BAD = [
    *(
        ([user([{"type": "image_url", "image_url": {"url": url}}])], SPELLED_WRONG)
        for url in (
            "data:",
            "data:image/png;base64,",
            "data:image/png;base64,!!!",
            "data:image/png,raw",
            "data:image/svg+xml,<svg/>",
            "data:text/plain,hi",
            "data:application/pdf;base64,JVBERg==",
        )
    ),
    ([user([{"type": "image_url", "image_url": "data:,"}])], SPELLED_WRONG),
    (
        [user([{"type": "image_url", "image_url": {"url": "https://e.org", "detail": "ultra", "x": 1}}])],
        "messages[0].content[0].image_url.detail: 'ultra' is none of low, high",
    ),
    (
        [{"role": "assistant", "content": [{"type": "refusal"}]}],
        "messages[0].content[0].refusal: expected text, not null",
    ),
    ([user(None)], "messages[0].content: there is no content"),
    ([{"role": "system"}], "messages[0].content: there is no content"),
    ([{"role": "tool", "tool_call_id": 3, "content": "x"}], "messages[0].tool_call_id: expected text, not int"),
    ([assistant(tool_calls={})], "messages[0].tool_calls: expected a list, not dict"),
    ([assistant(tool_calls=["x"])], "messages[0].tool_calls[0]: expected an object, not str"),
    ([assistant(tool_calls=[{"id": "a"}])], "messages[0].tool_calls[0].function: expected an object, not null"),
    ([assistant(tool_calls=[{"id": 3, "function": {}}])], "messages[0].tool_calls[0].id: expected text, not int"),
    ([assistant(tool_calls=[{"id": "a", "type": 3}])], "messages[0].tool_calls[0].type: expected text, not int"),
    (
        [assistant(tool_calls=[{"id": "a", "function": {"arguments": ""}}])],
        "messages[0].tool_calls[0].function.name: expected text, not null",
    ),
    (
        [user(), assistant(tool_calls=[call("a"), call("b", arguments=7)])],
        "messages[1].tool_calls[1].function.arguments: expected JSON text, not int",
    ),
    (
        [user(), assistant(tool_calls=[call("a", arguments=[1])])],
        "messages[1].tool_calls[0].function.arguments: expected JSON text, not list",
    ),
    (
        [assistant(tool_calls=[{"id": "a", "type": "custom", "custom": {"name": "n"}}])],
        "messages[0].tool_calls[0].custom.input: expected text",
    ),
    ([assistant(function_call="x")], "messages[0].function_call: expected an object, not str"),
    (
        [assistant(function_call={"name": "n", "arguments": 7})],
        "messages[0].function_call.arguments: expected JSON text",
    ),
    ([user([{"type": "image_url"}])], "messages[0].content[0].image_url: expected an object, not null"),
    ([user([{"type": "image_url", "image_url": {}}])], "messages[0].content[0].image_url.url: expected text, not null"),
    ([user([{"type": "image_url", "image_url": ""}])], "messages[0].content[0].image_url.url: the URL is empty"),
    (
        [user([{"type": "image_url", "image_url": {"url": "u", "detail": 3}}])],
        "messages[0].content[0].image_url.detail: expected text, not int",
    ),
]

ANTHROPIC_BAD = [
    ({"system": 3, "messages": []}, "system: expected text or a list of blocks, not int"),
    ({"system": ["x"], "messages": []}, "system[0]: expected an object, not str"),
    ({"system": [{"type": "text"}], "messages": []}, "system[0].text: expected text, not null"),
    ([{"role": "assistant", "content": None}], "messages[0].content: expected text or a list of blocks, not null"),
    ([{"role": "tool", "content": "x"}], "messages[0].role: unknown role 'tool'"),
    (
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "n"}]}],
        "messages[0].content[0].input: expected an object, not null",
    ),
    (
        [{"role": "assistant", "content": [use("a", arguments="{}")]}],
        "messages[0].content[0].input: expected an object, not str",
    ),
    ([{"role": "assistant", "content": [use(3)]}], "messages[0].content[0].id: expected text, not int"),
    ([{"role": "assistant", "content": [use("a", None)]}], "messages[0].content[0].name: expected text, not null"),
    (
        [{"role": "user", "content": [result("a", 3)]}],
        "messages[0].content[0].content: expected text or a list of blocks, not int",
    ),
    (
        [{"role": "user", "content": [result("a", ["x"])]}],
        "messages[0].content[0].content[0]: expected an object, not str",
    ),
    (
        [{"role": "user", "content": [result("a", is_error="yes")]}],
        "messages[0].content[0].is_error: expected true or false, not str",
    ),
    ([{"role": "user", "content": [result(3)]}], "messages[0].content[0].tool_use_id: expected text, not int"),
    ([{"role": "user", "content": [{"type": "image"}]}], "messages[0].content[0].source: expected an object, not null"),
    (
        [{"role": "user", "content": [{"type": "image", "source": {}}]}],
        "messages[0].content[0].source.type: expected text, not null",
    ),
    (
        [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}],
        "messages[0].content[0].source.media_type: expected text",
    ),
    *(
        ([{"role": "user", "content": [{"type": "image", "source": source}]}], f"messages[0].content[0].source.{words}")
        for source, words in (
            ({"type": "base64", "media_type": "image/png", "data": ""}, "data: no base64; send the picture"),
            ({"type": "base64", "media_type": "image/png", "data": "!!!"}, "data: no base64"),
            ({"type": "base64", "media_type": "image/tiff", "data": "eA"}, "media_type: 'image/tiff' is none"),
            ({"type": "url"}, "url: only https is fetched"),
            ({"type": "url", "url": "http://e.org", "x": 1}, "url: only https is fetched"),
        )
    ),
    (
        [{"role": "user", "content": [result("a", [{**IMAGE, "source": {"type": "url"}}])]}],
        "messages[0].content[0].content[0].source.url: only https is fetched",
    ),
    *(
        ([{"role": "assistant", "content": [row]}], f"messages[0].content[0].{words}: missing or empty; give it")
        for row, words in (
            ({"type": "redacted_thinking"}, "data"),
            ({"type": "redacted_thinking", "data": ""}, "data"),
            ({"type": "thinking", "signature": "c2ln"}, "thinking"),
            ({"type": "thinking", "thinking": "hm", "signature": 3}, "signature"),
        )
    ),
    *(
        (
            [{"role": "assistant", "content": [before, thinking(), use("a")]}],
            "messages[0].content[1]: thinking behind text or a call, in a turn that calls a tool; give the blocks",
        )
        for before in ({"type": "text", "text": "So."}, use("b"))
    ),
]

CASES = [(name, *case) for name in FORMATS for case in EITHER]
CASES += [("openai", *case) for case in OPENAI_BAD] + [("anthropic", *case) for case in ANTHROPIC_BAD]


@pytest.mark.parametrize(("name", "request_", "words"), CASES)
def test_bad_input_is_named_with_its_path(name, request_, words):
    with pytest.raises(FormatError) as caught:
        FORMATS[name].parse(request_)
    assert str(caught.value).startswith(words)
    assert words.startswith(caught.value.path)
    assert isinstance(FORMATS[name].problems(request_), tuple)


@pytest.mark.parametrize("format_", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("value", [deep(1000), deep(100_000), Endless()], ids=["deep", "deeper", "endless"])
def test_what_has_no_bottom_is_refused(format_, value):
    for content in (value, [{"type": "text", "text": "x", "more": value}]):
        with pytest.raises(FormatError, match="nested deeper than 128 levels"):
            format_.parse([{"role": "user", "content": content}])
        assert format_.problems([{"role": "user", "content": content}])
    wide = {}
    wide.update({str(number): wide for number in range(100)})
    with pytest.raises(FormatError, match="contains itself"):
        format_.parse([{"role": "user", "content": "x", "more": wide}])


_garbage = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        float("nan"),
        "",
        "x",
        "\ud800",
        b"x",
        [],
        [[]],
        {},
        {"type": "text"},
        Odd(),
        [3],
        deep(200),
    ]
)


def mutate(draw, value, chance):
    """A transcript with something else where something was."""
    if draw(st.integers(0, chance)) == 0:
        return draw(_garbage)
    if isinstance(value, dict):
        return {key: mutate(draw, item, chance) for key, item in value.items() if draw(st.integers(0, 3 * chance))}
    if isinstance(value, list):
        return [mutate(draw, item, chance) for item in value]
    return value


@pytest.mark.parametrize("name", FORMATS)
def test_no_mutilated_transcript_raises_anything_else(name):
    format_, transcripts = (FORMATS[name], OPENAI if name == "openai" else ANTHROPIC)

    @given(st.data())
    def check(data):
        transcript = data.draw(st.sampled_from(transcripts))
        broken = mutate(data.draw, transcript, data.draw(st.sampled_from([6, 20, 60])))
        problems = format_.problems(broken)
        assert all(isinstance(problem, str) for problem in problems)
        try:
            items = format_.parse(broken)
        except FormatError:
            return
        try:
            messages = items_to_messages(items)
        except ValueError:
            return
        json.dumps(format_.render(messages), ensure_ascii=False, allow_nan=False).encode()

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_thousands_of_parallel_calls_take_linear_time(name):
    few, many = (min(_seconds_of_calls(name, calls) for _ in range(2)) for calls in (300, 2_400))
    assert many < 28 * few, "8 times the calls take 8 times as long; a square takes 64 times"


def _seconds_of_calls(name, calls):
    ids = [f"call_{number}" for number in range(calls)]
    if name == "openai":
        rows = [user(), assistant(tool_calls=[call(call_id) for call_id in ids]), *(tool(call_id) for call_id in ids)]
    else:
        rows = [user(), {"role": "assistant", "content": [use(call_id) for call_id in ids]}]
        rows.append({"role": "user", "content": [result(call_id) for call_id in ids]})
    format_ = FORMATS[name]
    started = time.process_time()
    messages = items_to_messages(format_.parse(rows))
    assert len(messages) == calls + 2
    # OpenAI takes 128 calls a message, so the request has them in several.
    assert all(f".tool_calls: {calls} calls" in problem for problem in format_.problems(rows))
    assert format_.problems(format_.render(messages)) == ()
    return time.process_time() - started


# -- what is no JSON but means it


class Role(enum.StrEnum):
    USER = "user"


class OldRole(str, enum.Enum):  # noqa: UP042 - as hosts write it
    USER = "user"


@pytest.mark.parametrize("format_", FORMATS.values(), ids=FORMATS)
def test_tuples_enums_and_read_only_mappings_are_read(format_):
    from types import MappingProxyType

    for role in Role.USER, OldRole.USER:
        assert (
            format_.parse((MappingProxyType({"role": role, "content": ({"type": "text", "text": "Hi"},)}),))[0]
            .content[0]
            .text
            == "Hi"
        )


def test_response_objects_of_openai_are_read():
    calls = [Answer(id="a", type="function", function=Answer(name="f", arguments="{}"))]
    answer = Answer(role="assistant", content=None, refusal=None, audio=None, tool_calls=calls)
    (step,) = OpenAIChat().parse([answer])
    assert step.content is None
    assert step.tool_calls[0].id == "a"
    assert step.extra is None
    assert OpenAIChat().parse([answer.model_dump()]) == (step,)


def test_response_objects_of_anthropic_are_read():
    blocks = [
        Answer(type="text", text="Hi", citations=None),
        Answer(type="tool_use", id="a", name="f", input={"x": None}),
    ]
    (whole,) = Anthropic().parse([Answer(role="assistant", content=blocks, stop_reason="tool_use", model="m")])
    (parts,) = Anthropic().parse([{"role": "assistant", "content": blocks}])
    assert whole.content == parts.content
    assert whole.content[0].extra is None
    assert whole.tool_calls[0].arguments == '{"x":null}'  # a null the model wrote is no null the SDK filled in


def test_parsing_changes_nothing_and_shares_nothing():
    for format_, transcripts in ((OpenAIChat(), OPENAI), (Anthropic(), ANTHROPIC)):
        for transcript in transcripts:
            before = copy.deepcopy(transcript)
            format_.parse(transcript)
            format_.problems(transcript)
            assert transcript == before
    value = {"a": [{"b": 1}]}
    assert to_plain_json(value) == value
    assert to_plain_json(value)["a"] is not value["a"]


def test_only_what_concerns_us_is_read_of_a_request():
    request = {"model": "m", "tools": [Odd], "client": Odd(), "messages": [user("Hi")]}
    assert OpenAIChat().parse(request) == (TaskStep("Hi"),)
    assert Anthropic().parse(request | {"system": None}) == (TaskStep("Hi"),)


def test_reading_finds_words_and_no_cipher():
    assert (
        readable_text(
            [text("a"), {"type": "x", "encrypted_content": "zzz", "content": [{"title": "t", "url": "u"}, 3]}]
        )
        == "a\nt\nu"
    )
    assert readable_text({"input": {"query": "q"}, "data": "zzz", "source": {"type": "base64", "data": "zzz"}}) == "q"
    assert readable_text(None) == ""


def test_an_action_without_anything_is_still_an_action():
    assert OpenAIChat().parse([assistant(None)]) == (ActionStep(),)


_ODD = st.sampled_from((
    None, "", " ", "x", 3, True, [], {}, "eA==", "data:image/png;base64,", "data:,", "https://example.org/a.png", [{}],
    [{"type": "text", "text": ""}], [{"type": "thinking"}], {"type": "url"}, {"type": "base64", "media_type": "image/png", "data": ""},
))  # fmt: skip


def places(value, path=()):
    """Every place in a JSON value but the whole of it."""
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in rows:
        yield (*path, key)
        yield from places(item, (*path, key))


@st.composite
def damage(draw, transcripts):
    """A transcript somebody else wrote, with a few of its values lost, moved or made into others."""
    rows = copy.deepcopy(draw(st.sampled_from(transcripts)))
    for _ in range(draw(st.integers(1, 3))):
        paths = list(places(rows))
        if not paths:
            break
        *path, last = draw(st.sampled_from(paths))
        inner = rows
        for key in path:
            inner = inner[key]
        match draw(st.sampled_from(("change", "drop", "move"))):
            case "change":
                inner[last] = copy.deepcopy(draw(_ODD))
            case "drop":
                del inner[last]
            case "move" if isinstance(inner, list):
                inner.insert(draw(st.integers(0, len(inner))), inner.pop(last))
    return rows


@pytest.mark.parametrize(("name", "transcripts"), [("openai", OPENAI), ("anthropic", ANTHROPIC)])
@given(data=st.data())
def test_what_is_taken_in_can_be_sent(name, transcripts, data):
    """A message no request can carry would block the run for ever, so it is refused when it is recorded."""
    rows = data.draw(damage(transcripts))
    with AgentMemory.open(":memory:", budget=100_000, format=name) as memory:
        memory.record(TaskStep("Go."))
        try:
            memory.record_messages(rows, name, whole=False)
        except (FormatError, ProtocolError):
            return
        for form in FORMATS.values():
            assert form.problems(form.render(memory.view().messages())) == ()
