"""Measure a turn in other libraries, if installed: their public functions on the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final

from benchmarks.synthetic_run import SyntheticTurn, opening
from pagein.tokens import TokenCounter

CURE: Final = "pip install 'pagein[bench]'"


def is_installed(module: str) -> bool:
    """True where the module can be imported. Imports nothing."""
    return find_spec(module) is not None


def trim_messages(run: Sequence[SyntheticTurn], budget: int, counter: TokenCounter | None) -> Callable[[], object]:
    """One call of langchain's ``trim_messages`` over the run; without a counter, with its own approximate one."""
    from langchain_core import messages as lc  # noqa: PLC0415 - an extra, and slow to import

    wire = [*opening(), *(message for turn in run for message in turn.messages)]
    history = lc.convert_to_messages(wire)

    def exact(batch: Sequence[Any]) -> int:
        assert counter is not None
        calls = (str(call["args"]) for each in batch for call in getattr(each, "tool_calls", ()))
        return sum(counter.text(each.text) for each in batch) + sum(map(counter.text, calls))

    approximate = lc.utils.count_tokens_approximately
    return lambda: lc.trim_messages(
        history,
        max_tokens=budget,
        token_counter=approximate if counter is None else exact,
        strategy="last",
        include_system=True,
    )


def memory_to_messages(run: Sequence[SyntheticTurn]) -> Callable[[], object]:
    """Make messages of every step of a smolagents memory, as its agent does each turn."""
    from smolagents import memory as sm  # noqa: PLC0415 - an extra, and slow to import
    from smolagents.monitoring import Timing  # noqa: PLC0415

    system, task = opening()
    memory = sm.AgentMemory(system_prompt=system["content"])
    memory.steps.append(sm.TaskStep(task=task["content"]))
    for turn in run:
        call = sm.ToolCall(name="bash", arguments={"command": turn.command}, id=f"call_{turn.number}")
        memory.steps.append(
            sm.ActionStep(
                step_number=turn.number,
                timing=Timing(start_time=0.0, end_time=1.0),
                model_output=turn.thought,
                tool_calls=[call],
                observations=turn.output,
            )
        )
    return lambda: [message for step in (memory.system_prompt, *memory.steps) for message in step.to_messages()]
