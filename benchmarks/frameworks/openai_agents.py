"""An agent of the OpenAI Agents SDK, bare with the SDK's own session and with PageinSession."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from benchmarks.frameworks.meter import TASK, Meter, page
from pagein.integrations.openai_agents.session import PageinSession


@function_tool
def look(number: int) -> str:
    """A page of the report."""
    return page(number)


def play(calls: int, budget: int | None, meter: Meter) -> None:
    """So many calls, and an answer."""

    def answer(call: ModelCall) -> list[Any]:
        rows = call.input if isinstance(call.input, list) else [call.input]
        with meter.request(lambda: map(json.dumps, rows)) as number:
            if number >= calls:
                return [assistant_message("Read.")]
            return [function_call("look", {"number": number}, call_id=f"call_{number}")]

    set_tracing_disabled(disabled=True)
    model = ScriptedModel([ModelStep.respond(answer) for _ in range(calls + 1)])
    if budget is None:
        bare = Agent(name="reader", model=model, tools=[look], instructions="You read pages.")
        session = SQLiteSession("bench")
        asyncio.run(Runner.run(bare, TASK, session=session, max_turns=calls + 5))
        session.close()
        return
    ours = PageinSession("bench", budget=budget)
    agent = Agent(name="reader", model=model, tools=[look, *ours.tools()], instructions="You read pages.")
    config = ours.run_config()
    asyncio.run(Runner.run(agent, TASK, session=ours, run_config=config, max_turns=calls + 5))
    ours.close()
