"""A summary is being written, and its event loop is closed: the next loop has it written again."""

import asyncio

from writing_runs import BUDGET, COUNTER, GOOD, RULE, turn

from pagein import AsyncAgentMemory, TaskStep
from pagein.models import ModelResponse
from pagein.testing.scripted_writer import ScriptedModel


class LateModel(ScriptedModel):
    """Answers once it is no longer late."""

    is_late = True

    async def awrite(self, request):
        self.requests.append(request)
        await asyncio.sleep(60 if self.is_late else 0)
        return ModelResponse(GOOD)


def test_a_summary_whose_loop_was_closed_is_begun_again_in_the_next(tmp_path):
    model = LateModel()
    options = {"budget": BUDGET, "counter": COUNTER, "policy": "rolling", "spend": None, "summarizer": model}
    memory = AsyncAgentMemory.open(str(tmp_path / "run.db"), **options)

    async def begin():
        await memory.record(TaskStep(f"Mend the header. {RULE}"))
        for number in range(20):
            await memory.record(turn(number))
            await memory.to_messages()
            await asyncio.sleep(0)
        assert not await memory.wait(0.1)
        assert len(model.requests) == 1

    async def finish():
        assert await memory.wait(20)
        writer = memory.report().writers[0]
        await memory.close()
        return writer

    asyncio.run(begin())
    model.is_late = False
    writer = asyncio.run(finish())
    assert len(model.requests) > 1
    assert writer.taken > 0
