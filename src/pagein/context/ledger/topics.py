"""The subject of a statement: the thing it begins with, and the things that the clause with its value names. Pure.

Two statements are about the same where neither names something of its own beside it, or where one says that it changes the other.
Of other languages than English verbs and things are not told apart: there the stems alone count.
"""

from __future__ import annotations

import functools
import re

from pagein.context.ledger import english
from pagein.context.ledger.binding_words import guess_language
from pagein.context.ledger.clauses import clause_with
from pagein.context.ledger.items import BindingStatement
from pagein.context.ledger.shortening import shorten
from pagein.context.ledger.values import VALUE_CONCEPTS, find_values, subject_stems

MAX_REMEMBERED_WORDS = 1_600
"""Texts of which the words are remembered."""

CHANGE_STEMS = frozenset(
    "plan mind thought idea swap drop scrap ignor disregard destination venue matter switch slip happen anyth everyth".split()  # noqa: SIM905
)
"""Stems that say that something decided changes, or does not matter any more, and not what."""

AMOUNT_STEMS = frozenset(
    {"shorten", "extend", "rais", "lower", "increas", "reduc", "cut", "bump", "trim", "cap", "lift"}
)
"""Stems that say how an amount changes, and not of what."""

_WORD = re.compile(r"[^\W_]+")

_OF = re.compile(r"(?i) (?:of|for|in|at|on|with|from|to|by|about)\b")


def differ_both_ways(new: BindingStatement, old: BindingStatement) -> bool:
    """True where each names something that the other is not about: "Huber's apprentice starts", "the contract with Huber ends"."""
    unit = new.value_type[5:]
    implied = {*VALUE_CONCEPTS, *CHANGE_STEMS, *AMOUNT_STEMS, "=due", unit, *subject_stems(unit, ())}
    one, other = (named_stems(new) - {*old.subject} - implied, named_stems(old) - {*new.subject} - implied)
    return any(part[0] != "@" for part in one) and any(part[0] != "@" for part in other)


@functools.lru_cache(maxsize=MAX_REMEMBERED_WORDS)
def named_stems(statement: BindingStatement) -> frozenset[str]:
    """Return the stems of the clause with the value, or with what is lifted, without its values and what is done there."""
    if not _is_english(statement.text):
        return frozenset()  # its verbs are not known
    lift = english.LIFTS.search(statement.text) if statement.lifts else None
    said, text = lift[0] if lift else statement.value, statement.text if lift else shorten(statement.text)
    for clause in (clause_with(text, said), text):
        bare = english.DONE.sub(" ", clause.replace(said, " ", 1) if said else clause)
        values = () if lift else tuple(value for value in find_values(bare) if value.type != "name")
        if stems := frozenset(subject_stems(bare, values)).intersection(whole_subject(statement)):
            return stems
    return frozenset()


@functools.lru_cache(maxsize=MAX_REMEMBERED_WORDS)
def _is_english(text: str) -> bool:
    return guess_language(text) == "English"


def is_explicit(text: str) -> bool:
    """True for words that say that something is to be otherwise; of other languages the table has no others."""
    return bool(english.EXPLICIT.search(text)) or not _is_english(text)


def heads_differ(new: BindingStatement, old: BindingStatement) -> bool:
    """True where each begins with a thing of its own, which is no part of the other: "The wedding cake", "The wedding"."""
    one, other = _head_stem(new), _head_stem(old)
    if not one or not other:
        return False
    return one not in old.subject or (other not in new.subject and one in topic_stems(old))


@functools.lru_cache(maxsize=MAX_REMEMBERED_WORDS)
def _head_stem(statement: BindingStatement) -> str:
    """Return the stem of the thing that the clause begins with, without what is of it, in it or for it; "" without one."""
    words = _OF.split(_topic_of(statement))[0].split()
    stems = (part for word in reversed(words) for part in subject_stems(word, ()))
    return next((part for part in stems if part[0] != "@" and part in {*statement.subject} - CHANGE_STEMS), "")


def _topic_of(statement: BindingStatement) -> str:
    """Return the words for the thing that the clause with the value begins with, "" where they are the value: "Jana is the owner"."""
    clause = clause_with(statement.text, statement.value).lstrip()
    topic = english.TOPIC.match(clause) if _is_english(statement.text) else None
    is_value = topic and statement.value and statement.value_type != "label" and statement.value in topic["topic"]
    return "" if topic is None or is_value else topic["topic"]


def differs_in_topic(new: BindingStatement, old: BindingStatement) -> bool:
    """True where each sentence begins with the thing that it is about, and these share nothing: "The API runs", "The site runs"."""
    one, other = topic_stems(new), topic_stems(old)
    return bool(one and other) and one.isdisjoint(other) and not one <= {*old.subject}


def topic_stems(statement: BindingStatement) -> set[str]:
    """Return the stems of the thing that a sentence is about, where it begins with it."""
    return {*subject_stems(_topic_of(statement), ())} & {*statement.subject} - CHANGE_STEMS


def whole_subject(statement: BindingStatement) -> tuple[str, ...]:
    """Return the stems of a statement with those of its value."""
    return tuple(dict.fromkeys((*statement.subject, *(word.removesuffix("s") for word in words_of(statement.value)))))


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, in lower case."""
    return tuple(_WORD.findall(text.lower()))
