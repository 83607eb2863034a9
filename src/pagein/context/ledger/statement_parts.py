"""The parts of an English statement beside its kind: its value, what it is about, what it changes, and its weight. Pure."""

from __future__ import annotations

import re

from pagein.context.ledger import english
from pagein.context.ledger.chosen_values import choose_value, find_free_value, shift
from pagein.context.ledger.english_sentence import does_harm, forbids
from pagein.context.ledger.items import LONG_CHARS, BindingStatement, StatementKind
from pagein.context.ledger.own_words import OwnSentence
from pagein.context.ledger.shortening import drop_opening
from pagein.context.ledger.values import TYPE_CONCEPTS, TypedValue, find_values, is_specific, is_when, subject_stems

_UNSURE = re.compile(r"(?i)\b(?:I think|probably|I guess|for now|try)\b")


def build_statement(
    sentence: OwnSentence, masked: str, kind: StatementKind, values: tuple[TypedValue, ...]
) -> BindingStatement:
    """Build the statement of a sentence whose kind is known."""
    value = choose_value(masked, values) or find_free_value(masked)
    replaced = english.find_old_and_new(masked)
    old = "" if replaced is None else replaced[0]
    is_prohibition = forbids(masked)
    lifts = bool(english.LIFTS.search(masked)) and not (is_prohibition and "no longer" not in masked.lower())
    return BindingStatement(
        kind,
        sentence.text,
        is_safety=_is_safety(masked, kind, lifts=lifts),
        subject=_subject_in_context(sentence, masked, value, old),
        value=value.text if value else "",
        value_type=value.type if value else "",
        revises=bool(english.REVISES.search(masked)) or (old != "" and not english.GONE.search(masked)),
        lifts=lifts,
        old_value=old,
        is_prohibition=is_prohibition,
        is_weak=kind in ("value", "decision", "commitment") and _is_weak(masked, kind),
    )


def _is_safety(masked: str, kind: StatementKind, *, lifts: bool) -> bool:
    if lifts:
        return False
    if english.LASTING_LIKE.search(masked):
        return True
    if kind in ("rule", "limit"):
        return does_harm(masked, is_limit=kind == "limit")
    return kind in ("decision", "value", "commitment") and bool(english.HARD.search(masked))


def _is_weak(masked: str, kind: StatementKind) -> bool:
    """True where nothing but a number, or a plan of the speaker's own, makes the sentence a statement."""
    if _UNSURE.search(masked) or len(masked) > LONG_CHARS:
        return True
    if kind != "value":
        return kind == "decision" and not english.DECIDE.search(masked)
    owned = english.OWNED.search(masked)
    if owned is not None and english.SETTING.search(owned["what"]):
        return False
    return not (english.SET_FACT.search(masked) or english.KEY_VALUE.match(masked) or english.REVISES.search(masked))


def _subject_in_context(sentence: OwnSentence, masked: str, value: TypedValue | None, old: str) -> tuple[str, ...]:
    """Return the stems of the sentence, and those of the one before where it refers to that and names little itself."""
    subject = _subject(_blank_opening(masked, value), value, old)
    # A concept says what the sentence is about, also where another part of it refers to what was said before.
    names_itself = len(subject) > 1 or "".join(subject).startswith(("=", "@"))
    if names_itself or not english.REFERS.search(masked) or not sentence.before:
        return subject
    typed = tuple(value for value in find_values(sentence.before) if value.type != "name")
    return tuple(dict.fromkeys((*subject, *subject_stems(sentence.before, typed))))


def _blank_opening(masked: str, value: TypedValue | None) -> str:
    """Blank phrases such as "quick note", which say nothing about the subject."""
    dropped = len(masked) - len(drop_opening(masked))
    is_opening = not value or value.start >= dropped
    return " " * dropped + masked[dropped:] if is_opening else masked


def _subject(masked: str, value: TypedValue | None, old: str) -> tuple[str, ...]:
    """Return the stems of the sentence, or of the clause with its value, and those that its value brings with it."""
    text = masked.replace(old, " " * len(old)) if old else masked
    stems = subject_stems(text, () if value is None else (value,))
    if value is not None and (english.REVISES.search(masked) or english.CONCLUDES.search(masked)):
        stems = _clause_subject(text, value, stems)
    if english.GOES_LIVE.search(masked):
        stems = tuple(part for stem in stems for part in (("=launch", "=deploy") if stem == "=address" else (stem,)))
    if value is not None and is_when(value.type):
        stems = tuple(stem for stem in stems if stem != "@daypart")
    return tuple(dict.fromkeys((*stems, *_value_stems(masked, value))))


def _clause_subject(text: str, value: TypedValue, stems: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stems of the clause with the value, or else all ``stems``."""
    start = max((end.end() for end in english.CLAUSE_END.finditer(text, 0, value.start)), default=0)
    ending = english.CLAUSE_END.search(text, value.end)
    clause = text[start : ending.start() if ending else len(text)]
    is_enough = is_specific(value.type) or english.MOVED.search(clause)
    if not is_enough and english.PRONOUN_CLAUSE.match(clause):
        return stems
    return subject_stems(clause, (shift(value, -start),)) or (() if is_enough else stems)


def _value_stems(masked: str, value: TypedValue | None) -> tuple[str, ...]:
    """Return the stems that a value brings with it: its group of options, its unit, its concept."""
    kind = "" if value is None else value.type
    if kind.startswith("option:"):
        return (f"@{kind[7:]}",)
    if kind.startswith("unit:"):
        return (kind[5:], *subject_stems(kind[5:], ()))
    if english.MOVED.search(masked):
        return ("=address",)
    return (TYPE_CONCEPTS[kind],) if kind in TYPE_CONCEPTS else ()
