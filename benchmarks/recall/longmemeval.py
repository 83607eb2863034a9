"""LongMemEval: a user's chats with an assistant, found among distractors; by session, and by turn within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.recall.measures import BUDGETS, DENSITY, Averages, ndcg, quantile, recall_all, recall_any, within
from benchmarks.recall.searchers import OpenSearcher, measure_time
from pagein.evaluation.conversations import Chat, Turn

CUTS = (1, 3, 5, 10, 30, 50)
_TOKEN = 4


@dataclass(frozen=True, slots=True)
class LongMemEvalResult:
    """The result of one system: by session, by turn (empty if not measured), and search times (ms)."""

    questions: int
    sessions: Mapping[str, float]
    turn_questions: int
    turns: Mapping[str, float]
    p50: float
    p95: float

    def as_dict(self) -> dict[str, object]:
        """As JSON-safe values."""
        return {
            "session_questions": self.questions,
            "sessions": dict(self.sessions),
            "turn_questions": self.turn_questions,
            "turns": dict(self.turns),
            "search_ms": {"p50": self.p50, "p95": self.p95},
        }


Haystack = Callable[[Chat], Mapping[str, tuple[Turn, ...]]]


def gold_sessions(chat: Chat) -> frozenset[str]:
    """The sessions with a turn of the user that is evidence, as in the official protocol."""
    evident = (
        name for name, turns in chat.sessions.items() if any(turn.is_evidence and turn.role == "user" for turn in turns)
    )
    return frozenset(evident)


def by_session(chats: Iterable[Chat]) -> list[Chat]:
    """The questions measured by session: no ``_abs``, and a turn of the user's is evidence (419 of the 500)."""
    return [chat for chat in chats if not chat.question.id.endswith("_abs") and gold_sessions(chat)]


def by_turn(chats: Iterable[Chat]) -> list[Chat]:
    """The questions measured by turn: no ``_abs``, and any turn is evidence (470 of the 500)."""
    return [chat for chat in chats if not chat.question.id.endswith("_abs") and chat.question.evidence]


def bench_longmemeval(
    chats: Sequence[Chat],
    haystack: Haystack,
    opened: OpenSearcher,
    tick: Callable[[], object] = lambda: None,
    *,
    turns: bool = True,
) -> LongMemEvalResult:
    """Measure the share of each question's evidence that one system finds in the question's haystack.

    By session as in the official protocol: user-side text only, the gold is the sessions with a turn of the user that is
    evidence; all@k, any@k, NDCG@k. With ``turns``, E@b: the share of the evidence turns, of user and assistant, in a
    context of b tokens (four characters each) of whole turns in order of score, E/@b by score / tokens ** 0.3.
    """
    sessions, packed, took = Averages(), Averages(), list[float]()
    for chat in by_session(chats):
        hay = haystack(chat)
        said = [turn for each in hay.values() for turn in each if turn.role == "user"]
        searcher = opened(said)
        ranked = measure_time(partial(searcher.sessions, chat.question.text, chat.question.at), took)
        sessions.add(_of_sessions(ranked, chat))
        searcher.close()
        tick()
    for chat in by_turn(chats) if turns else ():
        packed.add(_of_turns(opened, haystack(chat), chat, took))
        tick()
    return LongMemEvalResult(
        sessions.count, sessions.means(), packed.count, packed.means(), quantile(took, 0.5), quantile(took, 0.95)
    )


def _of_sessions(ranked: Sequence[str], chat: Chat) -> dict[str, float]:
    gold = gold_sessions(chat)
    measured = {f"all@{k}": recall_all(ranked, gold, k) for k in CUTS}
    measured |= {f"any@{k}": recall_any(ranked, gold, k) for k in CUTS}
    return measured | {f"NDCG@{k}": ndcg(ranked, gold, k) for k in CUTS}


def _of_turns(
    opened: OpenSearcher, hay: Mapping[str, tuple[Turn, ...]], chat: Chat, took: list[float]
) -> dict[str, float]:
    said = [turn for each in hay.values() for turn in each]
    tokens = {turn.id: len(turn.text) / _TOKEN for turn in said}
    searcher = opened(said)
    result = measure_time(partial(searcher.turns, chat.question.text, chat.question.at), took)
    searcher.close()
    expected = chat.question.evidence
    measured = {f"E@{b}": within(result, tokens, expected, b, density=0.0) for b in BUDGETS}
    return measured | {f"E/@{b}": within(result, tokens, expected, b, density=DENSITY) for b in BUDGETS}
