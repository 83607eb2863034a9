"""The decisions of a run, what it ruled out, and the next steps, in the words that were said.

Found by fixed rules in the model's statements and the user's messages, sentence by sentence. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pagein.context.salience.lines import is_decision
from pagein.summaries.key_items import split_sentences
from pagein.summaries.sanitize import one_line
from pagein.summaries.spans import QuotedText, Span
from pagein.summaries.summary import SummaryItem

MAX_STATEMENTS = 3
"""Newest statements of the model that are looked through for a next step."""

MAX_NEXT_STEPS = 2
"""Next steps: of the newest statement that has any, the last."""

MIN_CHARS, MAX_CHARS = 20, 300
"""Characters from which a sentence is taken, and of its item."""

OWN_WORDS_MAX_CHARS = 4_000
"""Characters of a user's message up to which its sentences are the user's wishes; a longer one is a document."""

ASKS_MAX_CHARS = 400
"""Characters at the end of a statement in which the model asks for an answer."""

_MODEL = ("model", "plan", "answer")
_FENCED = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"^(?:THOUGHT|DISCUSSION|REASONING|PLAN)\b:?\s*", re.MULTILINE)

_INTENTION = re.compile(
    r"""
    \b(?:
      i(?:['\u2019]ll|\ will|\ should|\ must|\ have\ to|\ need\ to|\ want\ to|['\u2019]m\ going\ to|\ am\ going\ to)
    | we(?:['\u2019]ll|\ will|\ should|\ must|\ have\ to|\ need\ to)
    | let(?:['\u2019]s|\ me(?!\ know)|\ us(?!\ know))
    | (?:the\ )?next(?:\ step)?\ (?:is|will\ be)
    | would\ you\ like | please\ (?:confirm|provide) | (?:could|can)\ you
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""What somebody means to do, or asks for before going on."""

_CHOICE = re.compile(
    r"""
    \b(?:
      go(?:ing)?\ with | stick(?:ing)?\ with
    | (?:i(?:['\u2019]ll|\ will|\ should|\ need\ to|\ have\ to)|we(?:['\u2019]ll|\ will|\ should|\ need\ to))
      \ (?:only\ |also\ |just\ |therefore\ |instead\ )?
      (?:use|keep|implement|replace|rename|modify|change|add|create|fix|rewrite|move|apply|allow|handle|update|edit)
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_LOOKING = re.compile(
    r"\b(?:grep|goto|scroll|which|locate|look|see|read|check|verify)\b|\bthe (?:issue|bug|problem)\.$", re.IGNORECASE
)
"""Words of steps that look for something: they choose nothing."""

_ASKS = re.compile(
    r"^(?!.*\b(?:anything|something) else\b|.*\bhow (?:can|may) I\b).*(?:[?\uff1f]|\bplease (?:provide|confirm|share|tell)\b|\blet me know\b)",
    re.DOTALL | re.IGNORECASE,
)
"""A statement that waits for an answer, and not for the next request."""

_WISH = re.compile(
    r"""
    \b(?:
      (?:please|yes,?|let['\u2019]s)\ .{0,40}\b(?:proceed|go\ ahead|book|cancel|change|upgrade|use|keep)
    | go\ ahead | let['\u2019]s\ proceed
    | i(?:\ would|['\u2019]d)\ (?:also\ |really\ )?(?:like|prefer)
    | i\ (?:also\ )?(?:want|wanted|need|prefer)
    | i\ (?:do\ not|don['\u2019]t)\ (?:want|need)
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_REFUTED = re.compile(
    r"""
    \b(?:
      (?:did|does|do|will|would|is|was|are)(?:\ not|n['\u2019]t)\ (?:work|help|fix|solve|enough|needed|necessary|possible
        |available|allowed|installed|supported|found|accessible|cover|waive|apply|override)
    | (?:cannot|can['\u2019]t|could\ not|couldn['\u2019]t|unable\ to)\ (?:be|use|find|install|add|do|modify|change|override)
    | no\ longer | safer\ than | (?:was|is|were)\ wrong | not\ (?:the|a)\ (?:cause|problem|reason|culprit)
    | ruled\ out | dead\ end | without\ success | no\ exceptions?\ that
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_FAILED = re.compile(
    r"""
    \b(?:
      (?:did|does|do|is|was|are)(?:\ not|n['\u2019]t)\ (?:\w+\ (?:available|found)|exist|produce|yield|print|show|refundable|eligible|permitted)
    | (?:cannot|can['\u2019]t|could\ not|couldn['\u2019]t|unable\ to)\ (?!see\ (?:how|why|that)|be\ sure)\w+
    | ha(?:s|ve)(?:\ not|n['\u2019]t)\ (?:been\ able|found|removed|changed|fixed|helped|worked)
    | fail(?:ed|s|ing)\ (?:with|because|due|again|to) | failed(?=[.!]?$) | failure\ to
    | (?:was|is|getting|got|see)\ (?:an?|another|the\ same|still\ an)\ (?:\w+\ )?error(?!\ message) | made\ a\ (?:\w+\ )?(?:mistake|error)
    | (?:seems?|appears?|looks|might|may)\ (?:to\ )?(?:be\ )?(?:\w+ly\ )?(?:not\ be\ correct|incorrect|invalid|missing|wrong|broken|unavailable|unsupported)
    | there\ (?:are|is|were|was)\ no\ (?:\w+\ )?(?:options?|flights?|results?|matches|way|such|\w+\ available) | unfortunately
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Other words for what failed: they are many, so that only a checkpoint has the space for what they find."""

_SUPPOSED = re.compile(
    r"(?:if|when|the (?:issue|bug|problem|PR)|>|.*\b(?:ensure|make sure|confirm|verify|expected|description|could be due|might have)\b)",
    re.IGNORECASE,
)
"""What is supposed, quoted, hoped for or asked, not found."""


def find_next_steps(span: Span) -> tuple[SummaryItem, ...]:
    """Find what the model means to do next: in the newest of its last statements that says so."""
    statements = [text for text in span.texts if text.speaker in _MODEL]
    for statement in reversed(statements[-MAX_STATEMENTS:]):
        steps = [item for item in _sentences(statement) if _INTENTION.search(item.text)]
        if steps:
            return tuple(steps[-MAX_NEXT_STEPS:])
    return ()


def find_standing_request(span: Span) -> tuple[SummaryItem, ...]:
    """Find the user's request that the newest message only continues, as it answers what the model asked."""
    said = [text for text in span.texts if text.speaker in (*_MODEL, "user")]
    newest: QuotedText | None = None
    for at in range(len(said) - 1, -1, -1):
        text, before = said[at], said[at - 1] if at else None
        if text.speaker != "user" or len(text.text.strip()) < MIN_CHARS:
            continue
        newest = newest or text
        is_answer = before is not None and before.speaker in _MODEL and _ASKS.search(before.text[-ASKS_MAX_CHARS:])
        if not is_answer:
            return () if text is newest else (SummaryItem(one_line(text.text, MAX_CHARS), handles=(text.handle,)),)
    return ()


def find_decisions(span: Span) -> tuple[SummaryItem, ...]:
    """Find what the model decided to do, and what the user wants or agreed to, each once."""
    decisions: dict[str, SummaryItem] = {}
    for text in span.texts:
        for item in _sentences(text):
            if _is_choice(text, item.text):
                decisions[item.text.casefold()] = item
    return tuple(decisions.values())


def find_refuted(span: Span, *, closely: bool = False) -> tuple[SummaryItem, ...]:
    """Find what the model found not to work or not to be so, each once; ``closely`` with every word for it."""
    refuted: dict[str, SummaryItem] = {}
    for text in span.texts:
        for item in _sentences(text) if text.speaker in _MODEL else ():
            is_said = _REFUTED.search(item.text) or (closely and _FAILED.search(item.text))
            if is_said and not _SUPPOSED.match(item.text) and not item.text.endswith(("?", "\uff1f")):
                refuted[item.text.casefold()] = item
    return tuple(refuted.values())


def _is_choice(text: QuotedText, sentence: str) -> bool:
    if sentence.endswith(("?", "\uff1f")):
        return False
    if text.speaker in _MODEL:
        return is_decision(sentence) or (_CHOICE.search(sentence) is not None and not _LOOKING.search(sentence))
    is_own = text.speaker == "user" and len(text.text) <= OWN_WORDS_MAX_CHARS
    return is_own and _WISH.search(sentence) is not None


def _sentences(text: QuotedText) -> Iterator[SummaryItem]:
    if text.speaker in (*_MODEL, "user"):
        for sentence in split_sentences(_LABEL.sub("", _FENCED.sub("\n", text.text))):
            if len(sentence) >= MIN_CHARS:
                yield SummaryItem(one_line(sentence, MAX_CHARS), handles=(text.handle,))
