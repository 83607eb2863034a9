"""How well passages match the terms of a query: BM25 over a passage and, at less weight, what stands around it.

Answers follow questions: a turn is often found by the words of the one before. Counting the neighbours' terms into the
passage's own (BM25F, each neighbour a weaker field of its own length) finds 5 to 13 points more than BM25 alone. Measured
on LoCoMo's first five conversations, 997 questions, share of the evidence among the first 5 / 10: alone .578 / .656; one
neighbour either side at .5 .653 / .763; two .690 / .781; three, as here, .690 / .784; more changes nothing. On
LongMemEval's chats, where an assistant's long answers stand between a user's short turns, measuring each neighbour
against its own length instead of all together finds .959 instead of .938 of the evidence within 1,000 tokens.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pagein.search.tokenizer import counted

AROUND: Mapping[int, float] = {-3: 0.17, -2: 0.26, -1: 0.4, 1: 0.32, 2: 0.21, 3: 0.14}
"""What a term counts in a neighbour, by distance; one that stands before says a little more than one after."""

SATURATION = 1.2
LENGTH = 0.5
"""BM25's k1 and b. Between .8 and 2, and .3 and .75, R@10 on LoCoMo moves by less than a point."""

KEPT, SEARCHED = 1_024, 640
"""Passages whose terms stay counted, as a run asks about the same ones again and again; and those of one search up to
which that is done: of more, none would be there still at the next."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of the passages searched: how many, how long on average in terms, and how rare each term is."""

    passages: int
    average: float
    rarity: Mapping[str, float]


def rarity(passages: int, holding: int) -> float:
    """What a term is worth that ``holding`` of ``passages`` hold; above 0 even where all do, so few passages rank too.

    >>> rarity(1, 1) > 0, rarity(1000, 1) > rarity(1000, 500)
    (True, True)
    """
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))


def by_presence(present: Mapping[str, Iterable[int]], worth: Mapping[str, float]) -> dict[int, float]:
    """What the terms that each passage holds are worth together."""
    sums: dict[int, float] = {}
    known = sums.get
    for term, holders in present.items():
        value = worth[term]
        for each in holders:
            sums[each] = known(each, 0.0) + value
    return sums


def best_of(sums: Mapping[int, float], most: int) -> list[int]:
    """The ``most`` passages of the highest sums, of equals the newest; in no order where that is all of them."""
    if len(sums) <= most:
        return list(sums)
    return [each for _, each in heapq.nlargest(most, zip(sums.values(), sums, strict=True))]


def scores(
    ids: Collection[int],
    sizes: Mapping[int, int],
    counts: Mapping[str, Mapping[int, int]],
    statistics: Statistics,
) -> dict[int, float]:
    """BM25F of each of the passages: its neighbours are weaker fields, each measured against its own length.

    Neighbours have adjacent ids. ``counts`` says how often each term occurs where, ``sizes`` how long, in terms, those
    are that hold any.
    """
    average = statistics.average or 1.0
    norms = {each: 1 - LENGTH + LENGTH * size / average for each, size in sizes.items()}
    totals = dict.fromkeys(ids, 0.0)
    around = ((0, 1.0), *AROUND.items())
    # What stands ``far`` from a passage sees it from the other side.
    seen_by = {each: [(each - far, share) for far, share in around if each - far in totals] for each in norms}
    for term, holders in counts.items():
        worth = statistics.rarity[term] * (SATURATION + 1)
        for each, count in _around(holders, norms, seen_by).items():
            totals[each] += worth * count / (count + SATURATION)
    return totals


def _around(
    holders: Mapping[int, int],
    norms: Mapping[int, float],
    seen_by: Mapping[int, Iterable[tuple[int, float]]],
) -> dict[int, float]:
    """What one term counts in each of the passages wanted: by its own text, and by its neighbours'."""
    counted: dict[int, float] = {}
    known = counted.get
    for each, times in holders.items():
        count = times / norms[each]
        for beside, share in seen_by[each]:
            counted[beside] = known(beside, 0.0) + share * count
    return counted


def occurrences(stored: Collection[str], wanted: frozenset[str]) -> list[dict[str, int]]:
    """How often each of the wanted terms is among each passage's stored ones, which are parted by spaces.

    >>> occurrences(["a b a", "b"], frozenset({"a", "c"}))
    [{'a': 2}, {}]
    """
    if len(stored) > SEARCHED:
        return [counted(filter(wanted.__contains__, each.split(" "))) for each in stored]
    return [{term: counts[term] for term in wanted if term in counts} for counts in map(_counted, stored)]


@functools.lru_cache(maxsize=KEPT)
def _counted(stored: str) -> Mapping[str, int]:
    return Counter(stored.split(" "))


def padded(stored: str) -> str:
    """A passage's stored terms, which are parted by spaces, so that each can be counted between spaces of its own.

    >>> padded("a b a").count(" a ")
    2
    """
    return f" {stored.replace(' ', '  ')} "
