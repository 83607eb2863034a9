"""A sentence in another language than English, read by its binding words. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pagein.context.ledger import english
from pagein.context.ledger.binding_words import (
    ALLERGY,
    FOREIGN_KINDS,
    ForeignPatterns,
    fold_letters,
    folds,
    foreign_patterns,
    foreign_subject,
    holds_number,
    part_numbers,
    revises,
)
from pagein.context.ledger.chosen_values import choose_value
from pagein.context.ledger.items import BindingStatement, StatementKind
from pagein.context.ledger.own_words import OwnSentence
from pagein.context.ledger.values import TypedValue, find_option, find_values


def read_foreign(sentence: OwnSentence, plain: str, spoken: str, language: str) -> BindingStatement | None:
    """Read a sentence in another language; ``spoken`` is it without addresses and code."""
    if english.FOREIGN_QUESTION.search(plain):
        return None
    is_folded, lower = folds(language, spoken), spoken.lower()
    words, folded = foreign_patterns(language, is_folded=is_folded), fold_letters(lower) if is_folded else lower
    parted = part_numbers(plain)
    values = _values_of(plain, parted, language)
    has_value = bool(values) or holds_number(plain) or find_option(plain) is not None
    kind, is_prohibition = next(_kinds_of(words, folded, has_value=has_value), (None, False))
    if kind is None:
        return None
    is_lifted = bool(words.lifts.search(folded))
    value = choose_value(parted, values)
    if value is not None and value.type == "option:register" and not english.SAYS_DU.search(plain):
        value = None  # "Du darfst ..." is no choice between "du" and "Sie"
    return BindingStatement(
        kind,
        sentence.text,
        is_safety=(is_prohibition or bool(ALLERGY.search(folded))) and not is_lifted,
        subject=foreign_subject(parted, value, language),
        value=value.text if value else "",
        value_type=value.type if value else "",
        revises=bool(words.change.search(folded)),
        lifts=is_lifted,
        is_prohibition=is_prohibition and not is_lifted,
    )


def _values_of(plain: str, parted: str, language: str) -> tuple[TypedValue, ...]:
    """Return the values. German writes every noun like a name: one counts behind "ist" alone."""
    has_names = language != "German" or english.GERMAN_NAME.search(plain)
    return tuple(value for value in find_values(parted) if has_names or value.type != "name")


def _kinds_of(words: ForeignPatterns, folded: str, *, has_value: bool) -> Iterator[tuple[StatementKind, bool]]:
    """Yield the kinds of a sentence, and whether it forbids: by its binding words, then as an allergy, a change, a permission."""
    is_revision, is_allergy = has_value and revises(words.change, folded), bool(ALLERGY.search(folded))
    is_story = bool(words.story.search(folded))
    for number, (kind, pattern) in enumerate(zip(FOREIGN_KINDS, words.kinds, strict=True)):
        is_told = is_story and kind != "decision" and not is_revision and not is_allergy
        if not is_told and (has_value or kind not in ("limit", "value")) and pattern.search(folded):
            yield kind, number == 0
    if is_allergy:
        yield "preference", False
    if is_revision:
        yield "correction", False
    if not is_story and words.lifts.search(folded):
        yield "rule", False
