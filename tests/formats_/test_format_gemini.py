import copy
import json

import pytest
from formats_corpus_gemini import IMAGE, NAMED, PNG, TRANSCRIPTS, call, model, response, user
from google.genai import types
from hypothesis import given

from pagein import AgentMemory
from pagein.errors import FormatError
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
from pagein.formats import format_named, guess_format, keywords, validate
from pagein.formats.gemini.wire import SKIP_SIGNATURE, Gemini
from pagein.testing.formats import FormatTests, every_feature, items_to_messages, legal_conversations

pytestmark = pytest.mark.slow


class TestGemini(FormatTests):
    cannot_carry = frozenset(
        {
            "arguments",
            "boundaries",
            "call id",
            "empty text",
            "foreign parts",
            "image as GIF",
            "image detail",
            "image in instructions",
            "image type",
            "lone surrogates",
            "tool name",
        }
    )

    @pytest.fixture
    def format(self):
        return Gemini()

    @pytest.fixture
    def transcripts(self):
        return TRANSCRIPTS


def parse(*rows, **more):
    return Gemini().parse({"contents": list(rows), **more})


def render(*messages):
    request = Gemini().render(messages)
    assert Gemini().problems(request) == ()
    return request["messages"]


ASK = Message("user", "Go.")


# -- the SDK's own types


def as_sdk(request):
    """The request as google-genai's types, whose unknown fields are an error; and back as JSON."""
    words = keywords("gemini", copy.deepcopy(request))
    contents = [types.Content.model_validate(content) for content in words["contents"]]
    config = types.GenerateContentConfig.model_validate(words.get("config", {}))
    return contents, config


def standard(value):
    """Base64 in the standard alphabet, as the SDK's JSON has the other one."""
    return json.loads(json.dumps(value).replace("-_-_", "+/+/"))


@pytest.mark.parametrize("request_", TRANSCRIPTS, ids=[*NAMED, "system", "two systems"])
def test_every_transcript_is_one_to_the_sdk(request_):
    contents, config = as_sdk(request_)
    dumped = [json.loads(content.model_dump_json(exclude_none=True, by_alias=True)) for content in contents]
    read = Gemini().render(items_to_messages(Gemini().parse(dumped)))["messages"]
    assert standard(json.loads(json.dumps(read).replace("-", "+"))) == standard(
        json.loads(json.dumps(request_["messages"]).replace("-", "+"))
    )
    assert bool(config.system_instruction) == ("systemInstruction" in request_)


@given(messages=legal_conversations())
def test_every_request_is_one_to_the_sdk(messages):
    as_sdk(Gemini().render(messages))


def test_every_feature_is_one_to_the_sdk():
    contents, _ = as_sdk(Gemini().render(every_feature()))
    blobs = [part.inline_data for content in contents for part in content.parts if part.inline_data]
    assert blobs[0].data == b"\x89PNG\r\n", "the SDK takes bytes and encodes them itself"


def test_keywords_have_bytes_where_the_sdk_has_them_and_nowhere_else():
    rows = [
        user(IMAGE),
        model(call(args={"data": "c2ln"}, thoughtSignature="c2ln")),
        user(response(value={"data": "c2ln"})),
    ]
    picture, action, answer = (content["parts"][0] for content in keywords("gemini", {"messages": rows})["contents"])
    assert picture["inlineData"]["data"].startswith(b"\x89PNG")
    assert action["thoughtSignature"] == b"sig"
    assert action["functionCall"]["args"] == answer["functionResponse"]["response"] == {"data": "c2ln"}


def test_the_sdks_objects_are_read_as_they_are():
    content = types.Content(
        role="model",
        parts=[
            types.Part(text="hm", thought=True),
            types.Part(function_call=types.FunctionCall(name="look", args={"some_key": 1}), thought_signature=b"sig"),
        ],
    )
    picture = types.Content(role="user", parts=[types.Part.from_bytes(data=b"\x89PNG\r\n", mime_type="image/png")])
    task, action = Gemini().parse([picture, content])
    assert task == TaskStep((Image(b"\x89PNG\r\n", "image/png"),))
    assert action.tool_calls[0].arguments == '{"some_key":1}'
    assert json.loads(action.tool_calls[0].extra.body)["thoughtSignature"] == "c2ln"
    whole = types.GenerateContentResponse(
        candidates=[types.Candidate(content=content)],
        model_version="gemini-3-pro",
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=100, candidates_token_count=5, thoughts_token_count=7, cached_content_token_count=20
        ),
    )
    (step,) = Gemini().parse(whole)
    assert (step.usage, step.model) == (Usage(100, 12, 20), "gemini-3-pro")
    assert step.tool_calls == action.tool_calls
    with AgentMemory.open(":memory:", budget=8_000, format="gemini") as memory:
        memory.record_messages(picture)
        memory.record_messages(whole)
        assert memory.steps[1].usage == Usage(100, 12, 20)
        assert len(memory.steps) == 2


def test_a_tool_is_a_declaration_of_the_sdk():
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        tools = [{"function_declarations": memory.tools("gemini")}]
    config = types.GenerateContentConfig.model_validate({"tools": tools})
    assert {declaration.name for declaration in config.tools[0].function_declarations} >= {"recall", "expand"}


# -- reading


def test_a_request_is_read_in_every_spelling():
    rows = [user("Hi")]
    expected = (TaskStep("Hi"),)
    system = SystemPromptStep((Text("Be brief."),))
    for request in (rows, rows[0], "Hi", ["Hi"], {"contents": "Hi"}, {"contents": rows[0]}, {"messages": rows}):
        assert Gemini().parse(request) == expected
    for key, value in (("systemInstruction", "Be brief."), ("system_instruction", {"text": "Be brief."})):
        assert Gemini().parse({"contents": rows, key: value}) == (system, *expected)
        assert Gemini().parse({"contents": rows, "config": {key: [value]}}) == (system, *expected)
    snake = {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": b"x"}, "text": None}]}
    assert Gemini().parse([snake]) == (TaskStep((Image(b"x", "image/png"),)),)


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"model": "m"}, "contents"),
        ({"contents": None}, "contents"),
        ([user({"inlineData": {"data": PNG}})], "inlineData.mimeType"),
        ([{"role": "narrator", "parts": []}], "role"),
        ([model({"functionCall": {"name": "f", "args": "{}"}})], "args"),
        ([user({"functionResponse": {"name": "f", "response": "x"}})], "response"),
        ({"contents": [user()], "systemInstruction": 3}, "systemInstruction"),
        ([3], "contents[0]"),
        ([{}], "contents[0].parts"),
        ([{"role": "user"}], "contents[0].parts"),
        ([{"role": "user", "content": "Hi"}], "contents[0].parts"),
        ([{"role": "model", "content": "Hi"}], "contents[0].parts"),
    ],
)
def test_a_fault_has_a_path(request_, path):
    with pytest.raises(FormatError) as caught:
        Gemini().parse(request_)
    assert path in str(caught.value)


def test_results_without_ids_answer_by_name_and_order():
    rows = [user(), model(call("a"), call("b"), call("a")), user(response("b"), response("a"), response("a"))]
    items = Gemini().parse(rows)
    assert [item.index for item in items if isinstance(item, Observation)] == [1, 0, 2]
    apart = Gemini().parse([*rows[:2], *(user(part) for part in rows[2]["parts"])])  # each in a content of its own
    assert apart == items
    assert render(*items_to_messages(items))[2] == user(response("a"), response("b"), response("a"))


def test_it_is_told_by_its_shape():
    for rows in NAMED.values():
        assert guess_format(rows) == guess_format({"contents": rows}) == "gemini"


# -- writing


def test_a_result_has_the_name_and_id_of_its_call():
    calls = (ToolCall("call_1", "7.read me"), ToolCall("x" * 80, "-go"))
    rows = render(ASK, Message("assistant", None, calls), *(Message("tool", "ok", call_id=each.id) for each in calls))
    functions = [part["functionCall"] for part in rows[1]["parts"]]
    answers = [part["functionResponse"] for part in rows[2]["parts"]]
    assert [function["name"] for function in functions] == ["_7_read_me", "_-go"]
    assert [(each["id"], each["name"]) for each in functions] == [(each["id"], each["name"]) for each in answers]


def test_a_tools_image_stands_behind_the_results_and_returns_to_its_own():
    image = Image(b"\x89PNG\r\n", "image/png")
    calls = (ToolCall("a", "f"), ToolCall("b", "f"))
    messages = (
        ASK,
        Message("assistant", None, calls),
        Message("tool", (Text("Here."), image), call_id="a"),
        Message("tool", "ok", call_id="b"),
        Message("user", (Text("And?"),)),
    )
    rows = render(*messages)
    assert [next(iter(part)) for part in rows[2]["parts"]] == [
        "functionResponse",
        "functionResponse",
        "text",
        "inlineData",
        "text",
    ]
    assert items_to_messages(Gemini().parse(rows)) == messages


def test_a_run_of_another_model_can_skip_the_check_of_signatures():
    calls = (ToolCall("a", "f"), ToolCall("b", "f"))
    results = tuple(Message("tool", "ok", call_id=each.id) for each in calls)
    rows = Gemini(skip_signatures=True).render((ASK, Message("assistant", "I look.", calls), *results))["messages"]
    assert [part.get("thoughtSignature") for part in rows[1]["parts"]] == [None, SKIP_SIGNATURE, None]
    assert "thoughtSignature" not in json.dumps(render(ASK, Message("assistant", None, calls), *results))


def test_a_signature_goes_only_to_gemini():
    (step,) = parse(model({"text": "secret", "thought": True}, call(thoughtSignature="c2ln"), "Hi"))
    messages = (ASK, *items_to_messages([step, Observation("", "ok", index=0)]))
    for name in ("openai", "anthropic", "bedrock"):
        text = json.dumps(format_named(name).render(messages))
        assert "secret" not in text
        assert "c2ln" not in text
        assert "Hi" in text


def test_images_that_gemini_refuses_are_named():
    for image in (Image(b"GIF89a", "image/gif"), Image(url="http://e.org/a.png"), Image(b"x")):
        assert "[image " in render(Message("user", (image,)))[0]["parts"][0]["text"]


# -- rules

PAIR = [user(), model(call()), user(response())]
ILLEGAL = {
    "no contents": ({"model": "m"}, "no contents"),
    "nothing": ([], "contents: there is none"),
    "a content that is no object": ([3], "contents[0]: expected an object"),
    "unknown role": ([user(), {"role": "system", "parts": [{"text": "x"}]}, user()], "contents[1].role: 'system'"),
    "no parts": ([user(), {"role": "model", "parts": []}, user()], "contents[1].parts: must be"),
    "a part that is no object": ([{"role": "user", "parts": ["x"]}], "contents[0].parts[0]: expected"),
    "an empty part": ([user({})], "contents[0].parts[0]: 0 of the fields"),
    "two fields of data": ([user({"text": "x", **IMAGE})], "contents[0].parts[0]: 2 of the fields"),
    "an empty text": ([user("")], "contents[0].parts[0].text: empty"),
    "a text that is none": ([user({"text": 3})], "contents[0].parts[0].text: expected text"),
    "an empty instruction": ({"contents": [user()], "systemInstruction": {"parts": [{"text": ""}]}}, "systemInstruction.parts[0]: only"),
    "two of one role": ([user(), user()], "contents[1]: two user contents in a row"),
    "model first": ([model("Hi"), user()], "begins with model"),
    "model last": ([user(), model("Hi")], "ends with model"),
    "too few responses": ([user(), model(call(), call()), user(response())], "contents[2]: 1 function responses to 2"),
    "too many responses": ([user(), model(call()), user(response(), response())], "contents[2]: 2 function responses to 1"),
    "no response": ([user(), model(call()), user("x")], "contents[2]: 0 function responses to 1"),
    "a response without a call": ([user(response())], "contents[0]: 1 function responses to 0"),
    "a response late": ([*PAIR, model("x"), user(response())], "contents[4]: 1 function responses to 0"),
    "responses out of order": ([user(), model(call("a"), call("b")), user(response("b"), response("a"))], "response 0 is to 'b'"),
    "another id": ([user(), model(call(call_id="a")), user(response(call_id="b"))], "response 0 has the id 'b'"),
    "one id twice": ([user(), model(call(call_id="a")), user(response(call_id="a")), model(call(call_id="a")), user(response(call_id="a"))], "'a' of a call is used twice"),
    "a response behind text": ([user(), model(call()), user("x", response())], "a function response behind other parts"),
    "a name with a space": ([user(), model(call("a b")), user(response("a b"))], "functionCall.name: 'a b'"),
    "a name that begins with a digit": ([user(), model(call("7a")), user(response("7a"))], "functionCall.name: '7a'"),
    "a name too long": ([user(), model(call("a" * 65)), user(response("a" * 65))], "functionCall.name"),
    "arguments as text": ([user(), model({"functionCall": {"name": "f", "args": "{}"}}), user(response("f"))], "args: expected an object"),
    "a response as text": ([user(), model(call()), user({"functionResponse": {"name": "look", "response": "x"}})], "response: expected an object"),
    "a call from the user": ([user(call())], "functionCall: may not stand"),
    "a response from the model": ([user(), model(response()), user()], "functionResponse: may not stand"),
    "a GIF": ([user({"inlineData": {"mimeType": "image/gif", "data": PNG}})], "inlineData.mimeType: 'image/gif'"),
    "no base64": ([user({"inlineData": {"mimeType": "image/png", "data": "ü"}})], "inlineData.data: no base64"),
    "no type": ([user({"inlineData": {"data": PNG}})], "inlineData.mimeType: missing"),
    "a file without address": ([user({"fileData": {"mimeType": "image/png"}})], "fileData.fileUri: missing"),
    "half a character": ([user("\ud800")], "lone surrogate"),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "words"), ILLEGAL.values(), ids=ILLEGAL)
def test_each_rule_names_its_place(request_, words):
    assert words in "; ".join(Gemini().problems(request_))
    with pytest.raises(FormatError):
        validate(request_, "gemini")


@pytest.mark.parametrize("name", NAMED)
def test_transcripts_break_no_rule(name):
    assert Gemini().problems({"contents": NAMED[name]}) == ()


# -- a memory


def test_a_memory_keeps_a_run_with_gemini():
    with AgentMemory.open(":memory:", budget=8_000, format="gemini") as memory:
        memory.record_messages({"contents": NAMED["thoughts and signatures"], "systemInstruction": "Be brief."})
        request = memory.to_request()
        assert request["config"]["system_instruction"] == {"parts": [{"text": "Be brief."}]}
        assert memory.to_messages() == NAMED["thoughts and signatures"]
        answer = model("Gladly.")
        memory.record_messages([*memory.to_messages(), answer, user("Bye.")])
        assert memory.to_messages()[-2:] == [answer, user("Bye.")]


def test_a_run_with_gemini_can_go_on_with_others():
    items = parse(*NAMED["results that are objects"], model("It is 21.5."), user("And now?"))
    messages = items_to_messages(items)
    for name in ("openai", "anthropic", "openai-responses", "langchain", "bedrock"):
        form = format_named(name)
        request = form.render(messages)
        assert form.problems(request) == ()
        assert "21.5" in json.dumps(request)


def test_an_opaque_part_of_another_is_not_sent():
    other = Opaque("openai", "item", '{"type":"item"}')
    assert render(Message("user", (other, Text("x")))) == [user("x")]
    assert render(Message("user", (other,))) == [user("(no content)")]
    assert isinstance(parse(model("x"))[0], ActionStep)
