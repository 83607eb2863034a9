"""The contexts to compare: everything, plain recency, masking, and every policy by name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from pagein.context.compaction.registry import POLICIES, policy_named
from pagein.errors import ConfigurationError
from pagein.evaluation.requests import MeasuredMessage, Scale, Wire
from pagein.evaluation.strategies import BASELINES, Baseline, PageinStrategy, Strategy, recency_start
from pagein.memory.agent_memory import AgentMemory

FULL: Final = "full context"
SLIDING: Final = "sliding window"

RIVALS: Final = ("head+recency", "masking")
"""The baselines of ``pagein bench faults`` that are measured here too."""

RUNGS_ONLY: Final = frozenset({"clip", "reasoning", "users"})
"""Policies that are not meant to hold a budget by themselves; measured where they are named."""


class Full:
    """The full context, for comparison."""

    def __init__(self) -> None:
        self._messages: list[Wire] = []

    def take(self, messages: Sequence[Wire]) -> None:
        """Record new messages."""
        self._messages.extend(messages)

    def request(self) -> Sequence[Wire]:
        """All messages."""
        return list(self._messages)


class Sliding:
    """Plain recency: the system prompt and the newest turns that fit."""

    def __init__(self, budget: int, scale: Scale) -> None:
        self._budget = budget
        self._scale = scale
        self._system: list[MeasuredMessage] = []
        self._said: list[MeasuredMessage] = []

    def take(self, messages: Sequence[Wire]) -> None:
        """Record new messages."""
        for each in self._scale.measure_request(messages):
            (self._system if each.role == "system" else self._said).append(each)

    def request(self) -> Sequence[Wire]:
        """The system prompt, and the newest turns that fit after it."""
        room = self._budget - sum(each.tokens for each in self._system)
        return [each.wire for each in (*self._system, *self._said[recency_start(self._said, room) :])]


def known_contexts() -> tuple[str, ...]:
    """The names of all contexts: full context, baselines, policies."""
    return (FULL, SLIDING, *RIVALS, *POLICIES)


def default_contexts() -> tuple[str, ...]:
    """The default contexts: all but the policies that need a ladder."""
    return tuple(context for context in known_contexts() if context not in RUNGS_ONLY)


def check_contexts(names: Sequence[str]) -> None:
    """Raise ConfigurationError for an unknown name."""
    for name in names:
        if name not in known_contexts():
            raise ConfigurationError(f"no policy {name!r}; there are {', '.join(known_contexts())}")


def context(name: str, budget: int, scale: Scale) -> AbstractContextManager[Strategy]:
    """Open the context of that name under a budget."""
    if name == FULL:
        return nullcontext(Full())
    if name == SLIDING:
        return nullcontext(Sliding(budget, scale))
    if name in RIVALS:
        return nullcontext(Baseline(budget, scale, BASELINES[name]))
    return _Memory(AgentMemory.open(":memory:", budget=budget, policy=policy_named(name), counter=scale.counter))


class _Memory(AbstractContextManager[Strategy]):
    """A context manager that opens a strategy and closes its memory."""

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory

    def __enter__(self) -> PageinStrategy:
        return PageinStrategy(self._memory)

    def __exit__(self, *error: object) -> None:
        self._memory.close()
