"""A model extracts facts beside the run: no turn waits for it, nothing is lost if it fails, is slow or is cancelled."""

import asyncio
import json
import threading
import time

import pytest
from facts_play import Clock

from pagein import ActionStep, AgentMemory, AsyncAgentMemory, Observation, TaskStep, ToolCall
from pagein.errors import LogUnwritable
from pagein.facts.settings import Settings
from pagein.facts.store import Facts
from pagein.models import ModelResponse, ModelUnavailable
from pagein.models.retrying import RetryingModel, RetryPolicy

GUARD = 300.0
"""Seconds against a hang."""

FOUND = json.dumps(
    {
        "facts": [
            {"content": "The user likes tabs", "category": "preference", "confidence": 0.9, "scope": "user",
             "durability": "durable", "handles": ["s0"]}
        ]
    }
)  # fmt: skip
AT_ONCE = Settings(debounce=0)


class Slow:
    """A model that answers when it is let go, or raises; it keeps what it was asked about facts."""

    name, window = "slow", 100_000

    def __init__(self, failure=None, *, free=False):
        self.failure = failure
        self.asked, self.began, self.free = [], threading.Event(), threading.Event()
        if free:
            self.free.set()

    def write(self, ask):
        if "facts that outlive" not in str(ask.messages[0].content):
            raise ModelUnavailable("no summaries here")
        self.asked.append(ask)
        self.began.set()
        assert self.free.wait(GUARD)
        if self.failure is not None:
            raise self.failure
        return ModelResponse(FOUND if len(self.asked) == 1 else '{"facts": []}')


class Awaited:
    """A model that can only be awaited, and notes that its wait was cancelled."""

    name, window = "awaited", 100_000

    def __init__(self, *, answers=True):
        self.answers, self.began, self.cancelled = answers, asyncio.Event(), False

    async def awrite(self, ask):
        self.began.set()
        if self.answers:
            return ModelResponse(FOUND)
        try:
            await asyncio.sleep(GUARD)
        except asyncio.CancelledError:
            self.cancelled = True
            raise


def open_memory(db, model, settings=AT_ONCE, **options):
    arguments = {"budget": 20_000, "user": "alice", "policy": "ladder"} | options
    return AgentMemory.open(db, summarizer=model, facts=settings, **arguments)


def contents(db):
    with Facts.open(db, user="alice") as facts:
        return [fact.content for fact in facts.list()]


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "pagein reads"]


@pytest.fixture
def db(tmp_path):
    return str(tmp_path / "run.db")


def test_no_turn_waits_for_the_model(db):
    model = Slow()
    with open_memory(db, model) as memory:
        memory.record(TaskStep("I like tabs"))
        assert model.began.wait(GUARD)
        memory.record(TaskStep("And on it goes"))
        assert memory.view().tail == ()
        assert memory.wait(0.01) is False
        model.free.set()
        assert memory.wait(GUARD)
        assert "The user likes tabs" in str(memory.to_messages())
    assert len(model.asked) in (1, 2)
    assert not readers()


def test_it_is_asked_when_the_session_is_quiet_by_the_clock(db):
    model, clock = Slow(free=True), Clock()
    with open_memory(db, model, Settings(debounce=30), clock=clock) as memory:
        for _ in range(3):
            memory.record(TaskStep("I like tabs"))
            clock.now += 10
        assert not model.asked
        clock.now += 30
        memory.record(TaskStep("Are you there?"))
        assert memory.wait(GUARD)
        assert len(model.asked) == 1
        assert [fact.content for fact in memory.facts.list()] == ["The user likes tabs"]


def test_it_is_asked_though_no_turn_comes(db):
    model = Slow(free=True)
    with open_memory(db, model, Settings(debounce=0.05)) as memory:
        memory.record(TaskStep("I like tabs"))
        assert model.began.wait(GUARD)
        assert memory.wait(GUARD)
        assert not readers()


def test_a_compaction_begins_a_reading_and_does_not_wait(db):
    model = Slow()
    with open_memory(db, model, Settings(debounce=3_600), budget=700) as memory:
        memory.record(TaskStep("I like tabs"))
        for at in range(12):
            call = ToolCall(f"c{at}", "ls")
            memory.record(ActionStep("Look.", (call,), (Observation(call.id, "file\n" * 60),)))
            memory.view()
        assert memory.report().out
        assert model.began.wait(GUARD)
        model.free.set()
        assert memory.wait(GUARD)
        assert [fact.content for fact in memory.facts.list()] == ["The user likes tabs"]


def test_closing_waits_for_what_was_said_last(db):
    model = Slow(free=True)
    with open_memory(db, model, Settings(debounce=3_600)) as memory:
        memory.record(TaskStep("I like tabs"))
    assert contents(db) == ["The user likes tabs"]


def test_closing_does_not_wait_for_ever_and_the_next_process_reads_on(db):
    model = Slow()
    with open_memory(db, model, Settings(debounce=3_600, close_wait=0.1)) as memory:
        memory.record(TaskStep("I like tabs"))
        began = time.monotonic()
    assert time.monotonic() - began < GUARD / 2
    assert not readers()
    assert contents(db) == []
    model.free.set()
    with open_memory(db, Slow(free=True)) as memory:
        memory.record(TaskStep("Again"))
        assert memory.wait(GUARD)
    assert contents(db) == ["The user likes tabs"]


@pytest.mark.parametrize("failure", [ModelUnavailable("down"), RuntimeError("of the user's own")])
def test_a_failure_is_told_once_and_costs_nothing(db, failure, caplog):
    model = Slow(failure, free=True)
    settings = Settings(debounce=0, close_wait=0.2)
    with open_memory(db, RetryingModel(model, retry=RetryPolicy(attempts=1)), settings) as memory:
        for _ in range(3):
            memory.record(TaskStep("I like tabs"))
            assert memory.wait(GUARD)
        problems = [problem for problem in memory.report().problems if "facts" in problem]
        assert len(problems) == 1
        assert str(failure) in problems[0]
        assert memory.facts.extracted_until() == 0
    assert sum("facts" in item.message for item in caplog.records) == 1


class Full:
    def log(self, name):
        raise LogUnwritable(f"no room for {name}")


def test_a_store_that_fails_costs_no_turn_anything(db):
    with AgentMemory.open(db, budget=20_000, user="alice") as memory:
        memory._runtime.facts._store = Full()
        assert memory.record(TaskStep("My name is Ann.")).last == 1
        assert "no room" in memory.report().problems[0]


def test_awaited_on_the_loop_it_came_from(db):
    async def run():
        model = Awaited()
        options = {"summarizer": model, "facts": AT_ONCE, "user": "alice", "budget": 20_000}
        async with AsyncAgentMemory.open(db, **options) as memory:
            await memory.record(TaskStep("I like tabs"))
            await asyncio.wait_for(model.began.wait(), GUARD)
            assert await memory.wait(GUARD)
            assert "The user likes tabs" in str(await memory.to_messages())

    asyncio.run(run())


def test_awaited_it_is_cancelled_at_close(db):
    async def run():
        model = Awaited(answers=False)
        settings = Settings(debounce=0, close_wait=0.1)
        options = {"summarizer": model, "facts": settings, "user": "alice", "budget": 20_000}
        async with AsyncAgentMemory.open(db, **options) as memory:
            await memory.record(TaskStep("I like tabs"))
            await asyncio.wait_for(model.began.wait(), GUARD)
        await asyncio.sleep(0)
        return model

    assert asyncio.run(run()).cancelled
    assert not readers()
    assert contents(db) == []
