"""Relevance: the steps least related to the newest leave first; protected entries stay."""

import math

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.policies.relevance import Relevance
from pagein.context.compaction.step_scores import word_relevance
from pagein.context.view.body import preview
from pagein.events.steps import ActionStep, FinalAnswerStep, Observation, PlanningStep, TaskStep, ToolCall
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens import Budget

DOCK = "harbour crane berth tide pilot mooring container manifest"
BAKE = "oven flour yeast crumb proofing sourdough banneton crust"
BUDGET = Budget(2_200, high=0.9, low=0.6)


def about(topic, number):
    """An action whose result speaks of one thing, in words enough."""
    call = ToolCall(f"c{number}", "look", f'{{"at": "place {number}"}}')
    text = " ".join(f"{word} {number}" for word in topic.split()) * 3
    return ActionStep(f"Look {number}.", (call,), (Observation(f"c{number}", text),))


def full_view(*more, topics=(DOCK, BAKE) * 10):
    """A run of two topics by turns that now is about the harbour."""
    with AgentMemory(InMemoryLog(), budget=100_000, page_in=0) as memory:
        memory.record(TaskStep("Where does the crane stand at the berth?"), *more)
        memory.record(*(about(topic, number) for number, topic in enumerate(topics)))
        memory.record(*(about(DOCK, 90 + number) for number in range(3)))
        return memory._runtime.state.fold.view(BUDGET.limit)


def whole(view, topic):
    """Count the actions on a topic that are shown as recorded."""
    first = topic.split()[0]
    return sum(first in str(entry.item.observations) for entry in view.run if isinstance(entry.item, ActionStep))


def test_what_has_to_do_with_the_newest_steps_stays_longest():
    view = full_view()
    after = preview(view, Relevance()(view, BUDGET).replacements)
    assert whole(after, DOCK) > 5
    assert whole(after, BAKE) == 0
    assert after.tokens <= view.limit * BUDGET.high


def test_by_meaning_where_an_embedder_is_given_and_each_text_once():
    class Contrary:
        """Takes what is baked for what is near to the harbour."""

        embedded = 0

        def embed(self, texts):
            Contrary.embedded += len(texts)
            return [[1.0, 0.1] if "oven" in text or "Where does" in text else [0.0, 1.0] for text in texts]

    view, policy = full_view(), Relevance(embedder=Contrary())
    after = preview(view, policy(view, BUDGET).replacements)
    assert whole(after, BAKE) > 2
    assert whole(after, DOCK) == 3
    embedded = Contrary.embedded
    assert policy(view, BUDGET) == policy(view, BUDGET)
    assert Contrary.embedded == embedded


def test_an_embedder_that_fails_costs_nothing():
    class Down:
        def embed(self, texts):
            raise OSError("no route to host")

    view = full_view()
    assert Relevance(embedder=Down())(view, BUDGET) == Relevance()(view, BUDGET)


def test_final_answers_stay_and_plans_may_leave():
    answer = FinalAnswerStep("Bread is done. " * 20)
    view = full_view(PlanningStep("Bake first. " * 20), answer, TaskStep("Now the crane."))
    scores = Relevance().scores(view)
    items = {entry.first: entry.item for entry in view.run}
    assert answer not in [items[first] for first in scores]
    assert any(isinstance(items[first], PlanningStep) for first in scores)


def test_what_the_user_gives_weight_stays():
    view = full_view()
    weighted = next(entry for entry in view.run if "oven" in str(getattr(entry.item, "observations", "")))

    def weight(entry):
        return math.inf if entry.first == weighted.first else 0.0

    plain = preview(view, Relevance()(view, BUDGET).replacements)
    after = preview(view, Relevance(weight=weight)(view, BUDGET).replacements)
    assert weighted not in plain.run
    assert weighted in after.run


def test_it_does_nothing_below_the_high_mark():
    view = full_view(topics=())
    assert Relevance()(view, BUDGET) is None


def test_rare_words_count_most():
    near, far = word_relevance("the crane of the zeppelin", ["the crane stands", "the zeppelin"] + ["the crane"] * 8)[
        :2
    ]
    assert 0 < near < far <= 1


def test_the_embedder_of_a_memory_reaches_its_policy_and_embeds_each_text_once():
    class Counting:
        name, dimension = "counting", 2

        def __init__(self):
            self.texts = []

        def embed(self, texts):
            self.texts += texts
            return [(1.0, float(len(text) % 7)) for text in texts]

    for policy, embeds in (("relevance", True), (Relevance(embedder=Counting()), False), ("window", False)):
        embedder = Counting()
        with AgentMemory.open(":memory:", policy=policy, embedder=embedder, budget=2_000, page_in=0) as memory:
            for number in range(40):
                call = ToolCall(f"c{number}", "look", "{}")
                seen = Observation(call.id, f"line {number} of the file\n" * 20)
                memory.record(TaskStep(f"Look at {number}."), ActionStep(f"I look at {number}.", (call,), (seen,)))
                memory.view()
            assert memory.verify().ok
        steps = [text for text in embedder.texts if text.startswith("I look")]
        assert bool(steps) == embeds
        assert len(steps) == len(set(steps))
