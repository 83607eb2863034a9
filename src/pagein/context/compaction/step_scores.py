"""What an old step is worth keeping: how much it has to do with what the run is doing now. Pure but for an embedder.

Relevance-scored retention (seed 3; pydantic-ai's RelevanceCompaction asks a judge instead). By words, weighed by how
rare they are in the run, or by vectors where an embedder is given. No model is asked about the borderline cases: a
policy is pure, and a judge would decide on the turn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pagein.context.compaction.base import actions, newest_user
from pagein.context.compaction.extracts import stays
from pagein.context.salience.lines import stem
from pagein.context.view.view import Shown, View
from pagein.events.identifiers import argument_text, identifiers, words
from pagein.events.steps import FinalAnswerStep, as_text

NOW = 2
"""The newest actions that, with the user's newest words, say what the run is doing."""

RECENT = 0.5
"""What the step before the newest ones has for its age; it fades with the square root of its age in steps."""

DENSITY = 0.3
"""A step's score is divided by its tokens to this power: of two that match alike the short one stays."""

READ = 4_000
"""Characters at the beginning of each text that are looked at."""

REMEMBERED = 2_000
"""Vectors that are kept, so that a text is embedded once."""


class Embeds(Protocol):
    """Turns texts into vectors; every ``pagein.search.Embedder`` does."""

    def embed(self, texts: Sequence[str]) -> Any:
        """One vector for each text. May raise anything: words decide then."""
        ...


Weight = Callable[[Shown], float]
"""What a step is worth beside its relevance, which is 0 to 1; ``math.inf`` keeps it."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores steps by meaning where an ``embedder`` is given, by words where that fails; ``weight`` adds to it."""

    weight: Weight | None = None
    embedder: Embeds | None = None
    _vectors: dict[str, tuple[float, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, view: View, old: Sequence[Shown]) -> Mapping[int, float]:
        """By position, what each of these steps, oldest first, is worth a token, higher is more; ``inf`` stays."""
        if not old:
            return {}
        relevant = self._relevant(_now(view), [text_of(each) for each in old])
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


def kept_best(scores: Mapping[int, float], costs: Mapping[int, int], room: float) -> frozenset[int]:
    """The positions with the best scores whose costs fit into the room together, newest first of equals."""
    kept = set[int]()
    for first, score in sorted(scores.items(), key=lambda pair: (-pair[1], -pair[0])):
        if costs[first] <= room or score == math.inf:
            room -= costs[first]
            kept.add(first)
    return frozenset(kept)


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


def is_marked(shown: Shown) -> bool:
    """True for what always stays: prompts, pins, the user's words, final answers."""
    return stays(shown) or isinstance(shown.item, FinalAnswerStep)


def _now(view: View) -> str:
    """What the run is doing: the user's newest words, and the newest actions."""
    newest = newest_user(view)
    doing = actions(view)[-NOW:]
    return "\n".join(text_of(each) for each in view.run if each.first == newest or each in doing)


def text_of(shown: Shown) -> str:
    """What an entry says and calls, each text as far as it is looked at."""
    parts = []
    for message in shown.messages:
        parts.append(as_text(message.content)[:READ])
        parts += [argument_text(call.arguments)[:READ] for call in message.tool_calls]
    return "\n".join(parts)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    size = math.hypot(*one) * math.hypot(*other)
    return max(0.0, math.fsum(a * b for a, b in zip(one, other, strict=True)) / size) if size else 0.0
