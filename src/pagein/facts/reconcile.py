"""What says the same, and what cannot both hold. Pure; where nobody can be asked, it is better to keep both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pagein.events.entries import FactScope, Source
from pagein.facts.contradiction import is_contrary, specifics
from pagein.facts.fact import Fact, checked_category, key_of

SAME = 0.92
"""Cosine of two embeddings from which two facts say the same, their names and numbers being the same."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact before it is stated; ``supersedes`` are the ids of those whose place it takes."""

    content: str
    category: str = "context"
    confidence: float = 1.0
    scope: FactScope = "session"
    valid_from: float | None = None
    valid_until: float | None = None
    sources: tuple[Source, ...] = ()
    supersedes: tuple[str, ...] = ()
    author: str = "host"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a draft stands to what is known: the id of the fact that says the ``same``, and those that cannot hold with it."""

    same: str = ""
    supersedes: tuple[str, ...] = ()
    disputes: tuple[str, ...] = ()


def judged(
    draft: Draft, known: Iterable[Fact], near: Callable[[str], Sequence[float]] | None = None
) -> Judgement:
    """How a draft stands to those known facts that are like it; ``near`` gives a text's embedding, where there is one.

    What says the same is confirmed instead of stated; what cannot hold with it is disputed, and stays.
    """
    same, disputes = "", []
    for each in known:
        if each.id in draft.supersedes or each.scope != draft.scope:
            continue
        if is_contrary(draft.content, each.content):
            disputes.append(each.id)
        elif not same and _says_the_same(draft.content, each.content, near):
            same = each.id
    return Judgement(same, disputes=tuple(disputes))


def _says_the_same(one: str, other: str, near: Callable[[str], Sequence[float]] | None) -> bool:
    if key_of(one) == key_of(other):
        return True
    return near is not None and specifics(one) == specifics(other) and cosine(near(one), near(other)) >= SAME


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of two vectors; 0 where one is nothing."""
    dot = sum(float(a) * float(b) for a, b in zip(one, other, strict=True))
    length = math.sqrt(sum(float(a) ** 2 for a in one) * sum(float(b) ** 2 for b in other))
    return dot / length if length else 0.0


def merged(group: Sequence[Fact]) -> Draft:
    """One draft in the place of facts that say the same: the newest words, every source, the highest confidence."""
    newest = max(group, key=lambda each: (each.seen_at, int(each.id[2:])))
    sources = tuple(dict.fromkeys(source for each in group for source in each.sources))
    draft = Draft(
        newest.content, checked_category(newest.category), max(each.confidence for each in group), newest.scope,
        newest.valid_from, newest.valid_until, sources, tuple(each.id for each in group),
    )  # fmt: skip
    return replace(draft, author="rules", reason=f"{len(group)} facts that say the same, in one")
