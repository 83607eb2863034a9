"""Ranking of facts: similarity x 0.6 + confidence x 0.4, and two bounded factors. The similarity is BM25 as a share of the best.

Facts that were stated together count for each other a little: "I have a dog. Her name is Luna." is two facts.

Deer-flow's formula (MEMORY_IMPROVEMENTS), which it never shipped. A fresh confirmation adds up to 5 %, frequent use up
to 5 %. A fact that a newer one disputes counts half, and never more than the newer one.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pagein._common.validation import ANY_SHARE, HALF_LIFE_DAYS, Constraint, check_fields, is_whole_number
from pagein.errors import ConfigurationError
from pagein.events.steps import ActionStep, Content, FinalAnswerStep, TaskStep, Text, as_parts
from pagein.facts.fact import Fact
from pagein.search.tfidf import TfIdf
from pagein.search.tokenizer import ends_with_question

DAY = 86_400.0
MAX_RANKED = 512
"""Facts that a ranking returns; no block has room for more."""

DISPUTED_FACTOR = 0.5
CONTEXT_TURNS = 3
MAX_CONTEXT_CHARS = 4_000
"""Characters compared of each of the last texts: its end, where the question is."""

TOGETHER_SECONDS = 3_600.0
"""Seconds between two facts up to which one was stated beside the other."""

_LOG_OFTEN = math.log(9)


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a score: ``similarity`` and ``confidence`` sum to 1; ``recency`` and ``use`` are the most a factor adds.

    ``half_life`` is the days after which a confirmation counts half. Raises ConfigurationError.
    """

    similarity: Annotated[float, ANY_SHARE, "Weight of similarity. With `confidence`: 1."] = 0.6
    confidence: Annotated[float, ANY_SHARE, "Weight of confidence."] = 0.4
    recency: Annotated[float, Constraint(most=0.5), "Maximum bonus of a recent confirmation, as a share."] = 0.05
    use: Annotated[float, Constraint(most=0.5), "Maximum bonus of frequent look-ups, as a share."] = 0.05
    half_life: Annotated[float, HALF_LIFE_DAYS, "Days after which a confirmation counts half."] = 90.0

    def __post_init__(self) -> None:
        check_fields(self)
        if abs(self.similarity + self.confidence - 1) > 1e-9:
            raise ConfigurationError(f"similarity {self.similarity} and confidence {self.confidence} do not sum to 1")

    def factor(self, fact: Fact, now: float) -> float:
        """The factor of a score: between 1 and (1 + recency)(1 + use); half of it for a disputed fact."""
        fresh = 0.0
        if fact.confirmed_at is not None:
            days = max(0.0, now - fact.confirmed_at) // DAY
            fresh = 0.5 ** (days / self.half_life)
        often = min(1.0, math.log(1 + fact.uses) / _LOG_OFTEN)
        disputed = DISPUTED_FACTOR if fact.disputed_by else 1.0
        return (1 + self.recency * fresh) * (1 + self.use * often) * disputed


@dataclass(frozen=True, slots=True)
class RankedFact:
    """A fact with its score, and its cosine with the context."""

    fact: Fact
    score: float
    similarity: float

    @property
    def why(self) -> str:
        """The score in words."""
        return f"{self.score:.3f}: similarity {self.similarity:.2f}, confidence {self.fact.confidence:.2f}"


class Ranking:
    """An index of facts, ranked against a context. It is updated in place; nothing is fitted again."""

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights or Weights()
        self._index = TfIdf()
        self._facts: dict[int, Fact] = {}
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._order: list[_Place] = []
        """The facts of each owner in the order in which they were stated."""
        self._timed: set[str] = set()
        """Facts that do not hold for ever."""
        self._day = -1.0

    def add(self, fact: Fact) -> None:
        """Add a fact, or replace the one with its id."""
        number = self._numbers.get(fact.id)
        known = None if number is None else self._facts[number]
        if number is None or known is None or (known.content, _place(known)) != (fact.content, _place(fact)):
            self.drop(fact.id)
            number = self._free.pop() if self._free else len(self._facts)
            self._numbers[fact.id] = number
            self._index.add(number, fact.content)
            self._facts[number] = fact
            insort(self._order, _place(fact))
            self._connect(bisect_left(self._order, _place(fact)), 2)
        self._facts[number] = fact
        if fact.valid_from is not None or fact.valid_until is not None:
            self._timed.add(fact.id)
        if self._day >= 0:
            self._weigh(number, fact)

    def drop(self, id: str) -> None:
        """Remove a fact; an unknown id changes nothing."""
        number = self._numbers.pop(id, None)
        if number is not None:
            at = bisect_left(self._order, _place(self._facts[number]))
            del self._order[at]
            self._index.drop(number)
            del self._facts[number]
            self._connect(at, 1)
            self._free.append(number)
            self._timed.discard(id)

    def rank(self, context: str = "", *, now: float, limit: int = MAX_RANKED) -> list[RankedFact]:
        """At most ``limit`` of the facts that hold ``now``, best first; without a context by confidence alone.

        Among equals the one stated last is first.
        """
        if now // DAY != self._day:  # within a day only changed facts are weighed again
            self._day = now // DAY
            for number, fact in self._facts.items():
                self._weigh(number, fact)
        matches = self._index.best(context, limit + len(self._timed))
        best = [RankedFact(self._facts[match.number], match.score, match.similarity) for match in matches]
        best = self._raise_newer([item for item in best if item.fact.holds(now)], now)
        best.sort(key=lambda item: (-round(item.score, 12), -item.fact.seen_at, item.fact.id))
        return best[:limit]

    def _connect(self, start: int, count: int) -> None:
        """Connect the facts at these places with those stated just before them."""
        for at in range(start, min(start + count, len(self._order))):
            fact, number = self._fact_at(at)
            before, number_before = self._fact_at(at - 1) if at else (None, None)
            if before is None or not _is_beside(before, fact):
                self._index.connect(number, None)
            else:
                self._index.connect(number, number_before, answers=ends_with_question(before.content))

    def _fact_at(self, at: int) -> tuple[Fact, int]:
        number = self._numbers[self._order[at][-1]]
        return self._facts[number], number

    def _raise_newer(self, best: list[RankedFact], now: float) -> list[RankedFact]:
        """Give the fact that disputes another at least the score of that one."""
        disputed = [item for item in best if item.fact.disputed_by in self._numbers]
        if not disputed:
            return best
        by_id = {item.fact.id: item for item in best}
        for item in disputed:
            newer = self._facts[self._numbers[item.fact.disputed_by]]
            ranked = by_id.get(newer.id)
            if newer.holds(now) and (ranked is None or ranked.score < item.score):
                by_id[newer.id] = RankedFact(newer, item.score, item.similarity)
        return list(by_id.values())

    def _weigh(self, number: int, fact: Fact) -> None:
        factor = self.weights.factor(fact, self._day * DAY)
        self._index.weigh(number, self.weights.similarity * factor, self.weights.confidence * fact.confidence * factor)


_Place = tuple[str, str, float, int, str]
"""The scope and owner of a fact, the time it was stated, and its id, as numbers count."""


def _place(fact: Fact) -> _Place:
    return fact.scope, fact.owner, fact.stated_at, len(fact.id), fact.id


def _is_beside(before: Fact, fact: Fact) -> bool:
    same = (before.scope, before.owner) == (fact.scope, fact.owner)
    return same and fact.stated_at - before.stated_at <= TOGETHER_SECONDS


def check_search(query: object, limit: object) -> None:
    """Raise ConfigurationError for a query that is no text, and for a limit below 1."""
    if not is_whole_number(limit) or limit < 1:
        raise ConfigurationError(f"limit is a whole number of facts, 1 or more, not {limit!r}")
    if not isinstance(query, str):
        raise ConfigurationError(f"a query is text, not {query!r}")


def context_of(items: Iterable[object]) -> str:
    """The text of the last turns: the user's words and the final answers, oldest first, without tools.

    ``items`` are steps in order; other items are skipped. An action without calls is an answer.
    """
    texts: list[str] = []
    turns_read = 0
    for item in reversed(list(items)):
        if text := statement_text(item):
            texts.append(text[-MAX_CONTEXT_CHARS:])
        if isinstance(item, TaskStep):
            turns_read += 1
            if turns_read == CONTEXT_TURNS:
                break
    return "\n".join(reversed(texts))


def statement_text(item: object) -> str:
    """The text of a step of the user, or of an answer; empty for other steps."""
    match item:
        case TaskStep(content=content) | FinalAnswerStep(content=content) | ActionStep(content=content, tool_calls=()):
            return plain_text(content)
        case _:
            return ""


def plain_text(content: Content | None) -> str:
    """The text of a content, without thinking and images."""
    return "\n".join(part.text for part in as_parts(content) if isinstance(part, Text)).strip()
