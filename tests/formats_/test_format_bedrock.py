import base64
import copy
import json

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from formats_corpus_bedrock import (
    DOCUMENT,
    IMAGE,
    NAMED,
    PNG,
    POINT,
    TRANSCRIPTS,
    assistant,
    reasoning,
    result,
    use,
    user,
)
from hypothesis import given

from pagein import AgentMemory
from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import Image, Observation, Opaque, SystemPromptStep, TaskStep, Text, ToolCall, Usage
from pagein.formats import format_named, guess_format, keywords, validate
from pagein.formats.bedrock import rules
from pagein.formats.bedrock.wire import Bedrock
from pagein.testing.formats import FormatTests, every_feature, items_to_messages, legal_conversations

pytestmark = pytest.mark.slow


class TestBedrock(FormatTests):
    cannot_carry = frozenset(
        {
            "arguments",
            "boundaries",
            "call id",
            "empty text",
            "foreign parts",
            "image address",
            "image detail",
            "image from the assistant",
            "image in instructions",
            "image type",
            "lone surrogates",
            "tool name",
            "white space",
        }
    )

    @pytest.fixture
    def format(self):
        return Bedrock()

    @pytest.fixture
    def transcripts(self):
        return TRANSCRIPTS


def parse(*rows):
    return Bedrock().parse(list(rows))


def render(*messages):
    request = Bedrock().render(messages)
    assert Bedrock().problems(request) == ()
    return request["messages"]


ASK = Message("user", "Go.")


# -- botocore's model of the service

SERVICE = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
CONVERSE = SERVICE.operation_model("Converse").input_shape


def check_with_botocore(request):
    """Validate boto3's keyword arguments against the service model, with the patterns and lengths that it states."""
    words = {"modelId": "m", **keywords("bedrock", copy.deepcopy(request))}
    report = ParamValidator().validate(words, CONVERSE)
    assert not report.has_errors(), report.generate_report()
    for row in words["messages"]:
        for block in row["content"]:
            check_block(block)


def check_block(block):
    for key in ("toolUse", "toolResult"):
        if key in block:
            assert 1 <= len(block[key]["toolUseId"]) <= SERVICE.shape_for("ToolUseId").metadata["max"]
            for inner in block[key].get("content", ()):
                check_block(inner)
    if "toolUse" in block:
        assert 1 <= len(block["toolUse"]["name"]) <= SERVICE.shape_for("ToolName").metadata["max"]
    if "image" in block:
        assert block["image"]["format"] in SERVICE.shape_for("ImageFormat").enum


@pytest.mark.parametrize("request_", TRANSCRIPTS, ids=[*NAMED, "system"])
def test_every_transcript_is_one_to_botocore(request_):
    check_with_botocore(request_)
    words = keywords("bedrock", copy.deepcopy(request_))
    read = Bedrock().render(items_to_messages(Bedrock().parse(words)))
    assert read == request_, "boto3's bytes are read as base64"


@given(messages=legal_conversations())
def test_every_request_is_one_to_botocore(messages):
    check_with_botocore(Bedrock().render(messages))


def test_every_feature_is_one_to_botocore():
    request = Bedrock().render(every_feature())
    check_with_botocore(request)
    blocks = [block for row in keywords("bedrock", request)["messages"] for block in row["content"]]
    assert next(block["image"] for block in blocks if "image" in block)["source"]["bytes"] == b"\x89PNG\r\n"


def test_the_limits_are_those_of_the_service_model():
    assert SERVICE.shape_for("ToolUseId").metadata["max"] == rules.ID_MAX_CHARS
    assert SERVICE.shape_for("ToolName").metadata["max"] == rules.NAME_MAX_CHARS
    assert tuple(SERVICE.shape_for("ImageFormat").enum) == rules.IMAGE_FORMATS
    assert tuple(SERVICE.shape_for("DocumentFormat").enum) == rules.DOCUMENT_FORMATS
    assert {*SERVICE.shape_for("ContentBlock").members} <= {*rules.BLOCK_KEYS}


def test_a_tool_is_one_of_the_service():
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        tools = memory.tools("bedrock")
    words = {"modelId": "m", "messages": [user()], "toolConfig": {"tools": tools}}
    assert not ParamValidator().validate(words, CONVERSE).has_errors()


# -- reading


def test_a_whole_response_is_read_with_its_usage():
    usage = {
        "inputTokens": 100,
        "outputTokens": 5,
        "cacheReadInputTokens": 20,
        "cacheWriteInputTokens": 3,
        "totalTokens": 128,
    }
    (step,) = Bedrock().parse({"output": {"message": assistant("Hi.")}, "usage": usage, "stopReason": "end_turn"})
    assert step.content == (Text("Hi."),)
    assert step.usage == Usage(123, 5, 20)
    with AgentMemory.open(":memory:", budget=8_000, format="bedrock") as memory:
        memory.record_messages([user("Hi")])
        memory.record_messages({"output": {"message": assistant("Hi.")}, "usage": usage})
        assert memory.steps[1].usage == Usage(123, 5, 20)


def test_system_and_words_are_read_in_both_spellings():
    assert Bedrock().parse({"system": [{"text": "Be brief."}], "messages": [user("Hi")]}) == (
        SystemPromptStep((Text("Be brief."),)),
        TaskStep((Text("Hi"),)),
    )
    assert parse({"role": "user", "content": "Hi"}) == (TaskStep("Hi"),)


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"modelId": "m"}, "messages"),
        (3, "messages"),
        ([3], "messages[0]"),
        ([{"role": "narrator", "content": []}], "role"),
        ([user({"type": "text"})], "content[0]"),
        ([assistant({"toolUse": {"toolUseId": "a", "name": "f", "input": "{}"}})], "input"),
        ([user({"image": {"format": "bmp", "source": {"bytes": PNG, "x": 1}}})], "image.format"),
        ([user({"image": {"format": "png", "source": {"bytes": "ü"}}})], "image.source.bytes"),
    ],
)
def test_a_fault_has_a_path(request_, path):
    with pytest.raises(FormatError) as caught:
        Bedrock().parse(request_)
    assert path in str(caught.value)


@pytest.mark.parametrize("name", list(NAMED))
def test_it_is_told_by_its_shape(name):
    assert guess_format(NAMED[name]) == guess_format({"messages": NAMED[name]}) == "bedrock"


# -- writing


def test_only_the_last_cache_points_stay_and_none_comes_first():
    point = Opaque("bedrock", "cachePoint", json.dumps(POINT))
    messages = [Message("user", (point, Text("a"), point))]
    for number in range(6):
        messages += [Message("assistant", (Text(str(number)), point)), Message("user", (Text("?"), point))]
    text = json.dumps(render(*messages))
    assert text.count("cachePoint") == 4
    assert text.rindex("cachePoint") > text.rindex("?")
    assert render(Message("user", (point,))) == [user("(no content)")]


def test_documents_keep_to_the_limits():
    names = ["Plan (1)", "Plan (1)", "a_b.pdf", "", "two  spaces", "ü" * 300, "Plan (1)"]
    blocks = [{"document": {**DOCUMENT["document"], "name": name}} for name in names]
    rows = render(Message("user", tuple(Opaque("bedrock", "document", json.dumps(block)) for block in blocks)))
    content = rows[0]["content"]
    assert [block["text"] for block in content[:2]] == ["[document Plan (1)]"] * 2
    assert [block["document"]["name"] for block in content[2:]] == [
        "a b pdf",
        "Document",
        "two spaces",
        "Document 2",
        "Plan (1)",
    ]
    lone = render(Message("user", (Opaque("bedrock", "document", json.dumps(DOCUMENT)),)))
    assert lone == [user(DOCUMENT, "(no content)")]


def test_a_message_has_twenty_images_and_none_is_too_large():
    images = tuple(Image(b"\x89PNG%03d" % number, "image/png") for number in range(25))
    content = render(Message("user", images))[0]["content"]
    assert ["image" in block for block in content] == [False] * 5 + [True] * 20
    large = Image(bytes(rules.IMAGE_MAX_BYTES + 1), "image/png")
    assert "[image " in render(Message("user", (large,)))[0]["content"][0]["text"]


def test_reasoning_opens_its_turn_and_goes_only_to_bedrock():
    thought = Opaque("bedrock", "reasoningContent", json.dumps(reasoning("secret", signature="c2ln")), "secret")
    messages = (ASK, Message("assistant", "One."), Message("assistant", (thought, Text("Two."))), ASK)
    assert render(*messages)[2] == user("(continue)")
    assert render(ASK, Message("assistant", (thought,)), ASK)[1]["content"][-1] == {"text": "(no content)"}
    for name in ("openai", "anthropic", "gemini"):
        assert "secret" not in json.dumps(format_named(name).render(messages))


def test_ids_and_names_of_any_letters_reach_the_wire():
    ids = ["tooluse_1", "functions.f:0", "x" * 65, "\ud800", "", "é"]
    calls = tuple(ToolCall(call_id, "a.b" * 40) for call_id in ids)
    rows = render(ASK, Message("assistant", None, calls), *(Message("tool", "x", call_id=call_id) for call_id in ids))
    sent = [block["toolUse"]["toolUseId"] for block in rows[1]["content"]]
    assert sent[:2] == ids[:2]
    assert len(set(sent)) == len(ids)


def test_a_failed_result_without_words_has_some():
    rows = render(
        ASK, Message("assistant", None, (ToolCall("a", "f"),)), Message("tool", (), call_id="a", is_error=True)
    )
    assert rows[2] == user(result("a", "(no output)", status="error"))


# -- rules

ILLEGAL = {
    "no messages": ({"modelId": "m"}, "no messages"),
    "nothing": ([], "messages: there is none"),
    "a message that is no object": ([3], "messages[0]: expected an object"),
    "unknown role": ([user(), {"role": "system", "content": [{"text": "x"}]}, user()], "messages[1].role: 'system'"),
    "no content": ([user(), {"role": "assistant", "content": []}, user()], "messages[1].content: must be"),
    "an empty block": ([user({})], "messages[0].content[0]: not an object with"),
    "two fields": ([user({"text": "x", **POINT})], "messages[0].content[0]: 2 fields"),
    "blank text": ([user(" ")], "messages[0].content[0].text: empty"),
    "a text that is none": ([user({"text": 3})], "messages[0].content[0].text: expected text"),
    "blank instructions": ({"system": [{"text": " "}], "messages": [user()]}, "system[0].text: empty"),
    "an image in the instructions": ({"system": [IMAGE], "messages": [user()]}, "system[0]: only texts"),
    "instructions as text": ({"system": "x", "messages": [user()]}, "system: expected a list"),
    "two of one role": ([user(), user()], "messages[1]: two user messages"),
    "assistant first": ([assistant("Hi"), user()], "begins with assistant"),
    "assistant last": ([user(), assistant("Hi")], "ends with assistant"),
    "a call without result": ([user(), assistant(use()), user()], "results for [], the calls before are ['tooluse_a']"),
    "a result without call": ([user(result())], "results for ['tooluse_a'], the calls before are []"),
    "two results": ([user(), assistant(use()), user(result(), result())], "results for ['tooluse_a', 'tooluse_a']"),
    "a result late": ([user(), assistant(use()), user(result()), assistant("x"), user(result())], "messages[4]: results for"),
    "one id twice": ([user(), assistant(use(), use()), user(result(), result())], "'tooluse_a' of a call is used twice"),
    "a result behind text": ([user(), assistant(use()), user("x", result())], "a result behind other content"),
    "an id of other letters": ([user(), assistant(use("a b")), user(result("a b"))], "toolUseId: 'a b'"),
    "an id too long": ([user(), assistant(use("a" * 65)), user(result("a" * 65))], "toolUseId"),
    "a name of other letters": ([user(), assistant(use(name="x.y")), user(result())], "toolUse.name: 'x.y'"),
    "input as text": ([user(), assistant({"toolUse": {"toolUseId": "a", "name": "f", "input": "{}"}}), user(result("a"))], "toolUse.input: expected"),
    "a call from the user": ([user(use())], "toolUse may not stand in a message of the user"),
    "an image from the assistant": ([user(), assistant(IMAGE), user()], "image may not stand in a message of the assistant"),
    "reasoning last": ([user(), assistant("x", reasoning()), user()], "the last block may not be reasoning"),
    "a cache point in a result": ([user(), assistant(use()), user(result("tooluse_a", POINT))], "cachePoint may not stand in a result"),
    "a cache point first": ([user(POINT, "x")], "a cache point with nothing before it"),
    "five cache points": ([user("x", *[POINT] * 5)], "5 cache points, the API takes 4"),
    "a failed result without content": ([user(), assistant(use()), user({"toolResult": {"toolUseId": "tooluse_a", "content": [], "status": "error"}})], "empty, though the result is an error"),
    "an unknown status": ([user(), assistant(use()), user(result(status="late"))], "status: 'late'"),
    "JSON that is no object": ([user(), assistant(use()), user(result("tooluse_a", {"json": [1]}))], "json: expected an object"),
    "a BMP": ([user({"image": {"format": "bmp", "source": {"bytes": PNG}}})], "image.format: 'bmp'"),
    "an image without format": ([user({"image": {"source": {"bytes": PNG}}})], "image.format: missing"),
    "an image by its address": ([user({"image": {"format": "png", "source": {"url": "https://e.org"}}})], "image.source: must have one of"),
    "an image too large": ([user({"image": {"format": "png", "source": {"bytes": "A" * 5_300_000}}})], "image.source.bytes: more than"),
    "21 images": ([user(*[IMAGE] * 21)], "messages[0]: 21 images, the API takes 20"),
    "six documents": ([user("x", *({"document": {**DOCUMENT["document"], "name": str(n)}} for n in range(6)))], "6 documents, the API takes 5"),
    "two documents of one name": ([user("x", DOCUMENT, DOCUMENT)], "two documents are called 'Plan (1)'"),
    "a document without text": ([user(DOCUMENT)], "a document without a text beside it"),
    "a document with a dot in its name": ([user("x", {"document": {**DOCUMENT["document"], "name": "a.pdf"}})], "document.name: 'a.pdf'"),
    "half a character": ([user("\ud800")], "lone surrogate"),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "words"), ILLEGAL.values(), ids=ILLEGAL)
def test_each_rule_names_its_place(request_, words):
    assert words in "; ".join(Bedrock().problems(request_))
    with pytest.raises(FormatError):
        validate(request_, "bedrock")


# -- a memory


def test_a_memory_keeps_a_run_with_bedrock():
    with AgentMemory.open(":memory:", budget=100_000, format="bedrock") as memory:
        request = {
            "system": [{"text": "Be brief."}],
            "messages": [*NAMED["images"][:1], assistant("Cats."), user("Sure?")],
        }
        memory.record_messages(keywords("bedrock", copy.deepcopy(request)))
        assert memory.to_messages() == request["messages"]
        sent = memory.to_request()
        assert sent["messages"][0]["content"][1]["image"]["source"]["bytes"] == base64.b64decode(PNG)
        assert sent["system"] == [{"text": "Be brief."}]
        memory.record_messages([*memory.to_messages(), assistant("Yes."), user("Bye.")])
        assert memory.to_messages()[-2:] == [assistant("Yes."), user("Bye.")]


def test_a_run_with_bedrock_can_go_on_with_others():
    rows = [*NAMED["results in JSON"], assistant("It is 21.5."), *NAMED["citations"]]
    messages = items_to_messages(parse(*rows))
    for name in ("openai", "anthropic", "openai-responses", "langchain", "gemini"):
        form = format_named(name)
        request = form.render(messages)
        assert form.problems(request) == ()
        assert "temperature" in json.dumps(request)
        assert "It rained." in json.dumps(request)
    assert isinstance(items_to_messages([*parse(user()), Observation("x")][:1])[0], Message)
