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

_MONTH_NAME = r"(?-i:January|February|March|April|May|June|July|August|September|October|November|December)"
_HAS_MONTH = re.compile(_MONTH_NAME + r"|\d[-./]\d")
_CALENDAR = ("iso", "date", "month")
"""Types of values that are dates in a calendar, not "on Friday"."""

_NEXT_CLAUSE = re.compile(r"[,;\u2014\u2013]|\b(?:but|since|because|as)\b")


@dataclass(frozen=True, slots=True)
class PersonalStatement:
    """What a person says of themselves: the words, without what is asked behind them, and the fact's category."""

    text: str
    category: str


FOREIGN = ("german", "french", "spanish", "chinese")
"""The languages other than English that have phrases."""

_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab\u300c\u300e].*?[\"\u201c\u201d\u00bb\u300d\u300f]|(?<!\w)'.*?'(?!\w)")
_CATEGORIES = ("correction", "constraint", "knowledge", "behaviour", "preference")


class Phrases:
    """The patterns of a language: ``rules`` by category, in order, and others by their ``names``."""

    def __init__(self, text: str) -> None:
        words, groups = dict[str, str](), list[tuple[str, list[str]]]()
        for line in text.splitlines():
            if not line or line.startswith("# "):
                continue
            filled = re.sub(r"\{([a-z_]+)\}", lambda name: words[name[1]], line)
            if heading := re.fullmatch(r"\[(\w+)\]", line):
                groups.append((heading[1], []))
            elif groups[-1][0] == "words":
                name, _, words[name] = filled.partition(" = ")
            else:
                groups[-1][1].append(f"(?:{filled})")
        patterns = [(name, re.compile("|".join(rows), re.IGNORECASE)) for name, rows in groups if rows]
        self.rules = [pattern for pattern in patterns if pattern[0] in _CATEGORIES]
        self.names = dict(patterns)


@functools.cache
def phrases_of(language: str) -> Phrases:
    """Return the phrases of a language, read once."""
    return Phrases((files("pagein.facts.extraction") / "phrases" / f"{language}.txt").read_text("utf-8"))


def find_personal_statement(sentence: str) -> PersonalStatement | None:
    """Return what the sentence says of its speaker that lasts; None for anything else.

    >>> find_personal_statement("I live in Rome, so can you suggest a park?")
    PersonalStatement(text='I live in Rome', category='knowledge')
    """
    says = phrases_of("english").names
    text = sentence.replace("\u2019", "'").strip()
    core = says["therefore"].sub("", says["tail_request"].sub("", text)).rstrip(" ,;-")
    if core.endswith("?") or len(core.split()) < 2 or says["points_back"].match(core) or english.HYPOTHESIS.match(core):
        return None
    if says["not_this"].match(core) and not says["unsure"].search(core):
        return PersonalStatement(core, "correction")
    if says["unsure"].search(core) or says["others_say"].search(core) or says["given_text"].match(core):
        return None
    if says["corrects_back"].match(core):
        return PersonalStatement(core, "correction")
    for category, pattern in phrases_of("english").rules:
        match = pattern.search(core)
        if match is None or _is_intended(core, match.start()):
            continue
        if category not in ("behaviour", "preference") or not says["today"].search(core):
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


def _is_intended(core: str, at: int) -> bool:
    """True where what is at ``at`` is a part of what the speaker wants or plans."""
    return bool(phrases_of("english").names["intends"].match(core)) and not _NEXT_CLAUSE.search(core, 0, at + 1)


def _is_dated_event(core: str) -> bool:
    """True for something of the speaker's own with a date of the calendar, such as a birthday or an appointment."""
    says = phrases_of("english").names
    date = next(
        (value for value in find_values(core) if value.type in _CALENDAR and _HAS_MONTH.search(value.text)), None
    )
    if date is None or not says["event"].search(core) or _is_intended(core, date.start):
        return False
    clause = core[: date.start]
    return not re.search(r"\byou\b", clause, re.IGNORECASE) and not says["asks_now"].search(clause.rpartition(",")[2])
