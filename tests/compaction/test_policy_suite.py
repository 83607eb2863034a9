"""The suite is under test: each broken policy fails exactly the test that names its fault, and no test is idle."""

import inspect
import itertools

import pytest

from pagein.context.compaction.base import Plan, actions, newest_user
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
        return self.planned(view, self.fold(view))

    def fold(self, view):
        acted = actions(view)
        stop = max((each for each in cuts(view) if acted and each <= acted[-1].first), default=0)
        run = [each for each in view.run if each.first < stop]
        for is_task, group in itertools.groupby(run, key=lambda each: isinstance(each.item, TaskStep)):
            held = list(group)
            first = held[0].first
            if is_task or all(isinstance(each.item, SummaryStep) or each.tier == "pin" for each in held):
                continue
            last = next((each.first for each in view.run if each.first > held[-1].first), view.head)
            if sum(each.tokens for each in held) > 200:
                yield Replacement(first, last, summary=self.text(first, last))

    def text(self, first, last):
        return f"s{first}-{last - 1}"

    def planned(self, view, found):
        found = tuple(found)
        return Plan(found, self.name, "because") if found else None


class Moody(Honest):
    def __init__(self):
        self.asked = 0

    def __call__(self, view, budget):
        self.asked += 1
        plan = super().__call__(view, budget)
        return plan and Plan(plan.replacements, self.name, f"asked {self.asked} times")


class Scribbler(Honest):
    def __call__(self, view, budget):
        view.memo.turn = 0
        return super().__call__(view, budget)


class FoldsWhatWaits(Honest):
    """Folds an action whose result has not come."""

    def fold(self, view):
        waits = [each for each in actions(view) if None in seen_of(each) and not thinks(each)]
        yield from super().fold(view)
        for each in waits:
            yield Replacement(each.first, view.head, summary="gone")


def seen_of(shown):
    step = shown.item
    return [*step.observations, *[None] * (len(step.tool_calls) - len(step.observations))]


def thinks(shown):
    return isinstance(shown.item.content, tuple) and any(hasattr(each, "kind") for each in shown.item.content)


class Verbose(Honest):
    def text(self, first, last):
        return "what happened there, " * 9_000


class ForgetsTheUser(Honest):
    def fold(self, view):
        yield from super().fold(view)
        newest = newest_user(view)
        yield Replacement(newest, newest + 1, (Stub("content", 0, "", "clip"),))

    def __call__(self, view, budget):
        if newest_user(view) < 0 or not isinstance(view.run[0].item, TaskStep) or view.tokens <= view.limit:
            return super().__call__(view, budget)
        return self.planned(view, self.fold(view)) if list(super().fold(view)) else None


class ForgetsThinking(Honest):
    def fold(self, view):
        found = list(super().fold(view))
        yield from found
        if found and thinks(actions(view)[-1]):
            last = actions(view)[-1]
            yield Replacement(last.first, last.last, (Stub("thinking", 0, "", "reasoning"),))


class NibblesForEver(Honest):
    """Takes one more line out of the newest result, each time it is asked."""

    def __call__(self, view, budget):
        for each in actions(view)[:1]:
            seen = each.item.observations[0]
            text = seen.content
            if len(text) > 400:
                return self.planned(
                    view, [Replacement(each.first, each.last, (Stub("observation", 0, text[20:], "clip"),))]
                )
        return None


class NamesNoCall(Honest):
    def fold(self, view):
        found = list(super().fold(view))
        yield from found
        if found:
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


def failed(policy):
    """The tests of the suite that a policy fails."""
    found = set()
    for name in TESTS:
        try:
            getattr(PolicyTests(), name)(policy())
        except (AssertionError, pytest.fail.Exception):
            found.add(name)
    return found


def test_an_honest_policy_passes():
    assert failed(Honest) == set()


def test_an_honest_policy_plans_something():
    assert len(list(PolicyTests().plans(Honest()))) >= 5
    assert any(isinstance(each.item, ActionStep) for view, _ in PolicyTests().views() for each in view.run)


@pytest.mark.parametrize("policy", BROKEN, ids=lambda each: each.__name__)
def test_a_broken_policy_fails_the_test_that_names_its_fault(policy):
    assert failed(policy) == {BROKEN[policy]}


def test_every_test_is_needed():
    assert set(BROKEN.values()) == set(TESTS)
