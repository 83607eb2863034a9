"""Every policy that has a name keeps the contract."""

import json

import pytest

from pagein import ActionStep, AgentMemory, Observation, SystemPromptStep, TaskStep, ToolCall
from pagein.context.compaction.registry import POLICIES, policy_named
from pagein.testing.policies import PolicyTests


class Named(PolicyTests):
    @pytest.fixture
    def policy(self):
        return policy_named(self.named)


class TestLadder(Named):
    named = "ladder"


@pytest.mark.slow
class TestClip(Named):
    named = "clip"


class TestMask(Named):
    named = "mask"


@pytest.mark.slow
class TestReasoning(Named):
    named = "reasoning"


class TestWindow(Named):
    named = "window"


@pytest.mark.slow
class TestPrune(Named):
    named = "prune"


@pytest.mark.slow
class TestProjection(Named):
    named = "projection"


@pytest.mark.slow
class TestUsers(Named):
    named = "users"


class TestRounds(Named):
    named = "rounds"


@pytest.mark.slow
class TestShortLong(Named):
    named = "short_long"


@pytest.mark.slow
class TestRolling(Named):
    named = "rolling"


class TestTiers(Named):
    named = "tiers"


class TestChat(Named):
    named = "chat"


class TestRelevance(Named):
    named = "relevance"


def play_steps(memory, count):
    """Record so many actions with results of about 430 tokens, with a view after each; return the last one."""
    memory.record(TaskStep("Read every part."))
    for number in range(count):
        call = ToolCall(f"c{number}", "read", json.dumps({"part": number}))
        result = "\n".join(f"part {number} has a value_{number * 50 + row} in row {row}" for row in range(30))
        memory.record(ActionStep(f"I read {number}.", (call,)), Observation(call.id, result))
        view = memory.view()
    return view


@pytest.mark.parametrize("policy", ["tiers", "ladder"])
def test_in_a_large_view_no_step_leaves_for_its_number(policy):
    # With a model that writes summaries, all but the last five to ten actions had left a view of 200,000 tokens at 12,000.
    with AgentMemory.open(":memory:", budget=40_000, policy=policy) as memory:
        assert not play_steps(memory, 25).has_replaced_entries
        view = play_steps(memory, 200)
        assert view.has_replaced_entries
        assert sum(isinstance(entry.item, ActionStep) for entry in view.run) > 15


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_result_that_does_not_fit_has_a_third_of_the_budget(policy):
    # Without a step that clips, as in tiers, the floor cut one of 74,000 tokens to 256, with 60,000 of 100,000 free.
    with AgentMemory.open(":memory:", budget=10_000, policy=policy) as memory:
        play_steps(memory, 30)
        call = ToolCall("long", "read", '{"part": "all"}')
        rows = (f"line {row} of the report speaks of pump number_{row} and its valves" for row in range(800))
        memory.record(ActionStep("I read all.", (call,)), Observation(call.id, "\n".join(rows)))
        view = memory.view()
    assert 2_000 < view.run[-1].tokens < 4_000


def test_every_named_policy_is_tried():
    assert {suite.named for suite in Named.__subclasses__()} == set(POLICIES)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_system_prompt_right_behind_what_left_is_no_episode(policy):
    with AgentMemory.open(":memory:", budget=1_500, policy=policy) as memory:
        memory.record(SystemPromptStep("Be careful."), TaskStep("Build it."))
        play_steps(memory, 1)
        memory.clear_view()
        memory.record(SystemPromptStep("The build server is down."), TaskStep("Go on."))
        view = play_steps(memory, 14)
        assert view.has_replaced_entries
        assert "The build server is down." in str(view.messages())
