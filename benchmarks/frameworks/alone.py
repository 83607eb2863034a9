"""The turns of an agent through AgentMemory alone: what of a framework's cost is not its integration's."""

from __future__ import annotations

import json

from benchmarks.frameworks.meter import TASK, Meter, page
from pagein.events.steps import ActionStep, Observation, SystemPromptStep, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory


def play(calls: int, budget: int | None, meter: Meter) -> None:
    """So many calls, and an answer; without a budget it keeps every message in a list."""
    if budget is None:
        return _play_without_memory(calls, meter)
    with AgentMemory.open(":memory:", budget=budget) as memory:
        memory.record(SystemPromptStep("You read pages."), TaskStep(TASK))
        for number in range(calls + 1):
            shown = memory.to_messages()
            with meter.request(lambda shown=shown: map(json.dumps, shown)):  # type: ignore[misc]
                pass
            call = ToolCall(f"call_{number}", "look", json.dumps({"number": number}))
            memory.record(ActionStep(None, (call,)))
            memory.record(Observation(call.id, page(number)))
    return None


def _play_without_memory(calls: int, meter: Meter) -> None:
    rows = [TASK]
    for number in range(calls + 1):
        with meter.request(rows.copy):
            pass
        rows.extend((json.dumps({"number": number}), page(number)))
