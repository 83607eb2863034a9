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
_SUPPOSED = re.compile(r"(?:if|when|the (?:issue|bug|problem)|>)", re.IGNORECASE)
"""Beginnings of what is supposed or quoted, not found."""


def find_next_steps(span: Span) -> tuple[SummaryItem, ...]:
    """Find what the model means to do next: in the newest of its last statements that says so."""
    statements = [text for text in span.texts if text.speaker in _MODEL]
    for statement in reversed(statements[-MAX_STATEMENTS:]):
        steps = [item for item in _sentences(statement) if _INTENTION.search(item.text)]
        if steps:
            return tuple(steps[-MAX_NEXT_STEPS:])
    return ()


def find_decisions(span: Span) -> tuple[SummaryItem, ...]:
    """Find what the model decided to do, and what the user wants or agreed to, each once."""
    decisions: dict[str, SummaryItem] = {}
    for text in span.texts:
        for item in _sentences(text):
            if _is_choice(text, item.text):
                decisions[item.text.casefold()] = item
    return tuple(decisions.values())


def find_refuted(span: Span) -> tuple[SummaryItem, ...]:
    """Find what the model found not to work or not to be so, each once."""
    refuted: dict[str, SummaryItem] = {}
    for text in span.texts:
        for item in _sentences(text) if text.speaker in _MODEL else ():
            is_question = item.text.endswith(("?", "\uff1f"))
            if _REFUTED.search(item.text) and not _SUPPOSED.match(item.text) and not is_question:
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
