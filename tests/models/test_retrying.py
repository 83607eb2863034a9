"""RetryingModel, sync and async, without waiting: clock, sleep and chance are injected."""

import asyncio
import threading
import time

import pytest

from pagein.errors import ConfigurationError
from pagein.events.steps import Usage
from pagein.models import (
    Breaker,
    CircuitOpen,
    ModelCancelled,
    ModelEmpty,
    ModelOverflow,
    ModelRefused,
    ModelRequest,
    ModelResponse,
    ModelTruncated,
    ModelUnavailable,
    Price,
    RetryingModel,
    RetryPolicy,
    Spending,
    SpendLimit,
)
from pagein.models.spending import max_usage_of

ASK = ModelRequest.from_text("Summarise.", max_tokens=100, timeout=100)
DOWN = ModelUnavailable("down", status=503)


class Clock:
    """Time that passes only during a sleep or a request."""

    def __init__(self):
        self.now, self.slept = 0.0, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


class Scripted:
    """A model with scripted outcomes."""

    name, window = "scripted", 8_192

    def __init__(self, *outcomes, clock=None, takes=0.0):
        self.outcomes, self.asked, self.clock, self.takes = list(outcomes), [], clock, takes

    def write(self, ask):
        self.asked.append(ask)
        if self.clock:
            self.clock.now += self.takes
        outcome = self.outcomes.pop(0) if self.outcomes else ModelResponse("done", Usage(50, 10))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def awrite(self, ask):
        await asyncio.sleep(0)
        return self.write(ask)


@pytest.fixture(params=["write", "awrite"])
def colour(request):
    return request.param


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def retrying(clock, monkeypatch):
    """Builds a RetryingModel whose pauses are the clock's, sync and async."""
    real = asyncio.sleep

    async def asleep(seconds):
        if seconds:
            clock.sleep(seconds)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", asleep)

    def build(model, **options):
        return RetryingModel(model, **{"clock": clock, "sleep": clock.sleep, "chance": lambda: 0.0, **options})

    return build


def ask(model, colour, what=ASK):
    return model.write(what) if colour == "write" else asyncio.run(model.awrite(what))


def test_what_heals_is_asked_again_with_growing_pauses(retrying, clock, colour):
    model = Scripted(DOWN, ModelTruncated("cut"), ModelEmpty("nothing"))
    assert ask(retrying(model), colour).text == "done"
    assert len(model.asked) == 4
    assert clock.slept == [0.25, 0.5, 1.0]


def test_chance_spreads_the_pauses():
    waits = RetryPolicy(first=1, factor=3, most=10)
    assert [waits.pause_seconds(n, None, 0.0) for n in (1, 2, 3, 4, 1_000)] == [0.5, 1.5, 4.5, 5, 5]
    assert waits.pause_seconds(1, None, 0.999) == pytest.approx(1, abs=0.001)


def test_attempts_come_to_an_end(retrying, colour):
    model = Scripted(*[DOWN] * 9)
    with pytest.raises(ModelUnavailable, match="down"):
        ask(retrying(model, retry=RetryPolicy(attempts=3)), colour)
    assert len(model.asked) == 3


@pytest.mark.parametrize(
    "error",
    [
        ModelOverflow("long", window=4_096),
        ModelRefused("no", status=401),
        ModelEmpty("thought", finish="length"),
        SpendLimit(spent=1, needed=1, limit=1, unit="tokens"),
        ModelCancelled("off"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_cannot_heal_is_asked_once(retrying, clock, colour, error):
    model = Scripted(error)
    with pytest.raises(type(error)):
        ask(retrying(model), colour)
    assert len(model.asked) == 1
    assert clock.slept == []


def test_retry_after_is_kept_to(retrying, clock, colour):
    model = Scripted(ModelUnavailable("slow down", status=429, retry_after=17.0))
    ask(retrying(model), colour)
    assert clock.slept == [17.0]


@pytest.mark.parametrize("seconds", [61, 10**9])
def test_a_wait_beyond_reason_ends_the_ask(retrying, clock, colour, seconds):
    model = Scripted(ModelUnavailable("tomorrow", status=429, retry_after=seconds))
    with pytest.raises(ModelUnavailable) as caught:
        ask(retrying(model), colour)
    assert caught.value.retry_after == seconds
    assert clock.slept == []


def test_the_timeout_is_for_all_attempts_together(retrying, clock, colour):
    model = Scripted(*[DOWN] * 99, clock=clock, takes=30.0)
    with pytest.raises(ModelUnavailable):
        ask(retrying(model, retry=RetryPolicy(attempts=99)), colour)
    assert clock.now <= ASK.timeout + 30
    assert [request.timeout for request in model.asked] == pytest.approx([100, 69.75, 39.25, 8.25])


def test_an_attempt_may_have_its_own_timeout(retrying, colour):
    model = Scripted(DOWN)
    ask(retrying(model, retry=RetryPolicy(attempt=10)), colour)
    assert [request.timeout for request in model.asked] == [10, 10]


def test_the_same_request_is_not_sent_again_after_an_overflow(retrying, colour):
    model = Scripted(ModelOverflow("long", window=4_096, requested=5_000))
    one = retrying(model)
    with pytest.raises(ModelOverflow):
        ask(one, colour)
    with pytest.raises(ModelOverflow, match="not sent again") as caught:
        ask(one, colour, ModelRequest.from_text("Summarise.", max_tokens=100, timeout=7))
    assert caught.value.window == 4_096
    assert len(model.asked) == 1
    assert one.window == 4_096, "the real window is learnt"
    assert ask(one, colour, ModelRequest.from_text("Summarise less.")).text == "done"


def test_three_failures_open_the_circuit_and_one_ask_tries_it(retrying, clock, colour):
    model = Scripted(*[ModelRefused("no")] * 4)
    one = retrying(model, breaker=Breaker(3, 60, clock=clock))
    for _ in range(3):
        with pytest.raises(ModelRefused):
            ask(one, colour)
    with pytest.raises(CircuitOpen, match="60 s more"):
        ask(one, colour)
    assert len(model.asked) == 3
    clock.now += 60
    with pytest.raises(ModelRefused):
        ask(one, colour)
    with pytest.raises(CircuitOpen):
        ask(one, colour)
    clock.now += 60
    assert ask(one, colour).text == "done"
    assert not one.breaker.is_open
    assert len(model.asked) == 5


def test_only_one_ask_tries_a_circuit(clock):
    breaker = Breaker(1, 10, clock=clock)
    breaker.enter("m")
    breaker.leave(DOWN)
    clock.now += 10
    breaker.enter("m")
    with pytest.raises(CircuitOpen):
        breaker.enter("m")
    breaker.leave(ModelOverflow("not its fault"))
    breaker.enter("m")


def test_an_overflow_opens_no_circuit(retrying, colour):
    model = Scripted(*[ModelOverflow("long")] * 5)
    one = retrying(model)
    for number in range(5):
        with pytest.raises(ModelOverflow):
            ask(one, colour, ModelRequest.from_text(f"Summarise {number}."))
    assert not one.breaker.is_open


# Spending


def test_what_was_spent_is_what_was_reported(retrying, colour):
    spending = Spending(tokens=1_000, money=2.0, price=Price(1_000, 10_000))
    ask(retrying(Scripted(), spending=spending), colour)
    assert spending.tokens == 60
    assert spending.money == pytest.approx(0.15)


def test_an_ask_that_might_pass_the_limit_is_not_sent(retrying, colour):
    model = Scripted()
    one = retrying(model, spending=Spending(tokens=180))
    ask(one, colour)  # 60 spent
    with pytest.raises(SpendLimit) as caught:
        ask(one, colour, ModelRequest.from_text("Summarise.", max_tokens=120))
    assert (caught.value.spent, caught.value.limit, caught.value.unit) == (60, 180, "tokens")
    assert len(model.asked) == 1
    assert not one.breaker.is_open


def test_money_has_its_limit_too(retrying, colour):
    one = retrying(Scripted(), spending=Spending(money=0.0001, price=Price(1, 1)))
    with pytest.raises(SpendLimit) as caught:
        ask(one, colour)
    assert caught.value.unit == "money"


@pytest.mark.parametrize(
    ("error", "cost"),
    [
        (ModelUnavailable("503", status=503), "nothing"),
        (ModelRefused("no", status=400), "nothing"),
        (ModelUnavailable("timeout"), "all"),
        (ModelTruncated("cut"), "all"),
        (ModelEmpty("thought", finish="length", usage=Usage(50, 100)), "reported"),
    ],
    ids=["refused early", "refused", "timeout", "truncated", "empty"],
)
def test_an_attempt_that_failed_costs_what_it_may_have_cost(retrying, colour, error, cost):
    spending = Spending(tokens=10_000)
    with pytest.raises(type(error)):
        ask(retrying(Scripted(error), spending=spending, retry=RetryPolicy(attempts=1)), colour)
    most = max_usage_of(ASK, "scripted")
    all_of_it = most.input_tokens + most.output_tokens
    assert spending.tokens == {"nothing": 0, "all": all_of_it, "reported": 150}[cost]


def test_asks_at_the_same_time_cannot_pass_the_limit_together():
    gate = threading.Barrier(2, timeout=60)

    class Slow(Scripted):
        def write(self, ask):
            gate.wait()
            return ModelResponse("x", Usage(10, 10))

    most = max_usage_of(ASK, "scripted")
    spending = Spending(tokens=most.input_tokens + most.output_tokens + 50)
    one = RetryingModel(Slow(), spending=spending)
    first = threading.Thread(target=one.write, args=(ASK,))
    first.start()
    while spending._reserved_tokens == 0:
        time.sleep(0.001)
    with pytest.raises(SpendLimit):
        one.write(ASK)
    gate.wait()
    first.join()
    assert (spending.tokens, spending._reserved_tokens) == (20, 0)


# Being told to stop


def test_stop_ends_the_pause_and_the_wait():
    stop = threading.Event()

    class Hangs(Scripted):
        def write(self, ask):
            threading.Event().wait(5)

    for model in (Hangs(), Scripted(*[DOWN] * 9)):
        stop.clear()
        waits = RetryPolicy(attempts=9, first=30, most=30)
        one = RetryingModel(model, sleep=stop.wait, is_cancelled=stop.is_set, retry=waits)
        threading.Timer(0.1, stop.set).start()
        started = time.monotonic()
        with pytest.raises(ModelCancelled):
            one.write(ASK)
        assert time.monotonic() - started < 20  # not the thirty of the wait
    with pytest.raises(ModelCancelled):
        one.write(ASK)


def test_a_cancelled_task_keeps_no_promise_and_counts_as_no_failure():
    class Hangs(Scripted):
        async def awrite(self, ask):
            await asyncio.sleep(5)

    spending, breaker = Spending(tokens=10_000), Breaker(1)
    one = RetryingModel(Hangs(), spending=spending, breaker=breaker)

    async def cancel_request():
        task = asyncio.ensure_future(one.awrite(ASK))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_request())
    assert spending._reserved_tokens == 0
    assert spending.tokens > 0, "it may have cost all of it"
    assert not breaker.is_open


@pytest.mark.parametrize(
    "build",
    [
        lambda: RetryPolicy(attempts=0),
        lambda: RetryPolicy(first=-1),
        lambda: RetryPolicy(attempt=0),
        lambda: Breaker(0),
        lambda: Spending(tokens=-1),
        lambda: Spending(money=float("nan"), price=Price(1, 1)),
        lambda: Spending(money=1),
        lambda: ModelRequest(()),
        lambda: ModelRequest.from_text("  "),
        lambda: ModelRequest.from_text("x", max_tokens=0),
        lambda: ModelRequest.from_text("x", timeout=0),
        lambda: ModelRequest.from_text("x", timeout=float("nan")),
        lambda: ModelRequest.from_text("x", timeout=float("inf")),
    ],
)
def test_bad_values_are_refused(build):
    with pytest.raises(ConfigurationError):
        build()


def test_a_model_that_can_only_be_awaited_says_so():
    class Awaited:
        name, window = "awaited", 8_192

        async def awrite(self, ask):
            return ModelResponse("x")

    with pytest.raises(ConfigurationError, match="awaited"):
        RetryingModel(Awaited()).write(ASK)
