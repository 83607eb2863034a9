"""Closing while a model is at work: within a second, and nothing of ours works on afterwards."""

import asyncio
import threading
import time

import pytest
from test_jobs import begun
from writing_runs import GOOD, Host, compactions, turn

from pagein import LogClosed
from pagein.models import RetryingModel, RetryPolicy
from pagein.models.openai_chat import OpenAIModel
from pagein.testing.scripted_writer import ScriptedModel
from tests._support.faulty_server import Reaction


def workers():
    return [each for each in threading.enumerate() if each.name.startswith("pagein")]


def gone(left=0):
    """True when no more threads of ours are left, looked for thirty seconds."""
    until = time.monotonic() + 300
    while len(workers()) > left and time.monotonic() < until:
        time.sleep(0.01)
    return len(workers()) <= left


@pytest.mark.parametrize("patience", [None, RetryPolicy(attempts=3)], ids=["ours", "the user's"])
@pytest.mark.parametrize("broken", ["", "drip"])
def test_close_breaks_off_a_request_over_http(colour, served, patience, broken):
    server = served(then=Reaction(GOOD, delay=0 if broken else 60, broken=broken))
    model = OpenAIModel("fake", base_url=server.openai, key_variable="TEST_MODEL_KEY", window=16_000)
    memory = Host(colour, summarizer=model if patience is None else RetryingModel(model, retry=patience))
    number = 0
    while not server.heard:
        memory.turns(number, number + 1, settle=False)
        memory.wait(0.2)
        number += 1
    started = time.monotonic()
    memory.end()
    assert time.monotonic() - started < 30
    # No thread but the one that reads from a closed connection, which ends with the next byte, or at the deadline.
    left = 1 if colour == "sync" and not broken else 0
    assert gone(left), f"still at work: {workers()}"
    with pytest.raises(LogClosed):
        memory.memory.report()
    assert len(server.heard) == 1


def test_nothing_is_asked_after_close(colour):
    gate = threading.Event()
    model = ScriptedModel(gate=gate, window=2_600)
    memory = Host(colour, summarizer=model, budget=6_000, policy="tiers")
    memory.record(*(turn(number) for number in range(60)))
    memory.turns(60, 61, settle=False)
    while not model.requests:
        memory.wait(0.1)
    assert len(model.requests) == 1
    started = time.monotonic()
    memory.end()
    assert time.monotonic() - started < 30
    gate.set()  # the model answers after all; the job had more pieces to ask about
    assert gone()
    assert len(model.requests) == 1


def test_close_without_a_job_and_twice(colour):
    memory = Host(colour, summarizer=ScriptedModel())
    memory.turns(0, 12)
    memory.close()
    memory.end()
    assert gone(), workers()


def test_a_cancelled_wait_leaves_the_job_and_the_memory_as_they_were():
    gate = threading.Event()
    model = ScriptedModel([GOOD] * 50, gate=gate)
    memory = Host("async", summarizer=model)
    at = begun(memory, model)

    async def impatient():
        waiting = asyncio.ensure_future(memory.memory.wait(0.3))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    memory.run(impatient())
    gate.set()
    assert memory.wait(300)
    memory.turns(at, at + 20)
    assert len(compactions(memory)) > 1
    assert memory.verify().ok
    memory.end()


def test_a_loop_that_ends_with_a_job_at_work_ends():
    gate = threading.Event()
    model = ScriptedModel([GOOD] * 50, gate=gate)
    memory = Host("async", summarizer=model)
    begun(memory, model)
    started = time.monotonic()
    memory._runner.close()  # nobody closed the memory
    assert time.monotonic() - started < 30
    gate.set()
    assert gone()
