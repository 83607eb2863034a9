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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagein.search.tokenizer import BEGINNING, STOP_WORDS, beginnings, form_finder, stem, terms

SCORE_DIGITS = 9
"""Digits of a score after the point that decide an order."""

BM25_K1, BM25_B = 1.2, 0.5
MIN_BEST_SHARE = 0.3
"""The share of a query's rarities below which the best match is weak, and is not stretched to 1."""

NEIGHBOUR_SHARE = 0.15
"""The share of a text's BM25 that the texts stated beside it get: what is said together is about the same."""

ANSWER_SHARE = 0.6
"""The share that a text gets of a question before it, whose words it answers.

Both are chosen on halves of LoCoMo and LongMemEval; decision 0018 has the figures."""

NUMPY_MIN_TEXTS = 500
"""Texts up to which Python is as fast as NumPy, which is then not loaded."""


def fact_terms(text: str) -> list[str]:
    """The terms by which facts match contexts: stems, names whole and in parts, no stop words.

    >>> fact_terms("She is testing the Next.js app")
    ['test', 'next.js', 'next', 'js', 'app']
    """
    stopped = _stop_terms()
    return [term for term in terms(text) if term not in stopped and (len(term) > 1 or not term.isascii())]


def ranked_terms(text: str) -> list[str]:
    """The terms of a text, and the beginnings of its words where it is not English."""
    return [*fact_terms(text), *beginnings(text)]


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


def _places(numbers: Any, np: Any) -> Iterable[Any]:
    """The numbers as places of a column: one after the other, or with NumPy all at once."""
    return (np.frombuffer(numbers, dtype=np.int64),) if np is not None and numbers else numbers


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

    def __init__(self, *, arrays: bool = True) -> None:
        self._arrays = arrays
        self._texts: dict[int, dict[str, int]] = {}
        self._once: dict[str, array[int]] = {}
        """By term, the texts with it once; nearly all."""
        self._often: dict[str, dict[int, int]] = {}
        """By term, the texts with it more often, and the counts."""
        self._squares, self._firsts, self._seconds = array("d"), array("d"), array("d")
        self._wide, self._sure = array("d"), array("d")
        self._lengths, self._length = array("d"), 0.0
        self._before, self._inherited = array("q"), array("d")
        """By number, the text stated before it, or itself; and the share that it gets of that one's BM25."""
        self._logs: dict[str, float] = {}
        """By term, the ln(1 + df) in the sums."""
        self._stale: set[str] = set()

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, number: int, text: str) -> None:
        """Add a text under a free number."""
        counts = Counter(ranked_terms(text))
        self._texts[number] = counts
        missing = number + 1 - len(self._squares)
        if missing > 0:
            for column in (self._squares, self._firsts, self._seconds, self._wide, self._lengths):
                column.extend([0.0] * missing)
            self._sure.extend([-math.inf] * missing)
            self._before.extend(range(number + 1 - missing, number + 1))
            self._inherited.extend([0.0] * missing)
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
        self._lengths[number] = float(sum(counts.values()))
        self._length += self._lengths[number]
        self._stale.update(counts)

    def weigh(self, number: int, wide: float, sure: float) -> None:
        """Set the score of a text: ``wide`` times its cosine, plus ``sure``."""
        self._wide[number], self._sure[number] = wide, sure

    def connect(self, number: int, before: int | None, *, answers: bool = False) -> None:
        """Say which text was stated just before that of a number, None for none, and whether that was a question."""
        self._before[number] = number if before is None else before
        self._inherited[number] = 0.0 if before is None else ANSWER_SHARE if answers else NEIGHBOUR_SHARE

    def drop(self, number: int) -> None:
        """Remove the text of a number; the number is free again. What was connected with it is to be connected anew."""
        for term, count in self._texts.pop(number).items():
            if count == 1:
                self._once[term].remove(number)
            else:
                del self._often[term][number]
            self._stale.add(term)
        self._wide[number], self._sure[number] = 0.0, -math.inf
        self._length -= self._lengths[number]
        self._lengths[number] = 0.0
        self.connect(number, None)

    def similarities(self, query: str) -> Mapping[int, float]:
        """The cosine of the query with each text that shares a term with it, by number."""
        dots, cosine = self._dots(query, None)
        return {number: cosine(number, dot) for number, dot in enumerate(dots) if dot}

    def order(self, query: str, places: Sequence[int]) -> list[int]:
        """The numbers of all texts, best first; among equals the one whose number has the lower place is first."""
        np = self._numpy()
        dots, cosine = self._dots(query, np)
        if np is None:
            scores = self._scores([cosine(number, dot) if dot else 0.0 for number, dot in enumerate(dots)], None)
            return sorted(self._texts, key=lambda number: (-round(scores[number], SCORE_DIGITS), places[number]))
        near = np.flatnonzero(dots)
        dots[near] = cosine(near, dots[near])
        scores = np.round(self._scores(dots, np), SCORE_DIGITS)
        order: list[int] = np.lexsort((np.asarray(places), -scores))[: len(self)].tolist()
        return order

    def _numpy(self) -> Any:
        """NumPy where it is installed and faster, else None."""
        return _load_numpy() if self._arrays and len(self) > NUMPY_MIN_TEXTS else None

    def _scores(self, similarities: Any, np: Any) -> Any:
        """The score of each number, from its similarity to the query."""
        if np is not None:
            return np.frombuffer(self._sure) + np.frombuffer(self._wide) * similarities
        columns = zip(self._sure, self._wide, similarities, strict=True)
        return [sure + wide * similarity for sure, wide, similarity in columns]

    def best(self, query: str, limit: int) -> list[TextMatch]:
        """At most ``limit`` texts, best first; texts without a common term have their base score.

        The score has BM25 as a share of the best text's, or of ``MIN_BEST_SHARE`` of what the query's rarities sum to where
        the best is less. Of short texts it ranks better than the cosine, and it spreads as wide as the base scores.
        """
        np = self._numpy()
        scores = self._scores(self._bm25(query, np), np)
        count = min(limit, len(self))
        if np is None:
            top = heapq.nlargest(count, self._texts, key=scores.__getitem__)
        else:
            top = [int(number) for number in np.argpartition(-scores, count - 1)[:count]] if count else []
        top.sort(key=lambda number: (-scores[number], number))
        dots, cosine = self._dots(query, np)
        return [
            TextMatch(number, float(scores[number]), float(cosine(number, dots[number])) if dots[number] else 0.0)
            for number in top
        ]

    def _bm25(self, query: str, np: Any) -> Any:
        """The BM25 of each number, with shares of its neighbours', as a share of the best."""
        texts, size = len(self._texts), len(self._squares)
        spread = BM25_K1 * BM25_B * texts / (self._length or 1.0)
        lengths = self._lengths if np is None else np.frombuffer(self._lengths)
        scores: Any = [0.0] * size if np is None else np.zeros(size)
        total = 0.0
        asked = dict.fromkeys(ranked_terms(query))
        for term in asked:
            once, often = self._postings(term, asked)
            frequency = len(once) + len(often)
            if not frequency:
                continue
            worth = math.log(1 + (texts - frequency + 0.5) / (frequency + 0.5))
            total += worth
            gain = worth * (BM25_K1 + 1)
            for place in _places(once, np):
                scores[place] += gain / (1 + BM25_K1 * (1 - BM25_B) + spread * lengths[place])
            for number, times in often.items():
                scores[number] += gain * times / (times + BM25_K1 * (1 - BM25_B) + spread * lengths[number])
        scores = self._with_neighbours(scores, np)
        best = max(total * MIN_BEST_SHARE, float(max(scores, default=0.0) if np is None else scores.max())) or 1.0
        return scores / best if np is not None else [score / best for score in scores]

    def _postings(self, term: str, asked: Iterable[str]) -> tuple[Sequence[int], Mapping[int, int]]:
        """The numbers with a term once, and those with it more often; of a beginning those that have a form of an asked word."""
        once, often = self._once.get(term, array("q")), self._often.get(term, {})
        if not term.endswith(BEGINNING):
            return once, often
        has_form = form_finder(term, asked)
        found = {number for number in (*once, *often) if has_form(f" {' '.join(self._texts[number])} ")}
        return array("q", [number for number in once if number in found]), {
            number: count for number, count in often.items() if number in found
        }

    def _with_neighbours(self, scores: Any, np: Any) -> Any:
        """The scores, to which each text adds a share of what the texts stated just before and just after it match."""
        raised = scores.copy()
        if np is None:
            for number, (before, inherited) in enumerate(zip(self._before, self._inherited, strict=True)):
                if inherited:
                    raised[number] += inherited * scores[before]
                    raised[before] += NEIGHBOUR_SHARE * scores[number]
            return raised
        before, inherited = np.frombuffer(self._before, dtype=np.int64), np.frombuffer(self._inherited)
        connected = np.flatnonzero(inherited)
        raised[connected] += inherited[connected] * scores[before[connected]]
        raised[before[connected]] += NEIGHBOUR_SHARE * scores[connected]  # no two texts follow the same one
        return raised

    def _dots(self, query: str, np: Any) -> tuple[Any, Callable[[Any, Any], Any]]:
        """The product of each number with the query, and the function that makes a cosine of it."""
        counts = Counter(ranked_terms(query))
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
            once, often = self._postings(term, counts)
            for place in _places(once, np):
                dots[place] += weight
            for number, times in often.items():
                dots[number] += weight * times
        return dots, self._cosine(most, math.sqrt(length) or 1.0, np)

    def _cosine(self, most: float, length: float, np: Any) -> Callable[[Any, Any], Any]:
        square, twice = most * most, 2 * most
        columns: Iterable[Any] = self._squares, self._firsts, self._seconds
        squares, firsts, seconds = columns if np is None else map(np.frombuffer, columns)
        root = math.sqrt if np is None else np.sqrt

        def cosine(number: Any, dot: Any) -> Any:
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
