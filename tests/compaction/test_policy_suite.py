"""The suite is under test: each broken policy fails exactly the test that names its fault, and no test is idle."""

import inspect
import itertools

import pytest

from pagein.context.compaction.base import Plan, actions, newest_user_position
from pagein.context.view.cuts import cuts
from pagein.events.entries import Replacement, Stub
from pagein.events.steps import ActionStep, SummaryStep, TaskStep
from pagein.testing.policies import PolicyTests


class Honest:
    """Folds everything before the newest action between two words of the user, once."""

    name = "honest"

    def __call__(self, view, budget):
        if view.tokens <= view.limit:
            return None
        return self.plan_of(view, self.fold(view))

    def fold(self, view):
        acted = actions(view)
        stop = max((cut for cut in cuts(view) if acted and cut <= acted[-1].first), default=0)
        run = [entry for entry in view.run if entry.first < stop]
        for is_task, group in itertools.groupby(run, key=lambda entry: isinstance(entry.item, TaskStep)):
            stretch = list(group)
            first = stretch[0].first
            if is_task or all(isinstance(entry.item, SummaryStep) or entry.tier == "pin" for entry in stretch):
                continue
            last = next((entry.first for entry in view.run if entry.first > stretch[-1].first), view.head)
            if sum(entry.tokens for entry in stretch) > 200:
                yield Replacement(first, last, summary=self.text(first, last))

    def text(self, first, last):
        return f"s{first}-{last - 1}"

    def plan_of(self, view, replacements):
        replacements = tuple(replacements)
        return Plan(replacements, self.name, "because") if replacements else None


class Moody(Honest):
    def __init__(self):
        self.asked = 0

    def __call__(self, view, budget):
        self.asked += 1
        plan = super().__call__(view, budget)
        return plan and Plan(plan.replacements, self.name, f"asked {self.asked} times")


class Scribbler(Honest):
    def __call__(self, view, budget):
        view.tracker.turn = 0
        return super().__call__(view, budget)


class FoldsWhatWaits(Honest):
    """Folds an action whose result has not come."""

    def fold(self, view):
        waits = [entry for entry in actions(view) if None in seen_of(entry) and not thinks(entry)]
        yield from super().fold(view)
        for entry in waits:
            yield Replacement(entry.first, view.head, summary="gone")


def seen_of(entry):
    step = entry.item
    return [*step.observations, *[None] * (len(step.tool_calls) - len(step.observations))]


def thinks(entry):
    return isinstance(entry.item.content, tuple) and any(hasattr(part, "kind") for part in entry.item.content)


class Verbose(Honest):
    def text(self, first, last):
        return "what happened there, " * 9_000


class ForgetsTheUser(Honest):
    def fold(self, view):
        yield from super().fold(view)
        newest = newest_user_position(view)
        yield Replacement(newest, newest + 1, (Stub("content", 0, "", "clip"),))

    def __call__(self, view, budget):
        if newest_user_position(view) < 0 or not isinstance(view.run[0].item, TaskStep) or view.tokens <= view.limit:
            return super().__call__(view, budget)
        return self.plan_of(view, self.fold(view)) if list(super().fold(view)) else None


class ForgetsThinking(Honest):
    def fold(self, view):
        folds = list(super().fold(view))
        yield from folds
        if folds and thinks(actions(view)[-1]):
            last = actions(view)[-1]
            yield Replacement(last.first, last.last, (Stub("thinking", 0, "", "reasoning"),))


class NibblesForEver(Honest):
    """Takes one more line out of the newest result, each time it is asked."""

    def __call__(self, view, budget):
        for entry in actions(view)[:1]:
            result = entry.item.observations[0]
            text = result.content
            if len(text) > 400:
                return self.plan_of(
                    view, [Replacement(entry.first, entry.last, (Stub("observation", 0, text[20:], "clip"),))]
                )
        return None


class NamesNoCall(Honest):
    def fold(self, view):
        folds = list(super().fold(view))
        yield from folds
        if folds:
            last = actions(view)[-1]
            yield Replacement(last.first, last.last, (Stub("arguments", 99, "{}", "clip"),))


class Nameless(Honest):
    name = " "


BROKEN = {
    Moody: "test_equal_views_give_equal_plans",
    Scribbler: "test_the_view_is_left_as_it_was",
    FoldsWhatWaits: "test_plans_split_the_view_at_its_cuts_only",
    Verbose: "test_a_plan_makes_the_view_smaller",
    ForgetsTheUser: "test_prompts_pins_and_the_newest_words_stay",
    ForgetsThinking: "test_the_thinking_of_a_turn_under_way_stays",
    NibblesForEver: "test_applied_again_and_again_it_ends",
    NamesNoCall: "test_what_it_leaves_is_legal",
    Nameless: "test_it_has_a_name",
}

TESTS = sorted(name for name, _ in inspect.getmembers(PolicyTests) if name.startswith("test_"))


def failing_tests(policy):
    """The tests of the suite that a policy fails."""
    names = set()
    for name in TESTS:
        try:
            getattr(PolicyTests(), name)(policy())
        except (AssertionError, pytest.fail.Exception):
            names.add(name)
    return names


def test_an_honest_policy_passes():
    assert failing_tests(Honest) == set()


def test_an_honest_policy_plans_something():
    assert len(list(PolicyTests().plans(Honest()))) >= 5
    assert any(isinstance(entry.item, ActionStep) for view, _ in PolicyTests().views() for entry in view.run)


@pytest.mark.slow
@pytest.mark.parametrize("policy", BROKEN, ids=lambda policy: policy.__name__)
def test_a_broken_policy_fails_the_test_that_names_its_fault(policy):
    assert failing_tests(policy) == {BROKEN[policy]}


def test_every_test_is_needed():
    assert set(BROKEN.values()) == set(TESTS)
