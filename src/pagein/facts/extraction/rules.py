"""Extraction of facts by rules: explicit statements of the user.

"Remember that ...", "always ..." and "never ...", "from now on ...", "my X is Y", "actually, X is Y" (English), and what people
say of themselves (``first_person``, five languages). Questions, quotations, code, pasted mails and documents, secrets, and orders for the moment give nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pagein.context.ledger.own_words import OwnSentence, own_sentences
from pagein.context.ledger.spelling import spell_out
from pagein.events.entries import Source
from pagein.events.secrets import holds_secret
from pagein.facts.extraction import first_person
from pagein.facts.extraction.candidates import RETRACTION, FactCandidate, Utterance
from pagein.facts.fact import FactError, checked_content
from pagein.search.tokenizer import is_surely_english

MAX_SENTENCE_CHARS = 400
"""Characters of a sentence; a longer one states more than a fact."""

PERSONAL_CONFIDENCE = 0.85
"""Confidence in what people say of themselves."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_DOCUMENT = re.compile(
    r"^#{1,6} \S|^(?:From|To|Cc|Subject|Sent): \S|^[^\n]*(?:\bwr[oi]te|\bécrit|\bschr(?:ei|ie)b|\bescrib|\bescreveu|\bscri(?:ve|tto|sse)|\bschre[ei]f"
    r"|\bnapisa|написал|пишет|写道|書い|썼|كتب|लिखा|\byazd)[^\n:\uff1a]*[:\uff1a][ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A heading of a document, or a line that says that somebody wrote what follows: no fact is taken from there on."""

_CODE = re.compile(
    r"^(?://|/\*|-- |;;|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b)|^(?:def|class|function|async|return)\b.*[(:=.]|\w\(\w*\):|\bself\.\w"
)
_ONE_SOUND = re.compile(r"\b(?:u|n|ur)\b", re.IGNORECASE)
"""Words of a chat that are words of other languages, too."""
_WORDS_QUOTED = re.compile(r"[\"\u201c][^\"\u201c\u201d]*\s[^\"\u201c\u201d]*[\"\u201d]")
_MOMENT = (
    r"(?:[\w'\u2019-]+ ){0,3}(?:question|guess|problem|issue|point|concern|code|plan|idea|request|task|understanding|suggestion|error|bug|bad|"
    r"first|next|last|only|worry|hope|thinking|test|tests|build|answer|feeling|sense|hunch|apologies|advice|choice|take|theory|money) is\b"
)
"""Subjects of "my X is" that last for a moment."""

_PASSING = r"(?:not\b|probably\b|that\b|to\b|still\b|getting\b|too\b|open\b|closed\b|really\b|so\b|pretty\b|on\b|my\b|going\b|like\b|always\b|well\b|doing\b|an? (?:bit|little|lot|mess)\b|very\b|how\b|why\b|what\b|whether\b|if\b|broken|failing|down\b|slow\b|stuck|fine\b|good\b|ok\b|here\b|done\b|ready\b|(?:waiting|coming|leaving|trying|looking|asking|visiting|getting)\b)"
"""Predicates of "my X is" that last for a moment."""

Rule = tuple[re.Pattern[str], str, float]


def _rules(*rows: tuple[str, str, float]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), category, confidence) for pattern, category, confidence in rows)


_RULES = _rules(
    (r"^(?:you can |you may )?(?:(?:forget|disregard|ignore)(?: (?:that|the fact that|what i said about|about|everything about))?[,:]?|(?:i was (?:only |just )?(?:joking|kidding|lying) when i said|it['\u2019]s not true)(?: that)?) (?P<fact>(?:i|we|my|our)\b.{4,})$", RETRACTION, 1.0),
    (r"^(?:remember|keep in mind|don['\u2019]t forget|do not forget)\s*(?:that\b|:)\s*(?P<fact>.{6,})$", "context", 0.95),
    (r"^(?P<fact>(?:always|never)\s+(?!\w+ing\b|(?:here|there|in|on|at|a|an|the|my|your|by|with|for|ready|up|been|wanted|loved|thought|knew|mind|nice|good|great|happy|fun|glad|so|really|heard|had|seen|tried|said|again|gonna|going|have|look on|will i|did i)\b)[a-z]{2,}\b.{3,})$", "constraint", 0.9),
    (r"^(?P<fact>(?:do not|don['\u2019]t|you must not|you must never)\s+ever\s+.{4,})$", "constraint", 0.9),
    (r"^(?P<fact>my (?!" + _MOMENT + r")[\w'\u2019-]+(?: [\w'\u2019-]+){0,3} is (?!" + _PASSING + r")\S.*)$", "knowledge", 0.85),
    (r"^(?P<fact>(?:the|our|my) [\w' -]{2,40} (?:has|have|is|was|are|were|got) (?:now |just )?(?:been )?(?:moved|changed|switched|postponed|renamed|rescheduled) to\s+\S.*)$", "correction", 0.85),
    (r"^(?P<fact>(?:we|i)(?:['\u2019]ve| have)? (?:just |now )?(?:renamed|moved|migrated|postponed|rescheduled) (?:the|our|my) [\w' -]{2,60} to\s+\S.*)$", "correction", 0.85),
    (r"^(?P<fact>our (?!" + _MOMENT + r")[\w'\u2019-]+(?: [\w'\u2019-]+){0,3} (?:is|starts|ends|begins) (?:on (?=(?-i:[A-Z\d])))?(?!" + _PASSING + r")(?-i:called |named |.*(?:\d|[A-Z]|\w-\w)).*)$", "knowledge", 0.85),
    (r"^(?:please )?(?P<fact>(?:do not|don['\u2019]t) (?:use|write|add|send|include|schedule|book) (?!the\b|that\b|this\b|it\b|any of\b|my\b|your\b|these\b|those\b|them\b)[\w' -]{3,60} (?:in|when|for|on|before|after|to|without)\b.*)$", "constraint", 0.85),
    (r"^(?P<fact>i(?: really| strongly| generally| usually| always)? prefer\s+(?!(?:the (?:first|second|third|last|latter|former|other|one|option|new|old|version|idea|way)|this|that|these|those|it|your?)\b).{3,})$", "preference", 0.85),
    (r"^(?P<fact>i(?: always| never)\s+(?:use|write|work|run|read|deploy|test|eat|drink)\b.{2,})$", "preference", 0.85),
    (r"^(?P<fact>i(?:['\u2019]m| am) allergic to\s+.{3,})$", "constraint", 0.9),
)  # fmt: skip
_ORDERS = _rules(
    (r"^(?P<fact>(?![a-z]+(?<!s)s\b|(?:maybe|perhaps|hopefully|definitely|probably|might|could|may|would|will|can|should|i|we|you|he|she|they|it|my|our|the|this|that|there|what|how|in)\b)[a-z]+ (?!.*\b(?:i|we)\b).{3,}?)(?:,? (?:from now on|going forward|in (?:the )?future))?[.!]?$", "constraint", 0.9),
)  # fmt: skip
"""What a sentence with "from now on" orders."""

_VALUES = _rules(
    (r"^(?P<fact>(?:the|our|my) [\w' -]{2,40}? (?:is|are|starts|ends) (?:on )?(?!" + _PASSING + r")(?-i:.*(?:\d|\b[A-Z]\w|`)).*)$", "knowledge", 0.85),
)  # fmt: skip
"""What a correction says to be the value."""


def find_candidates(utterances: Iterable[Utterance]) -> tuple[FactCandidate, ...]:
    """The facts that the user states explicitly, in order."""
    return tuple(
        replace(candidate, rewritten=utterance.rewritten)
        for utterance in utterances
        if utterance.speaker == "user"
        for candidate in _candidates_in(utterance)
    )


def _candidates_in(utterance: Utterance) -> Iterator[FactCandidate]:
    text = _FENCE.sub("\n", utterance.text)
    if (document := _DOCUMENT.search(text)) is not None:
        text = text[: document.start()]
    in_english = is_surely_english(text[:MAX_SENTENCE_CHARS])
    for sentence in own_sentences(text):
        candidate = _candidate_from(sentence, utterance.source, in_english=in_english)
        if careful := _spell_with_care(sentence):
            meant = _candidate_from(careful, utterance.source, in_english=in_english)
            candidate = meant and (candidate or _in_own_words(meant, sentence))
        if candidate is not None:
            yield candidate


def _spell_with_care(sentence: OwnSentence) -> OwnSentence | None:
    """The sentence as it would be spelled with care ("I'm vegan" for "im vegan"); None where it is, or may be no English."""
    spelled = spell_out(sentence.text)
    if (
        spelled == sentence.text
        or sentence.text != sentence.masked
        or not is_surely_english(spell_out(_ONE_SOUND.sub("", sentence.text)))
    ):
        return None
    return replace(sentence, text=spelled, masked=spelled)


def _in_own_words(meant: FactCandidate, sentence: OwnSentence) -> FactCandidate | None:
    """The fact as all of the sentence, as its speaker put it."""
    return _candidate(sentence.text, meant.category, meant.confidence, meant.source, corrects=meant.corrects)


def _candidate_from(sentence: OwnSentence, source: Source, *, in_english: bool) -> FactCandidate | None:
    says, text = first_person.phrases_of("english").names, sentence.text
    if not (8 if text.isascii() else 4) <= len(text) <= MAX_SENTENCE_CHARS:
        return None
    if holds_secret(text) or _CODE.search(text):
        return None
    is_momentary = bool(says["for_now"].search(text))
    is_plain = sentence.masked == text and not is_momentary and not text.endswith("?")
    plain = says["lead"].sub("", text)
    corrected = says["corrects"].sub("", plain)
    corrects = corrected != plain
    rules = _RULES + (_ORDERS if says["from_now"].search(text) else ()) + (_VALUES if corrects else ())
    for pattern, category, confidence in rules if is_plain else ():
        if (match := pattern.match(corrected)) is not None:
            return _candidate(match["fact"], category, confidence, source, corrects=corrects)
    said = _find_personal(sentence, in_english=in_english)
    if said is None or (is_momentary and said.category != "knowledge"):
        return None
    # "No, I like tea" answers a question: it replaces what says otherwise, and is no correction to show before all others.
    candidate = _candidate(said.text, said.category, PERSONAL_CONFIDENCE, source, corrects=False)
    return candidate and replace(candidate, corrects=candidate.corrects or corrects)


def _find_personal(sentence: OwnSentence, *, in_english: bool) -> first_person.PersonalStatement | None:
    """What the sentence says of the speaker, in its own words; what it quotes says nothing."""
    says = first_person.phrases_of("english").names
    masked = _WORDS_QUOTED.sub(lambda quote: "_" * len(quote[0]), sentence.masked.replace("\u2019", "'"))
    masked = masked.replace("\x00", "_")
    plain = says["lead"].sub("", masked)
    said = first_person.find_personal_statement(
        says["corrects"].sub("", plain), in_english=in_english
    ) or first_person.find_personal_statement(plain, in_english=in_english)
    said = said or first_person.find_foreign_statement(plain)
    if said is None or (at := masked.find(said.text)) < 0:
        return None
    return replace(said, text=sentence.text[at : at + len(said.text)])


def _candidate(text: str, category: str, confidence: float, source: Source, *, corrects: bool) -> FactCandidate | None:
    try:
        content = checked_content(text.strip().rstrip(".!\u3002\uff01"))
    except FactError:
        return None
    kind = "correction" if corrects and category not in ("constraint", "preference") else category
    corrects = corrects or category == "correction" or _says_a_change(content)
    return FactCandidate(content[:1].upper() + content[1:], _category_of(content, kind), confidence, source, corrects)


def _says_a_change(content: str) -> bool:
    """True for words that say that something is no longer as it was: what says the contrary leaves."""
    return any(
        first_person.phrases_of(language).names["changes"].search(content)
        for language in ("english", *first_person.FOREIGN)
    )


def _category_of(content: str, category: str) -> str:
    """The category of the fact after "remember that"."""
    if category != "context":
        return category
    for pattern, named, _ in _RULES[2:]:
        if pattern.match(content):
            return named
    return category
