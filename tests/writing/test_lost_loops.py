"""A summary is being written, and its event loop is closed, or nobody waits for it any more."""

import asyncio
import contextvars

import pytest
from writing_runs import BUDGET, COUNTER, GOOD, RULE, turn

from pagein import AsyncAgentMemory, TaskStep
from pagein.models import ModelResponse
from pagein.testing.scripted_writer import ScriptedModel

OPTIONS = {"budget": BUDGET, "counter": COUNTER, "policy": "rolling", "spend": None}


class LateModel(ScriptedModel):
    """Answers once it is no longer late."""

    is_late, was_cancelled = True, False

    async def awrite(self, request):
        self.requests.append(request)
        try:
            await asyncio.sleep(60 if self.is_late else 0)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return ModelResponse(GOOD)


async def begin(memory, model):
    await memory.record(TaskStep(f"Mend the header. {RULE}"))
    for number in range(20):
        await memory.record(turn(number))
        await memory.to_messages()
        await asyncio.sleep(0)
    assert not await memory.wait(0.1)
    assert len(model.requests) == 1


def test_a_summary_whose_loop_was_closed_is_begun_again_in_the_next(tmp_path):
    model = LateModel()
    memory = AsyncAgentMemory.open(str(tmp_path / "run.db"), summarizer=model, **OPTIONS)

    async def finish():
        assert await memory.wait(20)
        writer = memory.report().writers[0]
        await memory.close()
        return writer

    asyncio.run(begin(memory, model))
    model.is_late = False
    writer = asyncio.run(finish())
    assert len(model.requests) > 1
    assert writer.taken > 0


def test_a_wait_that_is_cancelled_leaves_the_memory_to_others_and_close_cancels_the_model():
    async def run():
        model = LateModel()
        memory = AsyncAgentMemory.open(":memory:", summarizer=model, **OPTIONS)
        await begin(memory, model)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(memory.wait(), 0.1)
        await asyncio.wait_for(memory.view(), 20)
        assert not model.was_cancelled
        await memory.close()
        assert model.was_cancelled

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # asyncio's, of the task
@pytest.mark.parametrize("is_closed", [False, True], ids=["stopped", "closed"])
def test_a_wait_in_a_loop_that_ended_keeps_nobody_waiting(is_closed):
    model = LateModel()
    memory = AsyncAgentMemory.open(":memory:", summarizer=model, **OPTIONS)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin(memory, model))
    waiting = loop.create_task(memory.wait())
    loop.run_until_complete(asyncio.sleep(0.1))
    if is_closed:
        loop.close()
    asyncio.run(asyncio.wait_for(memory.view(), 20))
    if not is_closed:
        assert not loop.run_until_complete(asyncio.wait_for(waiting, 20))
        loop.close()
    asyncio.run(memory.close())


def test_the_model_is_awaited_in_the_context_of_the_call_that_asked_for_the_summary():
    request_id, seen = contextvars.ContextVar("request_id", default=""), []

    class Noting(LateModel):
        is_late = False

        async def awrite(self, request):
            seen.append(request_id.get())
            return await super().awrite(request)

    async def run():
        request_id.set("request 7")
        async with AsyncAgentMemory.open(":memory:", summarizer=Noting(), **OPTIONS) as memory:
            await memory.record(TaskStep(f"Mend the header. {RULE}"), *map(turn, range(20)))
            await memory.compact(wait=True)

    asyncio.run(run())
    assert set(seen) == {"request 7"}
