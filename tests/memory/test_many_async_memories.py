"""Many async memories in one process: they share a few threads, none waits for another's model, and each is closed."""

import asyncio
import os
import threading
import time

import anyio
import pytest

from pagein import AsyncAgentMemory, LogClosed, TaskStep

MAX_THREADS = min(32, (os.cpu_count() or 1) + 4)


def opened(path, **options):
    return AsyncAgentMemory.open(str(path / "run.db"), **{"budget": 3_000} | options)


def test_they_share_a_few_threads(tmp_path):
    memories = [opened(tmp_path, session=f"s{number}") for number in range(3 * MAX_THREADS)]

    async def run():
        await asyncio.gather(*(memory.record(TaskStep("Go.")) for memory in memories))
        names = [thread.name for thread in threading.enumerate()]
        await asyncio.gather(*(memory.close() for memory in memories))
        return sum(name.startswith("AsyncAgentMemory") for name in names)

    assert 0 < asyncio.run(run()) <= MAX_THREADS


def test_calls_that_wait_for_a_model_keep_no_other_memory_waiting(monkeypatch):
    entered, release = threading.Semaphore(0), threading.Event()

    def wait_for_model(*_, **__):
        entered.release()
        assert release.wait(60)
        return True

    async def run():
        memories = [await AsyncAgentMemory.open(":memory:", budget=3_000) for _ in range(MAX_THREADS + 1)]
        other = AsyncAgentMemory.open(":memory:", budget=3_000)
        for memory in memories:
            monkeypatch.setattr(memory._runtime, "take_turn", wait_for_model)
        waits = [asyncio.create_task(memory.wait()) for memory in memories[1:]]
        waits.append(asyncio.create_task(memories[0].compact(wait=True)))
        for _ in waits:
            assert await asyncio.to_thread(entered.acquire, timeout=20)
        try:
            await asyncio.wait_for(other.record(TaskStep("Go.")), 20)
        finally:
            release.set()
        await asyncio.gather(*waits)

    asyncio.run(run())


def test_one_is_closed_also_in_a_scope_of_anyio_that_was_cancelled(tmp_path):
    async def run():
        memory = opened(tmp_path)
        with anyio.CancelScope() as scope:
            async with memory:
                await memory.record(TaskStep("Go."))
                scope.cancel()
                await anyio.sleep(60)
        with pytest.raises(LogClosed):
            await memory.view()

    asyncio.run(run())


def test_one_is_closed_also_where_the_task_is_cancelled_once_more(tmp_path):
    memory = opened(tmp_path)

    async def handle():
        async with memory:
            await asyncio.sleep(60)

    async def run():
        task = asyncio.create_task(handle())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(LogClosed):
            await memory.view()

    asyncio.run(run())


def test_one_that_is_closed_in_another_loop_asks_its_models_there(tmp_path, monkeypatch):
    memory, loops = opened(tmp_path), []
    asyncio.run(memory.record(TaskStep("Go.")))
    monkeypatch.setattr(memory._runtime, "close", lambda: loops.append(memory._find_loop()))

    async def run():
        await memory.close()
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(run())


def test_a_second_close_returns_when_all_is_closed(tmp_path, monkeypatch):
    async def run():
        memory = await opened(tmp_path)
        branches, ended, is_closing = memory._runtime.branches, [], threading.Event()
        close_branches = branches.close

        def close_slowly():
            is_closing.set()
            time.sleep(0.2)
            close_branches()
            ended.append(True)

        monkeypatch.setattr(branches, "close", close_slowly)
        first = asyncio.create_task(memory.close())
        assert await asyncio.to_thread(is_closing.wait, 20)
        await memory.close()
        assert ended
        await first

    asyncio.run(run())


def test_a_call_for_which_there_is_no_thread_changes_nothing(tmp_path, monkeypatch):
    class NoThreads:
        """A pool of the system's last thread: what it refuses it comes to nevertheless, as ThreadPoolExecutor."""

        def __init__(self):
            self.works = []

        def submit(self, *work):
            self.works.append(work)
            raise RuntimeError("can't start new thread")

    async def run():
        memory, pool = await opened(tmp_path), NoThreads()
        with monkeypatch.context() as patched:
            patched.setattr("pagein.memory.background.call_queue._shared_threads", lambda process: pool)
            with pytest.raises(RuntimeError, match="can't start"):
                await memory.record(TaskStep("a"))
        for function, *arguments in pool.works:
            function(*arguments)
        await memory.record(TaskStep("b"))
        assert await memory.steps == (TaskStep("b"),)
        await memory.close()

    asyncio.run(run())
