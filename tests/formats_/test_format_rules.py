"""Each rule of each provider: one request that breaks it and nothing else, so that no rule could be left out."""

import ast
import base64
import inspect
import sys

import pytest
from formats_corpus_anthropic import DOCUMENT, FOUND, IMAGE, MARK, REDACTED, thinking, use
from formats_corpus_anthropic import TRANSCRIPTS as ANTHROPIC
from formats_corpus_anthropic import assistant as model_turn
from formats_corpus_anthropic import canonical as canonical_anthropic
from formats_corpus_anthropic import result as res
from formats_corpus_anthropic import text as block
from formats_corpus_anthropic import user as user_turn
from formats_corpus_openai import TRANSCRIPTS as OPENAI
from formats_corpus_openai import assistant, call, system, text, tool, user

from pagein.errors import FormatError, Illegal
from pagein.formats import validate
from pagein.formats.anthropic import rules as anthropic_rules
from pagein.formats.openai_chat import rules as openai_rules
from pagein.testing.counters import png


def image(url="https://e.org/a.png", **more):
    return {"type": "image_url", "image_url": {"url": url, **more}}


def png_block(width, height):
    data = base64.b64encode(png(width, height)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def tool_call(*calls):
    """A user, an assistant with these calls, and an answer to each."""
    return [user(), assistant(tool_calls=list(calls)), *(tool(call["id"]) for call in calls if call.get("id"))]


OPENAI_ILLEGAL = {
    "no list": (7, "expected a list of messages"),
    "no messages field": ({"model": "m"}, "no messages"),
    "no message at all": ([], "there is none"),
    "a message that is no object": ([user(), "hi"], "messages[1]: expected an object"),
    "nothing but instructions": ([system()], "nothing but instructions"),
    "assistant first": ([assistant("Hi"), user()], "begins with assistant"),
    "assistant last": ([user(), assistant("Hi")], "ends with assistant"),
    "unknown role": ([user(), {"role": "narrator", "content": "x"}, user()], "messages[1].role: 'narrator'"),
    "unhashable role": ([user(), {"role": [], "content": "x"}, user()], "messages[1].role"),
    "call without answer": ([user(), assistant(tool_calls=[call("a")]), user()], "messages[1]: call 'a' is not answered"),
    "one of two calls without answer": ([user(), assistant(tool_calls=[call("a"), call("b")]), tool("b"), user()], "call 'a' is not answered"),
    "call without answer at the end": ([*tool_call(call("a")), assistant(tool_calls=[call("b"), call("c")]), tool("c")], "messages[3]: call 'b'"),
    "answer without call": ([user(), tool("a")], "messages[1]: an answer to 'a'"),
    "second answer": ([*tool_call(call("a")), tool("a")], "messages[3]: a second answer"),
    "answer without id": ([*tool_call(call("a")), {"role": "tool", "content": "x"}], "messages[3].tool_call_id"),
    "answer with an empty id": ([*tool_call(call("a")), tool("")], "messages[3].tool_call_id"),
    "empty id": (tool_call(call("a"), call("")), "messages[1].tool_calls[1].id: expected 1 to 40 characters"),
    "an id too long": (tool_call(call("a" * 41)), "messages[1].tool_calls[0].id: expected 1 to 40 characters"),
    "too many calls": (tool_call(*(call(f"c{n}") for n in range(129))), "messages[1].tool_calls: 129 calls, the API takes 128"),
    "one id twice in a message": ([user(), assistant(tool_calls=[call("a"), call("a")]), tool("a")], "tool_calls[1].id: 'a' is used twice"),
    "one id twice in a request": ([*tool_call(call("a")), assistant(tool_calls=[call("a")]), user()], "messages[3].tool_calls[0].id: 'a' is used twice"),
    "arguments as an object": (tool_call(call("a", arguments={})), "function.arguments: expected text, not dict"),
    "no function": (tool_call({"id": "a", "type": "function"}), "tool_calls[0].function: missing"),
    "no type": (tool_call({"id": "a", "function": {"name": "n", "arguments": ""}}), "tool_calls[0].type: missing"),
    "empty name": (tool_call(call("a", name="")), "function.name"),
    "a name with a dot": (tool_call(call("a", name="files.read")), "function.name"),
    "a name too long": (tool_call(call("a", name="n" * 65)), "function.name"),
    "custom without input": (tool_call({"id": "a", "type": "custom", "custom": {"name": "n"}}), "custom.input"),
    "tool_calls that are no list": ([user(), assistant("x", tool_calls={"a": 1}), user()], "tool_calls: must be a list"),
    "answer with an id of a wrong type": ([*tool_call(call("a")), tool(["a"])], "messages[3].tool_call_id"),
    "call that is no object": ([user(), assistant(tool_calls=["a"]), user()], "tool_calls[0]: expected an object, not str"),
    "no call in tool_calls": ([user(), assistant("x", tool_calls=[]), user()], "tool_calls: must be a list"),
    "tool_calls of null": ([user(), assistant("x", tool_calls=None), user()], "tool_calls: must be a list"),
    "assistant says nothing": ([user(), assistant(None), user()], "neither speaks"),
    "assistant says the empty string": ([user(), assistant(""), user()], "neither speaks"),
    "user without content": ([user(None)], "messages[0].content: there is none"),
    "content of a wrong type": ([user(3)], "messages[0].content: expected text or a list, not int"),
    "empty list": ([user([])], "messages[0].content: an empty list"),
    "empty text part": ([user([text("")])], "content[0].text: missing or empty"),
    "empty refusal part": ([user(), assistant([{"type": "refusal", "refusal": ""}]), user()], "content[0].refusal"),
    "part without type": ([user([{"text": "x"}])], "content[0]: not an object with a type"),
    "part that is no object": ([user(["x"])], "content[0]: not an object with a type"),
    "image from the assistant": ([user(), assistant([image()]), user()], "image_url may not stand in a assistant message"),
    "image in a result": ([*tool_call(call("a"))[:-1], tool("a", [image()])], "image_url may not stand in a tool message"),
    "file in instructions": ([system([{"type": "file", "file": {"file_id": "f"}}]), user()], "file may not stand in a system message"),
    "refusal from the user": ([user([{"type": "refusal", "refusal": "no"}])], "refusal may not stand in a user message"),
    "image as a string": ([user([{"type": "image_url", "image_url": "https://e.org/a.png"}])], "image_url: expected an object"),
    "image without url": ([user([{"type": "image_url", "image_url": {}}])], "image_url.url: missing"),
    "data URL that is no image": ([user([image("data:text/plain;base64,QQ==")])], "a data URL must be"),
    "a name with a space": ([user(name="Ann Lee")], "name: 'Ann Lee' is not 1 to 64"),
    "an empty name": ([user(name="")], "name: '' is not"),
    "image of another type": ([user([image("data:image/bmp;base64,QQ==")])], "'image/bmp' is none of image/png"),
    "unknown detail": ([user([image(detail="very")])], "detail: 'very'"),
    "lone surrogate": ([user("\ud800")], "lone surrogate"),
}  # fmt: skip

CALL = [user_turn(), model_turn(use("a"))]
ANTHROPIC_ILLEGAL = {
    "no list": (b"x", "expected a list of messages"),
    "no message at all": ({"messages": []}, "there is none"),
    "a message that is no object": ([3], "messages[0]: expected an object"),
    "role system": ([{"role": "system", "content": "x"}, user_turn()], "messages[0].role: system is no role here"),
    "unknown role": ([user_turn(), {"role": "tool", "content": "x"}], "messages[1].role: 'tool'"),
    "no content": ([{"role": "user"}], "messages[0].content: expected text or a list of blocks, not null"),
    "block without type": ([user_turn({"text": "x"})], "messages[0].content[0]: not an object with a type"),
    "two users in a row": ([user_turn(), user_turn()], "messages[1]: two user messages"),
    "two assistants in a row": ([user_turn(), model_turn(), model_turn(), user_turn()], "messages[2]: two assistant messages"),
    "assistant first": ([model_turn(), user_turn()], "begins with assistant"),
    "assistant last": ([user_turn(), model_turn()], "ends with assistant"),
    "empty content": ([{"role": "user", "content": []}], "messages[0].content: there is none"),
    "empty string": ([{"role": "user", "content": ""}], "content[0].text: empty"),
    "empty text": ([user_turn(block(""), block("x"))], "content[0].text: empty"),
    "white space": ([user_turn(block("\n ")) ], "content[0].text: empty"),
    "text of a wrong type": ([user_turn(block(3))], "content[0].text: expected text, not int"),
    "call without result": ([*CALL, user_turn()], "messages[2]: call 'a' has no result"),
    "call without result before the assistant": ([*CALL, model_turn(), user_turn()], "two assistant messages"),
    "call without result at the end": (CALL, "ends with assistant"),
    "one of two calls without result": ([user_turn(), model_turn(use("a"), use("b")), user_turn(res("b"))], "call 'a' has no result"),
    "result without call": ([user_turn(res("a"))], "a result for 'a', no call"),
    "result two messages later": ([*CALL, user_turn(res("a")), model_turn(), user_turn(res("a"))], "messages[4].content[0]: a result for 'a'"),
    "second result": ([*CALL, user_turn(res("a"), res("a"))], "content[1]: a second result"),
    "result behind text": ([*CALL, user_turn(block("x"), res("a"))], "content[1]: a result behind other content"),
    "id of other letters": ([user_turn(), model_turn(use("a"), use("b:1")), user_turn(res("a"))], "content[1].id: 'b:1'"),
    "empty id": ([user_turn(), model_turn(use("")), user_turn()], "content[0].id: ''"),
    "one id twice": ([*CALL, user_turn(res("a")), model_turn(use("a")), user_turn()], "messages[3].content[0].id: 'a' is used twice"),
    "name of other letters": ([user_turn(), model_turn(use("a", "x.y")), user_turn(res("a"))], "content[0].name: 'x.y'"),
    "input as text": ([user_turn(), model_turn(use("a", arguments="{}")), user_turn(res("a"))], "content[0].input: expected an object, not str"),
    "call from the user": ([user_turn(use("a"))], "tool_use may not stand in a message of the user"),
    "thinking from the user": ([user_turn(thinking())], "thinking may not stand in a message of the user"),
    "image from the assistant": ([user_turn(), model_turn(IMAGE), user_turn()], "image may not stand in a message of the assistant"),
    "result of the wrong kind": ([*CALL, user_turn(res("a", [use("b")]))], "content[0].content[0]: tool_use may not stand in a result"),
    "result content of a wrong type": ([*CALL, user_turn(res("a", 3))], "content[0].content: expected text or a list"),
    "result block without type": ([*CALL, user_turn(res("a", ["x"]))], "content[0].content[0]: not an object with a type"),
    "empty text in a result": ([*CALL, user_turn(res("a", [block("")]))], "content[0].content[0].text: empty"),
    "too many images": ([user_turn(*[IMAGE] * 101)], "messages: 101 images, the API takes 100"),
    "too large an image": ([user_turn(png_block(8_001, 10))], "messages: an image with a side of 8001 pixels"),
    "too large an image among many": ([user_turn(png_block(2_001, 10), *[IMAGE] * 20)], "messages: 21 images and a side of 2001 pixels"),
    "failed result without content": ([*CALL, user_turn(res("a", "", is_error=True))], "empty, though the result is an error"),
    "failed result with a picture": ([*CALL, user_turn(res("a", [IMAGE], is_error=True))], "image in a failed result"),
    "thinking without signature": ([user_turn(), model_turn({"type": "thinking", "thinking": "x"}, block("x")), user_turn()], "content[0].signature"),
    "thinking with an empty signature": ([user_turn(), model_turn(thinking(signature=""), block("x")), user_turn()], "content[0].signature"),
    "thinking without thought": ([user_turn(), model_turn({"type": "thinking", "signature": "x"}, block("x")), user_turn()], "content[0].thinking"),
    "redacted thinking without data": ([user_turn(), model_turn({"type": "redacted_thinking"}, block("x")), user_turn()], "content[0].data"),
    "thinking with a cache marker": ([user_turn(), model_turn({**thinking(), **MARK}, block("x")), user_turn()], "content[0].cache_control"),
    "thinking behind text": ([user_turn(), model_turn(block("x"), thinking(), use("a")), user_turn(res("a"))], "thinking must come before"),
    "thinking behind a call": ([user_turn(), model_turn(use("a"), REDACTED, block("x")), user_turn(res("a"))], "thinking must come before"),
    "thinking last": ([user_turn(), model_turn(block("x"), thinking()), user_turn()], "the last block may not be thinking"),
    "five markers": ([user_turn(*[block("x", **MARK)] * 5)], "5 cache_control markers"),
    "five markers, one on a tool": ({"tools": [{"name": "n", **MARK}], "messages": [user_turn(*[block("x", **MARK)] * 4)]}, "5 cache_control"),
    "five markers, one on the request": ({**MARK, "messages": [user_turn(*[block("x", **MARK)] * 4)]}, "5 cache_control"),
    "five markers, one inside a document": (
        [user_turn(*[block("x", **MARK)] * 4, {**DOCUMENT, "source": {"type": "content", "content": [block("y", **MARK)]}})],
        "5 cache_control",
    ),
    "system of a wrong type": ({"system": 3, "messages": [user_turn()]}, "system: expected text or a list of blocks"),
    "image in system": ({"system": [IMAGE], "messages": [user_turn()]}, "system[0]: only text"),
    "empty text in system": ({"system": [block(" ")], "messages": [user_turn()]}, "system[0].text: empty"),
    "image too large": ([user_turn({"type": "image", "source": {**IMAGE["source"], "data": "A" * (5 * 2**20 + 4)}})], "5,242,884 characters"),
    "image of another type": ([user_turn({"type": "image", "source": {**IMAGE["source"], "media_type": "image/bmp"}})], "'image/bmp' is none of"),
    "image that is no base64": ([user_turn({"type": "image", "source": {**IMAGE["source"], "data": "!"}})], "source.data: no base64"),
    "image over http": ([user_turn({"type": "image", "source": {"type": "url", "url": "http://e.org"}})], "only https"),
    "image without source": ([user_turn({"type": "image"})], "content[0].source: not an object"),
    "server result without call": ([user_turn(), model_turn(FOUND, block("x")), user_turn()], "which nothing before it called"),
    "lone surrogate": ([user_turn(block("\ud800"))], "messages: contains a lone surrogate"),
    "too many": ([user_turn(), model_turn()] * 50_000 + [user_turn()], "100001 of them"),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "words"), OPENAI_ILLEGAL.values(), ids=OPENAI_ILLEGAL)
def test_openai_breaks_one_rule(request_, words):
    problems = openai_rules.problems(request_)
    assert len(problems) == 1, problems
    assert words in problems[0]


@pytest.mark.parametrize(("request_", "words"), ANTHROPIC_ILLEGAL.values(), ids=ANTHROPIC_ILLEGAL)
def test_anthropic_breaks_one_rule(request_, words):
    problems = anthropic_rules.problems(request_)
    assert len(problems) == 1, problems
    assert words in problems[0]


@pytest.mark.parametrize("transcript", OPENAI)
def test_openai_transcripts_are_legal_as_they_came(transcript):
    assert openai_rules.problems(transcript) == openai_rules.problems(transcript["messages"]) == ()


@pytest.mark.parametrize("transcript", ANTHROPIC)
def test_anthropic_transcripts_are_legal_in_their_canonical_form(transcript):
    assert anthropic_rules.problems(canonical_anthropic(transcript)) == ()


def test_openai_answers_may_come_in_any_order_and_images_of_any_shape_we_know():
    rows = [
        user(
            [
                image("data:image/png;base64,QQ"),
                image(detail="high"),
                {"type": "image_url", "image_url": {"url": "gs://b/a.png"}},
            ]
        )
    ]
    rows += [assistant(tool_calls=[call("a"), call("b")]), tool("b"), tool("a")]
    assert openai_rules.problems(rows) == ()


def test_an_image_of_a_source_from_tomorrow_is_not_judged():
    assert anthropic_rules.problems([user_turn({"type": "image", "source": {"type": "drive", "id": "1"}})]) == ()


@pytest.mark.parametrize(
    ("rules", "table"),
    [(openai_rules, OPENAI_ILLEGAL), (anthropic_rules, ANTHROPIC_ILLEGAL)],
    ids=["openai", "anthropic"],
)
def test_every_rule_is_in_the_table(rules, table):
    """A rule that no illegal request reaches is not known to work."""
    tree = ast.parse(inspect.getsource(rules))
    yields = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.JoinedStr | ast.Constant)
    }
    reached = set()

    def trace(frame, event, _):
        if frame.f_code.co_filename != rules.__file__:
            return None
        reached.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for name, (request, _) in table.items():
            if name != "too many":
                rules.problems(request)
    finally:
        sys.settrace(before)
    missed = yields - reached
    if rules is anthropic_rules:  # 100,001 messages are tried untraced, above
        missed -= {
            line for line in missed if "the API takes {MAX_MESSAGES}" in inspect.getsource(rules).splitlines()[line - 1]
        }
    assert not missed


def test_a_request_may_break_several_rules_and_hears_of_each():
    with pytest.raises(Illegal) as caught:
        validate([assistant(None), tool("a"), assistant("")], format="openai")
    assert caught.value.format == "openai"
    assert len(caught.value.problems) == 5
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    assert isinstance(caught.value, FormatError)


def test_a_legal_request_passes_in_silence():
    assert validate(OPENAI[3]) is None
    assert validate(canonical_anthropic(ANTHROPIC[4]), "anthropic") is None
