"""Which facts matter now: similarity x 0.6 + confidence x 0.4, and two bounded factors.

Deer-flow's formula (MEMORY_IMPROVEMENTS), which it never shipped. A fact that was confirmed weighs up to 5 % more while
that is fresh, one that is looked up often up to 5 % more; one that a newer fact does not agree with half, and never more
than that newer one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pagein.errors import ConfigurationError
from pagein.events.steps import ActionStep, Content, FinalAnswerStep, TaskStep, Text, as_parts
from pagein.facts.fact import Fact
from pagein.search.tfidf import Analyse, TfIdf, fact_terms

DAY = 86_400.0
MOST = 512
"""Facts that a ranking gives at most: no block has room for more."""

DISPUTED = 0.5
TURNS = 3
READ = 4_000
"""Characters of what was said last that are compared, of each text: its end, where the question is."""

_OFTEN = math.log(9)


@dataclass(frozen=True, slots=True)
class Weights:
    """What a score is made of: ``similarity`` and ``confidence`` sum to 1; ``recency`` and ``use`` are what a factor adds at most.

    ``half_life`` is the days after which a confirmation counts half. Raises ConfigurationError.
    """

    similarity: float = 0.6
    confidence: float = 0.4
    recency: float = 0.05
    use: float = 0.05
    half_life: float = 90.0

    def __post_init__(self) -> None:
        for name in ("similarity", "confidence", "recency", "use", "half_life"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ConfigurationError(f"{name} is a number, not {value!r}")
        if min(self.similarity, self.confidence) < 0 or abs(self.similarity + self.confidence - 1) > 1e-9:
            raise ConfigurationError(
                f"the weights of similarity and confidence are 0 or more and sum to 1; {self.similarity} and "
                f"{self.confidence} sum to {self.similarity + self.confidence:g}"
            )
        if not 0 <= self.recency <= 0.5 or not 0 <= self.use <= 0.5 or self.half_life <= 0:
            raise ConfigurationError(
                f"recency and use are factors of 0 to 0.5, half_life is days above 0: {self}"
            )

    def factor(self, fact: Fact, now: float) -> float:
        """What a score is multiplied by: between 1 and (1 + recency)(1 + use); half of it for a disputed fact."""
        fresh = 0.0
        if fact.confirmed_at is not None:
            days = max(0.0, now - fact.confirmed_at) // DAY
            fresh = 0.5 ** (days / self.half_life)
        often = min(1.0, math.log(1 + fact.uses) / _OFTEN)
        disputed = DISPUTED if fact.disputed_by else 1.0
        return (1 + self.recency * fresh) * (1 + self.use * often) * disputed


@dataclass(frozen=True, slots=True)
class Ranked:
    """A fact with its score, and what the score is made of."""

    fact: Fact
    score: float
    similarity: float

    @property
    def why(self) -> str:
        """The score in words."""
        return f"{self.score:.3f}: similarity {self.similarity:.2f}, confidence {self.fact.confidence:.2f}"


class Ranking:
    """Facts in an index, ranked against a context. What changes is put in and dropped; nothing is fitted again."""

    def __init__(self, weights: Weights | None = None, analyse: Analyse = fact_terms) -> None:
        self.weights = weights or Weights()
        self._index = TfIdf(analyse)
        self._facts: dict[int, Fact] = {}
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._timed: set[str] = set()
        """Facts that do not hold for ever."""
        self._day = -1.0

    def __len__(self) -> int:
        return len(self._numbers)

    def put(self, fact: Fact) -> None:
        """Keep a fact, in place of what was kept under its id."""
        number = self._numbers.get(fact.id)
        if number is None or self._facts[number].content != fact.content:
            self.drop(fact.id)
            number = self._free.pop() if self._free else len(self._facts)
            self._numbers[fact.id] = number
            self._index.put(number, fact.content)
        self._facts[number] = fact
        if fact.valid_from is not None or fact.valid_until is not None:
            self._timed.add(fact.id)
        if self._day >= 0:
            self._weigh(number, fact)

    def drop(self, id: str) -> None:
        """Forget a fact; one that is not there is forgotten already."""
        number = self._numbers.pop(id, None)
        if number is not None:
            self._index.drop(number)
            del self._facts[number]
            self._free.append(number)
            self._timed.discard(id)

    def ranked(self, context: str = "", *, now: float, limit: int = MOST) -> list[Ranked]:
        """At most ``limit`` of the facts that hold ``now``, best first; without a context by confidence alone.

        Among equals the one that was said last is first.
        """
        if now // DAY != self._day:  # within a day only what changed is weighed anew
            self._day = now // DAY
            for number, fact in self._facts.items():
                self._weigh(number, fact)
        found = self._index.best(context, limit + len(self._timed))
        best = [Ranked(self._facts[each.number], each.score, each.similarity) for each in found]
        best = self._newer([each for each in best if each.fact.holds(now)], now)
        best.sort(key=lambda each: (-round(each.score, 12), -each.fact.seen_at, each.fact.id))
        return best[:limit]

    def _newer(self, best: list[Ranked], now: float) -> list[Ranked]:
        """The facts, each that a newer one does not agree with behind that one, which matters as much."""
        disputed = [each for each in best if each.fact.disputed_by in self._numbers]
        if not disputed:
            return best
        found = {each.fact.id: each for each in best}
        for each in disputed:
            newer = self._facts[self._numbers[each.fact.disputed_by]]
            held = found.get(newer.id)
            if newer.holds(now) and (held is None or held.score < each.score):
                found[newer.id] = Ranked(newer, each.score, each.similarity)
        return list(found.values())

    def _weigh(self, number: int, fact: Fact) -> None:
        factor = self.weights.factor(fact, self._day * DAY)
        self._index.weigh(
            number, self.weights.similarity * factor, self.weights.confidence * fact.confidence * factor
        )


def context_of(items: Iterable[object], turns: int = TURNS) -> str:
    """What the last turns are about: the user's words and the final answers, oldest first; tools say nothing here.

    ``items`` are steps in order, others among them are passed over. An action without calls is an answer.
    """
    said: list[str] = []
    heard = 0
    for item in reversed(list(items)):
        text = said_in(item)
        if text:
            said.append(text[-READ:])
        if isinstance(item, TaskStep):
            heard += 1
            if heard == turns:
                break
    return "\n".join(reversed(said))


def said_in(item: object) -> str:
    """What the user said or the model answered in a step, as text; nothing where it is neither, or calls tools."""
    match item:
        case TaskStep(content=content) | FinalAnswerStep(content=content):
            return spoken(content)
        case ActionStep(content=content, tool_calls=()):
            return spoken(content)
        case _:
            return ""


def spoken(content: Content | None) -> str:
    """The text of a content, thinking and images left out."""
    return "\n".join(part.text for part in as_parts(content) if isinstance(part, Text)).strip()
