"""An agent of pydantic-ai, bare and with the capability Pagein."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from benchmarks.frameworks.meter import TASK, Meter, page
from pagein.integrations.pydantic_ai.capability import Pagein


def play(calls: int, budget: int | None, meter: Meter) -> None:
    """So many calls, and an answer."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        with meter.request(lambda: _texts(messages)) as number:
            call = ToolCallPart("look", {"number": number}, f"call_{number}")
            return ModelResponse(parts=[call if number < calls else TextPart("Read.")])

    pages = None if budget is None else Pagein(budget=budget)
    agent = Agent(FunctionModel(answer), capabilities=[pages] if pages else [], instructions="You read pages.")
    agent.tool_plain(name="look")(page)
    asyncio.run(agent.run(TASK, usage_limits=UsageLimits(request_limit=None)))
    if pages is not None:
        pages.close()


def _texts(messages: list[ModelMessage]) -> Iterator[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                yield f"{part.tool_name} {json.dumps(part.args)}"
            else:
                yield str(getattr(part, "content", ""))
