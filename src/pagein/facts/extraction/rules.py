"""Extraction of facts by rules: explicit statements of the user.

"Remember that ...", "always ..." and "never ...", "my X is Y", "I prefer ...", "actually, X is Y" (English). Questions,
quotations, code, pasted mails and documents, secrets, and orders for the moment ("always" within a longer clause, "remember to reply") give nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pagein.context.ledger.own_words import clip_middle, strip_foreign_text
from pagein.events.entries import Source
from pagein.events.secrets import holds_secret
from pagein.facts.fact import FactError, checked_content

MAX_SENTENCE_CHARS = 400
"""Characters of a sentence; a longer one states more than a fact."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])|\n+")
_DOCUMENT = re.compile(
    r"^#{1,6} \S|^[^\n]*(?:\bwr[oi]te|\bécrit|\bschr(?:ei|ie)b|\bescrib|\bescreveu|\bscri(?:ve|tto|sse)|\bschre[ei]f"
    r"|\bnapisa|написал|пишет|写道|書い|썼|كتب|लिखा|\byazd)[^\n:\uff1a]*[:\uff1a][ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A heading of a document, or a line that says that somebody wrote what follows: no fact is taken from there on."""

_LEAD = re.compile(
    r"^(?:(?:please|ok(?:ay)?|so|and|also|btw|by the way|note|note that|hey|hi|for the record|from now on|in future|"
    r"going forward|as a rule|important)\b[,:]?\s+|[-*\u2022]\s+|\d+[.)]\s+)+",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"^(?:no|nope|actually|correction|sorry|i meant|wrong|that['\u2019]s wrong)\b[,:.!]?\s+", re.IGNORECASE
)
_MOMENT = (
    r"(?:[\w'\u2019-]+ ){0,3}(?:question|guess|problem|issue|point|concern|code|plan|idea|request|task|understanding|suggestion|error|bug|bad|"
    r"first|next|last|only|worry|hope|thinking|test|tests|build|answer|feeling|sense|hunch|apologies) is\b"
)
"""Subjects of "my X is" that last for a moment."""

_PASSING = r"(?:not\b|that\b|to\b|how\b|why\b|what\b|whether\b|if\b|broken|failing|down\b|slow\b|stuck|fine\b|good\b|ok\b|here\b|done\b|ready\b)"
"""Predicates of "my X is" that last for a moment."""

_RULES: tuple[tuple[re.Pattern[str], str, float], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), category, confidence)
    for pattern, category, confidence in (
        (r"^(?:remember|keep in mind|don['\u2019]t forget|do not forget)\s*(?:that\b|:)\s*(?P<fact>.{6,})$", "context", 0.95),
        (r"^(?P<fact>(?:always|never)\s+[a-z]{2,}\b.{3,})$", "constraint", 0.9),
        (r"^(?P<fact>(?:do not|don['\u2019]t|you must not|you must never)\s+ever\s+.{4,})$", "constraint", 0.9),
        (r"^(?P<fact>my (?!" + _MOMENT + r")[\w'\u2019-]+(?: [\w'\u2019-]+){0,3} is (?!" + _PASSING + r")\S.*)$", "knowledge", 0.85),
        (r"^(?P<fact>i(?: really| strongly| generally| usually| always)? prefer\s+.{3,})$", "preference", 0.85),
        (r"^(?P<fact>i(?: always| never)\s+(?:use|write|work|want|run|read|deploy|test|eat|drink)\b.{2,})$", "preference", 0.85),
        (r"^(?P<fact>i(?:['\u2019]m| am) allergic to\s+.{3,})$", "constraint", 0.9),
    )
)  # fmt: skip
_FOR_NOW = re.compile(
    r"\b(?:for now|this time|just this once|today only|right now|in this (?:message|answer|reply)|temporarily|for this (?:task|one|run|turn))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A text with its source; ``speaker`` is ``user``, ``answer`` or ``tool``."""

    speaker: str
    text: str
    source: Source


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A possible fact with its source; ``corrects`` if the user corrects an earlier one."""

    content: str
    category: str
    confidence: float
    source: Source
    corrects: bool = False


def find_candidates(utterances: Iterable[Utterance]) -> tuple[FactCandidate, ...]:
    """The facts that the user states explicitly, in order."""
    return tuple(
        candidate for utterance in utterances if utterance.speaker == "user" for candidate in _candidates_in(utterance)
    )


def _candidates_in(utterance: Utterance) -> Iterator[FactCandidate]:
    text = clip_middle(_FENCE.sub("\n", utterance.text))
    if (document := _DOCUMENT.search(text)) is not None:
        text = text[: document.start()]
    text = strip_foreign_text(text)
    quoting = False
    for line in text.splitlines():
        opened, quoting = quoting, quoting ^ (line.count('"') % 2 == 1)
        if opened or quoting or line.startswith(("    ", "\t")) or line.lstrip().startswith(">"):
            continue  # quotations and code are not the user's own statements
        for sentence in _SENTENCE.split(line):
            if (candidate := _candidate_from(sentence.strip(), utterance.source)) is not None:
                yield candidate


def _candidate_from(sentence: str, source: Source) -> FactCandidate | None:
    if not 8 <= len(sentence) <= MAX_SENTENCE_CHARS or sentence.endswith("?") or _FOR_NOW.search(sentence):
        return None
    if holds_secret(sentence):
        return None
    plain = _LEAD.sub("", sentence)
    corrected = _CORRECTS.sub("", plain)
    corrects = corrected != plain
    for pattern, category, confidence in _RULES:
        if (match := pattern.match(corrected)) is not None:
            try:
                content = checked_content(match["fact"].strip().rstrip(".!"))
            except FactError:
                return None
            kind = "correction" if corrects and category not in ("constraint", "preference") else category
            return FactCandidate(
                content[:1].upper() + content[1:], _category_of(content, kind), confidence, source, corrects
            )
    return None


def _category_of(content: str, category: str) -> str:
    """The category of the fact after "remember that"."""
    if category != "context":
        return category
    for pattern, named, _ in _RULES[1:]:
        if pattern.match(content):
            return named
    return category
