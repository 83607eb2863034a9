"""Recognition of what people say about themselves: names, places, roles, people, dates, habits, likes and corrections.

The patterns are in ``phrases``, a file for each language; English is read most closely. A sentence that is a question, a wish for
the moment, a hypothesis, a plan without a date, or about "it" and "that" says nothing that lasts. The words come from
``own_sentences``, so pasted text and other people's words are gone already.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files

from pagein.context.ledger import english
from pagein.context.ledger.values import find_values
from pagein.search.tokenizer import IRREGULAR, is_surely_english

_MONTH_NAME = r"(?-i:January|February|March|April|May|June|July|August|September|October|November|December)"
_HAS_MONTH = re.compile(_MONTH_NAME + r"|\d[-./]\d")
_CALENDAR = ("iso", "date", "month")
"""Types of values that are dates in a calendar, not "on Friday"."""

_NEXT_CLAUSE = re.compile(r"[,;\u2014\u2013]|\b(?:but|since|because|as)\b")
_CLAUSE_START = re.compile(r"[,;:\u2014\u2013] |\b(?:but|since|because|so|though|although) ", re.IGNORECASE)
_BUT = re.compile(r"\b(?:but|though|although|however|because|since)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,;:\u2014\u2013]|\b(?:but|since|because|so|though|although|and)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PersonalStatement:
    """What a person says of themselves: the words, without what is asked behind them, and the fact's category."""

    text: str
    category: str


FOREIGN = ("german", "french", "spanish", "chinese")
"""The languages other than English that have phrases."""

_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab\u300c\u300e].*?[\"\u201c\u201d\u00bb\u300d\u300f]|(?<!\w)'.*?'(?!\w)")
_CATEGORIES = ("correction", "constraint", "knowledge", "behaviour", "preference", "habit")
"""Headings of rules: categories of facts, and those of habits whose verb may be any, for which the sentence must be English."""


class Phrases:
    """The patterns of a language: ``rules`` by category, in order, and others by their ``names``."""

    def __init__(self, text: str) -> None:
        words, groups = {"past": "|".join(IRREGULAR)}, list[tuple[str, list[str]]]()
        for line in text.splitlines():
            if not line or line.startswith("# "):
                continue
            if heading := re.fullmatch(r"\[(\w+)\]", line):
                groups.append((heading[1], []))
            elif groups[-1][0] == "words":
                name, _, value = line.partition(" = ")
                words[name] = _fill_in(value, words)
            else:
                groups[-1][1].append(line)
        patterns = [(name, re.compile(_join_rows(rows, words), re.IGNORECASE)) for name, rows in groups if rows]
        self.rules = [pattern for pattern in patterns if pattern[0] in _CATEGORIES]
        self.names = dict(patterns)


def _fill_in(pattern: str, words: dict[str, str]) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda name: words[name[1]], pattern)


def _join_rows(rows: list[str], words: dict[str, str]) -> str:
    """One pattern of all rows. Rows that begin with the same part share it: it is tried once at each place, and not for each."""
    shared: dict[str, list[str]] = {}
    for row in rows:
        part = re.match(r"\{(?:clause|be)\}|", row)
        head = part[0] if part else ""
        shared.setdefault(head, []).append(f"(?:{row[len(head) :]})")
    return _fill_in("|".join(f"{head}(?:{'|'.join(tails)})" for head, tails in shared.items()), words)


@functools.cache
def phrases_of(language: str) -> Phrases:
    """Return the phrases of a language, read once."""
    return Phrases((files("pagein.facts.extraction") / "phrases" / f"{language}.txt").read_text("utf-8"))


def find_personal_statement(sentence: str, *, in_english: bool = False) -> PersonalStatement | None:
    """Return what the sentence says of its speaker that lasts; None for anything else. ``in_english``: what is around it is in English.

    >>> find_personal_statement("I live in Rome, so can you suggest a park?")
    PersonalStatement(text='I live in Rome', category='knowledge')
    """
    says = phrases_of("english").names
    text = sentence.replace("\u2019", "'").strip()
    core = says["therefore"].sub("", says["tail_request"].sub("", text)).rstrip(" ,;-")
    if core.endswith("?") or len(core.split()) < 2 or says["pretends"].search(core):
        return None
    doubts = says["unsure"].search(core) or english.HYPOTHESIS.match(core)
    if says["not_this"].match(core) and not doubts:
        return PersonalStatement(core, "correction")
    if says["given_text"].match(core):
        return None
    if says["corrects_back"].match(core) and not doubts:
        return PersonalStatement(core, "correction")
    for heading, pattern in phrases_of("english").rules:
        if heading == "habit" and not (in_english or is_surely_english(core)):
            continue
        category = "behaviour" if heading == "habit" else heading
        if any(_lasts(core, match, category) for match in pattern.finditer(core)):
            return PersonalStatement(core, category)
    if _is_dated_event(core):
        return PersonalStatement(core, "context")
    return None


def find_foreign_statement(sentence: str) -> PersonalStatement | None:
    """Return what a sentence in another language than English says of its speaker that lasts; None for anything else.

    >>> find_foreign_statement("Ich wohne in Wien.")
    PersonalStatement(text='Ich wohne in Wien.', category='knowledge')
    """
    said = _QUOTED.sub(" ", sentence)
    for language in FOREIGN:
        phrases = phrases_of(language)
        for category, pattern in phrases.rules:
            if pattern.search(said) and not phrases.names["not"].search(said):
                return PersonalStatement(sentence, category)
    return None


def _lasts(core: str, match: re.Match[str], category: str) -> bool:
    """True where the clause of a match is stated as so, and not as wished, doubted, others' words, or of today."""
    says = phrases_of("english").names
    before = [clause.end() for clause in _CLAUSE_START.finditer(core, 0, match.start() + 1)]
    start = before[-1] if before else 0
    behind = _CLAUSE_END.search(core, match.end())
    clause = core[start : behind.start() if behind else len(core)]
    if says["unsure"].search(clause) or says["others_say"].search(clause) or _is_intended(core, match.start()):
        return False
    if says["supposes"].search(core[start : match.end()]):
        return False
    if english.HYPOTHESIS.match(core) and not _BUT.search(core, 0, match.start() + 1):
        return False
    if " and " not in core[start : match.start() + 1] and says["points_back"].match(clause):
        return False
    if category not in ("behaviour", "preference"):
        return True
    return not says["only_points"].search(clause) and not says["today"].search(core[: start + len(clause)])


def _is_intended(core: str, at: int) -> bool:
    """True where what is at ``at`` is a part of what the speaker wants or plans."""
    return bool(phrases_of("english").names["intends"].match(core)) and not _NEXT_CLAUSE.search(core, 0, at + 1)


def _is_dated_event(core: str) -> bool:
    """True for something of the speaker's own with a date of the calendar, such as a birthday or an appointment."""
    says = phrases_of("english").names
    if says["unsure"].search(core) or says["others_say"].search(core):
        return False
    if says["points_back"].match(core) or english.HYPOTHESIS.match(core):
        return False
    date = next(
        (value for value in find_values(core) if value.type in _CALENDAR and _HAS_MONTH.search(value.text)), None
    )
    if date is None or not says["event"].search(core) or _is_intended(core, date.start):
        return False
    clause = core[: date.start]
    return not re.search(r"\byou\b", clause, re.IGNORECASE) and not says["asks_now"].search(clause.rpartition(",")[2])
