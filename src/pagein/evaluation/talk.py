"""Conversations played through a memory: a request before every answer, then questions about what was said.

Measured is the share of a question's evidence turns that stand in the request which asks it. A turn stands in a request
that has 60 % of its runs of three words.
"""

from __future__ import annotations

import contextlib
import random
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from pagein.evaluation.conversations import (
    Chat,
    Conversation,
    Question,
    Turn,
    haystack_of,
    is_locomo,
    read_locomo,
    read_longmemeval,
    read_pool,
)
from pagein.evaluation.planted import PlantedCounts, PlantedSession, count_survivors
from pagein.evaluation.runs import replay_clock
from pagein.memory.agent_memory import AgentMemory
from pagein.search.tokenizer import STOP_WORDS
from pagein.tokens import TokenCounter

RUN_WORDS = 3
"""Words of a run: a turn stands in a request that has most of its runs."""

STANDING_SHARE = 0.6
"""Share of a turn's runs that a request must have."""

WINDOW_SHARE = 0.65
"""Share of the budget for the newest messages in the BM25 baseline; the rest is for what BM25 ranks first."""

MESSAGE_TOKENS = 4
"""Tokens of a message beside its text, in the baselines."""

PLANTED_SHARES = (0.1, 0.2, 0.3)
"""Shares of a session's characters in which planted statements are to survive."""

PLANTED_COMPACTIONS = 5
"""Compactions behind such a session, before it is looked at."""

CHARS_PER_TOKEN = 4
"""Characters of a token, by which a share of a session's characters becomes a budget."""

LAST_WORDS = "Good. What is next?"
"""The user's words at the end of a session with planted statements: they ask for nothing that was said."""

_UNSPACED = "[\u0e00-\u0eff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
_WORD = re.compile(rf"{_UNSPACED}|(?:(?!{_UNSPACED})\w)+")
"""A word; of a script without spaces between words, a letter."""


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation to play: messages in order, and questions with the texts of their evidence."""

    id: str
    messages: tuple[Mapping[str, str], ...]
    times: tuple[float, ...]
    questions: tuple[TalkQuestion, ...]


@dataclass(frozen=True, slots=True)
class TalkQuestion:
    """A question and the texts of the turns that answer it."""

    id: str
    text: str
    kind: str
    evidence: tuple[str, ...]
    at: float | None = None


def read_talks(path: Path, questions: int, pool: Path | None, tokens: int, counter: TokenCounter) -> tuple[Talk, ...]:
    """Read a LoCoMo- or LongMemEval-shaped file, recognised by its content; see the two functions below.

    Raises FormatError, ConfigurationError.
    """
    if is_locomo(path):
        return tuple(talks_of_conversations(read_locomo(path), questions))
    distractors = {} if pool is None else read_pool(pool)
    return tuple(talks_of_chats(read_longmemeval(path), distractors, tokens, counter))


def demo_talk() -> Talk:
    """Return the bundled chat: ten sessions of LongMemEval, and questions about four of them."""
    with resources.as_file(resources.files("pagein.evaluation") / "recorded" / "talk.json.bz2") as path:
        return next(talks_of_conversations(read_locomo(path), 10))


def talks_of_conversations(conversations: Iterable[Conversation], questions: int) -> Iterator[Talk]:
    """Yield LoCoMo's conversations: the first speaker is the user; ``questions`` of each, drawn by its id."""
    for conversation in conversations:
        texts = {turn.id: turn.words or turn.text for turn in conversation.turns}
        first = conversation.turns[0].speaker if conversation.turns else ""
        asked = [question for question in conversation.questions if question.evidence & texts.keys()]
        drawn = random.Random(f"talk:{conversation.id}").sample(asked, min(questions, len(asked)))  # noqa: S311 - a draw
        roles = ["user" if turn.speaker == first else "assistant" for turn in conversation.turns]
        yield Talk(
            conversation.id,
            tuple({"role": role, "content": turn.text} for role, turn in zip(roles, conversation.turns, strict=True)),
            tuple(turn.at for turn in conversation.turns),
            tuple(_question(question, texts) for question in drawn),
        )


def talks_of_chats(
    chats: Iterable[Chat], pool: Mapping[str, tuple[Turn, ...]], tokens: int, counter: TokenCounter
) -> Iterator[Talk]:
    """Yield LongMemEval's questions, each with its evidence sessions and as many of the pool's as ``tokens`` hold."""
    for chat in chats:
        if not chat.question.evidence or chat.question.id.endswith("_abs"):
            continue
        sessions = dict(chat.sessions)
        left = tokens - sum(_session_tokens(turns, counter) for turns in sessions.values())
        for name, turns in (haystack_of(chat, pool, None) if pool else chat.haystack).items():
            if name not in sessions and (cost := _session_tokens(turns, counter)) <= left:
                sessions[name] = turns
                left -= cost
            if left < tokens // 50:
                break
        in_order = sorted(sessions.items(), key=lambda pair: (pair[1][0].at, pair[0]))
        said = [turn for _, session in in_order for turn in session]
        texts = {turn.id: turn.text for turn in said}
        yield Talk(
            chat.question.id,
            tuple({"role": turn.role, "content": turn.text} for turn in said),
            tuple(turn.at for turn in said),
            (_question(chat.question, texts),),
        )


def _session_tokens(turns: Sequence[Turn], counter: TokenCounter) -> int:
    return sum(counter.text(turn.text) + MESSAGE_TOKENS for turn in turns)


def _question(question: Question, texts: Mapping[str, str]) -> TalkQuestion:
    evidence = tuple(texts[id] for id in sorted(question.evidence & texts.keys()))
    return TalkQuestion(question.id, question.text, question.kind, evidence, question.at)


@dataclass(slots=True)
class TalkTally:
    """The share of the evidence in the requests of one strategy."""

    shares: list[float] = field(default_factory=list)
    kinds: dict[str, list[float]] = field(default_factory=dict)
    highest: int = 0
    over: int = 0

    def add(self, question: TalkQuestion, text: str, tokens: int, budget: int) -> None:
        """Count one question."""
        share = evidence_share(text, question.evidence)
        self.shares.append(share)
        self.kinds.setdefault(question.kind, []).append(share)
        self.highest = max(self.highest, tokens)
        self.over += tokens > budget

    def as_dict(self) -> dict[str, object]:
        """Return the measures as JSON-safe values."""
        kinds = {kind: mean(shares) for kind, shares in self.kinds.items()}
        return {
            "questions": len(self.shares), "evidence": self.share, "kinds": kinds, "highest": self.highest, "over": self.over
        }  # fmt: skip

    @property
    def share(self) -> float:
        """The mean share of the evidence."""
        return mean(self.shares) if self.shares else 0.0


def evidence_share(request: str, evidence: Sequence[str]) -> float:
    """The share of the evidence turns that stand in a request.

    >>> evidence_share("she said: we meet at noon today", ["We meet at noon."])
    1.0
    """
    words = _WORD.findall(request.lower())
    runs = set(zip(*(words[start:] for start in range(RUN_WORDS)), strict=False))
    return mean(_stands(text, runs) for text in evidence) if evidence else 0.0


def _stands(text: str, runs: set[tuple[str, ...]]) -> bool:
    words = _WORD.findall(text.lower())
    expected = list(zip(*(words[start:] for start in range(RUN_WORDS)), strict=False)) or [tuple(words)]
    return sum(run in runs for run in expected) >= STANDING_SHARE * len(expected)


Answer = tuple[TalkQuestion, str, int]
"""A question, the text of the request that asks it, and the request's tokens."""


def play_talk(talk: Talk, budget: int, counter: TokenCounter, options: Mapping[str, Any]) -> Iterator[Answer]:
    """Play a talk through a memory, a request before each answer; yield each question with its request.

    Each question is asked of a copy of the run as it is at its end. Raises what the memory raises.
    """
    with TemporaryDirectory() as folder:
        path, copy, clock = Path(folder) / "talk.db", Path(folder) / "asked.db", SimpleNamespace(now=0.0)
        settings = {"budget": budget, "counter": counter, "clock": lambda: clock.now, "synchronous": "off", **options}
        with AgentMemory.open(str(path), **settings) as memory:
            for message, at in zip(talk.messages, talk.times, strict=True):
                clock.now = at
                if message["role"] == "assistant":
                    memory.to_messages()
                memory.record_messages([dict(message)], whole=False)
        for question in talk.questions:
            _copy_database(path, copy)
            with AgentMemory.open(str(copy), **settings) as memory:
                clock.now = question.at or clock.now
                memory.record_messages([{"role": "user", "content": question.text}], whole=False)
                text = request_text(memory.to_messages(), question.text)
                yield question, text, memory.report().tokens
            for leftover in Path(folder).glob("asked.db*"):
                leftover.unlink()


def _copy_database(path: Path, copy: Path) -> None:
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    with target:
        source.backup(target)
    source.close()
    target.close()


def request_text(request: Iterable[Mapping[str, Any]], question: str) -> str:
    """The text of a request without the question itself."""
    return "\n".join(str(message.get("content", "")) for message in request if message.get("content") != question)


def newest_messages(talk: Talk, budget: int, counter: TokenCounter) -> Iterator[Answer]:
    """Yield each question with the newest messages that fit beside it."""
    costs = [counter.text(message["content"]) + MESSAGE_TOKENS for message in talk.messages]
    for question in talk.questions:
        yield _answer(talk, question, costs, _newest(costs, budget - counter.text(question.text) - MESSAGE_TOKENS))


def newest_and_bm25(talk: Talk, budget: int, counter: TokenCounter) -> Iterator[Answer]:
    """Yield each question with the newest messages in ``WINDOW_SHARE`` of the budget, and BM25's first in the rest."""
    costs = [counter.text(message["content"]) + MESSAGE_TOKENS for message in talk.messages]
    with contextlib.closing(sqlite3.connect(":memory:")) as database, database:
        database.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize='porter unicode61')")
        rows = ((at, _pair_letters(message["content"])) for at, message in enumerate(talk.messages))
        database.executemany("INSERT INTO said (rowid, text) VALUES (?, ?)", rows)
        for question in talk.questions:
            room = budget - counter.text(question.text) - MESSAGE_TOKENS
            numbers = _newest(costs, int(room * WINDOW_SHARE))
            left = room - sum(costs[at] for at in numbers)
            for at in _rank_bm25(database, question.text):
                if at not in numbers and costs[at] <= left:
                    numbers.add(at)
                    left -= costs[at]
            yield _answer(talk, question, costs, numbers)


def _answer(talk: Talk, question: TalkQuestion, costs: Sequence[int], numbers: set[int]) -> Answer:
    text = "\n".join(talk.messages[at]["content"] for at in sorted(numbers))
    return question, text, sum(costs[at] for at in numbers)


def _newest(costs: Sequence[int], room: int) -> set[int]:
    numbers: set[int] = set()
    for at in range(len(costs) - 1, -1, -1):
        room -= costs[at]
        if room < 0:
            break
        numbers.add(at)
    return numbers


def _pair_letters(text: str) -> str:
    """Write each pair of letters of a script without spaces as a word, as SQLite knows words by their spaces.

    >>> _pair_letters("see 图书馆")
    'see  图书  书馆 馆'
    """
    return re.sub(rf"{_UNSPACED}(?=({_UNSPACED}?))", lambda letter: f" {letter[0]}{letter[1]} ", text)


def _rank_bm25(database: sqlite3.Connection, text: str) -> list[int]:
    words = dict.fromkeys(re.findall(r"\w+", _pair_letters(text).lower()))
    rare = [word for word in words if word not in STOP_WORDS] or list(words)
    match = " OR ".join(f'"{word}"' for word in rare)
    rows = (
        database.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT 600", (match,)) if match else ()
    )
    return [at for (at,) in rows]


def play_planted(
    session: PlantedSession, share: float, counter: TokenCounter, options: Mapping[str, Any]
) -> PlantedCounts:
    """Play a session with planted statements within a share of its characters, compact it, and count what is shown.

    The budget is the share's characters at four a token. Raises what the memory raises.
    """
    budget = int(sum(len(message["content"]) for message in session.messages) * share / CHARS_PER_TOKEN)
    settings = {"budget": max(1, budget), "counter": counter, "clock": replay_clock(), **options}
    with AgentMemory.open(":memory:", **settings) as memory:
        for message in session.messages:
            if message["role"] == "assistant":
                memory.to_messages()
            memory.record_messages([dict(message)], whole=False)
        for _ in range(PLANTED_COMPACTIONS):
            memory.compact()
        memory.record_messages([{"role": "user", "content": LAST_WORDS}], whole=False)
        return count_survivors(session, request_text(memory.to_messages(), LAST_WORDS))
