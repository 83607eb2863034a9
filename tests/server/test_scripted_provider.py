"""The scripted provider is right about what the real SDKs send, so that tests of the proxy may lean on it."""

from contextlib import contextmanager

import anthropic
import httpx2
import openai
import pytest
from google import genai

from benchmarks.faulty_provider import Fault, FaultyProvider
from pagein.testing.provider import Answer, Call, ScriptedProvider, ToolLoop, serve_app
from tests._support.schema_provider import SchemaProvider

pytestmark = pytest.mark.slow

TOOL = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object", "properties": {}}}
USER = [{"role": "user", "content": "Read a.txt."}]


def script(question):
    return Answer("I read it.", (Call("read", {"path": "a.txt"}), Call("read", {"path": "ü.txt"})), "Let me think.")


@pytest.fixture
def clients():
    provider = ScriptedProvider(script)
    with serve_app(provider) as url, sdk_clients(url) as (claude, gpt):
        yield provider, claude, gpt


@contextmanager
def sdk_clients(url):
    with (
        anthropic.Anthropic(base_url=url, api_key="sk-a", max_retries=0) as claude,
        openai.OpenAI(base_url=f"{url}/v1", api_key="sk-o", max_retries=0) as gpt,
    ):
        yield claude, gpt


def test_the_sdks_read_whole_and_streamed_answers_alike(clients):
    _, claude, gpt = clients
    ask = {"model": "claude-x", "max_tokens": 100, "messages": USER, "tools": [TOOL]}
    whole = claude.messages.create(**ask)
    with claude.messages.stream(**ask) as stream:
        streamed = stream.get_final_message()
    assert [block.type for block in whole.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block.input for block in streamed.content[2:]] == [{"path": "a.txt"}, {"path": "ü.txt"}]
    assert streamed.stop_reason == whole.stop_reason == "tool_use"

    completion = gpt.chat.completions.create(model="gpt-x", messages=USER)
    chunks = list(gpt.chat.completions.create(model="gpt-x", messages=USER, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert completion.choices[0].message.content == text == "I read it."
    assert completion.choices[0].message.tool_calls[1].function.arguments == '{"path": "\\u00fc.txt"}'

    response = gpt.responses.create(model="gpt-x", input="Read a.txt.")
    with gpt.responses.stream(model="gpt-x", input="Read a.txt.") as stream:
        final = stream.get_final_response()
    assert [item.type for item in response.output] == [item.type for item in final.output]
    assert final.output_text == "I read it."


def test_googles_sdk_reads_whole_and_streamed_answers_alike():
    with (
        serve_app(ScriptedProvider(script)) as url,
        genai.Client(api_key="x", http_options={"base_url": url}) as client,
    ):
        ask = {"model": "gemini-3-pro-preview", "contents": "Read a.txt."}
        whole = client.models.generate_content(**ask)
        chunks = list(client.models.generate_content_stream(**ask))
    assert whole.text == "".join(chunk.text or "" for chunk in chunks) == "I read it."
    assert [call.args for call in whole.function_calls] == [{"path": "a.txt"}, {"path": "ü.txt"}]
    assert [call.args for chunk in chunks for call in chunk.function_calls or ()] == [
        {"path": "a.txt"},
        {"path": "ü.txt"},
    ]
    assert whole.usage_metadata.prompt_token_count == chunks[-1].usage_metadata.prompt_token_count > 0


def test_a_window_is_enforced_and_faults_come_where_they_are_asked_for():
    faults = {0: Fault("rate-limit"), 1: Fault("overloaded"), 2: Fault("bad-json"), 3: Fault("cut")}
    provider = FaultyProvider(script, window=200, faults=faults)
    with serve_app(provider) as url, sdk_clients(url) as (claude, gpt):
        ask = {"model": "claude-x", "max_tokens": 100, "messages": USER}
        with pytest.raises(anthropic.RateLimitError) as limited:
            claude.messages.create(**ask)
        assert limited.value.response.headers["retry-after"] == "7"
        with pytest.raises(anthropic.APIStatusError) as busy:
            claude.messages.create(**ask)
        assert busy.value.status_code == 529
        with pytest.raises((anthropic.APIError, ValueError)):
            claude.messages.create(**ask)
        with pytest.raises(Exception, match=r"(?i)(peer|incomplete|closed)"), claude.messages.stream(**ask) as stream:
            stream.get_final_message()
        long = [{"role": "user", "content": "word " * 400}]
        with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 200 maximum"):
            claude.messages.create(**{**ask, "messages": long})
        assert provider.over == 1
        orphan = [{"role": "tool", "tool_call_id": "x", "content": "?"}]
        with pytest.raises(openai.BadRequestError):
            gpt.chat.completions.create(model="gpt-x", messages=orphan)
        assert len(provider.illegal) == 1


def test_the_cache_reads_what_a_marker_ended_and_prices_it():
    provider = ScriptedProvider(ToolLoop(0))
    with serve_app(provider) as url, sdk_clients(url) as (claude, gpt):
        long = {"type": "text", "text": "word " * 3_000, "cache_control": {"type": "ephemeral"}}
        turns = [{"role": "user", "content": [long]}]
        for _ in range(2):
            claude.messages.create(model="claude-x", max_tokens=9, messages=turns)
            turns += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And?"}]
        first, second = (request.reading for request in provider.received)
        assert first.cached == 0
        assert first.written > 3_000
        assert second.cached == first.written
        assert second.price < 0.5 * first.price
        for _ in range(2):
            said = gpt.chat.completions.create(model="gpt-x", messages=[{"role": "user", "content": "word " * 3_000}])
        assert said.usage.prompt_tokens_details.cached_tokens > 3_000


def test_calls_need_not_fit_the_schema_and_the_answer_behind_them_must():
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"], "additionalProperties": False}  # fmt: skip
    form = {"type": "json_schema", "json_schema": {"name": "r", "strict": True, "schema": schema}}
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    with serve_app(SchemaProvider(ToolLoop(1, end="three"))) as url, httpx2.Client(base_url=url) as client:
        body = {
            "model": "m",
            "messages": [{"role": "user", "content": "Count."}],
            "tools": tools,
            "response_format": form,
        }
        statuses = [client.post("/v1/chat/completions", json=body).status_code for _ in range(2)]
    assert statuses == [200, 500]
