"""The floor where pins are all that stands before the user's words."""

import pytest

from pagein import ActionStep, AgentMemory, Observation, OverBudget, SummaryStep, TaskStep, ToolCall
from pagein.backends.memory import InMemoryLog


def test_pins_before_words_that_do_not_fit_are_told_as_over_budget():
    with AgentMemory(InMemoryLog(), budget=160) as memory:
        memory.pin("never touch production")
        memory.pin("nor the staging")
        memory.record(TaskStep("word " * 400))
        with pytest.raises(OverBudget):
            memory.view()
        assert memory.verify().ok


@pytest.mark.parametrize("policy", ["ladder", "relevance"])
def test_a_summary_that_begins_at_a_pin_is_folded_again_where_nothing_else_fits(tmp_path, policy):
    path = tmp_path / "run.db"
    with AgentMemory.open(path, budget=1_500, page_in=0) as memory:
        memory.record(TaskStep("Build the shop."))
        memory.pin("never touch production")
        for number in range(12):
            call = ToolCall(f"c{number}", "bash", f'{{"command": "cat src/part_{number}.py"}}')
            lines = "\n".join(f"{n}: src/mod_{number}/app_{n}.py holds value_{number * 100 + n}" for n in range(12))
            memory.record(ActionStep(f"I look at part {number}.", (call,)), Observation(call.id, lines))
            view = memory.view()
    summaries = [entry for entry in view.run if isinstance(entry.item, SummaryStep)]
    assert [entry.first for entry in summaries] == [1]
    assert summaries[0].tokens > 60
    with AgentMemory.open(path, budget=300, page_in=0, policy=policy) as memory:
        assert memory.view().tokens <= 300
