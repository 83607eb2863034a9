"""TF-IDF cosine over an inverted index that is updated, not refitted, with the numbers of scikit-learn's TfidfVectorizer.

Its default weighting, fitted on the stored texts: idf = ln((1 + N) / (1 + df)) + 1, raw counts, rows of length 1; a
query's terms that no text has count for nothing. With L = ln(1 + N) + 1 and l = ln(1 + df) an idf is L - l, so a text's
squared length is L²·Σtf² - 2L·Σtf²l + Σtf²l²: three sums. One more text changes L, and the l of its own terms only.
Adding a text costs the length of its terms' postings, and nothing is fitted again.

Postings and sums are arrays of machine numbers. If NumPy is installed (the extra ``facts``) it scores many texts over
the same memory; otherwise Python does, with the same numbers.
"""

from __future__ import annotations

import functools
import heapq
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagein.search.tokenizer import STOP_WORDS, count_terms, stem, terms

Analyse = Callable[[str], Iterable[str]]

SCORE_DIGITS = 9
"""Digits of a score after the point that decide an order."""

NUMPY_MIN_TEXTS = 500
"""Texts up to which Python is as fast as NumPy, which is then not loaded."""


def fact_terms(text: str) -> list[str]:
    """The terms by which facts match contexts: stems, names whole and in parts, no stop words.

    >>> fact_terms("She is testing the Next.js app")
    ['test', 'next.js', 'next', 'js', 'app']
    """
    stopped = _stop_terms()
    return [term for term in terms(text) if term not in stopped and (len(term) > 1 or not term.isascii())]


_GRAMMAR = frozenset(
    [
        "user", "users", "use", "uses", "used", "using", "like", "likes", "liked",
        "prefer", "prefers", "preferred", "want", "wants", "need", "needs",
    ]
)  # fmt: skip
"""Words of nearly every fact, which distinguish none."""


@functools.cache
def _stop_terms() -> frozenset[str]:
    return STOP_WORDS | _GRAMMAR | {stem(word) for word in STOP_WORDS | _GRAMMAR}


@functools.cache
def _load_numpy() -> Any:
    try:
        import numpy as np  # noqa: PLC0415 - loads where there are many facts
    except ImportError:
        return None
    return np


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A text by its number, its score and its cosine with the query."""

    number: int
    score: float
    similarity: float


class TfIdf:
    """Texts by number, each with a weight for its cosine and a base score. Not safe for several threads at once.

    ``arrays`` False: never uses NumPy.
    """

    def __init__(self, analyse: Analyse = fact_terms, *, arrays: bool = True) -> None:
        self._analyse = analyse
        self._arrays = arrays
        self._texts: dict[int, dict[str, int]] = {}
        self._once: dict[str, array[int]] = {}
        """By term, the texts with it once; nearly all."""
        self._often: dict[str, dict[int, int]] = {}
        """By term, the texts with it more often, and the counts."""
        self._squares, self._firsts, self._seconds = array("d"), array("d"), array("d")
        self._wide, self._sure = array("d"), array("d")
        self._logs: dict[str, float] = {}
        """By term, the ln(1 + df) in the sums."""
        self._stale: set[str] = set()

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, number: int, text: str) -> None:
        """Add a text under a free number."""
        counts = count_terms(self._analyse(text))
        self._texts[number] = counts
        missing = number + 1 - len(self._squares)
        if missing > 0:
            for column in (self._squares, self._firsts, self._seconds, self._wide):
                column.extend([0.0] * missing)
            self._sure.extend([-math.inf] * missing)
        square = first = second = 0.0
        for term, count in counts.items():
            if count == 1:
                self._once.setdefault(term, array("q")).append(number)
            else:
                self._often.setdefault(term, {})[number] = count
            log = self._logs.get(term, 0.0)
            square += count * count
            first += count * count * log
            second += count * count * log * log
        self._squares[number], self._firsts[number], self._seconds[number] = square, first, second
        self._stale.update(counts)

    def weigh(self, number: int, wide: float, sure: float) -> None:
        """Set the score of a text: ``wide`` times its cosine, plus ``sure``."""
        self._wide[number], self._sure[number] = wide, sure

    def drop(self, number: int) -> None:
        """Remove the text of a number; the number is free again."""
        for term, count in self._texts.pop(number).items():
            if count == 1:
                self._once[term].remove(number)
            else:
                del self._often[term][number]
            self._stale.add(term)
        self._wide[number], self._sure[number] = 0.0, -math.inf

    def similarities(self, query: str) -> Mapping[int, float]:
        """The cosine of the query with each text that shares a term with it, by number."""
        dots, cosine = self._dots(query, None)
        return {number: cosine(number, dot) for number, dot in enumerate(dots) if dot}

    def ordered(self, query: str, places: Sequence[int]) -> list[int]:
        """The numbers of all texts, best first; among equals the one whose number has the lower place is first."""
        np = _load_numpy() if self._arrays and len(self) > NUMPY_MIN_TEXTS else None
        dots, cosine = self._dots(query, np)
        if np is None:
            scores = list(self._sure)
            for number, dot in enumerate(dots):
                if dot:
                    scores[number] += self._wide[number] * cosine(number, dot)
            return sorted(self._texts, key=lambda number: (-round(scores[number], SCORE_DIGITS), places[number]))
        scores = self._scores(np, dots, cosine)
        order: list[int] = np.lexsort((np.asarray(places), -np.round(scores, SCORE_DIGITS)))[: len(self)].tolist()
        return order

    def _scores(self, np: Any, dots: Any, cosine: Callable[..., Any]) -> Any:
        wide, sure = np.frombuffer(self._wide), np.frombuffer(self._sure)
        squared = np.frombuffer(self._squares), np.frombuffer(self._firsts), np.frombuffer(self._seconds)
        near = np.flatnonzero(dots)
        scores = sure.copy()
        scores[near] += wide[near] * cosine(near, dots[near], squared, np.sqrt)
        return scores

    def best(self, query: str, limit: int) -> list[TextMatch]:
        """At most ``limit`` texts, best first; texts without a common term have their base score."""
        np = _load_numpy() if self._arrays and len(self) > NUMPY_MIN_TEXTS else None
        dots, cosine = self._dots(query, np)
        if np is None:
            return self._best(dots, cosine, limit)
        scores = self._scores(np, dots, cosine)
        count = min(limit, len(self))
        top = np.argpartition(-scores, count - 1)[:count] if count else []
        ordered = sorted(map(int, top), key=lambda number: (-scores[number], number))
        return [self._build_match(number, float(scores[number])) for number in ordered]

    def _best(self, dots: Any, cosine: Callable[..., Any], limit: int) -> list[TextMatch]:
        wide = self._wide
        scores = list(self._sure)
        for number, dot in enumerate(dots):
            if dot:
                scores[number] += wide[number] * cosine(number, dot)
        top = heapq.nlargest(min(limit, len(self)), self._texts, key=scores.__getitem__)
        top.sort(key=lambda number: (-scores[number], number))
        return [self._build_match(number, scores[number]) for number in top]

    def _build_match(self, number: int, score: float) -> TextMatch:
        wide = self._wide[number]
        near = (score - self._sure[number]) / wide if wide else 0.0
        return TextMatch(number, score, near)

    def _dots(self, query: str, np: Any) -> tuple[Any, Callable[..., Any]]:
        """The product of each number with the query, and the function that makes a cosine of it."""
        counts = count_terms(self._analyse(query))
        self._settle()
        most = math.log(1 + len(self._texts)) + 1
        size = len(self._squares)
        dots = [0.0] * size if np is None else np.zeros(size)
        length = 0.0
        for term, count in counts.items():
            if term not in self._logs:
                continue
            idf = most - self._logs[term]
            length += (count * idf) ** 2
            weight = count * idf * idf
            once = self._once.get(term)
            if once and np is not None:
                dots[np.frombuffer(once, dtype=np.int64)] += weight
            elif once:
                for number in once:
                    dots[number] += weight
            for number, times in self._often.get(term, {}).items():
                dots[number] += weight * times
        return dots, self._cosine(most, math.sqrt(length) or 1.0)

    def _cosine(self, most: float, length: float) -> Callable[..., Any]:
        square, twice = most * most, 2 * most
        whole = (self._squares, self._firsts, self._seconds)

        def cosine(number: Any, dot: Any, sums: Any = whole, root: Callable[[Any], Any] = math.sqrt) -> Any:
            squares, firsts, seconds = sums
            return dot / (length * root(square * squares[number] - twice * firsts[number] + seconds[number]))

        return cosine

    def _settle(self) -> None:
        """Bring the sums up to the current frequencies."""
        firsts, seconds = self._firsts, self._seconds
        for term in self._stale:
            once, often = self._once.get(term, ()), self._often.get(term, {})
            frequency = len(once) + len(often)
            before = self._logs.get(term, 0.0)
            if not frequency:
                self._logs.pop(term, None)
                self._once.pop(term, None)
                self._often.pop(term, None)
                continue
            now = math.log(1 + frequency)
            first, second = now - before, now * now - before * before
            for number in once:
                firsts[number] += first
                seconds[number] += second
            for number, count in often.items():
                firsts[number] += count * count * first
                seconds[number] += count * count * second
            self._logs[term] = now
        self._stale.clear()
