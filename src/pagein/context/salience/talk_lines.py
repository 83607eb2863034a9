"""Sentences of talk: the chance that a later question asks for one, and the choice of those that stay in an extract.

A logistic model, fitted on three of LoCoMo's conversations and half of LongMemEval's development questions (10,526
sentences, of which 1,278 are of a turn that answers a question). On the other two conversations and the other half
(10,072 sentences) the area under the curve is .81. What counts is that somebody speaks of himself, of what he did, of when.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pagein.context.ledger.own_words import split_sentences
from pagein.tokens import TokenCounter

SENTENCE_MIN_CHARS, SENTENCE_MAX_CHARS = 8, 400
"""Characters of a sentence in an extract: a shorter one says nothing, a longer one is not one sentence."""

TEXT_MAX_CHARS = 4_000
"""Characters read of one text."""

LINE_TOKENS = 3
"""Tokens of a line beside its sentence."""

_NUMBER = re.compile(r"\d")
_DATE = re.compile(
    r"(?i)\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|\b(?:yesterday|today|tomorrow|tonight|last|next|ago|week(?:end)?|month|year)s?\b"
)
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+|\b[A-Z]{2,}\b|\"[^\"]{3,40}\"")
_FIRST_PERSON = re.compile(r"(?i)\b(?:i|i'm|i've|my|we|our|me|mine)\b")
_DEED = re.compile(
    r"(?i)\b(?:went|got|bought|made|started|finished|joined|moved|visited|took|found|met|won|signed|read|saw|tried|learned|ran"
    r"|applied|decided|booked|ordered|attended|been|had|gave|received|lost|named|called)\b"
)


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence with the position of its step, its speaker, and the chance that it is asked for."""

    position: int
    order: int
    speaker: str
    text: str
    chance: float


def sentence_chance(text: str, *, is_user: bool, answers_question: bool) -> float:
    """Return the chance that a later question asks for a sentence.

    >>> went = sentence_chance("I went to Rome last May.", is_user=True, answers_question=False)
    >>> went > 4 * sentence_chance("That sounds great!", is_user=False, answers_question=False)
    True
    """
    log_odds = (
        -1.17
        + 0.42 * (is_user and _NUMBER.search(text) is not None)
        + 0.83 * (_DATE.search(text) is not None)
        - 0.32 * min(3, len(_NAME.findall(text)))
        + 1.44 * (_FIRST_PERSON.search(text) is not None)
        + 1.02 * (_DEED.search(text) is not None)
        - 0.2 * text.rstrip().endswith("?")
        - 0.86 * math.log1p(len(text.split()))
        + 0.5 * answers_question
        + 0.75 * is_user
    )
    return 1 / (1 + math.exp(-log_odds))


def spoken_sentences(texts: Iterable[tuple[int, str, str]]) -> Iterator[SpokenSentence]:
    """Yield the sentences of texts, each with its position and speaker ("user" or "assistant"), oldest first."""
    order, is_answer = 0, False
    for position, speaker, text in texts:
        for line in text[:TEXT_MAX_CHARS].splitlines():
            for sentence in split_sentences(line):
                if SENTENCE_MIN_CHARS <= len(sentence) <= SENTENCE_MAX_CHARS:
                    chance = sentence_chance(sentence, is_user=speaker == "user", answers_question=is_answer)
                    yield SpokenSentence(position, order, speaker, sentence, chance)
                    order += 1
        is_answer = text.rstrip().endswith("?")


def choose_sentences(
    sentences: Iterable[SpokenSentence], tokens: int, counter: TokenCounter, *, visible: Iterable[str] = ()
) -> tuple[SpokenSentence, ...]:
    """Choose whole sentences for at most ``tokens`` tokens, those most worth their length first; in order of the run.

    What is in a ``visible`` text is left out, and what was said twice.
    """
    shown = "\n".join(visible)
    distinct = {sentence.text: sentence for sentence in sentences if sentence.text not in shown}
    costs = {text: counter.text(text) + LINE_TOKENS for text in distinct}
    ranked = sorted(distinct.values(), key=lambda one: (-one.chance / math.sqrt(costs[one.text]), -one.order))
    chosen = []
    for sentence in ranked:
        if costs[sentence.text] <= tokens:
            tokens -= costs[sentence.text]
            chosen.append(sentence)
    return tuple(sorted(chosen, key=lambda sentence: sentence.order))
