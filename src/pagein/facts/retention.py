"""Retention, as pure functions: eviction above capacity, stale facts, near-duplicates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import ANY_SHARE, COUNT, HALF_LIFE_DAYS, check_fields, is_number
from pagein.errors import ConfigurationError
from pagein.facts.contradiction import is_near
from pagein.facts.fact import GUARANTEED, Fact
from pagein.facts.ranking import DAY


@dataclass(frozen=True, slots=True)
class Capacity:
    """The number of facts one owner may have, and the shares of confidence, freshness and use in evictions.

    ``max_facts`` 0: unlimited. Freshness halves every ``half_life`` days after the last statement, and counts half without
    a confirmation (deer-flow's hybrid-v1). Corrections and constraints are evicted last, as long as they are at most
    ``protected`` of all. Raises ConfigurationError.
    """

    max_facts: Annotated[int, COUNT, "Maximum facts of one owner. 0: unlimited."] = 1_000
    confidence: Annotated[float, ANY_SHARE, "Weight of confidence. With `freshness` and `use`: 1."] = 0.65
    freshness: Annotated[float, ANY_SHARE, "Weight of freshness."] = 0.25
    use: Annotated[float, ANY_SHARE, "Weight of frequent look-ups."] = 0.10
    half_life: Annotated[float, HALF_LIFE_DAYS, "Days after which freshness counts half."] = 90.0
    protected: Annotated[float, ANY_SHARE, "Share of all facts up to which corrections and constraints leave last."] = (
        0.5
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if abs(self.confidence + self.freshness + self.use - 1) > 1e-9:
            shares = f"confidence {self.confidence}, freshness {self.freshness} and use {self.use}"
            raise ConfigurationError(f"the shares of an eviction, {shares}, do not sum to 1")

    def worth(self, fact: Fact, now: float) -> float:
        """The worth of keeping a fact, from 0 to 1."""
        days = max(0.0, now - fact.seen_at) / DAY
        fresh: float = 0.5 ** (days / self.half_life) * (0.5 if fact.confirmed_at is None else 1.0)
        heat = min(1.0, math.log(1 + fact.uses) / math.log(9))
        return self.confidence * fact.confidence + self.freshness * fresh + self.use * heat


def select_evictions(facts: Sequence[Fact], coming: int, capacity: Capacity, now: float) -> list[Fact]:
    """The facts to evict so that ``coming`` more fit: expired ones first, then the least worth keeping."""
    over = len(facts) + coming - capacity.max_facts if capacity.max_facts else 0
    if over <= 0:
        return []
    most = int(capacity.max_facts * capacity.protected)
    guaranteed = sorted(
        (item for item in facts if item.category in GUARANTEED), key=lambda item: -capacity.worth(item, now)
    )
    safe = {item.id for item in guaranteed[:most]}

    def order(fact: Fact) -> tuple[bool, bool, float, float]:
        ended = fact.valid_until is not None and fact.valid_until <= now
        return (not ended, fact.id in safe, capacity.worth(fact, now), fact.seen_at)

    return sorted(facts, key=order)[:over]


def stale_facts(facts: Iterable[Fact], now: float, days: float = 90.0) -> tuple[Fact, ...]:
    """The facts to review, oldest first: expired, or not stated for ``days``; guaranteed categories only if expired."""
    if not (is_number(days) and days > 0):
        raise ConfigurationError(f"facts are stale after a number of days above 0, not {days!r}")
    stale = [
        fact
        for fact in facts
        if (fact.valid_until is not None and fact.valid_until <= now)
        or (fact.category not in GUARANTEED and now - fact.seen_at >= days * DAY)
    ]
    return tuple(sorted(stale, key=lambda fact: (fact.seen_at, fact.id)))


def near_duplicates(facts: Sequence[Fact], like: Callable[[Fact], Iterable[Fact]]) -> list[list[Fact]]:
    """Groups of facts of one scope and category that say the same; ``like`` returns those to compare with one."""
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
