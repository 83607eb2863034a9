"""The floor where pins are all that stands before the user's words."""

import pytest

from pagein import AgentMemory, OverBudget, TaskStep
from pagein.backends.memory import InMemoryLog


def test_pins_before_words_that_do_not_fit_are_told_as_over_budget():
    with AgentMemory(InMemoryLog(), budget=160) as memory:
        memory.pin("never touch production")
        memory.pin("nor the staging")
        memory.record(TaskStep("word " * 400))
        with pytest.raises(OverBudget):
            memory.view()
        assert memory.verify().ok
