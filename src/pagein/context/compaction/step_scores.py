"""Scores of old steps by their relevance to the newest ones. Pure but for an embedder.

Relevance-scored retention (seed 3; pydantic-ai's RelevanceCompaction asks a judge instead). Steps are compared by words,
weighted by how rare they are in the run, or by vectors of an embedder. A rater may judge borderline cases; it answers at
once with what it knows, as a policy does not wait.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pagein.context.compaction.base import actions, newest_user_position
from pagein.context.compaction.episodes import may_fold_users, protected_positions
from pagein.context.salience.lines import stem
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.identifiers import argument_text, identifiers, words
from pagein.events.steps import FinalAnswerStep, as_text

NEWEST_ACTIONS = 2
"""Number of newest actions that, with the newest user message, steps are compared with."""

RECENCY_WEIGHT = 0.5
"""Score of the newest old step for its age; it falls with the square root of the age in steps."""

SIZE_EXPONENT = 0.3
"""Power of a step's tokens that divides its score: of two equally relevant steps the shorter one stays."""

TEXT_MAX_CHARS = 4_000
"""Characters at the beginning of each text that are compared."""

MAX_VECTORS = 2_000
"""Cached vectors, so that a text is embedded once."""


class StepEmbedder(Protocol):
    """Turns texts into vectors; every ``pagein.search.Embedder`` does."""

    def embed(self, texts: Sequence[str]) -> Any:
        """Return one vector for each text. If it raises, steps are compared by words."""
        ...


class StepRater(Protocol):
    """Rates how much steps are still needed. ``pagein.memory.ModelRater`` asks a model, in the background."""

    def ratings(self, current: str, texts: Mapping[int, str]) -> Mapping[int, float]:
        """Return the ratings known so far, from 0 to 1, by position; ``current`` says what is done now. Never waits."""
        ...


Weight = Callable[[ViewEntry], float]
"""Returns a score to add to a step's relevance, which is 0 to 1; ``math.inf`` keeps the step."""


Vectors = dict[str, tuple[float, ...]]
"""The vectors of texts that were embedded."""


def score_steps(
    view: View, old: Sequence[ViewEntry], weight: Weight | None, embedder: StepEmbedder | None, known: Vectors
) -> Mapping[int, float]:
    """Return the score of each of these steps, oldest first, by position; ``inf`` stays.

    They are compared by the vectors of an ``embedder``, or by words without one or if it fails; ``weight`` adds to it.
    """
    if not old:
        return {}
    current, texts = _current_text(view), [entry_text(entry) for entry in old]
    try:
        relevant = word_relevance(current, texts) if embedder is None else _compare(current, texts, embedder, known)
    except Exception:  # noqa: BLE001 - any embedder may fail; words are the fallback
        relevant = word_relevance(current, texts)
    scores = {}
    for age, (entry, score) in enumerate(zip(reversed(old), reversed(relevant), strict=True), 1):
        worth = (score + RECENCY_WEIGHT / math.sqrt(age)) / max(1, entry.tokens) ** SIZE_EXPONENT
        scores[entry.first] = worth + (weight(entry) if weight is not None else 0.0)
    return scores


def _compare(current: str, texts: Sequence[str], embedder: StepEmbedder, known: Vectors) -> list[float]:
    missing = [text for text in dict.fromkeys((current, *texts)) if text not in known]
    if len(known) + len(missing) > MAX_VECTORS:
        known.clear()
        missing = list(dict.fromkeys((current, *texts)))
    if missing:
        known.update(zip(missing, (tuple(map(float, vector)) for vector in embedder.embed(missing)), strict=True))
    return [_cosine(known[current], known[text]) for text in texts]


def select_best(scores: Mapping[int, float], costs: Mapping[int, int], room: float) -> frozenset[int]:
    """Select the positions with the best scores whose costs fit into the room, the newer of equals first."""
    best = set[int]()
    for first, score in sorted(scores.items(), key=lambda pair: (-pair[1], -pair[0])):
        if costs[first] <= room or score == math.inf:
            room -= costs[first]
            best.add(first)
    return frozenset(best)


def rate_borderline(
    view: View, scores: Mapping[int, float], staying: frozenset[int], rater: StepRater, band: float
) -> Mapping[int, float]:
    """Return the scores with those of borderline steps moved within their band, as the rater rates the steps.

    The band is around the lowest score that stays: so much of it up and down.
    """
    if not staying or len(staying) == len(scores):
        return scores
    cut = min(scores[first] for first in staying)
    entries = {entry.first: entry for entry in view.run}
    texts = {first: entry_text(entries[first]) for first in scores if abs(scores[first] - cut) <= band * abs(cut)}
    ratings = rater.ratings(_current_text(view), texts)
    moved = {first: cut + band * abs(cut) * (2 * rating - 1) for first, rating in ratings.items() if first in texts}
    return {**scores, **moved}


def word_relevance(current: str, texts: Sequence[str]) -> list[float]:
    """Return the share of the current text's words and names in each text, from 0 to 1; rare ones count most."""
    term_sets = [frozenset(_terms(text)) for text in texts]
    among = Counter(term for terms in term_sets for term in terms)
    rare = {term: math.log(1 + len(texts) / among[term]) for term in frozenset(_terms(current)) if among[term]}
    whole = math.fsum(rare.values())
    return [math.fsum(rare.get(term, 0.0) for term in terms) / whole if whole else 0.0 for terms in term_sets]


def _terms(text: str) -> Iterator[str]:
    yield from map(stem, words(text))
    yield from identifiers(text)


def permanent_positions(view: View) -> frozenset[int]:
    """Return the positions of the entries that always stay: prompts, pins, user messages, final answers.

    Where turns of talk leave, only the newest user message: see ``protected_positions``.
    """
    answers = (
        () if may_fold_users(view) else (entry.first for entry in view.run if isinstance(entry.item, FinalAnswerStep))
    )
    return protected_positions(view).union(answers)


def _current_text(view: View) -> str:
    """Return the text that steps are compared with: the newest user message and actions."""
    newest = newest_user_position(view)
    newest_actions = actions(view)[-NEWEST_ACTIONS:]
    return "\n".join(entry_text(entry) for entry in view.run if entry.first == newest or entry in newest_actions)


def entry_text(entry: ViewEntry) -> str:
    """Return the beginnings of an entry's texts and arguments."""
    parts = []
    for message in entry.messages:
        parts.append(as_text(message.content)[:TEXT_MAX_CHARS])
        parts += [argument_text(call.arguments)[:TEXT_MAX_CHARS] for call in message.tool_calls]
    return "\n".join(parts)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    size = math.hypot(*one) * math.hypot(*other)
    return max(0.0, math.fsum(a * b for a, b in zip(one, other, strict=True)) / size) if size else 0.0
