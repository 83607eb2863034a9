"""Evidence that a statement of a ledger replaces another: shared subjects, values of one type, and words that revise. Pure.

Subjects are weighed by their rarity in the ledger. Without evidence both statements stay.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from pagein.context.ledger import english
from pagein.context.ledger.clauses import NUMBER_WORDS, Amount, find_amounts
from pagein.context.ledger.items import LONG_CHARS, BindingStatement, LedgerItem, StatementKind
from pagein.context.ledger.topics import (
    AMOUNT_STEMS,
    CHANGE_STEMS,
    differ_both_ways,
    differs_in_topic,
    heads_differ,
    is_explicit,
    named_stems,
    whole_subject,
    words_of,
)  # fmt: skip
from pagein.context.ledger.values import (
    VALUE_CONCEPTS,
    find_values,
    is_same_type,
    is_specific,
    is_when,
    stem,
    subject_stems,
)

MIN_NEARNESS = 0.75
"""Nearness of two subjects (1: the same) from which a value of the same type replaces the older one unsaid."""

MIN_REVISED_NEARNESS = 0.2
"""The same where the newer statement says that it revises."""

MIN_SECOND_VALUE_NEARNESS = 0.35
"""The same where it is another value of the older statement that has the type."""

MIN_LIFTED_NEARNESS = 0.35
"""The same where the newer statement lifts a rule; the value counts with the subject."""

MIN_REWORDED_NEARNESS = 0.4
"""The same where the newer statement revises without a value of the same type, with which the value counts; and of two
clauses with amounts. For these .2 to .4 replace as much of 50 revisions by ten people, .5 one less."""

MIN_REVISING_LIKELIHOOD = 0.6
"""Likelihood from which a statement that names something else, too, may replace an older one."""

MAX_MORE_STEMS = 3
"""Stems that a statement may have beside those of one that it replaces unsaid."""

ORDERS = frozenset({"rule", "limit", "correction", "decision"})
"""Kinds of statements that demand or forbid."""

OWN_WAYS = frozenset(
    {"daypart", "seat", "diet", "tone", "length", "indent", "theme", "clock", "spelling", "unitsystem"}
)
"""Groups of options of which a person has one, whatever else the sentence is about."""

_LEAST = re.compile(
    r"(?i)\b(?:at least|minimum|min|no (?:less|fewer|earlier|sooner) than|not before|from|after|or more)\b"
)

_NUMBERED = re.compile(
    r"(?i)(?<!in )(?<!to )(?<!at )(?<!on )(?<!is )(?<!'s )(?<!use )\b(service|room|server|node|floor|flat|unit|team|group|gate|track|table|phase|step|part|chapter|class|case|bus|line|house|building|site|shop|shift|client|user|task|ticket|issue|volume|section|page|stage|round|zone|area|lane|slot|tank|pump|machine|sensor|channel|account|box|order|branch|host|job|worker|port) #?(\d+)\b"
)
"""A thing of which there are several, with its number, where it is no place to be at: "room 5's key", "for service 0"."""

_IS_SO = re.compile(r"(?i)\b(?:I|we)(?:(?:'ve| have)(?: got)?|'m at|'re at) (?!until|till|up to|to\b|at)")

_NAME = re.compile(r"(?<=[a-z,:;'] )[A-Z][a-z]+")

_FAMILIES = (
    {"rule", "limit", "correction"},
    {"decision", "correction", "rule", "value"},
    {"goal", "correction", "commitment"},
    {"preference", "correction", "rule", "decision"},
    {"value", "limit", "correction", "commitment"},
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Compares statements among the current items of a ledger; ``stem_counts`` are those of the stems of their subjects."""

    items: dict[tuple[int, int], LedgerItem]
    stem_counts: Mapping[str, int]

    def that_replaces(self, new: BindingStatement, old: BindingStatement) -> float:
        """Return the evidence that the new statement replaces the old one; 0 for none."""
        if _numbers_another(new, old) or (not new.old_value and heads_differ(new, old)):
            return 0.0
        nearness = self._nearness(new.subject, old.subject)
        is_value_change = has_changed(new, old) and is_same_type(new.value_type, old.value_type)
        if new.old_value and _mentions(old.text, new.old_value):
            # One word that is no name stands in many sentences: "not the total".
            is_named = " " in new.old_value or new.old_value[:1].isupper() or _mentions(old.value, new.old_value)
            is_meant = nearness > 0 or (is_value_change and not self.is_apart(new, old))
            is_meant = is_meant or (is_named and new.revises and self._is_about(old, new.old_value, new))
            is_place_taken = is_named and new.value_type == "name" and self._is_place_of(old, new.old_value)
            return 3 + nearness if is_meant or is_place_taken else 0.0
        if (english.PAST.search(new.text) or len(new.text) > LONG_CHARS) and not is_explicit(new.text):
            return 0.0  # it tells what happened
        return max(self._of_whole(new, old, nearness, is_value_change=is_value_change), self._of_amounts(new, old))

    def _of_whole(
        self, new: BindingStatement, old: BindingStatement, nearness: float, *, is_value_change: bool
    ) -> float:
        """Return the evidence of the subjects and the values of two statements."""
        if new.lifts and old.kind not in ("value", "goal", "commitment") and not old.lifts and not is_value_change:
            return self._of_lifting(new, old)
        if old.lifts and new.is_prohibition:
            return self._of_lifting(new, old)
        if new.revises:
            return self._of_revising(new, old, nearness, is_value_change=is_value_change)
        if nearness == 0 or _forbids(new) or _forbids(old) or not _is_same_direction(new, old):
            return 0.0
        if differ_both_ways(new, old) or (old.value and is_value_change and _mentions(new.text, old.value)):
            return 0.0  # it says both
        is_part = new.value_type.startswith("option:") and not own_stems(old) <= own_stems(new)
        is_near = (nearness >= MIN_NEARNESS and not is_part) or _covers(new, old)
        return 1 + nearness if is_near and (is_value_change or _has_other_value(new, old)) else 0.0

    def _of_amounts(self, new: BindingStatement, old: BindingStatement) -> float:
        """Return the evidence that a clause of each sets the same amount, and another one."""
        if _forbids(new) != _forbids(old) or not _is_same_direction(new, old):
            return 0.0
        pairs = [pair for pair in product(find_amounts(new.text), find_amounts(old.text)) if _resets(*pair)]
        if not new.revises:
            pairs = [(one, other) for one, other in pairs if one.stems <= other.stems or other.stems <= one.stems]
        nearness = max((self._nearness(one.stems, other.stems) for one, other in pairs), default=0.0)
        least = MIN_REWORDED_NEARNESS if new.revises else MIN_NEARNESS
        return 1 + nearness if nearness >= least else 0.0

    def _of_lifting(self, new: BindingStatement, old: BindingStatement) -> float:
        if self.is_apart(new, old) or {*new.subject}.isdisjoint(old.subject):
            return 0.0
        if new.lifts and not named_stems(new) <= {*whole_subject(old), *CHANGE_STEMS}:
            return 0.0  # it lifts something narrower, or something else
        nearness = self._nearness({*whole_subject(new)} - CHANGE_STEMS, whole_subject(old))
        return 1.5 + nearness if nearness >= MIN_LIFTED_NEARNESS else 0.0

    def _of_revising(
        self, new: BindingStatement, old: BindingStatement, nearness: float, *, is_value_change: bool
    ) -> float:
        """Return the evidence for a statement that says it revises something."""
        if self.is_apart(new, old) or (
            nearness < MIN_NEARNESS and (new.value_type == "name" or new.old_value[:1].isdigit()) and new.old_value
        ):
            return 0.0
        says_so, forbids = is_explicit(new.text), _forbids(old) and not new.is_prohibition
        if differ_both_ways(new, old):
            is_near = nearness >= MIN_SECOND_VALUE_NEARNESS or self._shares_name(new, old)
            if not says_so or not is_near or new.likelihood < MIN_REVISING_LIKELIHOOD:
                return 0.0
        if reports(new, old):
            return 0.0
        is_when_change = is_when(new.value_type) and is_when(old.value_type) and has_changed(new, old)
        if (is_value_change or is_when_change) and not forbids:
            # A part of the day replaces a part of the day sooner than a date.
            is_mixed = not is_value_change and "option:daypart" in (new.value_type, old.value_type)
            is_near = nearness >= MIN_REVISED_NEARNESS or self._shares_name(new, old)
            return (1 if is_mixed else 1.5) + nearness if is_near else 0.0
        subject = {*new.subject} - CHANGE_STEMS
        nearness = self._nearness(subject, (part for part in old.subject if not part.isdigit()))
        if nearness >= MIN_SECOND_VALUE_NEARNESS and not forbids and _has_second_value(new, old):
            return 1 + nearness
        if (new.value_type and not has_changed(new, old)) or not _is_same_family(new.kind, old.kind):
            return 0.0
        if not says_so or not named_stems(new) <= {*whole_subject(old), *CHANGE_STEMS}:
            return 0.0
        nearness = self._nearness({*whole_subject(new)} - CHANGE_STEMS, whole_subject(old))
        return nearness if nearness >= MIN_REWORDED_NEARNESS else 0.0

    def _is_about(self, old: BindingStatement, name: str, new: BindingStatement) -> bool:
        """True unless both are about something of their own, and the name is no part of it."""
        return not self.is_apart(new, old) or not own_stems(old).isdisjoint(subject_stems(name, ()))

    def _shares_name(self, new: BindingStatement, old: BindingStatement) -> bool:
        """True for two that name somebody whom no other item names."""
        shared = {*new.subject} & {*old.subject} & {part.lower() for part in _NAME.findall(f"{new.text} {old.text}")}
        return any(self.stem_counts.get(part, 0) == 1 for part in shared)

    def _is_place_of(self, old: BindingStatement, name: str) -> bool:
        """True for what somebody does or may do, where no other item names them: "Only Jean signs cheques"."""
        if old.is_prohibition or old.value_type not in ("", "name", "text"):
            return False
        return all(item.statement is old or not _mentions(item.statement.text, name) for item in self.items.values())

    def is_apart(self, new: BindingStatement, old: BindingStatement) -> bool:
        """True where each is about something of its own, or the new one about a part of what others are about, too."""
        if differs_in_topic(new, old):
            return True
        own, others = own_stems(new), own_stems(old)
        if not own or own & {*old.subject} or others & {*new.subject}:
            return False
        concepts = {part for part in {*new.subject} & {*old.subject} if part[0] == "="} - VALUE_CONCEPTS
        concepts.difference_update(subject_stems(new.value_type[5:], ()))
        return not concepts and (bool(others) or all(self.stem_counts.get(part, 0) > 1 for part in old.subject))

    def contradicts_any(self, new: BindingStatement) -> bool:
        """True where a current item contradicts the new statement."""
        return any(self.contradicts(new, old.statement) for old in self.items.values())

    def contradicts(self, new: BindingStatement, old: BindingStatement) -> bool:
        """True for two orders about the same thing of which one forbids what the other demands, or with other values."""
        if {new.kind, old.kind} & {"goal", "commitment"}:
            return False
        is_other_value = is_same_type(new.value_type, old.value_type) and new.value.lower() != old.value.lower()
        if new.is_prohibition != old.is_prohibition and {new.kind, old.kind} <= ORDERS:
            return self._nearness(whole_subject(new), whole_subject(old)) >= MIN_REWORDED_NEARNESS
        if new.is_prohibition or not is_other_value or not is_specific(new.value_type) or self.is_apart(new, old):
            return False
        nearness = self._nearness(new.subject, old.subject)
        return nearness >= MIN_REWORDED_NEARNESS or (nearness > 0 and new.value_type[7:] in OWN_WAYS)

    def _nearness(self, one: Iterable[str], other: Iterable[str]) -> float:
        """Return the cosine of two subjects, their stems weighed by rarity in the ledger."""
        left, right = set(one), set(other)
        shared = self._weigh(left & right)
        return shared / math.sqrt(self._weigh(left) * self._weigh(right)) if shared else 0.0

    def _weigh(self, stems: Iterable[str]) -> float:
        total = len(self.items) + 2
        return math.fsum(math.log(1 + total / (1 + self.stem_counts.get(stem, 0))) for stem in stems)


def has_changed(new: BindingStatement, old: BindingStatement) -> bool:
    """True unless both have the same value: "Friday" is "Fridays"."""
    return new.value.lower().removesuffix("s") != old.value.lower().removesuffix("s")


def reports(new: BindingStatement, old: BindingStatement) -> bool:
    """True for an amount that is so, which changes no limit: "I have 22 pages now"."""
    return old.kind == "limit" and new.kind == "value" and _IS_SO.search(new.text) is not None


def _resets(new: Amount, old: Amount) -> bool:
    """True for two amounts of one kind whose clauses share a word of their own."""
    shared = new.stems & old.stems
    return new.type == old.type and new.value != old.value and any(part[0] not in "=@" for part in shared)


def _mentions(text: str, value: str) -> bool:
    """True where every word of a value stands in the text, by its beginning."""
    words = {NUMBER_WORDS.get(word, word) for word in words_of(text)}
    sought = [NUMBER_WORDS.get(word, word) for word in words_of(value) if len(word) > 1 or word.isdigit()]
    return bool(sought) and all(any(_is_near(word, other) for other in words) for word in sought)


def _has_second_value(new: BindingStatement, old: BindingStatement) -> bool:
    """True where another value of the old statement has the type of the new one: "60 customers by June", "now 40"."""
    return new.value_type not in ("", "name", "text") and any(
        is_same_type(new.value_type, value.type) and value.text.lower() != new.value.lower()
        for value in find_values(old.text)
    )


def _numbers_another(new: BindingStatement, old: BindingStatement) -> bool:
    """True where both number what they are about, and differently: "port 8000 for service 0", "8001 for service 1"."""
    one, other = _numbered(new), _numbered(old)
    return any(one[word] != other[word] for word in one.keys() & other.keys())


def _numbered(statement: BindingStatement) -> dict[str, str]:
    """Return the numbers behind a word, beside the value that is set, by that word."""
    value, numbered = re.findall(r"\d+", statement.value), _NUMBERED.findall(statement.text)
    return {word.lower(): number for word, number in numbered if number not in value}


def _is_near(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) >= 4 and (one.startswith(other) or other.startswith(one)))


def _is_same_direction(new: BindingStatement, old: BindingStatement) -> bool:
    """True unless one is a lower and the other an upper bound."""
    if new.revises or new.kind != "limit" or old.kind != "limit":
        return True
    return bool(_LEAST.search(new.text)) == bool(_LEAST.search(old.text))


def own_stems(statement: BindingStatement) -> set[str]:
    """Return the stems that are no concepts, which many statements share, and no numbers."""
    stems = {part for part in statement.subject if part[0] not in "=@0123456789"}
    unit = statement.value_type[5:]
    return stems - CHANGE_STEMS - AMOUNT_STEMS - {unit, stem(unit)}


def _forbids(statement: BindingStatement) -> bool:
    """True for a prohibition that is no limit: another value of it is another prohibition."""
    return statement.is_prohibition and statement.kind != "limit"


def _covers(new: BindingStatement, old: BindingStatement) -> bool:
    """True where the new statement is about all that the old one is about, which is more than a concept such as a budget."""
    stems = {part for part in old.subject if not part.isdigit()}
    if not stems.issubset(new.subject) or not own_stems(old):
        return False
    days = sum(is_when(value.type) for value in find_values(new.text)) - is_when(new.value_type)
    return len(new.subject) - len(stems) <= MAX_MORE_STEMS and (days <= 0 or new.value_type == "date")


def _has_other_value(new: BindingStatement, old: BindingStatement) -> bool:
    """True where both have a number of the same type besides the value that they share: "60 clinics by June"."""
    if not new.value or new.value.lower() != old.value.lower():
        return False
    pairs = product((value for value in find_values(new.text) if value.type != "name"), find_values(old.text))
    return any(is_same_type(one.type, other.type) and one.text != other.text for one, other in pairs)


def _is_same_family(one: StatementKind, other: StatementKind) -> bool:
    return any(one in family and other in family for family in _FAMILIES)
