"""LoCoMo: the turns of long conversations between two people, and the questions whose evidence is in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.recall.measures import BUDGETS, DENSITY, Averages, quantile, recall, within
from benchmarks.recall.searchers import OpenSearcher, measure_time
from pagein.evaluation.conversations import Conversation, Question

CUTS = (5, 10, 25, 50)
_TOKEN = 4


@dataclass(frozen=True, slots=True)
class LocomoResult:
    """The result of one system: means over all questions and by kind, and search times (ms)."""

    questions: int
    means: Mapping[str, float]
    kinds: Mapping[str, Mapping[str, float]]
    p50: float
    p95: float

    def as_dict(self) -> dict[str, object]:
        """As JSON-safe values."""
        return {
            "questions": self.questions,
            "means": dict(self.means),
            "kinds": {kind: dict(means) for kind, means in self.kinds.items()},
            "search_ms": {"p50": self.p50, "p95": self.p95},
        }


def bench_locomo(
    conversations: Sequence[Conversation], opened: OpenSearcher, tick: Callable[[], object] = lambda: None
) -> LocomoResult:
    """Measure the share of each question's evidence that one system finds among its conversation's turns.

    R@k is the mean over questions of the share of the evidence among the first k turns. E@b is the share in a context
    of b tokens (four characters each) of whole turns in order of score, E/@b by score / tokens ** 0.3.
    """
    every, kinds, took = Averages(), dict[str, Averages](), list[float]()
    for conversation in conversations:
        searcher = opened(conversation.turns)
        tokens = {turn.id: len(turn.text) / _TOKEN for turn in conversation.turns}
        for question in questions_with_evidence(conversation):
            result = measure_time(partial(searcher.turns, question.text, question.at), took)
            measured = _measure(result, tokens, question)
            every.add(measured)
            kinds.setdefault(question.kind, Averages()).add(measured)
            tick()
        searcher.close()
    by_kind = {kind: each.means() | {"questions": float(each.count)} for kind, each in sorted(kinds.items())}
    return LocomoResult(every.count, every.means(), by_kind, quantile(took, 0.5), quantile(took, 0.95))


def questions_with_evidence(conversation: Conversation) -> tuple[Question, ...]:
    """The questions that have evidence among the turns."""
    return tuple(question for question in conversation.questions if question.evidence)


def _measure(found: Mapping[str, float], tokens: Mapping[str, float], question: Question) -> dict[str, float]:
    ranked = sorted(found, key=lambda each: -found[each])
    measured = {f"R@{k}": recall(ranked, question.evidence, k) for k in CUTS}
    measured |= {f"E@{b}": within(found, tokens, question.evidence, b, density=0.0) for b in BUDGETS}
    return measured | {f"E/@{b}": within(found, tokens, question.evidence, b, density=DENSITY) for b in BUDGETS}
