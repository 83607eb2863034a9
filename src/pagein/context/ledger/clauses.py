"""Amounts: what a clause of a statement measures or counts, so that two statements can be compared clause by clause. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import NamedTuple

from pagein.context.ledger import english
from pagein.context.ledger.values import TypedValue, find_values, stem, subject_stems

MAX_REMEMBERED_TEXTS = 1_600
"""Texts of which the amounts are remembered."""

_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905 - a row of words
NUMBER_WORDS = MappingProxyType({word: str(number) for number, word in enumerate(_NUMBERS)})
_COUNTS = {**NUMBER_WORDS, "both": "2", "single": "1"}

_COUNTED = re.compile(rf"(?i)\b(?P<count>\d{{1,6}}|{'|'.join(_COUNTS)}) (?P<noun>[a-z]{{3,}})\b")
"""A count and the noun behind it: "34 singers", "both sides"."""

_CLAUSE_END = re.compile(rf"{english.CLAUSE_END.pattern}|(?:^| )(?:so|which|but|where|when|while|or) ")
_CLAUSE = re.compile(rf"{_CLAUSE_END.pattern}| and ")

_MEASURES = ("unit:", "money", "time")


class Amount(NamedTuple):
    """What a clause measures: the type of the value, the value, and the stems of what the clause says of it."""

    type: str
    value: str
    stems: frozenset[str]


def clause_with(text: str, part: str) -> str:
    """Return the clause of a text that has this part, or else the text.

    >>> clause_with("I had a clash, so it's port 8081 now.", "8081")
    "it's port 8081 now."
    """
    return next((clause for clause in _CLAUSE.split(text) if part and part in clause), text)


@functools.lru_cache(maxsize=MAX_REMEMBERED_TEXTS)
def find_amounts(text: str) -> tuple[Amount, ...]:
    """Return what the clauses of a statement measure or count.

    >>> [(amount.type, amount.value, *sorted(amount.stems)) for amount in find_amounts("Rain stopped us, so the walk is 12 km.")]
    [('unit:km', '12', 'walk')]
    """
    whole = frozenset(subject_stems(text, _measures(text)))
    return tuple(amount for clause in _CLAUSE_END.split(text) for amount in _read_clause(clause, whole))


def _read_clause(clause: str, whole: frozenset[str]) -> Iterator[Amount]:
    """Yield the amounts of a clause; one that does not say what it is about is about what the sentence is about."""
    values = _measures(clause)
    stems = frozenset(subject_stems(clause, values))
    units = {stem(value.type.removeprefix("unit:")) for value in values}
    if all(part[0] in "=@" or part in units for part in stems):
        stems = whole
    for value in values:
        yield Amount(value.type, _number(value.text), stems)
    for count in _COUNTED.finditer(clause):
        if not any(value.start <= count.start() < value.end for value in values):
            noun = stem(count["noun"].lower())
            yield Amount(f"count:{noun}", _number(count["count"]), stems | {noun})


def _measures(text: str) -> tuple[TypedValue, ...]:
    return tuple(value for value in find_values(text) if value.type.startswith(_MEASURES))


def _number(text: str) -> str:
    """Return a value by its digits, with words as digits."""
    first = text.lower().split()[0] if text.split() else ""
    return _COUNTS.get(first, re.sub(r"[^\d.:]", "", text) or text.lower())
