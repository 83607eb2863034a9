"""Recall, discounted gain, evidence within a budget: pure, and exactly as the protocols define them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)
"""Tokens, of four characters each."""

DENSITY = 0.3


def recall(ranked: Sequence[str], wanted: Collection[str], k: int) -> float:
    """The share of the wanted among the first ``k``."""
    return len(set(ranked[:k]).intersection(wanted)) / len(wanted)


def recall_all(ranked: Sequence[str], wanted: Collection[str], k: int) -> float:
    """1 where all of the wanted are among the first ``k``: LongMemEval's ``recall_all``."""
    return float(set(wanted) <= set(ranked[:k]))


def recall_any(ranked: Sequence[str], wanted: Collection[str], k: int) -> float:
    """1 where any of the wanted is among the first ``k``. Never to be compared with ``recall_all``."""
    return float(not set(wanted).isdisjoint(ranked[:k]))


def ndcg(ranked: Sequence[str], wanted: Collection[str], k: int) -> float:
    """The discounted gain of the first ``k``, as LongMemEval computes it: the second counts as much as the first.

    >>> ndcg(["a", "b", "c"], {"b"}, 3)
    1.0
    """
    gained = sum(_discount(place) for place, each in enumerate(ranked[:k]) if each in wanted)
    ideal = sum(_discount(place) for place in range(min(k, len(wanted))))
    return gained / ideal if ideal else 0.0


def _discount(place: int) -> float:
    return 1.0 if place < 2 else 1 / math.log2(place + 1)


def within(
    scores: Mapping[str, float], tokens: Mapping[str, float], wanted: Collection[str], budget: int, *, density: float
) -> float:
    """The share of the wanted in a context packed by score / tokens ** density; what does not fit is skipped."""
    order = sorted(scores, key=lambda each: -scores[each] / max(tokens[each], 1.0) ** density)
    left, held = float(budget), 0
    for each in order:
        if tokens[each] <= left:
            left -= tokens[each]
            held += each in wanted
    return held / len(wanted)


@dataclass(slots=True)
class Averages:
    """Means of what was measured, by name."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, measured: Mapping[str, float]) -> None:
        """Take in one question's measures."""
        for name, value in measured.items():
            self.values.setdefault(name, []).append(value)

    def means(self) -> dict[str, float]:
        """The mean of each."""
        return {name: mean(values) for name, values in self.values.items()}

    @property
    def count(self) -> int:
        """Questions."""
        return max(map(len, self.values.values()), default=0)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies; 0 where there are none.

    >>> quantile([1.0, 2.0, 3.0], 0.5)
    2.0
    """
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0
