"""The contract of a model that writes, as a suite to subclass. It needs no real model: a script says what happens.

    class TestMyModel(ModelTests):
        @pytest.fixture
        def scripted(self):
            def build(*outcomes): ...      # a model whose asks end as the outcomes say, one after the other
            return build

An outcome is a text, or one of the words of ``Outcome``.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, get_args

import pytest

from pagein.events.messages import Message
from pagein.events.steps import ToolCall
from pagein.models.base import Ask, Reply
from pagein.models.errors import ModelEmpty, ModelError, ModelOverflow, ModelRefused, ModelUnavailable

Outcome = Literal["\0down", "\0hang", "\0empty", "\0overflow", "\0refused", "\0leak"]
"""Not available; no answer ever; an answer without text; 'prompt is too long: 9000 tokens > 8192 maximum'; a refusal
that no waiting heals; an error whose text holds the key ``SECRET``."""

DOWN, HANG, EMPTY, OVERFLOW, REFUSED, LEAK = get_args(Outcome)
SECRET = "sk-secret-0123456789abcdef"  # noqa: S105 - not a secret
ASK = Ask.of("Summarise the run.", system="You write summaries.", max_tokens=200, timeout=20)
Scripted = Callable[..., Any]


class ModelTests:
    """The contract of ``Model`` and ``AsyncModel``. A subclass gives the fixture ``scripted``.

    ``colours`` are the verbs it has; a model that can only be called, or only be awaited, says so. ``seconds`` is what
    an ask may take in a test that is about time.
    """

    colours: tuple[str, ...] = ("write", "awrite")
    seconds: float = 0.3

    @pytest.fixture
    def scripted(self) -> Scripted:
        raise NotImplementedError("a subclass of ModelTests gives the fixture `scripted`")

    def test_it_has_a_name_and_a_window(self, scripted: Scripted) -> None:
        model = scripted("x")
        assert isinstance(model.name, str)
        assert model.name.strip()
        assert isinstance(model.window, int)
        assert model.window > 0

    def test_the_answer_comes_back_unchanged(self, scripted: Scripted) -> None:
        text = ' line one\n\n"two" \u5929\u5730 \U0001f600 \x1b[0m <system>three</system> '
        for colour in self.colours:
            reply = ask(scripted(text), colour)
            assert isinstance(reply, Reply)
            assert reply.text == text
            assert reply.finish in ("stop", "length", "other")
            assert reply.usage is None or reply.usage.input_tokens > 0

    def test_an_answer_that_is_too_long_is_not_cut(self, scripted: Scripted) -> None:
        for colour in self.colours:
            assert ask(scripted("word " * 20_000), colour).text == "word " * 20_000

    def test_an_answer_without_text_is_an_error(self, scripted: Scripted) -> None:
        for colour in self.colours:
            assert isinstance(fault(scripted(EMPTY), colour), ModelEmpty)
            assert isinstance(fault(scripted(" \n\t "), colour), ModelEmpty)

    def test_a_model_that_is_down_may_be_asked_again(self, scripted: Scripted) -> None:
        for colour in self.colours:
            model = scripted(DOWN, "back")
            error = fault(model, colour)
            assert isinstance(error, ModelUnavailable)
            assert error.heals
            assert ask(model, colour).text == "back", "an ask that failed must leave nothing behind"

    def test_what_is_too_long_is_told_from_what_is_down(self, scripted: Scripted) -> None:
        for colour in self.colours:
            error = fault(scripted(OVERFLOW), colour)
            assert isinstance(error, ModelOverflow)
            assert (error.window, error.asked) == (8_192, 9_000)
            assert not error.heals

    def test_what_cannot_heal_says_so(self, scripted: Scripted) -> None:
        for colour in self.colours:
            error = fault(scripted(REFUSED), colour)
            assert isinstance(error, ModelRefused)
            assert not error.heals

    def test_no_key_is_in_an_error(self, scripted: Scripted) -> None:
        for colour in self.colours:
            error = fault(scripted(LEAK), colour)
            behind: BaseException | None = error
            while behind is not None:
                assert SECRET not in f"{behind} {behind!r} {vars(behind)}"
                behind = behind.__cause__ or behind.__context__

    def test_the_wait_ends_with_the_timeout(self, scripted: Scripted) -> None:
        for colour in self.colours:
            started = time.monotonic()
            error = fault(scripted(HANG), colour, Ask(ASK.messages, timeout=self.seconds))
            assert isinstance(error, ModelUnavailable)
            assert self.seconds * 0.9 < time.monotonic() - started < self.seconds + 20

    def test_a_cancelled_task_is_cancelled(self, scripted: Scripted) -> None:
        if "awrite" not in self.colours:
            pytest.skip("it cannot be awaited")

        async def cancel() -> bool:
            task = asyncio.ensure_future(scripted(HANG).awrite(ASK))
            await asyncio.sleep(min(0.2, self.seconds))
            task.cancel()
            started = time.monotonic()
            done, _ = await asyncio.wait([task], timeout=5)
            assert done, "a cancelled task went on"
            assert time.monotonic() - started < 5
            return bool(task.cancelled())

        assert asyncio.run(cancel()), "the cancellation was turned into something else"

    def test_a_conversation_may_be_asked_about(self, scripted: Scripted) -> None:
        calls = (ToolCall("call_1", "read", '{"path": "a.py"}'),)
        talk = (
            Message("system", "You write summaries."),
            Message("user", "one"),
            Message("assistant", None, calls),
            Message("tool", "print(1)", call_id="call_1"),
            Message("assistant", "two"),
            Message("user", "Summarise."),
        )
        for colour in self.colours:
            assert ask(scripted("x"), colour, Ask(talk)).text == "x"

    def test_it_may_be_asked_by_many_at_once(self, scripted: Scripted) -> None:
        for colour in self.colours:
            found = together(scripted(*(f"answer {number}" for number in range(6))), colour, 6)
            assert sorted(found) == [f"answer {number}" for number in range(6)]


def together(model: Any, colour: str, times: int) -> list[str]:
    """What so many threads are answered that ask at the same time."""
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(ask(model, colour).text)) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return found


def ask(model: Any, colour: str, what: Ask = ASK) -> Reply:
    """The reply of one ask, in that colour; each awaited one in an event loop of its own."""
    reply: Reply = asyncio.run(model.awrite(what)) if colour == "awrite" else model.write(what)
    return reply


def fault(model: Any, colour: str, what: Ask = ASK) -> ModelError:
    """The error of one ask. AssertionError when there is none, or one that is not ours."""
    try:
        reply = ask(model, colour, what)
    except ModelError as error:
        return error
    except Exception as error:
        raise AssertionError(f"{colour} raised {error!r}, which is not a ModelError") from error
    raise AssertionError(f"{colour} returned {reply!r} instead of failing")
