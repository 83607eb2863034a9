"""Results that the model has not read yet: a compaction leaves them whole where they fit."""

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.events.entries import Compaction
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall, as_text
from pagein.memory.agent_memory import AgentMemory


def play_reads(budget, lines):
    """Record a read of so many lines for each turn; return the log, and whether each result was whole in its first view."""
    log, shown = InMemoryLog(), []
    memory = AgentMemory(log, budget=budget)
    memory.record(TaskStep("Mend the parser."))
    for turn, count in enumerate(lines):
        output = "\n".join(f"line {line} of step {turn} reads field_{line}_{turn}" for line in range(count))
        memory.record(ActionStep(f"I read part {turn}.", (ToolCall(f"c{turn}", "read", f'{{"part": {turn}}}'),)))
        memory.record(Observation(f"c{turn}", output))
        shown.append(any(output in as_text(message.content or "") for message in memory.view().messages()))
    return log, shown


def test_a_result_that_was_not_read_yet_stays_whole_at_a_compaction():
    log, shown = play_reads(4_000, [15 if turn % 6 else 90 for turn in range(24)])
    assert sum(isinstance(entry.body, Compaction) for entry in log.read()) >= 3
    assert all(shown), f"the model never saw the whole of {[turn for turn, whole in enumerate(shown) if not whole]}"


def test_a_result_that_has_no_space_is_abridged():
    _, shown = play_reads(4_000, [15, 15, 400, 15])
    assert shown == [True, True, False, True]


@pytest.mark.parametrize("calls", [1, 2])
def test_a_result_above_a_third_of_the_budget_is_whole_where_the_view_has_space(calls):
    outputs = [
        f"part {part}\n" + f"line of part {part} that nobody read yet\n" * (200 // calls) for part in range(calls)
    ]
    with AgentMemory.open(":memory:", budget=4_000) as memory:
        memory.record(TaskStep("Mend the parser."))
        memory.record(ActionStep(None, tuple(ToolCall(f"c{part}", "read", "{}") for part in range(calls))))
        memory.record(*(Observation(f"c{part}", output) for part, output in enumerate(outputs)))
        shown = [as_text(message.content or "") for message in memory.view().messages()]
        assert all(output in shown for output in outputs)
        memory.record(ActionStep("Read.", (ToolCall("d", "run", "{}"),), (Observation("d", "short"),)))
        assert not any(isinstance(entry.body, Compaction) for entry in memory._runtime.log.read())
