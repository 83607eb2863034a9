"""LoCoMo's and LongMemEval's files, plain or compressed by gzip or bzip2, as conversations and questions."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
import random
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pagein.errors import ConfigurationError, FormatError

T = TypeVar("T")

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_TIMES = ("%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", _LOCOMO_TIME)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. ``id`` is its name in evidence, ``at`` seconds since the epoch."""

    id: str
    session: str
    role: str
    text: str
    at: float
    is_evidence: bool = False
    speaker: str = ""
    words: str = ""
    """The speaker's words alone, where ``text`` has more."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its time, and the ids of the turns (or sessions) that answer it."""

    id: str
    text: str
    kind: str
    evidence: frozenset[str]
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """LoCoMo: turns in order, and questions about them."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Chat:
    """LongMemEval: one question, with the sessions that answer it."""

    question: Question
    sessions: Mapping[str, tuple[Turn, ...]]
    haystack: Mapping[str, tuple[Turn, ...]]
    """Every session that came with the question."""


KINDS = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
"""LoCoMo's categories."""


def read_locomo(path: Path) -> tuple[Conversation, ...]:
    """The conversations of a LoCoMo file. Raises FormatError for a file that is none, ConfigurationError."""
    return _parse(path, "LoCoMo file", lambda rows: tuple(_conversation(at, row) for at, row in enumerate(rows)))


def is_locomo(path: Path) -> bool:
    """True for a file with conversations and questions in each, as LoCoMo's. Raises FormatError, ConfigurationError."""
    content = _read_json(path)
    return isinstance(content, list) and all(isinstance(row, dict) and "conversation" in row for row in content)


def read_longmemeval(path: Path) -> tuple[Chat, ...]:
    """The questions of a LongMemEval file, in their order. Raises FormatError, ConfigurationError."""
    return _parse(path, "LongMemEval file", lambda rows: tuple(map(_chat, rows)))


def read_pool(path: Path) -> dict[str, tuple[Turn, ...]]:
    """The distractor sessions of a pool file, by id. Raises FormatError, ConfigurationError."""

    def parse(sessions: Any) -> dict[str, tuple[Turn, ...]]:
        return {name: _turns(name, session["turns"], session.get("date", "")) for name, session in sessions.items()}

    return _parse(path, "pool of sessions", parse)


def haystack_of(chat: Chat, pool: Mapping[str, tuple[Turn, ...]], size: int | None) -> dict[str, tuple[Turn, ...]]:
    """A question's own evidence sessions and distractors from the pool, ``size`` in all; None is the whole pool.

    The draw is fixed by the question's id, so that everyone measures on the same sessions.
    """
    rest = sorted(pool.keys() - chat.sessions.keys())
    count = len(rest) if size is None else max(0, min(size - len(chat.sessions), len(rest)))
    drawn = random.Random("lme-v1:" + chat.question.id).sample(rest, count)  # noqa: S311 - a draw, no secret
    return {**chat.sessions, **{name: pool[name] for name in drawn}}


def _parse(path: Path, kind: str, parse: Callable[[Any], T]) -> T:
    content = _read_json(path)
    try:
        return parse(content)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FormatError(f"this is no {kind}: {type(error).__name__} {error}", path=str(path)) from error


def _read_json(path: Path) -> Any:
    try:
        data = path.read_bytes()
        unpack = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress}.get(data[:2], bytes)
        return json.loads(unpack(data))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zlib.error, RecursionError) as error:
        raise FormatError(f"not JSON: {error}", path=str(path)) from error


def _conversation(index: int, row: Mapping[str, Any]) -> Conversation:
    said = row["conversation"]
    numbers = sorted(int(match[1]) for key in said if (match := _SESSION.fullmatch(key)))
    turns: list[Turn] = []
    for number in numbers:
        date = str(said.get(f"session_{number}_date_time", ""))
        turns += (_locomo_turn(turn, f"session_{number}", date) for turn in said[f"session_{number}"])
    questions = tuple(_locomo_question(place, asked) for place, asked in enumerate(row["qa"]))
    return Conversation(str(row.get("sample_id", index)), tuple(turns), questions)


def _locomo_turn(turn: Mapping[str, Any], session: str, date: str) -> Turn:
    id, speaker, words, caption = turn["dia_id"], str(turn["speaker"]), str(turn["text"]), turn.get("blip_caption")
    text = f'({date}) {speaker} said, "{words}"' + (f" and shared {caption}." if caption else "")
    return Turn(str(id), session, "user", text, seconds(date) or 0.0, speaker=speaker, words=words)


def _locomo_question(place: int, asked: Mapping[str, Any]) -> Question:
    # Some evidence is written as two ids in one string, or with a colon too many.
    named = (_EVIDENCE.findall(str(name)) for name in asked["evidence"])
    evidence = frozenset(f"D{session}:{turn}" for places in named for session, turn in places)
    return Question(str(place), str(asked["question"]), KINDS.get(asked["category"], "other"), evidence)


def _chat(row: Mapping[str, Any]) -> Chat:
    dates = row.get("haystack_dates") or [""] * len(row["haystack_sessions"])
    every = {
        str(name): _turns(str(name), turns, date)
        for name, turns, date in zip(row["haystack_session_ids"], row["haystack_sessions"], dates, strict=True)
    }
    own = frozenset(map(str, row["answer_session_ids"]))
    sessions = {name: turns for name, turns in every.items() if name in own}
    evidence = frozenset(turn.id for turns in sessions.values() for turn in turns if turn.is_evidence)
    id, text, kind = (str(row[key]) for key in ("question_id", "question", "question_type"))
    return Chat(Question(id, text, kind, evidence, seconds(str(row.get("question_date", "")))), sessions, every)


def _turns(name: str, turns: Any, date: str) -> tuple[Turn, ...]:
    at = seconds(date) or 0.0
    return tuple(
        Turn(f"{name}_{place}", name, turn["role"], turn["content"], at, bool(turn.get("has_answer")))
        for place, turn in enumerate(turns)
    )


def seconds(date: str) -> float | None:
    """The time of a date as these files write it, in seconds since the epoch; None for any other text."""
    for form in _TIMES:
        try:
            return dt.datetime.strptime(date, form).replace(tzinfo=dt.UTC).timestamp()
        except ValueError:
            continue
    return None
