import subprocess
import sys

import pytest
from formats_corpus_anthropic import NAMED as ANTHROPIC
from formats_corpus_openai import NAMED as OPENAI

from pagein import AgentMemory
from pagein.errors import ConfigurationError, FormatError
from pagein.formats import format_named, guess_format, validate
from pagein.formats.anthropic.wire import Anthropic
from pagein.formats.openai_chat.wire import OpenAIChat


def test_the_formats_have_the_names_they_are_found_by():
    assert format_named("openai") == OpenAIChat()
    assert format_named("anthropic") == Anthropic()
    for name in ("openai", "openai-responses", "anthropic", "gemini", "bedrock", "langchain"):
        assert format_named(name).name == name


@pytest.mark.parametrize("name", ["", "OpenAI", "cohere"])
def test_an_unknown_format_names_the_known_ones(name):
    with pytest.raises(ConfigurationError, match=r"use 'openai', 'anthropic', .* 'gemini', 'bedrock' or 'langchain'"):
        format_named(name)
    with pytest.raises(ConfigurationError):
        validate([], format=name)


PLAIN = {
    "a question",
    "a question in one block",
    "two of one role in a row",  # its calls are told by other examples
    "every script",
}


@pytest.mark.parametrize("name", OPENAI)
def test_openai_is_told_by_its_shape(name):
    assert guess_format(OPENAI[name]) == guess_format({"messages": OPENAI[name]}) == "openai"


@pytest.mark.parametrize("name", [name for name in ANTHROPIC if name not in PLAIN])
def test_anthropic_is_told_by_its_shape(name):
    assert guess_format(ANTHROPIC[name]) == "anthropic"


RESPONSES = {
    "a call and its output": [
        {"role": "user", "content": "Go."},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "seen"},
    ],
    "reasoning": [{"type": "reasoning", "id": "r", "summary": [], "content": []}],
    "parts": [{"role": "user", "content": [{"type": "input_text", "text": "Go."}]}],
}


@pytest.mark.parametrize("name", RESPONSES)
def test_items_of_the_responses_api_are_told_by_their_shape(name):
    assert guess_format(RESPONSES[name]) == guess_format({"input": RESPONSES[name]}) == "openai-responses"


def test_a_request_with_an_input_is_one_to_the_responses_api():
    assert guess_format({"input": "Go."}) == "openai-responses"
    with pytest.raises(FormatError, match="expected text or a list"):
        guess_format({"input": 3})


def test_a_whole_request_to_the_responses_api_is_recorded_and_recorded_once():
    with AgentMemory.open(":memory:", budget=8_000, format="openai-responses") as memory:
        request = {"model": "any", "instructions": "Be brief.", "input": RESPONSES["a call and its output"]}
        assert memory.record_messages(request).last == 4
        assert memory.record_messages(request).last == 4
        assert memory.system_prompt == "Be brief."
        sent_request = memory.to_request()
        answer = {"role": "assistant", "content": "Done.", "type": "message"}
        assert memory.record_messages({**sent_request, "input": [*sent_request["input"], answer]}).last == 5
        assert memory.record_messages({"input": "And now?"}, whole=False).last == 6


def test_what_both_spell_alike_is_read_as_openai():
    assert guess_format([]) == "openai"
    assert guess_format([{"role": "user", "content": "Hi"}, 3, {"content": [3, {"type": 4}]}, {"role": []}]) == "openai"


def test_the_shape_that_more_of_it_has_wins():
    """Gateways mix the two: OpenAI's messages with a block of Anthropic's inside."""
    mixed = [
        {"role": "assistant", "content": [{"type": "thinking"}], "tool_calls": []},
        {"role": "tool", "content": [{"type": "image"}]},
    ]
    assert guess_format(mixed) == "openai"
    assert guess_format([*mixed, {"role": "assistant", "content": "x", "stop_reason": None}]) == "anthropic"
    assert guess_format([{"role": "user", "content": [{"type": "file"}, {"type": "document"}]}]) == "openai"
    assert guess_format({"system": "x", "messages": []}) == "anthropic"


@pytest.mark.parametrize("garbage", [None, 3, "text", b"bytes", {}, {"messages": 3}, {"content": "x"}])
def test_what_is_no_transcript_is_not_guessed(garbage):
    with pytest.raises(FormatError):
        guess_format(garbage)


def test_importing_the_formats_does_nothing_and_needs_no_sdk():
    code = "import sys, pagein.formats; print(sorted({'openai', 'anthropic', 'pydantic', 'hypothesis', 'pytest'} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (process.stdout, process.stderr) == ("[]\n", "")


class Dumps:
    """An SDK's object, as far as anyone looks at it."""

    def model_dump(self, exclude_none):
        return {"role": "assistant", "content": "Hello."}


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@pytest.mark.parametrize("one", [{"role": "user", "content": "Hi."}, Dumps()], ids=["mapping", "SDK object"])
def test_a_message_by_itself_is_a_list_of_one(name, one):
    """record_messages is said to take a single message, and once refused each that was no list."""
    assert format_named(name).parse(one) == format_named(name).parse([one]) != ()
    assert guess_format(one) == guess_format([one])
