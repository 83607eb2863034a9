"""Accepted by mypy --strict; never run: what a user writes has the types it seems to have."""

from typing import Any, assert_type

from pagein import (
    ActionStep,
    AgentMemory,
    AsyncAgentMemory,
    Budget,
    Compaction,
    Expansion,
    Observation,
    Plan,
    RecordResult,
    Report,
    Step,
    TaskStep,
    ToolCall,
    Usage,
    Verification,
    View,
)


def sync(memory: AgentMemory) -> None:
    """Each verb gives what its name says."""
    assert_type(memory.record(TaskStep("hi"), ActionStep("yes", (ToolCall("a", "ls"),))), RecordResult)
    assert_type(memory.record(Observation("a", "x")), RecordResult)
    assert_type(memory.record_messages([{"role": "user", "content": "hi"}], "openai", usage=Usage(1)), RecordResult)
    assert_type(memory.view(), View)
    assert_type(memory.report(), Report)
    assert_type(memory.to_messages(summary_mode=True, keep_last_n=8, max_tokens=4_000), list[Any])
    assert_type(memory.to_request("anthropic"), dict[str, Any])
    assert_type(memory.expand("s0"), Expansion)
    assert_type(memory.expand(0).steps, tuple[Step, ...])
    assert_type(memory.pin("x"), str)
    assert_type(memory.compact(), Compaction | None)
    assert_type(memory.undo(), Compaction)
    assert_type(memory.verify(), Verification)
    assert_type(memory.steps, tuple[Step, ...])


async def awaited(memory: AsyncAgentMemory) -> None:
    """The twin gives the same, awaited."""
    assert_type(await memory.record(TaskStep("hi")), RecordResult)
    assert_type(await memory.view(), View)
    assert_type(await memory.to_messages("openai"), list[Any])
    assert_type(await memory.steps, tuple[Step, ...])


class Nothing:
    """A policy of a user's own."""

    name = "nothing"

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Nothing ever leaves by choice."""
        return None


memory = AgentMemory.open(":memory:", budget=Budget(8_000, output=1_000), policy=Nothing(), model="gpt-4o")

memory.to_messages("opnai")  # type: ignore[arg-type]
AgentMemory.open(":memory:", policy="lader")  # type: ignore[arg-type]
