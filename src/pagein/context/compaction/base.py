"""The contract of compaction policies: pure functions from a view and a budget to a plan, or None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.entries import Replacement, Stub
from pagein.events.steps import ActionStep, Observation, TaskStep
from pagein.tokens import Budget


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned compaction: its replacements in order, and the reason."""

    replacements: tuple[Replacement, ...]
    policy: str
    reason: str

    def then(self, later: Plan) -> Plan:
        """Join two plans into one, so that the prompt's prefix breaks once."""
        replacements = drop_covered((*self.replacements, *later.replacements))
        policy = self.policy if self.policy == later.policy else f"{self.policy}+{later.policy}"
        return Plan(replacements, policy, f"{self.reason}; {later.reason}")


PolicyName = Literal[
    "ladder", "clip", "mask", "reasoning", "window", "prune", "users", "chat", "projection", "rounds", "short_long",
    "rolling", "tiers", "relevance",
]  # fmt: skip
"""The names of the registered policies, for editors and type checkers; a test compares them with the registry."""


class Policy(Protocol):
    """Decides what leaves the view. Pure: equal views and budgets give equal plans, and nothing is changed."""

    @property
    def name(self) -> str:
        """The name under which compactions of this policy are recorded."""
        ...

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """Plan a compaction; None if nothing should or can leave."""
        ...


def drop_covered(replacements: tuple[Replacement, ...]) -> tuple[Replacement, ...]:
    """Drop the replacements whose whole range a later summary covers."""
    remaining: list[Replacement] = []
    covered: list[Replacement] = []
    for replacement in reversed(replacements):
        if not any(later.first <= replacement.first and replacement.last <= later.last for later in covered):
            remaining.append(replacement)
        if replacement.summary is not None:
            covered.append(replacement)
    return tuple(reversed(remaining))


def make_plan(replacements: Iterable[Replacement], policy: str, reason: str) -> Plan | None:
    """Make a plan; None without replacements."""
    planned = tuple(replacements)
    return Plan(planned, policy, reason) if planned else None


def actions(view: View) -> tuple[ViewEntry, ...]:
    """Return the actions in a view, oldest first."""
    return tuple(entry for entry in view.run if isinstance(entry.item, ActionStep))


def iter_observations(entry: ViewEntry) -> Iterator[tuple[int, Observation]]:
    """Yield the observations of an action that have come, each with the number of its call."""
    if isinstance(entry.item, ActionStep):
        for index, observation in enumerate(entry.item.observations):
            if observation is not None and observation.status != "unknown":
                yield index, observation


def newest_user_position(view: View) -> int:
    """Return the position of the newest user message, or -1."""
    return next((entry.first for entry in reversed(view.run) if isinstance(entry.item, TaskStep)), -1)


def earlier_user_entries(view: View) -> list[ViewEntry]:
    """Return the entries of all user messages but the newest."""
    newest = newest_user_position(view)
    return [entry for entry in view.run if isinstance(entry.item, TaskStep) and entry.first != newest]


def old_actions(view: View, keep: int) -> tuple[ViewEntry, ...]:
    """Return the actions in a view but the newest ``keep``, oldest first."""
    acted = actions(view)
    return acted[: max(0, len(acted) - keep)]


def put_stubs(entries: Iterable[ViewEntry], stubs_of: Callable[[ViewEntry], Iterable[Stub]]) -> Iterator[Replacement]:
    """Yield a replacement for each entry that has stubs to put in its slots."""
    for entry in entries:
        if stubs := tuple(stubs_of(entry)):
            yield Replacement(entry.first, entry.last, stubs)


def is_stubbed(entry: ViewEntry, index: int) -> bool:
    """True if a stub stands for the observation of this call already."""
    return any(stub.slot == "observation" and stub.index == index for stub in entry.stubs)
