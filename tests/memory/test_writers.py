"""Two writers, one winner; and what the loser then knows."""

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.errors import Conflict, LogUnwritable, UnknownHandle
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.host_memory import runtime_of

LONG = "\n".join(f"line {n} of the output" for n in range(200))


def two():
    log = InMemoryLog()
    memory = AgentMemory(log, budget=400)
    memory.record(TaskStep("Do it."))
    for turn in range(4):
        memory.record(ActionStep(f"{turn}", (ToolCall("c", "cat"),), (Observation("c", LONG),)))
        memory.view()
    return log, memory, AgentMemory(log, budget=400)


def test_the_loser_is_told_and_the_next_try_works():
    log, first, second = two()
    second.record(TaskStep("mine"))
    head = log.head()
    with pytest.raises(Conflict):
        first.record(TaskStep("too late"))
    assert log.head() == head
    first.record(TaskStep("now"))
    assert [step.content for step in first.steps[-2:]] == ["mine", "now"]


def test_another_writers_undo_is_seen_after_the_conflict():
    log, first, second = two()
    second.undo()
    with pytest.raises(Conflict):
        first.pin("late")
    assert first.report() == AgentMemory(log, budget=400).report()


def test_an_undo_that_cannot_read_changes_nothing():
    class Failing(InMemoryLog):
        broken = False

        def read(self, start=0, stop=None):
            if self.broken:
                raise LogUnwritable("gone")
            return super().read(start, stop)

    log = Failing()
    memory = AgentMemory(log, budget=200)
    memory.record(TaskStep("Do it."), ActionStep("a", (ToolCall("c", "cat"),), (Observation("c", LONG),)))
    memory.view()
    head, report = log.head(), memory.report()
    log.broken = True
    with pytest.raises(LogUnwritable):
        memory.undo()
    log.broken = False
    assert (log.head(), memory.report()) == (head, report)
    memory.undo()
    assert log.head() == head + 1


def test_a_late_result_comes_back_by_its_range_and_with_its_action():
    memory = AgentMemory(InMemoryLog(), budget=5_000)
    memory.record(TaskStep("a"), ActionStep("b", (ToolCall("c", "cat"),)), TaskStep("stop"), TaskStep("go on"))
    position = memory.record(Observation("c", "the late answer")).first
    memory.record(TaskStep("more"), TaskStep("and more"))
    assert "the late answer" in memory.expand("s1")
    assert memory.expand("s1").steps[0].observations[0].content == "the late answer"
    assert str(memory.expand("s1.0")) == "the late answer"
    assert "the late answer" in memory.expand(f"s{position}-{position + 1}")
    assert memory.expand(f"s{position}-{position + 1}").notes == (Observation("c", "the late answer"),)
    with pytest.raises(UnknownHandle):
        memory.expand("s1.1")


def test_a_failure_is_reported_once_whatever_branch_the_run_is_on(tmp_path):
    with AgentMemory.open(tmp_path / "run.db", budget=4_000) as memory:
        memory.record(TaskStep("a"))
        for branch in ("main", "one", "two"):
            if branch != "main":
                memory.fork(name=branch)
                memory.switch(branch)
            runtime_of(memory).state.problems.report("LogUnwritable", "the disk is full")
        assert memory.report().problems == ("the disk is full",)
