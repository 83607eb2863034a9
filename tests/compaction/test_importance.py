"""Marks: what is important stays whole under every policy, what is not leaves first, and nothing else changes."""

from typing import get_args

import pytest

from pagein import ActionStep, AgentMemory, Observation, OverBudget, SystemPromptStep, TaskStep, ToolCall, UnknownHandle
from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.base import Plan, PolicyName
from pagein.context.tool_rules import Tools
from pagein.context.view.body import preview
from pagein.errors import ConfigurationError
from pagein.events.entries import Replacement, Stub
from pagein.testing import promises

LIMIT = 3_000
CODE = "\n".join(f"line {number} of the plan that must be kept: quay_{number}" for number in range(20))


def action(number, text=None):
    text = text or "\n".join(f"{number}.{line}: build of part_{line} went on with stage {number}" for line in range(12))
    return ActionStep.of(f"I do {number}.", (ToolCall(f"c{number}", "bash", "{}"),), (Observation(f"c{number}", text),))


def whole(memory):
    """The positions of the steps that a view shows as recorded."""
    view = memory.view()
    assert view.tokens <= view.limit
    promises.check_well_formed(view.messages())
    return {entry.first for entry in view.run if entry.tier in ("whole", "user") and not entry.stubs}


def played(where=":memory:", importance="high", turns=24, **options):
    """A run whose step s3 has the plan, under a budget that it passes again and again."""
    memory = AgentMemory.open(where, budget=LIMIT, page_in=0, **options)
    memory.record(SystemPromptStep("Be careful."), TaskStep("Build it."), action(0))
    memory.record(action(1, CODE), importance=importance)
    for number in range(2, turns):
        memory.record(action(number))
        assert 3 in whole(memory) or importance != "high", number
    return memory


@pytest.mark.parametrize("policy", get_args(PolicyName))
def test_an_important_step_stays_whole_under_every_policy(policy):
    assert 3 not in whole(played(importance=None, policy=policy)), "it would have stayed unmarked"
    memory = played(policy=policy)
    memory.mark("s3", "normal")
    for number in range(24, 40):
        memory.record(action(number))
    assert 3 not in whole(memory)


class FoldsAll:
    """A policy that knows of no marks."""

    name = "mine"

    def __call__(self, view, budget):
        run = view.run[:-1]
        if view.tokens <= view.limit * budget.high or len(run) < 3:
            return None
        return Plan((Replacement(run[1].first, run[-1].last, summary=f"Gone: s{run[1].first}."),), self.name, "all")


def test_a_policy_of_ones_own_cannot_take_it():
    memory = played(policy=FoldsAll())
    tiers = [entry.tier for entry in memory.view().run]
    assert "summary" in tiers[: tiers.index("whole", 1)], "what stood before it left"


@pytest.mark.slow
def test_a_mark_is_of_the_run_when_it_is_opened_again_branched_copied_or_erased_elsewhere(tmp_path):
    address = str(tmp_path / "run.db")
    played(address, turns=36).close()  # it leaves a snapshot
    memory = AgentMemory.open(address, budget=LIMIT, page_in=0)
    for number in range(50, 58):
        memory.record(action(number))
        assert 3 in whole(memory)
    memory.erase("s5")
    memory.switch(memory.fork().name)
    for number in range(36, 44):
        memory.record(action(number))
        assert 3 in whole(memory)
    memory.compact()
    memory.undo()
    assert 3 in whole(memory)
    memory.erase("s3")
    assert memory.verify().ok
    assert CODE not in str(memory.view().messages())
    memory.close()


def test_a_copy_of_the_run_has_its_marks():
    original = played()
    copy = InMemoryLog()
    copy.append([entry.body for entry in original._runtime.log.read()], after=0, at=0.0)
    memory = AgentMemory(copy, budget=LIMIT, page_in=0)
    assert memory.view() == original.view()
    memory.record(action(24), action(25), action(26))
    assert 3 in whole(memory)


def test_results_that_come_later_mark_their_step():
    memory = AgentMemory.open(":memory:", budget=LIMIT, page_in=0)
    memory.record(TaskStep("Build it."), ActionStep("I read.", (ToolCall("c", "read"),)))
    result = memory.record(Observation("c", CODE), importance="high")
    assert (result.first, result.last) == (2, 3)
    for number in range(24):
        memory.record(action(number))
        assert 1 in whole(memory)


def test_what_is_unimportant_leaves_first():
    memory = AgentMemory.open(":memory:", budget=LIMIT, page_in=0)
    memory.record(TaskStep("Build it."), *(action(number) for number in range(9)))
    memory.record(action(9), importance="low")
    memory.record(action(10))
    for _ in range(40):
        memory.record(TaskStep("Go on. " * 10))
        if any(entry.stubs or entry.tier == "summary" for entry in memory.view().run):
            break
    assert [entry.first for entry in memory.view().run if entry.stubs] == [10]
    assert [entry.tier for entry in memory.view().run if entry.stubs] == ["mask"]


def test_more_than_the_share_is_not_heeded_and_the_newest_marks_go_first():
    memory = AgentMemory.open(":memory:", budget=LIMIT, page_in=0)
    memory.record(TaskStep("Build it."))
    for number in range(24):
        memory.record(action(number), importance="high")
        staying = whole(memory)
        assert memory.steps[-1].content == f"I do {number}."
        assert number < 20 or 1 not in staying
    memory = AgentMemory.open(":memory:", budget=500, page_in=0)
    memory.record(TaskStep("Build it."), action(0, CODE), importance="high")
    for number in range(1, 9):
        memory.record(action(number))
        assert memory.view().tokens <= 500


def test_it_gives_way_where_nothing_else_fits():
    memory = AgentMemory.open(":memory:", budget=1_000, page_in=0)
    memory.record(TaskStep("Build it."), action(0))
    memory.mark("s1")
    memory.record(TaskStep("Heed this. " + "word " * 800))
    view = memory.view()
    assert view.tokens <= 1_000
    memory.record(TaskStep("word " * 1_200))
    with pytest.raises(OverBudget):
        memory.view()


def test_what_is_no_step_or_no_importance_is_refused():
    memory = AgentMemory.open(":memory:", budget=LIMIT)
    memory.record(TaskStep("Build it."))
    for handle in ("s1", "s0-4", "", "the plan", None):
        with pytest.raises(UnknownHandle):
            memory.mark(handle)
    for importance in ("urgent", 1, None):
        with pytest.raises(ConfigurationError, match="importance"):
            memory.mark("s0", importance)
    with pytest.raises(ConfigurationError):
        memory.record(TaskStep("And this."), importance="urgent")
    assert len(memory.steps) == 1


def test_the_model_marks_a_step_by_its_handle():
    memory = AgentMemory.open(":memory:", budget=LIMIT, page_in=0)
    memory.record(TaskStep("Build it."), action(0), action(1, CODE))
    assert memory.call_tool("pin", {"text": "s2"}) == "s2 stays in sight while there is space."
    for number in range(2, 24):
        memory.record(action(number))
        assert 2 in whole(memory)
    assert "out of view" in memory.call_tool("pin", {"text": "s1"})
    assert memory.call_tool("forget", {"id": "s2"}) == "s2 may leave."
    for number in range(24, 40):
        memory.record(action(number))
    assert 2 not in whole(memory)


def test_a_step_that_fits_once_it_is_clipped_is_important_in_the_next_plan_of_the_same_turn():
    with AgentMemory.open(":memory:", budget=LIMIT, page_in=0, tool_rules=Tools(keep=("bash",))) as memory:
        memory.record(
            TaskStep("Build it."), action(0, "\n".join(f"row {number}: {number * 37}" for number in range(500)))
        )
        view = memory._runtime.state.current_view()
        clipped = Replacement(1, 2, stubs=(Stub("observation", 0, "row 0: 0", "clip"),))
        assert (view.important, preview(view, (clipped,)).important) == (frozenset(), frozenset({1}))


@pytest.mark.parametrize("words", [2_600, 2_800, 2_940])
def test_a_step_that_a_tools_rule_keeps_once_it_is_clipped_leaves_where_nothing_else_fits(words):
    with AgentMemory.open(":memory:", budget=LIMIT, page_in=0, tool_rules=Tools(keep=("bash",))) as memory:
        memory.record(SystemPromptStep("rule " * words), TaskStep("Build it."))
        memory.record(*(action(number, "\n".join(f"{row}: built" for row in range(1_000))) for number in range(3)))
        assert memory.view().tokens <= LIMIT
