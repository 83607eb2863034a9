"""A memory calls what is registered for a step when the step is recorded, whoever recorded it and in which colour."""

import asyncio
import contextvars
import threading
import time

import pytest

from pagein import (
    ActionStep,
    AgentMemory,
    AsyncAgentMemory,
    CallbackRegistry,
    ConfigurationError,
    MemoryStep,
    Observation,
    TaskStep,
    ToolCall,
)

MESSAGES = [
    {"role": "user", "content": "Go."},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": "seen"},
]


@pytest.fixture
def events():
    return []


@pytest.fixture
def registry(events):
    callbacks = CallbackRegistry()
    callbacks.register(ActionStep, lambda step: events.append(("action", len(step.tool_calls))))
    callbacks.register(MemoryStep, lambda step, position: events.append((type(step).__name__, position)))
    callbacks.register(Observation, lambda observation, position: events.append((observation.content, position)))
    return callbacks


EXPECTED = [("TaskStep", 0), ("action", 1), ("ActionStep", 1), ("seen", 2)]


def test_each_step_and_observation_is_told_with_its_position(registry, events):
    with AgentMemory.open(":memory:", budget=8_000, callbacks=registry) as memory:
        memory.record_messages(MESSAGES)
        assert events == EXPECTED
        memory.record_messages(MESSAGES)  # nothing of it is new
        memory.pin("Never.")
        assert events == EXPECTED
        memory.fork(name="other")
        memory.switch("other")
        memory.record(TaskStep("Again."))
        assert events[-1] == ("TaskStep", 4)


def test_in_async_code_too(registry, events):
    async def record_three():
        async with await AsyncAgentMemory.open(":memory:", budget=8_000, callbacks=registry) as memory:
            await memory.record(TaskStep("Go."))
            await memory.record(ActionStep(None, (ToolCall("a", "look", "{}"),)))
            await memory.record(Observation("a", "seen"))

    asyncio.run(record_three())
    assert events == EXPECTED


def test_in_async_code_a_callback_may_begin_a_task():
    noted, told = CallbackRegistry(), contextvars.ContextVar("told", default="")

    async def note(step):
        return f"{told.get()}{step.content}"

    async def record_one():
        tasks = []
        noted.register(TaskStep, lambda step: tasks.append(asyncio.create_task(note(step))))
        told.set("Told: ")
        async with AsyncAgentMemory.open(":memory:", budget=8_000, callbacks=noted) as memory:
            await memory.record(TaskStep("Go."))
        return await asyncio.gather(*tasks)

    assert asyncio.run(record_one()) == ["Told: Go."]


def test_in_a_loop_that_was_stopped_a_callback_is_called_when_it_runs_on():
    noted, texts, is_recording = CallbackRegistry(), [], threading.Event()
    noted.register(TaskStep, lambda step: texts.append(step.content))

    def slow_clock():
        is_recording.set()
        time.sleep(0.2)
        return time.time()

    with asyncio.Runner() as runner:
        memory = AsyncAgentMemory.open(":memory:", budget=8_000, callbacks=noted, clock=slow_clock)
        recording = runner.get_loop().create_task(memory.record(TaskStep("Go.")))
        runner.run(asyncio.to_thread(is_recording.wait))
        time.sleep(0.5)  # the loop is stopped, and the turn ends without it
        assert texts == []

        async def go_on():
            await recording
            await asyncio.sleep(0.05)
            return await memory.steps

        assert runner.run(go_on()) == (TaskStep("Go."),)
        assert texts == ["Go."]
        runner.run(memory.close())


def test_a_callback_may_use_the_memory_and_what_it_raises_is_raised_with_the_step_recorded():
    registry = CallbackRegistry()
    with AgentMemory.open(":memory:", budget=8_000, callbacks=registry) as memory:
        registry.register(TaskStep, lambda step: memory.pin(f"Asked: {step.content}"))
        memory.record(TaskStep("Go."))
        assert "Asked: Go." in str(memory.view().messages())

        def refuses(step):
            raise RuntimeError("stop here")

        registry.register(TaskStep, refuses)
        with pytest.raises(RuntimeError, match="stop here"):
            memory.record(TaskStep("Second."))
        assert [step.content for step in memory.steps] == ["Go.", "Second."]
        assert memory.verify().ok


def test_what_is_no_registry_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="callbacks is a CallbackRegistry"):
        AgentMemory.open(tmp_path / "run.db", budget=8_000, callbacks=print)
    assert list(tmp_path.iterdir()) == []
