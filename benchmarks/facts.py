"""Measure whether the facts a question needs are in the block, compared with confidence alone and a TF-IDF refit.

Facts are the turns of long conversations (LoCoMo: of both speakers; LongMemEval: the user's, of the sessions with the
answer and of distractors), each with a confidence drawn from its text. A question needs the facts that are its evidence.
The measure is the share of them in a block of so many tokens.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from pagein.errors import ConfigurationError
from pagein.evaluation.conversations import Turn, haystack_of, read_locomo, read_longmemeval, read_pool
from pagein.facts.block import build_block
from pagein.facts.fact import MAX_CONTENT_CHARS, Fact, fact_id
from pagein.facts.injection import format_memory_for_injection
from pagein.facts.ranking import Ranking, Weights
from pagein.search.tfidf import TfIdf, ranked_terms
from pagein.tokens import TokenCounter

BUDGETS = (300, 500, 1_000, 2_000)
OURS, CONFIDENCE, REFIT = "pagein", "confidence only", "TF-IDF, refitted"
NOW = 0.0

Chooser = Callable[[str, int], set[str]]
"""The ids of the facts in a block for a question, of so many tokens."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One set of facts, and the questions asked of it: the text, and the ids of the facts it needs."""

    facts: tuple[Fact, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]


@dataclass(slots=True)
class Shares:
    """By system and budget, the shares of the needed facts that were in the block; and how far two cosines were apart."""

    questions: int = 0
    sums: dict[tuple[str, int], float] = field(default_factory=dict)
    apart: float = 0.0

    def add(self, system: str, budget: int, share: float) -> None:
        """Take in one question's share."""
        self.sums[system, budget] = self.sums.get((system, budget), 0.0) + share

    def mean(self, system: str, budget: int) -> float | None:
        """The mean over the questions, None where nothing was asked."""
        return self.sums.get((system, budget), 0.0) / self.questions if self.questions else None


@dataclass(frozen=True, slots=True)
class Speed:
    """Milliseconds of a ranking with so many facts, the medians: ours, ours after a new fact, and a refit.

    ``processor`` is what ours takes of the processor's time, on a machine that is busy too. ``injection`` is the processor time
    of ``format_memory_for_injection`` for a new context and ``repeated`` for the same once more, its index being kept.
    """

    facts: int
    ours: float
    processor: float
    after_one_more: float
    refit: float | None
    refit_processor: float | None = None
    injection: float = 0.0
    repeated: float = 0.0

    @property
    def times(self) -> float | None:
        """The processor time of a refit as a multiple of ours."""
        return None if self.refit_processor is None else self.refit_processor / max(self.processor, 1e-3)


def read_asked(path: Path, pool: Path | None = None, haystack: int = 50) -> list[Asked]:
    """The facts and questions of a LoCoMo or a LongMemEval file, told apart by what is in them. Raises FormatError."""
    try:
        conversations = read_locomo(path)
    except ConfigurationError:
        raise
    except Exception:  # noqa: BLE001 - the other of the two, whose reader says what is wrong with it
        return _of_chats(path, pool, haystack)
    results = []
    for conversation in conversations:
        facts = _facts(conversation.turns)
        asked = [(one.text, _ids(one.evidence, facts)) for one in conversation.questions]
        results.append(Asked(tuple(facts.values()), tuple((text, ids) for text, ids in asked if ids)))
    return results


def _of_chats(path: Path, pool: Path | None, haystack: int) -> list[Asked]:
    drawn = read_pool(pool) if pool is not None else None
    results = []
    for chat in read_longmemeval(path):
        sessions = chat.haystack if drawn is None else haystack_of(chat, drawn, haystack)
        turns = [turn for session in sessions.values() for turn in session if turn.role == "user"]
        facts = _facts(turns)
        needed = _ids((turn.id for turn in turns if turn.is_evidence), facts)
        if needed:
            results.append(Asked(tuple(facts.values()), ((chat.question.text, needed),)))
    return results


def _facts(turns: Sequence[Turn]) -> dict[str, Fact]:
    """A fact a turn, by the turn's id; its own id is one as a store gives, its confidence is drawn by its text, from 0.7 to 1."""
    kept = [turn for turn in turns if turn.text.strip()]
    return {
        turn.id: Fact(
            fact_id("user", position),
            turn.text.strip()[:MAX_CONTENT_CHARS],
            confidence=0.7 + 0.3 * (crc32(turn.text.encode("utf-8", "replace")) % 1_000) / 1_000,
            stated_at=turn.at,
        )
        for position, turn in enumerate(kept, start=1)
    }


def _ids(turns: Iterable[str], facts: Mapping[str, Fact]) -> frozenset[str]:
    """The ids of the facts of these turns."""
    return frozenset(facts[turn].id for turn in turns if turn in facts)


def bench_facts(
    asked: Sequence[Asked],
    counter: TokenCounter,
    *,
    weights: Weights | None = None,
    refit: bool = True,
    tick: Callable[[], object] = lambda: None,
) -> Shares:
    """The share of the needed facts in the block, by system and budget; ``refit`` needs scikit-learn."""
    shares = Shares()
    for one in asked:
        choosers = dict(_choosers(one.facts, counter, weights or Weights(), refit=refit))
        for text, needed in one.questions:
            shares.questions += 1
            for system, choose in choosers.items():
                for budget in BUDGETS:
                    shares.add(system, budget, len(needed & choose(text, budget)) / len(needed))
            tick()
        if refit and one.questions:
            shares.apart = max(shares.apart, _apart(one))
    return shares


def _choosers(
    facts: Sequence[Fact], counter: TokenCounter, weights: Weights, *, refit: bool
) -> Iterator[tuple[str, Chooser]]:
    ranking = Ranking(weights)
    for fact in facts:
        ranking.add(fact)
    costs: dict[str, int] = {}

    def cost(line: str) -> int:
        if line not in costs:
            costs[line] = counter.text(line)
        return costs[line]

    def block(ranked: Sequence[Fact], budget: int) -> set[str]:
        return set(build_block(ranked, counter=counter, max_tokens=budget, cost=cost).ids)

    def ours(text: str, budget: int) -> set[str]:
        return block([each.fact for each in ranking.rank(text, now=NOW)], budget)

    sure = sorted(facts, key=lambda each: -each.confidence)
    lines = [cost(f"- [{each.category} | {each.confidence:.2f}] {each.content}") + 1 for each in sure]

    def confident(_: str, budget: int) -> set[str]:
        return {sure[at].id for at in _until_misfit(lines, budget)}

    yield OURS, ours
    yield CONFIDENCE, confident
    if refit:
        by_refit = refit_ranking(facts, weights)
        yield REFIT, lambda text, budget: block(by_refit(text), budget)


def _until_misfit(costs: Sequence[int], room: int) -> list[int]:
    """As deer-flow fills: up to the first that does not fit."""
    taken = []
    for index, cost in enumerate(costs):
        if cost > room:
            break
        taken.append(index)
        room -= cost
    return taken


def _vectorizer() -> Any:
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - an extra
    except ImportError:
        raise ConfigurationError(
            "the refit is scikit-learn's: pip install 'pagein[bench]', or leave it out with --no-refit"
        ) from None
    return TfidfVectorizer


def refit_ranking(facts: Sequence[Fact], weights: Weights) -> Callable[[str], list[Fact]]:
    """Rank with a TfidfVectorizer that is fitted on the facts at each call, and its cosine."""
    vectorizer = _vectorizer()
    texts = [fact.content for fact in facts]

    def rank(context: str) -> list[Fact]:
        fitted = vectorizer()
        rows = fitted.fit_transform(texts)
        near = (rows @ fitted.transform([context]).T).toarray().ravel()
        scores = [
            weights.similarity * float(each) + weights.confidence * fact.confidence
            for each, fact in zip(near, facts, strict=True)
        ]
        order = sorted(range(len(facts)), key=lambda each: (-scores[each], facts[each].id))
        return [facts[each] for each in order]

    return rank


def _apart(one: Asked, most: int = 20) -> float:
    """The largest difference between our cosines and those of a TfidfVectorizer fitted on the same terms."""
    fitted = _vectorizer()(analyzer=ranked_terms)
    rows = fitted.fit_transform([fact.content for fact in one.facts])
    index = TfIdf()
    for number, each in enumerate(one.facts):
        index.add(number, each.content)
    largest = 0.0
    for text, _ in one.questions[:most]:
        theirs = (rows @ fitted.transform([text]).T).toarray().ravel()
        ours = index.similarities(text)
        largest = max(largest, *(abs(float(each) - ours.get(at, 0.0)) for at, each in enumerate(theirs)))
    return largest


def bench_speed_of_facts(
    sizes: Sequence[int], *, refit: bool = True, repeat: int = 7, tick: Callable[[], object] = lambda: None
) -> list[Speed]:
    """Measure the time of one ranking, with facts of ten words and contexts of forty, from a Zipf-like vocabulary."""
    results = []
    for size in sizes:
        draw = random.Random(size)  # noqa: S311 - a draw, no secret
        words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(20_000)]
        shares = [1 / (rank + 10) for rank in range(len(words))]

        def text(length: int, draw: Any = draw, words: Any = words, shares: Any = shares) -> str:
            return " ".join(draw.choices(words, shares, k=length))

        facts = [Fact(f"fu{at}", text(10), confidence=draw.uniform(0.7, 1)) for at in range(size)]
        ranking = Ranking()
        for fact in facts:
            ranking.add(fact)
        ranking.rank(text(40), now=NOW)
        ours, processor = _medians(lambda: ranking.rank(text(40), now=NOW), repeat)  # noqa: B023 - called at once
        after = [_one_more(ranking, size + at, text(10), text(40)) for at in range(repeat)]
        again = used = None
        if refit:
            by_refit = refit_ranking(facts, Weights())
            again, used = _medians(lambda: by_refit(text(40)), min(repeat, 3))  # noqa: B023 - called at once
        injection, repeated = _time_injection(facts, [text(40) for _ in range(repeat + 1)])
        results.append(Speed(size, ours, processor, sorted(after)[repeat // 2], again, used, injection, repeated))
        tick()
    return results


def _time_injection(facts: Sequence[Fact], contexts: Sequence[str]) -> tuple[float, float]:
    """Milliseconds of the processor for a new context and for the last one again, after a first call that reads the facts."""
    rows = [{"content": fact.content, "category": fact.category, "confidence": fact.confidence} for fact in facts]
    data = {"facts": rows}
    format_memory_for_injection(data, 2_000, contexts[0])
    rest = iter(contexts[1:])
    _, fresh = _medians(lambda: format_memory_for_injection(data, 2_000, next(rest)), len(contexts) - 1)
    _, again = _medians(lambda: format_memory_for_injection(data, 2_000, contexts[-1]), len(contexts) - 1)
    return fresh, again


def _one_more(ranking: Ranking, number: int, content: str, context: str) -> float:
    start = time.perf_counter()
    ranking.add(Fact(f"fu{number}", content, confidence=0.9))
    ranking.rank(context, now=NOW)
    return (time.perf_counter() - start) * 1_000


def _medians(call: Callable[[], object], repeat: int) -> tuple[float, float]:
    """Milliseconds by the clock, and of the processor."""
    took, used = [], []
    for _ in range(repeat):
        start, began = time.perf_counter(), time.process_time()
        call()
        took.append((time.perf_counter() - start) * 1_000)
        used.append((time.process_time() - began) * 1_000)
    return sorted(took)[len(took) // 2], sorted(used)[len(used) // 2]


def as_dict(shares: Mapping[str, Shares], speeds: Sequence[Speed]) -> dict[str, Any]:
    """Everything measured, as JSON-safe values."""
    files = {
        name: {
            "questions": each.questions,
            "apart": each.apart,
            "shares": {
                system: {str(budget): each.mean(system, budget) for budget in BUDGETS}
                for system in (OURS, CONFIDENCE, REFIT)
                if (system, BUDGETS[0]) in each.sums
            },
        }
        for name, each in shares.items()
    }
    speed = [
        {
            "facts": each.facts,
            "ms": each.ours,
            "processor_ms": each.processor,
            "ms_after_one_more": each.after_one_more,
            "refit_ms": each.refit,
            "refit_processor_ms": each.refit_processor,
            "injection_ms": each.injection,
            "injection_repeated_ms": each.repeated,
        }
        for each in speeds
    ]
    return {"files": files, "speed": speed}
