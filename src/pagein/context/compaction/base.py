"""What leaves the view: policies are pure functions from a view and a budget to a plan, or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from pagein.context.view.view import Shown, View
from pagein.events.entries import Replacement
from pagein.events.steps import ActionStep, Observation, TaskStep
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction that has not happened: what would be replaced, in this order, and why."""

    replacements: tuple[Replacement, ...]
    policy: str
    reason: str

    def then(self, later: Plan) -> Plan:
        """Both plans as one, so that the prompt's prefix breaks once."""
        replacements = settled((*self.replacements, *later.replacements))
        policy = self.policy if self.policy == later.policy else f"{self.policy}+{later.policy}"
        return Plan(replacements, policy, f"{self.reason}; {later.reason}")


class Policy(Protocol):
    """Decides what leaves. Pure: equal views and budgets give equal plans, and nothing is changed."""

    @property
    def name(self) -> str:
        """The name under which compactions of this policy are recorded."""
        ...

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """What should leave now; None where nothing should, or nothing can."""
        ...


def settled(replacements: tuple[Replacement, ...]) -> tuple[Replacement, ...]:
    """The replacements without those that a later one covers whole, in order."""
    kept: list[Replacement] = []
    covered: list[Replacement] = []
    for each in reversed(replacements):
        if not any(_covers(later, each) for later in covered):
            kept.append(each)
        if each.summary is not None:
            covered.append(each)
    return tuple(reversed(kept))


def _covers(later: Replacement, earlier: Replacement) -> bool:
    return later.first <= earlier.first and earlier.last <= later.last


def plan_of(replacements: Iterable[Replacement], policy: str, reason: str) -> Plan | None:
    """A plan, or none where nothing is replaced."""
    held = tuple(replacements)
    return Plan(held, policy, reason) if held else None


def actions(view: View) -> tuple[Shown, ...]:
    """The actions shown, oldest first."""
    return tuple(each for each in view.run if isinstance(each.item, ActionStep))


def observed(shown: Shown) -> Iterator[tuple[int, Observation]]:
    """The observations of an action that have come, with the number of the call each answers."""
    if isinstance(shown.item, ActionStep):
        for index, seen in enumerate(shown.item.observations):
            if seen is not None and seen.status != "unknown":
                yield index, seen


def newest_user(view: View) -> int:
    """The position of the user's newest words, or -1."""
    return next((each.first for each in reversed(view.run) if isinstance(each.item, TaskStep)), -1)


def is_stubbed(shown: Shown, slot: str, index: int = 0) -> bool:
    """True where a stub stands in the slot already."""
    return any(stub.slot == slot and stub.index == index for stub in shown.stubs)
