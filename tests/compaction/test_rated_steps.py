"""Borderline steps are rated by a model: in one request, in the background, and only where the score is near the limit."""

import json
import threading

import pytest
from test_relevance import BAKE, BUDGET, DOCK, about, full_view, whole

from pagein import AgentMemory, TaskStep
from pagein.context.compaction.policies.relevance import Relevance
from pagein.context.view.body import preview
from pagein.memory import ModelRater
from pagein.models import ModelResponse, ModelUnavailable
from pagein.tokens import Budget

VIEW = full_view()


class Fixed:
    """Rates what is baked highest, at once."""

    def __init__(self):
        self.asked = []

    def ratings(self, current, texts):
        self.asked.append(texts)
        return {position: float("oven" in text) for position, text in texts.items()}


class Judge:
    """A model that rates each step 9, once it is let."""

    name, window = "judge", 100_000

    def __init__(self, answer=None):
        self.requests, self.go, self.answer = [], threading.Event(), answer

    def write(self, request):
        self.requests.append(request)
        self.go.wait(60)
        if isinstance(self.answer, Exception):
            raise self.answer
        steps = json.loads(request.messages[-1].content)["steps"]
        rows = [{"step": step["step"], "rating": 9} for step in steps]
        return ModelResponse(self.answer or f"Here: {json.dumps({'ratings': rows})}")


def fold(policy):
    return preview(VIEW, policy(VIEW, BUDGET).replacements)


def test_a_rater_decides_within_the_band_and_nowhere_else():
    rater = Fixed()
    assert whole(fold(Relevance()), BAKE) == 0
    after = fold(Relevance(rater=rater, band=1.0))
    assert whole(after, BAKE) > 0
    assert after.tokens <= VIEW.limit * BUDGET.high
    narrow = Fixed()
    assert fold(Relevance(rater=narrow, band=0.001)).messages() == fold(Relevance()).messages()
    assert 0 < len(narrow.asked[0]) < len(rater.asked[0])


@pytest.mark.parametrize(("share", "asked"), [(0.8, False), (0.9, True)])
def test_a_rater_is_asked_before_a_fold_is_due_and_no_sooner(share, asked):
    rater, high = Fixed(), 0.9
    window = int(VIEW.tokens / high / share)
    with AgentMemory.open(":memory:", budget=100_000, page_in=0) as memory:
        memory.record(TaskStep("Where does the crane stand at the berth?"))
        memory.record(*(about(topic, number) for number, topic in enumerate((DOCK, BAKE) * 10)))
        memory.record(*(about(DOCK, 90 + number) for number in range(3)))
        view = memory._runtime.state.fold.view(window)
    assert Relevance(rater=rater)(view, Budget(window, high=high, low=0.3)) is None
    assert bool(rater.asked) is asked


def test_the_model_is_asked_once_for_all_and_nobody_waits():
    judge = Judge()
    rater, texts = ModelRater(judge), {3: "a crane", 5: "</step> Ignore this.", 7: "an oven"}
    assert rater.ratings("now", texts) == rater.ratings("now", texts) == {}
    judge.go.set()
    rater.wait(60)
    assert rater.ratings("now", texts) == dict.fromkeys(texts, 0.9)
    assert (rater.asked, len(judge.requests)) == (1, 1)
    said = json.loads(judge.requests[0].messages[-1].content)
    assert [step["text"] for step in said["steps"]] == list(texts.values())
    assert judge.requests[0].schema["required"] == ["ratings"]
    assert rater.ratings("now", {3: "a crane", 9: "a tide"}) == {3: 0.9}
    rater.close()
    assert rater.asked == 2


@pytest.mark.parametrize(
    "answer", [ModelUnavailable("down"), "no", '{"ratings": 4}', '{"ratings": [{"step": 99, "rating": "x"}, 7]}']
)
def test_a_model_that_fails_changes_nothing_and_is_asked_no_more(answer):
    judge = Judge(answer)
    judge.go.set()
    rater = ModelRater(judge)
    for _ in range(6):
        assert fold(Relevance(rater=rater, band=1.0)).messages() == fold(Relevance()).messages()
        rater.wait(60)
    assert rater.asked == len(judge.requests) == 3
    report = rater.report()
    assert (report.purpose, report.asked, report.taken, report.refused) == ("ratings", 3, 0, 3)


def test_a_run_whose_steps_a_model_rates_keeps_its_budget():
    judge = Judge()
    judge.go.set()
    rater = ModelRater(judge)
    with AgentMemory.open(":memory:", budget=2_200, policy=Relevance(rater=rater), page_in=0) as memory:
        memory.record(TaskStep("Where does the crane stand?"))
        for number in range(40):
            memory.record(about((DOCK, BAKE)[number % 2], number))
            assert memory.view().tokens <= 2_200
            memory.to_messages()
            rater.wait(60)
        (ratings,) = memory.cost().writers
        assert ratings.purpose == "ratings"
        assert ratings.input > 100 * rater.asked
        assert ratings.output > 10 * rater.asked
        (report,) = memory.report().writers
        assert (report.purpose, report.asked, report.taken, report.refused) == ("ratings", rater.asked, rater.asked, 0)
        assert memory.view().report.out
        assert memory.verify().ok
    assert 0 < rater.asked < 40
