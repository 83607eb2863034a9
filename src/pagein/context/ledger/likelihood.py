"""The likelihood that a sentence binds, by its words: a logistic model for what the patterns do not know.

The weights were fitted on 700 binding sentences of many trades and 566 of small talk, by ``benchmarks/ledger``. Both
were written for it, and neither is what it is measured on.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType

from pagein.context.ledger.shortening import drop_opening
from pagein.context.ledger.values import find_option, find_values

MIN_LIKELIHOOD = 0.5
"""Likelihood from which a sentence is taken: one in twenty of those that people say in passing has it."""

BIAS = "bias"
"""The name of the weight that every sentence has."""

_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[^\w\s]")
_WORDS_A_STEP, _LONGEST_STEP = 4, 6


def statement_likelihood(sentence: str) -> float:
    """Return the likelihood, from 0 to 1, that an English sentence says what holds.

    >>> statement_likelihood("The side gate is for suppliers only.") > statement_likelihood("We had such a laugh!")
    True
    """
    weights = _weights()
    total = weights[BIAS] + sum(weights.get(feature, 0.0) for feature in set(sentence_features(sentence)))
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
    yield f"#{min(_LONGEST_STEP, len(words) // _WORDS_A_STEP)}"
    yield from words
    yield from (f"{one} {other}" for one, other in zip(["^", *words], [*words, "$"], strict=True))
    yield f"^ {' '.join(words[:2])}"
    yield f"^ {' '.join(words[:3])}"


@functools.cache
def _weights() -> Mapping[str, float]:
    text = resources.files("pagein.context.ledger").joinpath("likelihood.json").read_text("utf-8")
    return MappingProxyType(json.loads(text))
