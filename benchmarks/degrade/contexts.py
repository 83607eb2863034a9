"""What decides what an agent sees: all of it, plain recency, masking, and every policy of ours by its name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from pagein.context.compaction.registry import POLICIES
from pagein.errors import ConfigurationError
from pagein.evaluation.requests import Said, Scale, Wire
from pagein.evaluation.strategies import BASELINES, Baseline, Paged, Strategy, recent
from pagein.memory.agent_memory import AgentMemory

FULL: Final = "full context"
SLIDING: Final = "sliding window"

RIVALS: Final = ("head+recency", "masking")
"""The baselines of ``pagein bench faults`` that are measured here too."""

RUNGS_ONLY: Final = frozenset({"clip", "reasoning", "users"})
"""Policies that are not meant to hold a budget by themselves; measured where they are named."""


class Full:
    """Everything, always: what the budget costs is measured against it."""

    def __init__(self) -> None:
        self._messages: list[Wire] = []

    def take(self, messages: Sequence[Wire]) -> None:
        """Take in what is new."""
        self._messages.extend(messages)

    def request(self) -> Sequence[Wire]:
        """All that was ever said."""
        return list(self._messages)


class Sliding:
    """Plain recency: the system prompt, and the newest turns that fit; the task goes like all else."""

    def __init__(self, budget: int, scale: Scale) -> None:
        self._budget = budget
        self._scale = scale
        self._system: list[Said] = []
        self._said: list[Said] = []

    def take(self, messages: Sequence[Wire]) -> None:
        """Take in what is new."""
        for each in self._scale.request(messages):
            (self._system if each.role == "system" else self._said).append(each)

    def request(self) -> Sequence[Wire]:
        """The system prompt, and as much of the rest as fits behind it."""
        room = self._budget - sum(each.tokens for each in self._system)
        return [each.wire for each in (*self._system, *self._said[recent(self._said, room) :])]


def known_contexts() -> tuple[str, ...]:
    """Every name there is: full context, the baselines, and the policies."""
    return (FULL, SLIDING, *RIVALS, *POLICIES)


def default_contexts() -> tuple[str, ...]:
    """What is measured unless told otherwise: all but the policies that are mere rungs."""
    return tuple(each for each in known_contexts() if each not in RUNGS_ONLY)


def check_contexts(names: Sequence[str]) -> None:
    """Raises ConfigurationError for a name that there is not."""
    for each in names:
        if each not in known_contexts():
            raise ConfigurationError(f"no policy {each!r}; there are {', '.join(known_contexts())}")


def context(name: str, budget: int, scale: Scale) -> AbstractContextManager[Strategy]:
    """The context of that name, under a budget; what it holds open is closed behind the block."""
    if name == FULL:
        return nullcontext(Full())
    if name == SLIDING:
        return nullcontext(Sliding(budget, scale))
    if name in RIVALS:
        return nullcontext(Baseline(budget, scale, BASELINES[name]))
    return _Memory(AgentMemory.open(":memory:", budget=budget, policy=name, counter=scale.counter))


class _Memory(AbstractContextManager[Strategy]):
    """A memory for as long as a run takes."""

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory

    def __enter__(self) -> Paged:
        return Paged(self._memory)

    def __exit__(self, *error: object) -> None:
        self._memory.close()
