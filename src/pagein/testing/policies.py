"""How a policy proves itself: a subclass of ``PolicyTests`` with one fixture.

    class TestMyPolicy(PolicyTests):
        @pytest.fixture
        def policy(self):
            return MyPolicy()

The runs it is tried on hold what policies trip over: parallel calls, calls that wait, thinking, pins, a system prompt
that came late, results that came late, a result larger than everything, a run of one word.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest

from pagein.backends.memory import InMemoryLog
from pagein.context.compaction.base import Plan, Policy, newest_user
from pagein.context.salience.tracker import Memo
from pagein.context.view.cuts import cuts
from pagein.context.view.fold import is_kept, preview
from pagein.context.view.stubs import is_thinking
from pagein.context.view.view import View
from pagein.errors import PageinError
from pagein.events.entries import Body, Observed, Pin
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Image,
    Observation,
    Opaque,
    PlanningStep,
    Step,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
)
from pagein.log.base import Entry
from pagein.testing.promises import folded, well_formed
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.encodings import Encoding

THINKING = Opaque("anthropic", "thinking", '{"type":"thinking","thinking":"hm","signature":"c2ln"}', "hm, hm")
OUTPUT = "\n".join(
    f"{n}: def handler_{n}(request): raise ValueError('src/app/views.py', {n * 101})" for n in range(30)
)


def turn(number: int, *, calls: int = 1, thinking: bool = False, size: int = 30) -> list[Body]:
    """An action with its results."""
    made = tuple(ToolCall(f"c{n}", "bash", f'{{"command": "cat src/app_{number}.py"}}') for n in range(calls))
    said = Text(f"I look at part {number} of the application now.")
    output = "\n".join(OUTPUT.splitlines()[:size])
    seen = tuple(Observation(f"c{n}", f"{output}\n# {number}.{n}", "ok", n) for n in range(calls))
    return [ActionStep((THINKING, said) if thinking else (said,), made, seen)]


def coding(turns: int = 12) -> list[Body]:
    """A run of an agent that reads and edits, with everything in it."""
    run: list[Body] = [
        SystemPromptStep("You are an engineer."),
        TaskStep("Fix the failing test in src/app."),
        Pin("Never push."),
    ]
    for number in range(turns):
        run += turn(number, calls=1 + number % 3, thinking=number % 2 == 0, size=5 + number * 7 % 25)
        if number == turns // 3:
            run += [SystemPromptStep("The build server is down."), PlanningStep("1. Read. 2. Edit.")]
        if number == turns // 2:
            run += [TaskStep((Text("Also mind src/db."), Image(b"\x89PNG" + bytes(60), "image/png")))]
    return run


def waiting(*, thinking: bool = False) -> list[Body]:
    """One of the newest action's two calls still waits."""
    calls = (ToolCall("a", "bash", "{}"), ToolCall("b", "bash", "{}"))
    return [
        *coding(6),
        ActionStep((THINKING, Text("Now both.")) if thinking else "Now both.", calls),
        Observed(len(coding(6)), 1, Observation("b", OUTPUT)),
    ]


def interrupted() -> list[Body]:
    """The user cut in, and the result came late."""
    run = [*coding(5), ActionStep("Run it.", (ToolCall("a", "bash", "{}"),))]
    action = len(run) - 1
    run += [Observed(action, 0, Observation("a", "", "unknown")), TaskStep("Stop. Use the other branch.")]
    return [*run, Observed(action, 0, Observation("a", OUTPUT), late=True), FinalAnswerStep("Done.")]


def huge() -> list[Body]:
    """One result larger than any budget."""
    return [
        TaskStep("Read it."),
        ActionStep(None, (ToolCall("", "read", '{"path": "a.log"}'),), (Observation("", OUTPUT * 40),)),
    ]


def thinking_and_waiting() -> list[Body]:
    """The same with reasoning, which its provider wants back."""
    return waiting(thinking=True)


def greeting() -> list[Body]:
    """A run of one word."""
    return [TaskStep("Hello.")]


RUNS: tuple[Callable[[], list[Body]], ...] = (
    coding, waiting, thinking_and_waiting, interrupted, huge, greeting,
)  # fmt: skip
SHARES = (2.0, 0.9, 0.5, 0.2, 0.05)
"""The limits that are tried, as shares of what the whole run costs."""


_PLAYED: dict[tuple[int, str], tuple[tuple[Entry, ...], int]] = {}


def _played(number: int, counter: TokenCounter) -> tuple[tuple[Entry, ...], int]:
    """A run as entries of a log, and what it costs whole."""
    key = number, counter.name
    if key not in _PLAYED:
        entries = InMemoryLog().append(RUNS[number](), after=0, at=0.0)
        _PLAYED[key] = entries, folded(entries, counter).view(1).tokens
    return _PLAYED[key]


def _known(memo: Memo) -> object:
    """What a memo knows, apart from what it only remembers having found out."""
    lines = {
        key: (each.text, each.position, each.order, each.names, each.use) for key, each in memo.lines.items()
    }
    return copy.deepcopy((memo.turn, memo.names, lines))


class PolicyTests:
    """The contract of ``pagein.context.compaction.base.Policy``: subclass it, and give the fixture ``policy``."""

    counter: ClassVar[TokenCounter] = Encoding("o200k_base")

    rounds: ClassVar[int] = 12
    """How often a policy may find something more to take out of one and the same run."""

    @pytest.fixture
    def policy(self) -> Policy:
        """The one fixture of a subclass."""
        raise NotImplementedError("a subclass of PolicyTests gives the fixture policy")

    def views(self) -> Iterator[tuple[View, Budget]]:
        """Every run, at every limit."""
        for number in range(len(RUNS)):
            entries, whole = _played(number, self.counter)
            for share in SHARES:
                budget = Budget(max(40, int(whole * share)), high=0.9, low=0.6)
                yield folded(entries, self.counter).view(budget.limit), budget

    def plans(self, policy: Policy) -> Iterator[tuple[View, Budget, Plan]]:
        """What the policy plans, where it plans something."""
        for view, budget in self.views():
            plan = policy(view, budget)
            if plan is not None:
                yield view, budget, plan

    def test_equal_views_give_equal_plans(self, policy: Policy) -> None:
        for (view, budget), (again, _) in zip(self.views(), self.views(), strict=True):
            first = policy(view, budget)
            assert policy(view, budget) == first, "asked twice about one view, it says two things"
            assert policy(again, budget) == first, "two equal views give two plans"

    def test_the_view_is_left_as_it_was(self, policy: Policy) -> None:
        for view, budget in self.views():
            entries, memo = view.entries, _known(view.memo)
            policy(view, budget)
            assert view.entries == entries
            assert _known(view.memo) == memo, "it wrote into the view's memo"

    def test_plans_split_the_view_at_its_cuts_only(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            allowed = set(cuts(view))
            for each in plan.replacements:
                if each.summary is not None:
                    assert {each.first, each.last} <= allowed, (
                        f"[{each.first}, {each.last}) is not between two cuts"
                    )

    def test_a_plan_makes_the_view_smaller(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            after = applied(view, plan)
            if after is not None:
                assert after.tokens < view.tokens, f"{view.tokens} tokens became {after.tokens}"

    def test_prompts_pins_and_the_newest_words_stay(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            after = applied(view, plan)
            newest = newest_user(view)
            stay = [each.item for each in view.entries if is_kept(each) or each.first == newest]
            shown = [] if after is None else [each.item for each in after.entries]
            assert after is None or [item for item in stay if item not in shown] == []

    def test_the_thinking_of_a_turn_under_way_stays(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            after = applied(view, plan)
            if after is not None and (thought := live_thinking(view)):
                assert live_thinking(after) == thought, "a provider wants the thinking of its last turn back"

    def test_applied_again_and_again_it_ends(self, policy: Policy) -> None:
        for view, budget in self.views():
            after: View | None = view
            for _ in range(self.rounds):
                plan = None if after is None else policy(after, budget)
                if plan is None or after is None:
                    break
                smaller = applied(after, plan)
                # What does not get smaller is never recorded, so it ends there.
                after = smaller if smaller is not None and smaller.tokens < after.tokens else None
            else:
                pytest.fail(f"after {self.rounds} rounds it still finds something to take out")

    def test_what_it_leaves_is_legal(self, policy: Policy) -> None:
        for view, _, plan in self.plans(policy):
            try:
                after = preview(view, plan.replacements)
            except (PageinError, IndexError) as error:
                pytest.fail(f"the plan cannot be applied: {error}")
            well_formed(after.messages())

    def test_it_has_a_name(self, policy: Policy) -> None:
        assert isinstance(policy.name, str)
        assert policy.name.strip()


def applied(view: View, plan: Plan) -> View | None:
    """The view after the plan, or None where it cannot be applied, which is a fault of its own."""
    try:
        return preview(view, plan.replacements)
    except (PageinError, IndexError):
        return None


def live_thinking(view: View) -> tuple[object, ...]:
    """The reasoning of the newest action, while nothing was said by the user after it."""
    newest: Step | None = next(
        (each.item for each in reversed(view.run) if isinstance(each.item, ActionStep | TaskStep)), None
    )
    if not isinstance(newest, ActionStep) or not isinstance(newest.content, tuple):
        return ()
    return tuple(part for part in newest.content if is_thinking(part))
