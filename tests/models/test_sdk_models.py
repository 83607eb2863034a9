"""The two SDKs against a server that fails as real ones do, over real HTTP, in both colours, whole and streamed."""

import asyncio
import gc
import threading
import time
import traceback
from itertools import product

import pytest

from pagein.errors import Illegal
from pagein.events.messages import Message
from pagein.events.steps import ToolCall, Usage
from pagein.models import (
    ModelEmpty,
    ModelOverflow,
    ModelRefused,
    ModelRequest,
    ModelTruncated,
    ModelUnavailable,
    RetryingModel,
    RetryPolicy,
)
from pagein.models.anthropic import AnthropicModel
from pagein.models.openai_chat import OpenAIModel
from pagein.testing.models import SECRET, call_failing_model, call_model
from tests._support.faulty_server import ECHO, Reaction, failure

pytestmark = pytest.mark.slow

ASK = ModelRequest.from_text("Summarise.", system="You write summaries.", max_tokens=50, timeout=10)
COLOURS = ("write", "awrite")


@pytest.fixture(params=["openai", "anthropic"])
def maker(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["whole", "stream"])
def stream(request):
    return request.param


@pytest.fixture
def build(maker, stream, start_server):
    """A model on a server that reacts so; the server is beside it."""

    def build_model(*reactions, **options):
        server = start_server(*reactions)
        kind = OpenAIModel if maker == "openai" else AnthropicModel
        base_url = getattr(server, maker)
        return kind("fake", base_url=base_url, key_variable="TEST_MODEL_KEY", stream=stream, **options), server

    return build_model


def test_the_request_is_what_was_asked(build, maker):
    for colour in COLOURS:
        model, server = build(options={"temperature": 0})
        call_model(model, colour, ASK)
        (request,) = server.heard
        assert request.path == ("/v1/chat/completions" if maker == "openai" else "/v1/messages")
        assert (request.body["model"], request.body["max_tokens"], request.body["temperature"]) == ("fake", 50, 0)
        assert "tools" not in request.body
        # Anthropic's SDK called it x-api-key before its second release.
        assert SECRET in request.headers.get("authorization", request.headers.get("x-api-key", ""))


def test_usage_and_the_end_are_reported(build, maker):
    longest = "length" if maker == "openai" else "max_tokens"
    for colour in COLOURS:
        model, _ = build(Reaction("x", usage=(123, 45)), Reaction("x", usage=None), Reaction("x", finish=longest))
        assert call_model(model, colour, ASK).usage == Usage(123, 45)
        assert call_model(model, colour, ASK).usage is None
        assert call_model(model, colour, ASK).finish == "length"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_heal(build, status):
    for colour in COLOURS:
        model, server = build(failure(status, "overloaded", retry_after="7"))
        error = call_failing_model(model, colour, ASK)
        assert isinstance(error, ModelUnavailable)
        assert (error.status, error.retry_after, error.unknown_cost) == (status, 7.0, False)
        assert len(server.heard) == 1, "the SDK sent it again by itself"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
def test_what_cannot_heal(build, status):
    for colour in COLOURS:
        model, _ = build(failure(status, "no such thing"))
        error = call_failing_model(model, colour, ASK)
        assert isinstance(error, ModelRefused)
        assert error.status == status
        assert "no such thing" in str(error)


def test_a_quota_that_is_used_up_is_not_waited_for(build):
    model, _ = build(failure(429, "You exceeded your current quota", code="insufficient_quota"))
    assert isinstance(call_failing_model(model, "write", ASK), ModelRefused)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2.5"}, 2.5),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "Wed, 21 Oct 2037 07:28:30 GMT", "Date": "Wed, 21 Oct 2037 07:28:00 GMT"}, 30.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({}, None),
    ],
    ids=["seconds", "milliseconds", "a date", "words", "negative", "nothing"],
)
def test_retry_after_is_read_in_each_of_its_spellings(build, headers, seconds):
    class Dated(dict):
        """The server sends its own date; this one comes after it and is read instead."""

    model, _ = build(Reaction(status=429, body={"error": {"message": "slow down"}}, headers=Dated(headers)))
    retry_after = call_failing_model(model, "write", ASK).retry_after
    if "Date" in headers:
        assert retry_after is not None
        assert retry_after > 25
    else:
        assert retry_after == seconds


def test_the_wait_may_stand_in_the_words(build):
    model, _ = build(failure(429, "Rate limit reached. Please try again in 1m7.66s. Visit ..."))
    assert call_failing_model(model, "write", ASK).retry_after == pytest.approx(67.66)


def test_an_answer_that_is_cut_is_no_answer(build, stream):
    for colour in COLOURS:
        model, _ = build(Reaction("word " * 2_000, broken="truncate"), "back")
        error = call_failing_model(model, colour, ASK)
        assert isinstance(error, ModelTruncated if stream else ModelUnavailable)
        assert error.retryable
        assert error.unknown_cost
        if stream:
            assert error.text.startswith("word word")
        assert call_model(model, colour, ASK).text == "back"


def test_a_connection_that_is_reset(build):
    for colour in COLOURS:
        model, _ = build(Reaction(broken="reset"), "back")
        error = call_failing_model(model, colour, ASK)
        assert isinstance(error, ModelUnavailable)
        assert error.status == 0
        assert call_model(model, colour, ASK).text == "back"


def test_a_server_that_drips_meets_the_deadline(build):
    for colour in COLOURS:
        model, _ = build(Reaction("word " * 2_000, broken="drip"))
        started = time.monotonic()
        error = call_failing_model(model, colour, ModelRequest(ASK.messages, timeout=0.3))
        assert isinstance(error, ModelUnavailable | ModelTruncated)
        assert time.monotonic() - started < 15


def test_nobody_listens(maker):
    kind = OpenAIModel if maker == "openai" else AnthropicModel
    for colour in COLOURS:
        error = call_failing_model(kind("fake", base_url="http://127.0.0.1:1/v1"), colour, ASK)
        assert isinstance(error, ModelUnavailable)


@pytest.mark.parametrize(
    "body", ["<html>Bad gateway</html>", "{}", "[]", "null", '{"choices": []}', '"text"', ""], ids=str
)
def test_an_answer_of_no_known_shape_is_an_error(build, body):
    for colour in COLOURS:
        model, _ = build(Reaction(body=body))
        call_failing_model(model, colour, ASK)


def test_an_echo_and_too_much_are_answers(build):
    for colour in COLOURS:
        model, _ = build(Reaction(ECHO), Reaction("word " * 5_000, usage=(10, 5_000)))
        assert call_model(model, colour, ASK).text == "Summarise."
        reply = call_model(model, colour, ASK)
        assert len(reply.text) == 25_000
        assert reply.usage.output_tokens == 5_000


def test_more_input_than_the_window_holds_is_an_overflow(build):
    for colour in COLOURS:
        model, _ = build(Reaction("x", usage=(9_000, 5)), window=8_192)
        error = call_failing_model(model, colour, ASK)
        assert isinstance(error, ModelOverflow)
        assert (error.window, error.requested, error.usage.input_tokens) == (8_192, 9_000, 9_000)


def test_thinking_that_took_the_whole_length_is_not_asked_again(build, maker):
    model, _ = build(Reaction("", finish="length" if maker == "openai" else "max_tokens"))
    error = call_failing_model(model, "write", ASK)
    assert isinstance(error, ModelEmpty)
    assert not error.retryable
    assert "raise max_tokens" in str(error)


def test_an_answer_that_was_withheld(build, maker):
    for colour in COLOURS:
        model, _ = build(Reaction("", finish="content_filter" if maker == "openai" else "refusal"))
        assert isinstance(call_failing_model(model, colour, ASK), ModelRefused)


def test_messages_that_would_be_refused_are_not_sent(build):
    model, server = build()
    open_call = Message("assistant", None, (ToolCall("call_1", "run"),))
    for colour in COLOURS:
        with pytest.raises(Illegal):
            call_model(model, colour, ModelRequest((Message("user", "x"), open_call, Message("user", "y"))))
    assert server.heard == []


@pytest.mark.parametrize("place", ["message", "header echo", "body"])
def test_no_key_in_any_text(build, place, caplog):
    message = {
        "message": f"Incorrect API key provided: {SECRET}",
        "header echo": f"request headers: {{'authorization': 'Bearer {SECRET}', 'x-api-key': '{SECRET}'}}",
        "body": "x" * 400 + SECRET * 4,
    }[place]
    for colour in COLOURS:
        model, _ = build(failure(401, message))
        error = call_failing_model(model, colour, ASK)
        assert SECRET not in "".join(traceback.format_exception(error))
        assert SECRET not in f"{error!r} {model!r}"
        assert error.__cause__ is None
        assert error.__context__ is None
    assert SECRET not in caplog.text


def test_one_model_lives_through_many_event_loops_and_leaves_no_thread(build):
    model, _ = build()
    for _ in range(3):
        assert asyncio.run(model.awrite(ASK)).text
    model.write(ASK)
    deadline = time.monotonic() + 300
    while any(thread.name.startswith("pagein asks") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    gc.collect()  # a socket left open is a warning, and a warning is an error here


def test_the_event_loop_goes_on_while_a_model_is_asked(build):
    model, _ = build("at once", Reaction(delay=0.3))

    async def turns():
        task = asyncio.ensure_future(model.awrite(ASK))
        count = 0
        while not task.done():
            await asyncio.sleep(0.001)
            count += 1
        assert task.result().text
        return count

    asyncio.run(model.awrite(ASK))  # what is imported once is not judged
    assert asyncio.run(turns()) > 5, "the loop stood still while the server thought"


def test_patience_brings_an_answer_through_it_all(build):
    for colour in COLOURS:
        model, server = build(
            failure(500, "oops"), failure(429, "slow down", retry_after="0.1"), Reaction(broken="reset"), "at last"
        )
        started = time.monotonic()
        assert call_model(RetryingModel(model, retry=RetryPolicy(first=0.01)), colour, ASK).text == "at last"
        assert time.monotonic() - started > 0.1
        assert len(server.heard) == 4


def test_openrouter_and_minimax_fail_within_a_200(start_server):
    failures = {
        '{"error": {"code": 429, "message": "slow down"}}': ModelUnavailable,
        '{"error": {"code": 502, "message": "upstream"}}': ModelUnavailable,
        '{"error": {"message": "prompt is too long: 9000 tokens > 8192 maximum", "code": 400}}': ModelOverflow,
        '{"choices": null, "base_resp": {"status_code": 2013, '
        '"status_msg": "invalid params, context window exceeds limit"}}': ModelOverflow,
    }
    for (body, kind), colour in product(failures.items(), COLOURS):
        model = OpenAIModel("fake", base_url=start_server(Reaction(body=body)).openai)
        error = call_failing_model(model, colour, ASK)
        assert type(error) is kind, body
        assert getattr(error, "window", None) != 2013


def test_a_stream_that_ends_without_a_word_is_empty_or_cut(start_server):
    # What llama-cpp-python does with a request that is too long: an end, and nothing before it.
    model = OpenAIModel("fake", base_url=start_server(Reaction(body="data: [DONE]\n\n")).openai, stream=True)
    assert isinstance(call_failing_model(model, "write", ASK), ModelEmpty)


def test_nothing_of_openai_or_anthropic_goes_to_another_server(start_server, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, f"X-Gateway: {SECRET}\nno header")
    server = start_server()
    for model in (OpenAIModel("fake", base_url=server.openai), AnthropicModel("fake", base_url=server.anthropic)):
        for colour in COLOURS:
            call_model(model, colour, ASK)
    assert len(server.heard) == 4
    assert all(SECRET not in f"{request.headers}" for request in server.heard)
