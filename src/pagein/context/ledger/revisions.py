"""Revisions: which statements of a ledger a newer one replaces. Pure.

``RevisionFinder.find_replaced`` tries three ways: the newer statement says the same, there is evidence that both are about the same
thing (``evidence``), or it refers to what was just said. Else both stay. ``inherit`` gives it what it only hints at.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

from pagein.context.ledger import english
from pagein.context.ledger.evidence import MIN_REVISING_LIKELIHOOD, OWN_WAYS, Evidence, has_changed, own_stems, reports
from pagein.context.ledger.items import BindingStatement, LedgerItem
from pagein.context.ledger.shortening import shorten
from pagein.context.ledger.topics import CHANGE_STEMS, MAX_REMEMBERED_WORDS, topic_stems, words_of
from pagein.context.ledger.values import VALUE_CONCEPTS, is_same_type, is_specific, subject_stems

SAME_EVIDENCE = 2.25
"""Evidence from which a revision replaces more than one statement: both say the same of a subject that is nearly the same."""

OWN_EVIDENCE = 0.5
"""Evidence that a shared word beside concepts adds among several: "the plumber's visit" is no visit to the doctor."""

SHORT_CHARS = 80
"""Characters up to which a revision may refer to what was said shortly before."""

MAX_STEMS = 24
"""Stems of a subject that are kept."""

DECISION_STEMS = CHANGE_STEMS | {"=approve", "settl", "final"}
"""Stems of a decision that does not say what it is about, such as "It's settled: Vienna"."""

JUST_SAID_STEPS = 2
"""Steps back to which "no, at the station" may refer."""

REFERRED_ITEMS = 12
"""Items back to which "make it 40" may refer."""

_OF_WHAT = re.compile(r"(?i)\b(?:of|per|for|in|at|on) (?:the |a |my |our |each |every )?([\w-]+)")

REVERSES = re.compile(r"(?i)\b(?:other way (?:a?round)|the reverse|vice versa|swap (?:them|those|the two|both))\b")
"""Says of what was just said that it is the other way round."""

_SAYS_NO = re.compile(
    r"(?i)(?:no|nope|oops|sorry|wait|actually|rather|correction|on second thoughts?|I mean|I meant|scratch that|change of plans?)\b"
)


@dataclass(frozen=True, slots=True)
class RevisionFinder:
    """Finds what a statement revises among the current items of a ledger."""

    evidence: Evidence

    def find_replaced(self, item: LedgerItem) -> list[LedgerItem]:
        """Return the items that a new one replaces: every restatement, and the one with the most evidence."""
        restated = [old for old in self.evidence.items.values() if is_restatement(item.statement, old.statement)]
        if restated:
            return restated
        # What one text says at once stands together, unless it says that it corrects itself.
        olds = (
            old for old in self.evidence.items.values() if old.position != item.position or _corrects(item.statement)
        )
        scores = [(self.evidence.that_replaces(item.statement, old.statement), old.key) for old in olds]
        best = max(scores, key=lambda scored: self._rank(item, *scored), default=(0.0, (0, 0)))
        if best[0] > 0:
            return [self.evidence.items[key] for score, key in scores if key == best[1] or score >= SAME_EVIDENCE]
        referred = self._find_referred(item.statement) or self._find_just_said(item)
        return [] if referred is None else [referred]

    def _rank(self, item: LedgerItem, score: float, key: tuple[int, int]) -> tuple[float, tuple[int, int]]:
        """Return evidence and age for the choice of one: what shares more than a concept comes first."""
        is_shared = score > 0 and not own_stems(item.statement).isdisjoint(self.evidence.items[key].statement.subject)
        return score + OWN_EVIDENCE * is_shared, key

    def _find_referred(self, new: BindingStatement) -> LedgerItem | None:
        """Return the item that a revision without a subject of its own refers to, such as "make it 40".

        That is the only item with a value of a specific type, else the newest one with such a value where the
        revision is short.
        """
        if not new.revises or not new.value_type or new.old_value:
            return None
        if not _corrects(new) and (
            len(new.text) > SHORT_CHARS or new.likelihood < MIN_REVISING_LIKELIHOOD or english.PAST.search(new.text)
        ):
            return None
        olds = [
            old
            for old in reversed(self.evidence.items.values())
            if is_same_type(new.value_type, old.statement.value_type)
        ]
        olds = [old for old in olds if has_changed(new, old.statement) and not reports(new, old.statement)]
        exact = [old for old in olds if old.statement.value_type == new.value_type]
        if is_specific(new.value_type) and len(exact) == 1:
            is_loose = new.value_type[7:] in OWN_WAYS or new.value_type.startswith("unit:")
            is_named = not is_loose or topic_stems(new) or _says_of_what(new)
            is_apart = is_named and self.evidence.is_apart(new, exact[0].statement)
            return None if is_apart else exact[0]
        subjectless = {*VALUE_CONCEPTS, *CHANGE_STEMS, f"@{new.value_type[7:]}", new.value_type[5:]}
        if len(new.text) > SHORT_CHARS or not subjectless.issuperset(new.subject):
            return None
        olds = exact or olds
        is_decision = bool(CHANGE_STEMS.intersection(new.subject))
        if is_decision:
            # "Change of plans: Lisbon instead" changes what was decided, first what names no subject either.
            olds = [old for old in olds if old.statement.kind in ("decision", "goal", "commitment")]
            journeys = [old for old in olds if f" to {old.statement.value}" in old.statement.text]
            olds = journeys if "destination" in new.subject and journeys else olds
            unnamed = [old for old in olds if DECISION_STEMS.issuperset(old.statement.subject)]
            bare = [old for old in olds if not own_stems(old.statement)]
            bare = [old for old in bare if VALUE_CONCEPTS.isdisjoint(old.statement.subject)]
            olds = unnamed or bare or journeys or olds
        else:
            olds = [old for old in olds if _may_be_referred(old.statement)]
        recent = {item.key for item in [*self.evidence.items.values()][-REFERRED_ITEMS:]}
        if is_decision and len(olds) == 1:
            return olds[0]
        return next((old for old in olds if old.key in recent), None)

    def _find_just_said(self, new: LedgerItem) -> LedgerItem | None:
        """Return the statement right before a correction that says nothing but a name, "no, at the station", or a reversal."""
        words = new.statement
        recent = (
            old for old in reversed(self.evidence.items.values()) if new.position - old.position <= JUST_SAID_STEPS
        )
        if REVERSES.search(words.text) and len(words.text) <= SHORT_CHARS:
            return next(recent, None)
        if words.kind != "correction" or words.value_type not in ("name", "text") or len(words.text) > SHORT_CHARS:
            return None
        if words.old_value or own_stems(words):
            return None
        if not _SAYS_NO.match(words.text):
            return None
        olds = (old for old in recent if old.statement.value_type.partition(":")[0] in ("name", "text", "option"))
        return next((old for old in olds if not old.statement.is_prohibition), None)


def _corrects(statement: BindingStatement) -> bool:
    """True for a statement that says that it changes something said before."""
    patterns = (english.STRONG_CORRECTION, english.EXPLICIT, english.LIFTS)
    return bool(statement.old_value) or any(pattern.search(statement.text) for pattern in patterns)


def is_restatement(new: BindingStatement, old: BindingStatement) -> bool:
    """True where both say the same, whatever is beside the core of it."""
    return _core_words(new.text) == _core_words(old.text)


def inherit(new: BindingStatement, old: BindingStatement) -> BindingStatement:
    """Return the new statement with kind and subject of the one it replaces, which it may only hint at, and its likelihood."""
    new = replace(new, likelihood=max(new.likelihood, old.likelihood))
    if new.lifts:
        return new
    kind = old.kind if new.kind in ("correction", "value") else new.kind
    return replace(new, kind=kind, subject=tuple(dict.fromkeys((*new.subject, *old.subject)))[:MAX_STEMS])


def _says_of_what(statement: BindingStatement) -> bool:
    """True for a value of something that is named: "1 kilo of grain", "for the podcasts 45 minutes"."""
    named = subject_stems(" ".join(_OF_WHAT.findall(statement.text)), ())
    return not {*statement.subject}.isdisjoint(named)


def _may_be_referred(old: BindingStatement) -> bool:
    """True unless it is a prohibition, which needs more than a value to be replaced, or sets a name."""
    return old.value_type not in ("name", "text") and (not old.is_prohibition or old.kind == "limit")


@functools.lru_cache(maxsize=MAX_REMEMBERED_WORDS)
def _core_words(text: str) -> tuple[str, ...]:
    return words_of(shorten(text))
