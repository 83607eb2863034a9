"""The suite is under test: each broken model fails exactly the tests that name its fault, and no test is idle."""

import asyncio
import inspect
import threading
from contextlib import suppress

import pytest
from _pytest.outcomes import Skipped

from pagein.models.base import ModelRequest, ModelResponse
from pagein.models.callables import CallableModel
from pagein.models.errors import ModelEmpty, ModelOverflow, ModelRefused, ModelUnavailable
from pagein.testing.models import DOWN, EMPTY, HANG, LEAK, OVERFLOW, REFUSED, SECRET, ModelTests


class Honest:
    """A model in this process that follows a script and keeps the contract."""

    name = "honest"
    window = 8_192

    def __init__(self, *outcomes):
        self.outcomes, self.lock = list(outcomes), threading.Lock()
        self.inner = CallableModel(self.answer_prompt)

    def answer_prompt(self, prompt):
        with self.lock:
            outcome = self.outcomes.pop(0)
        return self.outcome(outcome)

    def outcome(self, outcome):
        if outcome == HANG:
            threading.Event().wait(2)
        if outcome == DOWN:
            raise ConnectionError("no route")
        if outcome == OVERFLOW:
            raise ModelOverflow("long", window=8_192, requested=9_000)
        if outcome in (REFUSED, LEAK):
            raise ModelRefused("no")
        return "" if outcome == EMPTY else outcome

    def write(self, ask):
        return self.inner.write(ask)

    async def awrite(self, ask):
        return await self.inner.awrite(ask)


class Nameless(Honest):
    name = " "


class Wraps(Honest):
    """Breaks its promise in what it returns, in both colours."""

    def transform(self, reply):
        return reply

    def write(self, ask):
        return self.transform(super().write(ask))

    async def awrite(self, ask):
        return self.transform(await super().awrite(ask))


class Tidies(Wraps):
    def transform(self, reply):
        return ModelResponse(reply.text.strip() + ("" if len(reply.text) < 100 else " "))


class Cuts(Wraps):
    def transform(self, reply):
        return ModelResponse(reply.text[:1_000])


class TakesNothingForAnAnswer(Honest):
    def write(self, ask):
        with suppress(ModelEmpty):
            return super().write(ask)
        return ModelResponse("")

    async def awrite(self, ask):
        with suppress(ModelEmpty):
            return await super().awrite(ask)
        return ModelResponse("")


class Faults(Honest):
    """Raises something else than it should, in both colours."""

    def fault(self, error):
        return error

    def write(self, ask):
        try:
            return super().write(ask)
        except Exception as error:  # noqa: BLE001
            changed = self.fault(error)
        raise changed

    async def awrite(self, ask):
        try:
            return await super().awrite(ask)
        except Exception as error:  # noqa: BLE001
            changed = self.fault(error)
        raise changed


class GivesUp(Faults):
    def fault(self, error):
        down = isinstance(error, ModelUnavailable) and "within" not in str(error)
        return ModelRefused("down") if down else error


class ForgetsTheWindow(Faults):
    def fault(self, error):
        return ModelOverflow("long") if isinstance(error, ModelOverflow) else error


class Hopes(Faults):
    def fault(self, error):
        return ModelUnavailable("no") if isinstance(error, ModelRefused) else error


class Leaks(Honest):
    def outcome(self, outcome):
        if outcome == LEAK:
            raise ModelRefused(f"key {SECRET}")
        return super().outcome(outcome)


class LeaksBehind(Honest):
    def outcome(self, outcome):
        if outcome == LEAK:
            raise ModelRefused("no") from ValueError(SECRET)
        return super().outcome(outcome)


class WaitsForEver(Honest):
    def write(self, ask):
        return super().write(ModelRequest(ask.messages, timeout=30))

    async def awrite(self, ask):
        return await super().awrite(ModelRequest(ask.messages, timeout=30))


class SwallowsCancellation(Honest):
    async def awrite(self, ask):
        try:
            return await super().awrite(ask)
        except asyncio.CancelledError:
            raise ModelUnavailable("cancelled") from None


class OneMessageOnly(Honest):
    def write(self, ask):
        return super().write(self.check(ask))

    async def awrite(self, ask):
        return await super().awrite(self.check(ask))

    def check(self, ask):
        if len(ask.messages) > 2:
            raise ValueError("one message only")
        return ask


class SharesItsAnswer(Wraps):
    answer = None

    def transform(self, reply):
        if reply.text.startswith("answer"):
            self.answer = self.answer or reply
            return self.answer
        return reply


FAULTS = {
    Honest: set(),
    Nameless: {"test_it_has_a_name_and_a_window"},
    Tidies: {"test_the_answer_comes_back_unchanged"},
    Cuts: {"test_an_answer_that_is_too_long_is_not_cut"},
    TakesNothingForAnAnswer: {"test_an_answer_without_text_is_an_error"},
    GivesUp: {"test_a_model_that_is_down_may_be_asked_again"},
    ForgetsTheWindow: {"test_what_is_too_long_is_told_from_what_is_down"},
    Hopes: {"test_what_cannot_heal_says_so"},
    Leaks: {"test_no_key_is_in_an_error"},
    LeaksBehind: {"test_no_key_is_in_an_error"},
    WaitsForEver: {"test_the_wait_ends_with_the_timeout"},
    SwallowsCancellation: {"test_a_cancelled_task_is_cancelled"},
    OneMessageOnly: {"test_a_conversation_may_be_asked_about"},
    SharesItsAnswer: {"test_it_may_be_asked_by_many_at_once"},
}
TESTS = sorted(name for name in vars(ModelTests) if name.startswith("test_"))


class Quick(ModelTests):
    """The suite, with less time for what hangs."""

    timeout_seconds = 0.1


def failures(kind):
    """The tests of the suite that the model fails."""
    failed = set()
    for name in TESTS:
        test = getattr(Quick(), name)
        assert set(inspect.signature(test).parameters) == {"make_model"}
        try:
            test(make_model=kind)
        except (Exception, Skipped):  # noqa: BLE001
            failed.add(name)
    return failed


@pytest.mark.parametrize("broken", FAULTS, ids=lambda broken: broken.__name__)
def test_a_broken_model_fails_exactly_the_tests_that_name_its_fault(broken):
    assert failures(broken) == FAULTS[broken]


def test_every_test_of_the_suite_is_failed_by_some_broken_model():
    assert set(TESTS) == set().union(*FAULTS.values())
