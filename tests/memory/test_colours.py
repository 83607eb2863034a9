"""AgentMemory and AsyncAgentMemory are one body: the same script gives the same, in both colours."""

import asyncio
import inspect
import threading
import time

import pytest

from pagein import AgentMemory, AsyncAgentMemory
from pagein.backends.memory import InMemoryLog
from pagein.errors import LogClosed, LogUnwritable, OverBudget, ProtocolError, UnknownHandle
from pagein.events.steps import ActionStep, Observation, SystemPromptStep, TaskStep, ToolCall, Usage

OUTPUT = "\n".join(f"{n}: src/app_{n}.py holds value_{n * 101}" for n in range(60))


def script():
    """Verbs and arguments; what each gives or raises is compared."""
    yield "record", (SystemPromptStep("Be brief."), TaskStep("Find value_101."))
    for turn in range(8):
        yield "record", (ActionStep(f"Look {turn}.", (ToolCall(f"c{turn}", "cat", "{}"),)),)
        yield "record", (Observation(f"c{turn}", OUTPUT[turn:]),)
        yield "to_messages", ()
    yield "record", (Observation("nobody", "?"),)
    yield "view", ()
    yield "record_messages", ([{"role": "user", "content": "And then?"}],)
    yield "pin", ("Never push.",)
    yield "compact", ()
    yield "to_messages", ("anthropic",)
    yield "to_request", ("anthropic",)
    yield "undo", ()
    yield "expand", ("s2",)
    yield "expand", ("s999",)
    yield "unpin", ("s0",)
    yield "steps", None
    yield "get_full_steps", ()
    yield "get_succinct_steps", ()
    yield "verify", ()
    yield "close", ()
    yield "view", ()


def opened(colour):
    return colour(InMemoryLog(), budget=1_200, clock=lambda: 0.0)


async def played(memory):
    """What each verb of the script gave, or what it raised."""
    given = []
    for verb, arguments in script():
        try:
            found = getattr(memory, verb) if arguments is None else getattr(memory, verb)(*arguments)
            given.append((verb, await found if inspect.isawaitable(found) else found))
        except (ProtocolError, UnknownHandle, LogClosed, OverBudget) as error:
            given.append((verb, (type(error), str(error))))
    return given, memory.repairs, memory.budget


@pytest.mark.parametrize("colour", [AgentMemory, AsyncAgentMemory])
def test_the_same_script_gives_the_same_in_both_colours(colour):
    given, repairs, budget = asyncio.run(played(opened(colour)))
    expected, *rest = asyncio.run(played(opened(AgentMemory)))
    assert given == expected
    assert [repairs, budget] == rest
    outcomes = dict(given)
    assert outcomes["verify"].ok
    assert outcomes["view"][0] is LogClosed
    assert sum(isinstance(found, tuple) and len(found) == 2 and found[0] is ProtocolError for _, found in given) == 1


def test_both_colours_have_the_same_verbs():
    def verbs(colour):
        return {
            name: [*inspect.signature(each).parameters]
            for name, each in inspect.getmembers(colour, inspect.isfunction)
            if not name.startswith("_")
        }

    assert verbs(AgentMemory) == verbs(AsyncAgentMemory)


class Gate(InMemoryLog):
    """A log whose writes wait for a door to open."""

    def __init__(self):
        super().__init__()
        self.door, self.entered = threading.Event(), threading.Event()
        self.door.set()

    def append(self, bodies, *, after, at):
        self.entered.set()
        assert self.door.wait(60)
        return super().append(bodies, after=after, at=at)


async def begin_first(log):
    """A memory whose first record is at the closed door, and the task of that record."""
    memory = await AsyncAgentMemory(log, budget=500)
    log.door.clear()
    first = asyncio.create_task(memory.record(TaskStep("first")))
    await asyncio.to_thread(log.entered.wait, 60)
    return memory, first


def test_a_call_cancelled_before_its_turn_changes_nothing():
    async def run():
        log = Gate()
        memory, first = await begin_first(log)
        second = asyncio.create_task(memory.record(TaskStep("second")))
        await asyncio.sleep(0)
        second.cancel()
        log.door.set()
        time.sleep(0.1)  # noqa: ASYNC251 - the loop does nothing, and the next turn could begin
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        assert await memory.steps == (TaskStep("first"),)
        await memory.record(TaskStep("third"))
        assert await memory.steps == (TaskStep("first"), TaskStep("third"))

    asyncio.run(run())


def test_a_call_cancelled_before_its_turn_ends_at_once():
    async def run():
        log = Gate()
        memory, first = await begin_first(log)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(memory.record(TaskStep("second")), 0.01)
        assert not first.done()
        log.door.set()
        await first

    asyncio.run(run())


def test_a_call_cancelled_while_it_writes_is_done_whole():
    async def run():
        log = Gate()
        memory = await AsyncAgentMemory(log, budget=500)
        log.door.clear()
        log.entered.clear()
        call = asyncio.create_task(memory.record(TaskStep("first")))
        await asyncio.to_thread(log.entered.wait, 60)
        call.cancel()
        await asyncio.sleep(0.01)
        assert not call.done(), "the memory was free for another call while a thread still wrote"
        log.door.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert log.head() == 1
        assert (await memory.view()).head == 1, "the memory knows less than the log"
        await memory.record(TaskStep("second"))
        assert await memory.steps == (TaskStep("first"), TaskStep("second"))

    asyncio.run(run())


def test_a_failure_inside_a_cancelled_call_changes_nothing():
    class Full(Gate):
        def append(self, bodies, *, after, at):
            self.entered.set()
            assert self.door.wait(60)
            raise LogUnwritable("the disk is full")

    async def run():
        log = Full()
        memory, call = await begin_first(log)
        call.cancel()
        log.door.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await memory.steps == ()

    asyncio.run(run())


def test_tasks_take_their_turns():
    async def run():
        memory = await AsyncAgentMemory(InMemoryLog(), budget=5_000)
        await asyncio.gather(*(memory.record(TaskStep(str(n))) for n in range(50)))
        assert {step.content for step in await memory.steps} == {str(n) for n in range(50)}

    asyncio.run(run())


def test_threads_take_their_turns():
    memory = AgentMemory(InMemoryLog(), budget=5_000)
    threads = [threading.Thread(target=lambda n=n: memory.record(TaskStep(str(n)))) for n in range(50)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {step.content for step in memory.steps} == {str(n) for n in range(50)}


def test_the_usage_in_an_old_log_teaches_nothing_when_it_is_folded_again():
    log = InMemoryLog()
    memory = AgentMemory(log, budget=2_000)
    memory.record(TaskStep("Find it."))
    for turn in range(12):
        memory.record(ActionStep(OUTPUT, usage=Usage(memory.view().tokens * 3 if turn < 9 else 0)))
    limit = memory.view().limit
    memory.undo()
    memory.verify()
    assert memory.view().limit == limit
