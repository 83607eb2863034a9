"""What says the same, and what cannot both hold. Pure; where nobody can be asked, it is better to keep both."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pagein.facts.fact import Fact, checked_category, key_of
from pagein.facts.tfidf import fact_terms
from pagein.lexing import identifiers
from pagein.log import FactScope, Source

SAME = 0.92
"""Cosine of two embeddings from which two facts say the same, their names and numbers being the same."""

NEAR = 0.8
"""Share of the terms of two facts that both have, from which they are near-duplicates."""

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NOT = re.compile(
    r"\b(?:not|never|no|none|without|avoids?|stop(?:ped|s)?|neither|cannot|dislikes?|hates?|\w+n['\u2019]t)\b",
    re.IGNORECASE,
)
_IS = re.compile(
    r"(?:the|my|our|their|his|her|user['\u2019]?s|the user['\u2019]?s)?\s*(?P<what>[^.,;:!?]{2,80}?)\s+"
    r"(?:is|are|was|were|=|lives? in|works? (?:at|for)|runs? on|listens? on)\s+(?:now\s+|called\s+|named\s+)?(?P<value>[^.;!?]{1,200})",
    re.IGNORECASE,
)
_HOLDS_MANY = frozenset({"there", "it", "this", "that", "he", "she", "they", "we", "i", "user", "one"})


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


def specifics(text: str) -> frozenset[str]:
    """What two texts that say the same must share: numbers, names, and whether it is said that it is not so.

    >>> specifics("port 8080") == specifics("port 8081")
    False
    """
    denied = {"not"} if len(_NOT.findall(text)) % 2 else set()
    return frozenset((*_NUMBER.findall(text), *identifiers(text), *denied))


def is_near(one: str, other: str) -> bool:
    """Whether two facts say the same in nearly the same words.

    >>> is_near("Prefers tabs over spaces", "The user prefers tabs over spaces"), is_near("uses 3.11", "uses 3.12")
    (True, False)
    """
    first, second = set(fact_terms(one)) - {"user"}, set(fact_terms(other)) - {"user"}
    if not first or not second or specifics(one) != specifics(other):
        return False
    return len(first & second) >= NEAR * len(first | second)


def is_contrary(new: str, old: str) -> bool:
    """Whether the two can hardly both hold, told without a model and with care: it is better to see too few.

    The same thing is said to be something else; or the same is said with other numbers, or with a not.

    >>> is_contrary("my port is 8081", "My port is 8080"), is_contrary("I never use tabs", "I use tabs")
    (True, True)
    >>> is_contrary("I use tabs", "I use vim")
    False
    """
    if key_of(new) == key_of(old):
        return False
    one, other = _IS.match(new.strip()), _IS.match(old.strip())
    if one and other and (what := _what(one)) == _what(other) and what not in _HOLDS_MANY:
        return key_of(one["value"]) != key_of(other["value"]) and not is_near(new, old)
    first, second = _bare(new), _bare(old)
    if not first or not second or len(first & second) < NEAR * len(first | second):
        return False
    denied = len(_NOT.findall(new)) % 2 != len(_NOT.findall(old)) % 2
    numbers, others = _NUMBER.findall(new), _NUMBER.findall(old)
    return denied or (bool(numbers) and bool(others) and set(numbers).isdisjoint(others))


def _what(found: re.Match[str]) -> str:
    return " ".join(fact_terms(found["what"])) or found["what"].strip().lower()


def _bare(text: str) -> set[str]:
    """The terms without numbers and without what denies."""
    plain = _NUMBER.sub(" ", _NOT.sub(" ", text))
    return set(fact_terms(plain)) - {"user", "do"}


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
