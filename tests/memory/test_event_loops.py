"""One async memory in several event loops, and tasks that end with their loop: nothing is stuck, lost or a conflict."""

import asyncio
import gc
import threading
import time

import pytest

from pagein import AsyncAgentMemory, ConfigurationError, TaskStep


def opened(path, **options):
    return AsyncAgentMemory.open(str(path / "run.db"), **{"budget": 3_000} | options)


async def record_at_once(memory, *texts):
    await asyncio.gather(*(memory.record(TaskStep(text)) for text in texts))


async def texts_of(memory):
    texts = [step.content for step in await memory.steps if isinstance(step, TaskStep)]
    assert (await memory.verify()).ok
    await memory.close()
    return texts


def test_tasks_take_turns_in_one_loop_after_another(tmp_path):
    memory = opened(tmp_path)
    asyncio.run(record_at_once(memory, "a", "b", "c"))
    asyncio.run(record_at_once(memory, "d", "e", "f"))
    assert asyncio.run(texts_of(memory)) == list("abcdef")


def test_tasks_take_turns_in_loops_of_several_threads(tmp_path):
    memory, failures = opened(tmp_path), []

    def record(name):
        try:
            asyncio.run(record_at_once(memory, *(f"{name}{number}" for number in range(12))))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=record, args=(name,), daemon=True) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert sorted(asyncio.run(texts_of(memory))) == sorted(f"{name}{number}" for name in "xyz" for number in range(12))


def test_a_task_that_is_cancelled_while_it_waits_leaves_its_turn_to_the_next(tmp_path):
    memory = opened(tmp_path, clock=slow_clock)

    async def cancel_the_second():
        tasks = [asyncio.create_task(memory.record(TaskStep(text))) for text in "abc"]
        await asyncio.sleep(0.01)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    _, second, _ = asyncio.run(cancel_the_second())
    assert isinstance(second, asyncio.CancelledError)
    assert asyncio.run(texts_of(memory)) == ["a", "c"]


def slow_clock():
    time.sleep(0.05)  # a turn is under way
    return time.time()


def leave_recording(memory, text):
    """An event loop that was stopped, not closed, while its task waits for its turn or has it; and the task."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(memory.record(TaskStep(text)))
    loop.run_until_complete(asyncio.sleep(0.01))
    return loop, task


def finish(loop, task):
    loop.run_until_complete(asyncio.wait_for(task, 5))
    loop.close()


def test_a_task_that_waits_in_a_stopped_loop_keeps_nobody_waiting(tmp_path):
    memory = opened(tmp_path)
    has_begun, ends = threading.Event(), threading.Event()

    def clock():
        has_begun.set()
        ends.wait(10)  # a turn is under way
        return time.time()

    memory._runtime.clock = clock
    first = threading.Thread(target=lambda: asyncio.run(memory.record(TaskStep("a"))))
    first.start()
    assert has_begun.wait(10)
    stopped = leave_recording(memory, "later")
    ends.set()
    first.join(10)
    asyncio.run(asyncio.wait_for(memory.record(TaskStep("b")), 5))
    finish(*stopped)
    assert asyncio.run(texts_of(memory)) == ["a", "later", "b"]


def test_a_turn_in_a_stopped_loop_is_finished_and_keeps_nobody_waiting(tmp_path):
    memory = opened(tmp_path, clock=slow_clock)
    stopped = leave_recording(memory, "a")
    asyncio.run(asyncio.wait_for(memory.record(TaskStep("b")), 5))
    finish(*stopped)
    assert asyncio.run(texts_of(memory)) == ["a", "b"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # asyncio's, of the task
def test_a_turn_in_a_closed_loop_is_over(tmp_path):
    memory = opened(tmp_path, clock=slow_clock)
    asyncio.run(memory.record(TaskStep("first")))
    loop, left = leave_recording(memory, "left")
    loop.close()
    asyncio.run(memory.record(TaskStep("a")))
    recorder = threading.Thread(target=lambda: asyncio.run(record_at_once(memory, "b", "c")))
    recorder.start()
    del left  # its task is collected while another has the turn
    gc.collect()
    recorder.join(10)
    assert asyncio.run(texts_of(memory)) in (["first", "a", "b", "c"], ["first", "left", "a", "b", "c"])


@pytest.mark.parametrize("wait", [0.0, 0.01, 0.02, 0.04])
def test_what_a_task_wrote_while_its_loop_ended_is_no_conflict(tmp_path, wait):
    memory = opened(tmp_path, clock=slow_clock)

    async def leave_a_task_behind():
        await memory.record(TaskStep("a"))
        left = asyncio.create_task(memory.record(TaskStep("b")))
        await asyncio.sleep(wait)
        assert not left.done()

    asyncio.run(leave_a_task_behind())
    asyncio.run(memory.record(TaskStep("c")))
    assert asyncio.run(texts_of(memory)) in (["a", "b", "c"], ["a", "c"])


def test_a_cancelled_close_releases_the_store_and_is_cancelled(tmp_path):
    memory = opened(tmp_path)

    async def close_slowly():
        await memory.record(TaskStep("a"))
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await memory.close()

    asyncio.run(close_slowly())
    assert not (tmp_path / "run.db-wal").exists()


def test_without_a_loop_of_asyncio_the_error_names_the_cure(tmp_path):
    memory = opened(tmp_path)
    with pytest.raises(ConfigurationError, match=r"trio\.to_thread"):
        memory.record(TaskStep("a")).send(None)
    asyncio.run(memory.close())
