"""Conformance suite for compaction policies: a subclass of ``PolicyTests`` with one fixture.

    class TestMyPolicy(PolicyTests):
        @pytest.fixture
        def policy(self):
            return MyPolicy()

The runs have what policies get wrong: parallel calls, open calls, thinking, pins, a late system prompt, late results,
a result larger than any budget, and a run of one word.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.base import Plan, Policy, newest_user_position
from pagein.context.salience.tracker import SalienceTracker
from pagein.context.view.body import is_permanent, preview
from pagein.context.view.cuts import cuts
from pagein.context.view.layout import is_thinking
from pagein.context.view.view import View
from pagein.errors import PageinError
from pagein.events import steps
from pagein.events.entries import Body, Observed, Pin
from pagein.log.base import Entry
from pagein.testing.promises import check_well_formed, fold_entries
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.encodings import Encoding

THINKING = steps.Opaque("anthropic", "thinking", '{"type":"thinking","thinking":"hm","signature":"c2ln"}', "hm, hm")
OUTPUT = "\n".join(f"{n}: def handler_{n}(request): raise ValueError('src/app/views.py', {n * 101})" for n in range(30))


def turn(number: int, *, calls: int = 1, thinking: bool = False, size: int = 30) -> list[Body]:
    """Return an action with its results."""
    tool_calls = tuple(
        steps.ToolCall(f"c{n}", "bash", f'{{"command": "cat src/app_{number}.py"}}') for n in range(calls)
    )
    text = steps.Text(f"I look at part {number} of the application now.")
    output = "\n".join(OUTPUT.splitlines()[:size])
    observations = tuple(steps.Observation(f"c{n}", f"{output}\n# {number}.{n}", "ok", n) for n in range(calls))
    return [steps.ActionStep((THINKING, text) if thinking else (text,), tool_calls, observations)]


def coding_run(turns: int = 12) -> list[Body]:
    """Return a run of an agent that reads and edits, with every kind of content."""
    run: list[Body] = [
        steps.SystemPromptStep("You are an engineer."),
        steps.TaskStep("Fix the failing test in src/app."),
        Pin("Never push."),
    ]
    for number in range(turns):
        run += turn(number, calls=1 + number % 3, thinking=number % 2 == 0, size=5 + number * 7 % 25)
        if number == turns // 3:
            run += [steps.SystemPromptStep("The build server is down."), steps.PlanningStep("1. Read. 2. Edit.")]
        if number == turns // 2:
            run += [steps.TaskStep((steps.Text("Also mind src/db."), steps.Image(b"\x89PNG" + bytes(60), "image/png")))]
    return run


def waiting_run(*, thinking: bool = False) -> list[Body]:
    """Return a run in which one of the newest two calls has no result yet."""
    calls = (steps.ToolCall("a", "bash", "{}"), steps.ToolCall("b", "bash", "{}"))
    return [
        *coding_run(6),
        steps.ActionStep((THINKING, steps.Text("Now both.")) if thinking else "Now both.", calls),
        Observed(len(coding_run(6)), 1, steps.Observation("b", OUTPUT)),
    ]


def interrupted_run() -> list[Body]:
    """Return a run in which the user interrupted a call, and its result came late."""
    run = [*coding_run(5), steps.ActionStep("Run it.", (steps.ToolCall("a", "bash", "{}"),))]
    action = len(run) - 1
    run += [Observed(action, 0, steps.Observation("a", "", "unknown")), steps.TaskStep("Stop. Use the other branch.")]
    return [*run, Observed(action, 0, steps.Observation("a", OUTPUT), late=True), steps.FinalAnswerStep("Done.")]


def huge_run() -> list[Body]:
    """Return a run with one result larger than any budget."""
    return [
        steps.TaskStep("Read it."),
        steps.ActionStep(
            None, (steps.ToolCall("", "read", '{"path": "a.log"}'),), (steps.Observation("", OUTPUT * 40),)
        ),
    ]


def thinking_run() -> list[Body]:
    """Return a run with an open call and thinking, which its provider wants back."""
    return waiting_run(thinking=True)


def greeting_run() -> list[Body]:
    """Return a run of one word."""
    return [steps.TaskStep("Hello.")]


RUNS: tuple[Callable[[], list[Body]], ...] = (
    coding_run, waiting_run, thinking_run, interrupted_run, huge_run, greeting_run,
)  # fmt: skip
LIMIT_SHARES = (2.0, 0.9, 0.5, 0.2, 0.05)
"""The limits that are tried, as shares of the whole run's tokens."""


_RUN_CACHE: dict[tuple[int, str], tuple[tuple[Entry, ...], int]] = {}


def _run_entries(number: int, counter: TokenCounter) -> tuple[tuple[Entry, ...], int]:
    """Return a run as log entries, and its tokens without compaction."""
    key = number, counter.name
    if key not in _RUN_CACHE:
        entries = InMemoryLog().append(RUNS[number](), after=0, at=0.0)
        _RUN_CACHE[key] = entries, fold_entries(entries, counter).view(1).tokens
    return _RUN_CACHE[key]


def _tracker_state(memo: SalienceTracker) -> object:
    """Return the state of a tracker without its caches."""
    lines = {key: (line.text, line.position, line.order, line.names, line.use) for key, line in memo.lines.items()}
    return copy.deepcopy((memo.turn, memo.names, lines))


class PolicyTests:
    """The contract of ``pagein.context.compaction.base.Policy``: subclass it, and give the fixture ``policy``."""

    counter: ClassVar[TokenCounter] = Encoding("o200k_base")

    rounds: ClassVar[int] = 12
    """The most plans that a policy may make for one run."""

    @pytest.fixture
    def policy(self) -> Policy:
        """Return the policy; a subclass overrides this fixture."""
        raise NotImplementedError("a subclass of PolicyTests gives the fixture policy")

    def views(self) -> Iterator[tuple[View, Budget]]:
        """Yield every run at every limit."""
        for number in range(len(RUNS)):
            entries, whole = _run_entries(number, self.counter)
            fold = fold_entries(entries, self.counter)
            for share in LIMIT_SHARES:
                budget = Budget(max(40, int(whole * share)), high=0.9, low=0.6)
                yield fold.view(budget.limit), budget

    def plans(self, policy: Policy) -> Iterator[tuple[View, Budget, Plan]]:
        """Yield the plans of the policy, with their views and budgets."""
        for view, budget in self.views():
            plan = policy(view, budget)
            if plan is not None:
                yield view, budget, plan

    def test_equal_views_give_equal_plans(self, policy: Policy) -> None:
        for (view, budget), (again, _) in zip(self.views(), self.views(), strict=True):
            first = policy(view, budget)
            assert policy(view, budget) == first, "two plans for the same view differ"
            assert policy(again, budget) == first, "plans for equal views differ"

    def test_the_view_is_left_as_it_was(self, policy: Policy) -> None:
        for view, budget in self.views():
            entries, memo = view.entries, _tracker_state(view.tracker)
            policy(view, budget)
            assert view.entries == entries
            assert _tracker_state(view.tracker) == memo, "it changed the view's tracker"

    def test_plans_split_the_view_at_its_cuts_only(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            allowed = set(cuts(view))
            for replacement in plan.replacements:
                if replacement.summary is not None:
                    assert {replacement.first, replacement.last} <= allowed, (
                        f"[{replacement.first}, {replacement.last}) is not between two cuts"
                    )

    def test_a_plan_makes_the_view_smaller(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            after = apply_plan(view, plan)
            if after is not None:
                assert after.tokens < view.tokens, f"{view.tokens} tokens became {after.tokens}"

    def test_prompts_pins_and_the_newest_words_stay(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            after = apply_plan(view, plan)
            newest = newest_user_position(view)
            stay = [entry.item for entry in view.entries if is_permanent(entry) or entry.first == newest]
            items_after = [] if after is None else [entry.item for entry in after.entries]
            assert after is None or [item for item in stay if item not in items_after] == []

    def test_the_thinking_of_a_turn_under_way_stays(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            after = apply_plan(view, plan)
            if after is not None and (thought := live_thinking(view)):
                assert live_thinking(after) == thought, "a provider wants the thinking of its last turn back"

    def test_applied_again_and_again_it_ends(self, policy: Policy) -> None:
        for view, budget in self.views():
            after: View | None = view
            for _ in range(self.rounds):
                plan = None if after is None else policy(after, budget)
                if plan is None or after is None:
                    break
                smaller = apply_plan(after, plan)
                # A plan that saves nothing is never recorded, so the loop ends.
                after = smaller if smaller is not None and smaller.tokens < after.tokens else None
            else:
                pytest.fail(f"after {self.rounds} rounds it still plans")

    def test_what_it_leaves_is_legal(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            try:
                after = preview(view, plan.replacements)
            except (PageinError, IndexError) as error:
                pytest.fail(f"the plan cannot be applied: {error}")
            check_well_formed(after.messages())

    def test_it_has_a_name(self, policy: Policy) -> None:
        assert isinstance(policy.name, str)
        assert policy.name.strip()


def apply_plan(view: View, plan: Plan) -> View | None:
    """Return the view after the plan, or None if it cannot be applied (another test reports that)."""
    try:
        return preview(view, plan.replacements)
    except (PageinError, IndexError):
        return None


def live_thinking(view: View) -> tuple[object, ...]:
    """Return the reasoning of the newest action, if no user message follows it."""
    newest: steps.Step | None = next(
        (entry.item for entry in reversed(view.run) if isinstance(entry.item, steps.ActionStep | steps.TaskStep)), None
    )
    if not isinstance(newest, steps.ActionStep) or not isinstance(newest.content, tuple):
        return ()
    return tuple(part for part in newest.content if is_thinking(part))
