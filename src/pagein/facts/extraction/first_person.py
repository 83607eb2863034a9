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

_TAIL_REQUEST = re.compile(
    r"(?:(?:,| -|;)(?: (?:and|so|but|which is why|because|as))?| (?:and|so|but|because)),? (?:(?:also |I |I['\u2019](?:m|d|ll|ve been) |we |we['\u2019](?:re|d|ll) |am |was |were )*(?:also )?(?:wondering|looking|wonder|thinking|hoping|like to know|curious|considering|want to|need to|would like|can['\u2019]t wait|excited|think)\b|can you|could you|would you|do you|if you|any (?:suggestions?|tips?|recommendations?|ideas)|what |how |please ).*$",
    re.IGNORECASE,
)
_INTENDS = re.compile(
    r"^(?:(?:and|but|so|also|now|then|actually|maybe)[, ]+)*(?:I(?:['\u2019]ll| will)\b|(?:I|we) (?:need|have to|should|must|want|can|could|would)\b(?!')|(?:I|we)(?:['\u2019]d| would)\b(?! rather)|(?:I|we)(?:['\u2019]m| am|['\u2019]re| are)(?: also| actually| just| really| definitely| currently)* (?:looking|trying|thinking|hoping|considering|interested|wondering|going to (?:try|start|look|check))\b|let me|can['\u2019]t wait|looking forward|hoping|(?:please )?(?:write|draft|compose|create|generate|invent|tell me)\b|you(?:['\u2019]re| are)\b|act as\b)",
    re.IGNORECASE,
)
_NEXT_CLAUSE = re.compile(r"[,;\u2014\u2013]|\b(?:but|since|because|as)\b")
_OTHERS_SAY = re.compile(
    r"\b(?:he|she|they|someone|somebody|people|everyone|[Mm]y \w+|[Tt]he \w+|[A-Z][a-z]+) (?:said|says|told|tells|asked|claims?|claimed|thinks?|thought|believes?|wrote|mentioned|insists?|recommended|suggested)\b"
)
_UNSURE = re.compile(
    r"\b(?:I (?:also )?think (?:I|my|we|that|it)|why I\b|I guess|I suppose|pretty sure|not (?:entirely |totally |really )?(?:sure|certain)|maybe|perhaps|probably|might|I may|I was thinking|thought I|pretend|imagine|in (?:the|my) (?:story|novel|script|book|game|dream)|joking|kidding|if I|if we|if my|would be|would have|could be|(?<!getting )(?<!got )used to|when I was (?:a |an )?(?:kid|child|young\w*|little|in)|as a (?:kid|child)|no longer sure|considering|wondering|(?:love|adore|enjoy) (?:it when|being (?:\w+ed|stuck|late|woken|told)|waiting))\b",
    re.IGNORECASE,
)
_THEREFORE = re.compile(r"^(?:(?:yeah|yes|and|so)[, ]+)*that's why (?=I\b|we\b)", re.IGNORECASE)
_POINTS_BACK = re.compile(
    r"^(?:it|this|that|they|these|those|he|she|there|here|definitely|probably)(?:['\u2019]\w+)?\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class PersonalStatement:
    """What a person says of themselves: the words, without what is asked behind them, and the fact's category."""

    text: str
    category: str


_TODAY = re.compile(
    r"\b(?:this (?:morning|afternoon|evening)|today|tonight|right now|at the moment|just now)\b", re.IGNORECASE
)
_EVENT = re.compile(
    r"\b(?:I|we|my|our)\b(?:['\u2019]\w+)?.*?\b(?:\w+ed|went|got|had|did|saw|met|bought|took|made|ran|won|began|left|came|flew|drove|rode|wrote|read|sold|gave|found|lost|broke|have|has|am|are|is|['\u2019]m|['\u2019]ve|['\u2019]re|will|['\u2019]ll|going|planning|graduat\w+|start\w*|finish\w*|mov\w+|turn\w*|birthday|wedding|anniversary|appointment|due|booked|tickets?|born)\b",
    re.IGNORECASE,
)
_ASKS_NOW = re.compile(
    r"\b(?:I|we)(?:['\u2019]m| am|['\u2019]re| are)(?: \w+)? (?:looking|trying)\b|\b(?:I|we)(?:['\u2019]d| would) (?:like|love)\b|\b(?:I|we) (?:want|need|wish|would)\b|\b(?:book|cancel|change|modify|rebook)\b.*\b(?:flights?|reservations?|tickets?)\b|\b(?:thinking (?:of|about)|considering|wondering|trying to decide)\b",
    re.IGNORECASE,
)
_NOT_THIS = re.compile(
    r"^(?:please |just |always |let['\u2019]s |you should |we |I |it['\u2019]s |that['\u2019]s )*(?:use|using|call|write|say|spell|run|go with|take|put|pick|choose|make|made|meant|mean|live|work|was|is|am|need|want|flying|looking|trying|wanted|prefer|\w+ing)\b[^.;!?]{1,80},? (?:not|and not|rather than|instead of) (?!more|less|sure|only|just|yet|too|so|really|even|to worry|that)[\w`]",
    re.IGNORECASE,
)
_CORRECTS_BACK = re.compile(
    r"^actually,? (?:I|we|my|our) (?:do|did|don['\u2019]t|didn['\u2019]t|am|was|have|haven['\u2019]t|never|only|live|work|meant|moved)\b",
    re.IGNORECASE,
)

FOREIGN = ("german", "french", "spanish", "chinese")
"""The languages other than English that have phrases."""

_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab\u300c\u300e].*?[\"\u201c\u201d\u00bb\u300d\u300f]|(?<!\w)'.*?'(?!\w)")


@functools.cache
def _phrases(language: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The categories of a language in order, each with a pattern of what says it; "not" for what says nothing."""
    words, groups = dict[str, str](), list[tuple[str, list[str]]]()
    text = (files("pagein.facts.extraction") / "phrases" / f"{language}.txt").read_text("utf-8")
    for line in text.splitlines():
        if not line or line.startswith("# "):
            continue
        filled = re.sub(r"\{([a-z_]+)\}", lambda name: words[name[1]], line)
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            groups.append((heading[1], []))
        elif groups and groups[-1][0] == "words":
            name, _, value = filled.partition(" = ")
            words[name] = value
        elif groups:
            groups[-1][1].append(f"(?:{filled})")
    return tuple((category, re.compile("|".join(rows), re.IGNORECASE)) for category, rows in groups if rows)


def find_personal_statement(sentence: str) -> PersonalStatement | None:
    """Return what the sentence says of its speaker that lasts; None for anything else.

    >>> find_personal_statement("I live in Rome, so can you suggest a park?")
    PersonalStatement(text='I live in Rome', category='knowledge')
    """
    text = sentence.replace("\u2019", "'").strip()
    core = _THEREFORE.sub("", _TAIL_REQUEST.sub("", text)).rstrip(" ,;-")
    if core.endswith("?") or len(core.split()) < 2 or _POINTS_BACK.match(core) or english.HYPOTHESIS.match(core):
        return None
    if _NOT_THIS.match(core) and not _UNSURE.search(core):
        return PersonalStatement(core, "correction")
    if _UNSURE.search(core) or _OTHERS_SAY.search(core):
        return None
    if _CORRECTS_BACK.match(core):
        return PersonalStatement(core, "correction")
    for category, pattern in _phrases("english"):
        match = pattern.search(core)
        if match is None or _is_intended(core, match.start()):
            continue
        if category not in ("behaviour", "preference") or not _TODAY.search(core):
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
        (_, says_nothing), *rules = _phrases(language)
        for category, pattern in rules:
            if pattern.search(said) and not says_nothing.search(said):
                return PersonalStatement(sentence, category)
    return None


def _is_intended(core: str, at: int) -> bool:
    """True where what is at ``at`` is a part of what the speaker wants or plans."""
    return bool(_INTENDS.match(core)) and not _NEXT_CLAUSE.search(core, 0, at + 1)


def _is_dated_event(core: str) -> bool:
    """True for something of the speaker's own with a date of the calendar, such as a birthday or an appointment."""
    date = next(
        (value for value in find_values(core) if value.type in _CALENDAR and _HAS_MONTH.search(value.text)), None
    )
    if date is None or not _EVENT.search(core) or _is_intended(core, date.start):
        return False
    clause = core[: date.start]
    return not re.search(r"\byou\b", clause, re.IGNORECASE) and not _ASKS_NOW.search(clause.rpartition(",")[2])
