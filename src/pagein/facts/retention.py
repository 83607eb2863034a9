"""Housekeeping, as pure functions: who leaves where there are too many, what is stale, what says the same twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pagein.errors import ConfigurationError
from pagein.facts.contradiction import is_near
from pagein.facts.fact import GUARANTEED, Fact

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many facts one owner may have, and what decides who stays: shares of confidence, freshness and use.

    ``max_facts`` 0: no end. Freshness halves every ``half_life`` days since it was last said, and counts half where it
    was never confirmed (deer-flow's hybrid-v1). Corrections and constraints leave last, while they are at most
    ``protected`` of all. Raises ConfigurationError.
    """

    max_facts: int = 1_000
    confidence: float = 0.65
    freshness: float = 0.25
    use: float = 0.10
    half_life: float = 90.0
    protected: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.max_facts, bool) or not isinstance(self.max_facts, int) or self.max_facts < 0:
            raise ConfigurationError(f"max_facts is a whole number, 0 for no end, not {self.max_facts!r}")
        shares = (self.confidence, self.freshness, self.use)
        if min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise ConfigurationError(
                f"the shares of an eviction are 0 or more and sum to 1: confidence {self.confidence}, freshness "
                f"{self.freshness}, use {self.use}"
            )
        if not self.half_life > 0 or not 0 <= self.protected <= 1:
            raise ConfigurationError(f"half_life is days above 0, protected a share from 0 to 1: {self}")

    def worth(self, fact: Fact, now: float) -> float:
        """What a fact is worth keeping, from 0 to 1."""
        days = max(0.0, now - fact.seen_at) / DAY
        fresh: float = 0.5 ** (days / self.half_life) * (0.5 if fact.confirmed_at is None else 1.0)
        heat = min(1.0, math.log(1 + fact.uses) / math.log(9))
        return self.confidence * fact.confidence + self.freshness * fresh + self.use * heat


def leaving(facts: Sequence[Fact], coming: int, capacity: Capacity, now: float) -> list[Fact]:
    """Who leaves so that ``coming`` more have room, the least worth first; those that no longer hold before all."""
    over = len(facts) + coming - capacity.max_facts if capacity.max_facts else 0
    if over <= 0:
        return []
    most = int(capacity.max_facts * capacity.protected)
    kept = sorted(
        (each for each in facts if each.category in GUARANTEED),
        key=lambda each: -capacity.worth(each, now),
    )
    safe = {each.id for each in kept[:most]}

    def order(fact: Fact) -> tuple[bool, bool, float, float]:
        ended = fact.valid_until is not None and fact.valid_until <= now
        return (not ended, fact.id in safe, capacity.worth(fact, now), fact.seen_at)

    return sorted(facts, key=order)[:over]


def stale(facts: Iterable[Fact], now: float, days: float = 90.0) -> tuple[Fact, ...]:
    """Those to look at again, oldest first: no longer valid, or not said for ``days``; corrections only where they end."""
    if isinstance(days, bool) or not isinstance(days, int | float) or not days > 0:
        raise ConfigurationError(f"facts are stale after a number of days above 0, not {days!r}")
    found = [
        each
        for each in facts
        if (each.valid_until is not None and each.valid_until <= now)
        or (each.category not in GUARANTEED and now - each.seen_at >= days * DAY)
    ]
    return tuple(sorted(found, key=lambda each: (each.seen_at, each.id)))


def near_duplicates(facts: Sequence[Fact], like: Callable[[Fact], Iterable[Fact]]) -> list[list[Fact]]:
    """Groups of facts of one scope and category that say the same; ``like`` gives those worth comparing with one."""
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.id in groups:
            continue
        group = groups[fact.id] = [fact]
        for other in like(fact):
            fits = other.id not in groups and (other.scope, other.category) == (fact.scope, fact.category)
            if fits and is_near(fact.content, other.content):
                groups[other.id] = group
                group.append(other)
    distinct = {id(group): group for group in groups.values() if len(group) > 1}
    return list(distinct.values())
