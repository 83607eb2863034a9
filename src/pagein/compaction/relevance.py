"""Relevance: near capacity each old step is scored against what the run is doing now, and the low ones leave first.

Hierarchical working memory's third eviction rule (seed 3; pydantic-ai's RelevanceCompaction asks a judge instead). By
words, weighed by how rare they are in the run, or by vectors where an embedder is given. No model is asked about the
borderline cases: a policy is pure, and a judge would decide on the turn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

from pagein.compaction import Plan, actions, newest_user, plan_of
from pagein.compaction.extracting import boundary, stays, summary_of
from pagein.compaction.folding import is_summary, is_worth, legal_stop
from pagein.lexing import argument_text, identifiers, words
from pagein.log import Replacement
from pagein.steps import FinalAnswerStep, as_text
from pagein.tokens import Budget
from pagein.view import Shown, View
from pagein.view.reading import stem

NOW = 2
"""The newest actions that, with the user's newest words, say what the run is doing."""

NEWEST = 0.3
"""Share of the limit that the newest actions may have; the newest of all stays whatever it costs."""

RECENT = 0.5
"""What the step before the newest ones has for its age; it fades with the square root of its age in steps."""

DENSITY = 0.3
"""A step's score is divided by its tokens to this power: of two that match alike the short one stays."""

READ = 4_000
"""Characters at the beginning of each text that are looked at."""

REMEMBERED = 2_000
"""Vectors that are kept, so that a text is embedded once."""


class Embeds(Protocol):
    """Turns texts into vectors; every ``pagein.archive.Embedder`` does."""

    def embed(self, texts: Sequence[str]) -> Any:
        """One vector for each text. May raise anything: words decide then."""
        ...


Weight = Callable[[Shown], float]
"""What a step is worth beside its relevance, which is 0 to 1; ``math.inf`` keeps it."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Above the high mark, folds the old steps that have least to do with the newest, down to the low mark.

    The last ``keep`` actions stay where they are not too long, and so do system prompts, pins, the user's words and
    final answers; ``weight`` adds what the user knows better. Where steps left stands a line with their handles, and
    with the newest of them an extract of the run, which has ``share`` of the room. With ``embedder`` a step is compared
    by meaning; where that fails, by words.
    """

    keep: int = 3
    share: float = 0.4
    weight: Weight | None = None
    embedder: Embeds | None = None
    name: str = "relevance"
    _vectors: dict[str, tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, view: View, budget: Budget) -> Plan | None:
        """A plan that folds the least relevant steps, or none."""
        if view.tokens <= view.limit * budget.high:
            return None
        scores = self.scores(view)
        room = int(view.limit * budget.low_share) - sum(each.tokens for each in view.entries if _marked(each))
        extract = int(room * self.share)
        costs = {each.first: each.tokens for each in view.run if not _marked(each)}
        left = room - extract - sum(cost for first, cost in costs.items() if first not in scores)
        leaving = set[int]()
        for first, score in sorted(scores.items(), key=lambda pair: (-pair[1], -pair[0])):
            if costs[first] <= left or score == math.inf:
                left -= costs[first]
            else:
                leaving.add(first)
        folded = tuple(self._folded(view, leaving, extract))
        return plan_of(folded, self.name, f"{len(leaving)} steps least relevant to what is done now")

    def scores(self, view: View) -> Mapping[int, float]:
        """By position, what each step that may leave is worth keeping, higher is more."""
        acted = actions(view)
        newest = acted[-self.keep :][0].first if acted and self.keep else view.head
        stop = legal_stop(view, max(newest, boundary(view, view.limit * NEWEST)))
        old = [each for each in view.run if each.first < stop and not _marked(each)]
        if not old:
            return {}
        relevant = self._relevant(_now(view), [_text(each) for each in old])
        found = {}
        for age, (each, score) in enumerate(zip(reversed(old), reversed(relevant), strict=True), 1):
            worth = (score + RECENT / math.sqrt(age)) / max(1, each.tokens) ** DENSITY
            found[each.first] = worth + (self.weight(each) if self.weight is not None else 0.0)
        return found

    def _relevant(self, now: str, texts: Sequence[str]) -> list[float]:
        if self.embedder is not None:
            try:
                return self._by_meaning(now, texts)
            except Exception:  # noqa: BLE001, S110 - anyone's embedder; the turn is served by words
                pass
        return by_words(now, texts)

    def _by_meaning(self, now: str, texts: Sequence[str]) -> list[float]:
        wanted = [each for each in dict.fromkeys((now, *texts)) if each not in self._vectors]
        if len(self._vectors) + len(wanted) > REMEMBERED:
            self._vectors.clear()
            wanted = list(dict.fromkeys((now, *texts)))
        if wanted and self.embedder is not None:
            made = [tuple(map(float, each)) for each in self.embedder.embed(wanted)]
            self._vectors.update(zip(wanted, made, strict=True))
        return [_cosine(self._vectors[now], self._vectors[each]) for each in texts]

    def _folded(self, view: View, leaving: set[int], room: int) -> Iterator[Replacement]:
        """One line for each run of neighbours that leave; the newest has the extract, which is the whole run's.

        A summary that stands already, and has no new neighbour, stays; but the newest of all is made anew.
        """
        found = [
            tuple(held) for goes, held in groupby(view.run, key=lambda each: each.first in leaving) if goes
        ]
        held_back = (*view.systems, *view.kept, *(each for each in view.run if each.first not in leaving))
        visible = tuple(_text(each) for each in held_back)
        for held in found:
            newest = held is found[-1]
            if newest or (is_worth(held) and not is_summary(held)):
                yield summary_of(view, held, room if newest else 0, visible)


def by_words(now: str, texts: Sequence[str]) -> list[float]:
    """How much of what is said now each text says too, from 0 to 1: rare words and names count most."""
    held = [frozenset(_terms(each)) for each in texts]
    among = Counter(term for each in held for term in each)
    rare = {term: math.log(1 + len(texts) / among[term]) for term in frozenset(_terms(now)) if among[term]}
    whole = sum(rare.values())
    return [sum(rare.get(term, 0.0) for term in sorted(each)) / whole if whole else 0.0 for each in held]


def _terms(text: str) -> Iterator[str]:
    yield from map(stem, words(text))
    yield from identifiers(text)


def _marked(shown: Shown) -> bool:
    """True for what always stays: prompts, pins, the user's words, final answers."""
    return stays(shown) or isinstance(shown.item, FinalAnswerStep)


def _now(view: View) -> str:
    """What the run is doing: the user's newest words, and the newest actions."""
    newest = newest_user(view)
    doing = actions(view)[-NOW:]
    return "\n".join(_text(each) for each in view.run if each.first == newest or each in doing)


def _text(shown: Shown) -> str:
    parts = []
    for message in shown.messages:
        parts.append(as_text(message.content)[:READ])
        parts += [argument_text(call.arguments)[:READ] for call in message.tool_calls]
    return "\n".join(parts)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    size = math.hypot(*one) * math.hypot(*other)
    return max(0.0, math.fsum(a * b for a, b in zip(one, other, strict=True)) / size) if size else 0.0
