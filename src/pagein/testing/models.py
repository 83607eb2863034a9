"""Conformance suite for models that write summaries and facts: a subclass of ``ModelTests`` with one fixture.

    class TestMyModel(ModelTests):
        @pytest.fixture
        def make_model(self):
            def build(*outcomes): ...      # a model whose calls end as the outcomes say, in order
            return build

An outcome is a text, or one of ``Outcome``. No real model is needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Literal, get_args

import pytest

from pagein.events.messages import Message
from pagein.events.steps import ToolCall
from pagein.models.base import ModelRequest, ModelResponse
from pagein.models.errors import ModelEmpty, ModelError, ModelOverflow, ModelRefused, ModelUnavailable
from pagein.testing._threads import run_in_threads

Outcome = Literal["\0down", "\0hang", "\0empty", "\0overflow", "\0refused", "\0leak"]
"""Unavailable; no answer; an answer without text; 'prompt is too long: 9000 tokens > 8192 maximum'; a permanent
refusal; an error whose text holds the key ``SECRET``."""

DOWN, HANG, EMPTY, OVERFLOW, REFUSED, LEAK = get_args(Outcome)
SECRET = "sk-secret-0123456789abcdef"  # noqa: S105 - not a secret
ASK = ModelRequest.from_text("Summarise the run.", system="You write summaries.", max_tokens=200, timeout=120)
ModelFactory = Callable[..., Any]


class ModelTests:
    """The contract of ``Model`` and ``AsyncModel``: subclass it, and give the fixture ``make_model``.

    ``methods`` are those that the model has: ``write``, ``awrite`` or both. ``timeout_seconds`` is the timeout of a
    call in the tests of timeouts.
    """

    methods: tuple[str, ...] = ("write", "awrite")
    timeout_seconds: float = 0.3

    @pytest.fixture
    def make_model(self) -> ModelFactory:
        raise NotImplementedError("a subclass of ModelTests gives the fixture `make_model`")

    def test_it_has_a_name_and_a_window(self, make_model: ModelFactory) -> None:
        model = make_model("x")
        assert isinstance(model.name, str)
        assert model.name.strip()
        assert isinstance(model.window, int)
        assert model.window > 0

    def test_the_answer_comes_back_unchanged(self, make_model: ModelFactory) -> None:
        text = ' line one\n\n"two" \u5929\u5730 \U0001f600 \x1b[0m <system>three</system> '
        for method in self.methods:
            reply = call_model(make_model(text), method)
            assert isinstance(reply, ModelResponse)
            assert reply.text == text
            assert reply.finish in ("stop", "length", "other")
            assert reply.usage is None or reply.usage.input_tokens > 0

    def test_an_answer_that_is_too_long_is_not_cut(self, make_model: ModelFactory) -> None:
        for method in self.methods:
            assert call_model(make_model("word " * 20_000), method).text == "word " * 20_000

    def test_an_answer_without_text_is_an_error(self, make_model: ModelFactory) -> None:
        for method in self.methods:
            assert isinstance(call_failing_model(make_model(EMPTY), method), ModelEmpty)
            assert isinstance(call_failing_model(make_model(" \n\t "), method), ModelEmpty)

    def test_a_model_that_is_down_may_be_asked_again(self, make_model: ModelFactory) -> None:
        for method in self.methods:
            model = make_model(DOWN, "back")
            error = call_failing_model(model, method)
            assert isinstance(error, ModelUnavailable)
            assert error.retryable
            assert call_model(model, method).text == "back", "a failed call must leave no state"

    def test_what_is_too_long_is_told_from_what_is_down(self, make_model: ModelFactory) -> None:
        for method in self.methods:
            error = call_failing_model(make_model(OVERFLOW), method)
            assert isinstance(error, ModelOverflow)
            assert (error.window, error.requested) == (8_192, 9_000)
            assert not error.retryable

    def test_what_cannot_heal_says_so(self, make_model: ModelFactory) -> None:
        for method in self.methods:
            error = call_failing_model(make_model(REFUSED), method)
            assert isinstance(error, ModelRefused)
            assert not error.retryable

    def test_no_key_is_in_an_error(self, make_model: ModelFactory) -> None:
        for method in self.methods:
            error = call_failing_model(make_model(LEAK), method)
            behind: BaseException | None = error
            while behind is not None:
                assert SECRET not in f"{behind} {behind!r} {vars(behind)}"
                behind = behind.__cause__ or behind.__context__

    def test_the_wait_ends_with_the_timeout(self, make_model: ModelFactory) -> None:
        for method in self.methods:
            started = time.monotonic()
            error = call_failing_model(
                make_model(HANG), method, ModelRequest(ASK.messages, timeout=self.timeout_seconds)
            )
            assert isinstance(error, ModelUnavailable)
            assert self.timeout_seconds * 0.9 < time.monotonic() - started < self.timeout_seconds + 120

    def test_a_cancelled_task_is_cancelled(self, make_model: ModelFactory) -> None:
        if "awrite" not in self.methods:
            pytest.skip("the model has no awrite")

        async def cancel() -> bool:
            task = asyncio.ensure_future(make_model(HANG).awrite(ASK))
            await asyncio.sleep(min(0.2, self.timeout_seconds))
            task.cancel()
            finished, _ = await asyncio.wait([task], timeout=120)
            assert finished, "a cancelled task went on"
            return bool(task.cancelled())

        assert asyncio.run(cancel()), "the cancellation was turned into something else"

    def test_a_conversation_may_be_asked_about(self, make_model: ModelFactory) -> None:
        calls = (ToolCall("call_1", "read", '{"path": "a.py"}'),)
        talk = (
            Message("system", "You write summaries."),
            Message("user", "one"),
            Message("assistant", None, calls),
            Message("tool", "print(1)", call_id="call_1"),
            Message("assistant", "two"),
            Message("user", "Summarise."),
        )
        for method in self.methods:
            assert call_model(make_model("x"), method, ModelRequest(talk)).text == "x"

    def test_it_may_be_asked_by_many_at_once(self, make_model: ModelFactory) -> None:
        for method in self.methods:
            answers = call_concurrently(make_model(*(f"answer {number}" for number in range(6))), method, 6)
            assert sorted(answers) == [f"answer {number}" for number in range(6)]


def call_concurrently(model: Any, method: str, times: int) -> list[str]:
    """Return the answers to calls from ``times`` threads at once."""
    answers: list[str] = []
    run_in_threads(*[lambda: answers.append(call_model(model, method).text)] * times, timeout=300)
    return answers


def call_model(model: Any, method: str, request: ModelRequest = ASK) -> ModelResponse:
    """Call the model by one method; ``awrite`` runs in a new event loop."""
    reply: ModelResponse = asyncio.run(model.awrite(request)) if method == "awrite" else model.write(request)
    return reply


def call_failing_model(model: Any, method: str, request: ModelRequest = ASK) -> ModelError:
    """Return the error of one call. Raises AssertionError for no error, or one that is no ModelError."""
    try:
        reply = call_model(model, method, request)
    except ModelError as error:
        return error
    except Exception as error:
        raise AssertionError(f"{method} raised {error!r}, which is not a ModelError") from error
    raise AssertionError(f"{method} returned {reply!r} instead of failing")
