"""Tiers with ``relevant`` keep the most relevant steps, scored as in the policy ``relevance``."""

import math

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.policies.relevance import Relevance
from pagein.context.compaction.policies.tiers import Tiers
from pagein.context.compaction.step_scores import select_best
from pagein.context.view.body import preview
from pagein.events.steps import ActionStep, Observation, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory
from pagein.testing.policies import PolicyTests
from pagein.tokens import Budget

DOCK = "harbour crane berth tide pilot mooring container manifest"
BAKE = "oven flour yeast crumb proofing sourdough banneton crust"
BUDGET = Budget(3_000, high=0.9, low=0.7)


class TestTiersThatKeepWhatIsRelevant(PolicyTests):
    @pytest.fixture
    def policy(self):
        return Tiers(relevant=0.2)


def about(topic, number):
    """An action whose result speaks of one thing, in words enough."""
    call = ToolCall(f"c{number}", "look", f'{{"at": "place {number}"}}')
    text = " ".join(f"{word} {number}" for word in topic.split()) * 3
    return ActionStep(f"Look {number}.", (call,), (Observation(f"c{number}", text),))


@pytest.fixture(scope="module")
def view():
    """A run of two topics by turns that now is about the harbour."""
    with AgentMemory(InMemoryLog(), budget=100_000, page_in=0) as memory:
        memory.record(TaskStep("Where does the crane stand at the berth?"))
        memory.record(*(about((DOCK, BAKE)[number % 2], number) for number in range(24)))
        memory.record(*(about(DOCK, 90 + number) for number in range(6)))
        return memory._runtime.state.fold.view(BUDGET.limit)


def whole(view, policy, topic):
    """Count the actions on a topic that are shown as recorded after a policy was applied."""
    after = preview(view, policy(view, BUDGET).replacements)
    assert after.tokens <= view.limit
    results = [str(entry.item.observations) for entry in after.run if isinstance(entry.item, ActionStep)]
    return sum(topic.split()[0] in entry for entry in results)


def test_what_has_to_do_with_now_keeps_its_place(view):
    plain, relevant = Tiers(), Tiers(relevant=0.3)
    assert whole(view, plain, DOCK) <= 6
    assert whole(view, relevant, DOCK) > whole(view, plain, DOCK)
    assert whole(view, relevant, BAKE) == whole(view, plain, BAKE) == 0


def test_it_is_scored_as_the_policy_relevance_scores(view):
    scores = Relevance(keep=5).scores(view)
    costs = {entry.first: entry.tokens for entry in view.run}
    staying = {entry.first for entry in preview(view, Tiers(relevant=0.3)(view, BUDGET).replacements).run}
    best = select_best(scores, costs, view.limit * 0.3)
    assert best
    assert best <= staying


def test_what_the_user_gives_weight_keeps_its_place(view):
    weighted = next(entry for entry in view.run if "oven" in str(getattr(entry.item, "observations", "")))

    def weight(entry):
        return math.inf if entry.first == weighted.first else 0.0

    after = preview(view, Tiers(weight=weight)(view, BUDGET).replacements)
    assert weighted in after.run
