"""The likelihoods that a sentence binds, and that its breach does harm: logistic models for what the patterns do not know.

The weights were fitted on 2,012 binding sentences of many trades, 376 of them safety rules, and 2,101 of small talk, by
``benchmarks/ledger``. All were written for it, and none is what it is measured on.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType

from pagein.context.ledger import english
from pagein.context.ledger.shortening import drop_opening
from pagein.context.ledger.values import find_option, find_values

MIN_LIKELIHOOD = 0.5
"""Likelihood from which a sentence is taken: one in nineteen sentences of LoCoMo's chats has it, one in thirty of those that bind has not."""

MIN_HARM_LIKELIHOOD = 0.6
"""Likelihood from which the breach of a statement is taken to do harm: 9 % of other statements have it."""

MIN_KNOWN_SHARE, MAX_UNKNOWN = 0.4, 4
"""Share of a sentence's words that the model must know, where it does not know so many."""

BIAS = "bias"
"""The name of the weight that every sentence has."""

_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[^\w\s]")
_WORDS_A_STEP, _LONGEST_STEP = 4, 6


def statement_likelihood(sentence: str) -> float:
    """Return the likelihood, from 0 to 1, that an English sentence says what holds.

    >>> statement_likelihood("The side gate is for suppliers only.") > statement_likelihood("We had such a laugh!")
    True
    """
    return _likelihood(_weights()[0], sentence)


def is_known(sentence: str) -> bool:
    """True if the model knows enough of the words to say anything: of one that it knows nothing of it would think that it binds.

    >>> is_known("The side gate is for suppliers only."), is_known("yaar kal office jana hai")
    (True, False)
    """
    words = {feature for feature in sentence_features(sentence) if feature.isalpha()}
    unknown = len(words - _weights()[0].keys())
    return unknown < MAX_UNKNOWN or unknown <= (1 - MIN_KNOWN_SHARE) * len(words)


def harm_likelihood(sentence: str) -> float:
    """Return the likelihood, from 0 to 1, that an English sentence binds and that its breach does harm.

    >>> harm_likelihood("Wasp stings put him in hospital.") > harm_likelihood("My laptop runs Debian.")
    True
    """
    return _likelihood(_weights()[1], sentence)


def _likelihood(weights: Mapping[str, float], sentence: str) -> float:
    total = weights[BIAS] + math.fsum(weights.get(feature, 0.0) for feature in set(sentence_features(sentence)))
    return 1 / (1 + math.exp(-total))


def sentence_features(sentence: str) -> Iterator[str]:
    """Yield the words and pairs of words of a sentence, its first words, and the types of its values."""
    core = drop_opening(sentence)
    values = sorted(find_values(core), key=lambda value: value.start)
    parts, end = list[str](), 0
    for value in values:
        yield f"<{value.type.split(':')[0]}>"
        if value.start >= end:
            parts += (core[end : value.start], " zname " if value.type == "name" else " zvalue ")
            end = value.end
    if find_option(core) is not None:
        yield "<option>"
    words = _TOKEN.findall("".join((*parts, core[end:])).lower().replace("\u2019", "'"))
    if words and words[-1].isalnum():
        words.append(".")  # speech and chats leave it out
    if english.PAST_VERB.search(core) or english.PAST.search(core):
        yield "<past>"
    yield f"#{min(_LONGEST_STEP, len(words) // _WORDS_A_STEP)}"
    yield from words
    yield from (f"{one} {other}" for one, other in zip(["^", *words], [*words, "$"], strict=True))
    yield f"^ {' '.join(words[:2])}"
    yield f"^ {' '.join(words[:3])}"


@functools.cache
def _weights() -> tuple[Mapping[str, float], ...]:
    """Return by feature the weights for "it binds", and those for "its breach does harm": a line has both, then the features."""
    text = resources.files("pagein.context.ledger").joinpath("likelihood.txt").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    models = ({feature: float(row[model]) for row in rows for feature in row[2:]} for model in (0, 1))
    return tuple(map(MappingProxyType, models))
