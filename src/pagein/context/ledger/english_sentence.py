"""An English sentence: of which kind it is, and how likely it is to bind. Pure."""

from __future__ import annotations

import re
from functools import cached_property

from pagein.context.ledger import english
from pagein.context.ledger.binding_words import has_english
from pagein.context.ledger.chosen_values import find_free_value
from pagein.context.ledger.items import LONG_CHARS, StatementKind
from pagein.context.ledger.likelihood import MIN_HARM_LIKELIHOOD, harm_likelihood, statement_likelihood
from pagein.context.ledger.shortening import drop_opening
from pagein.context.ledger.values import TypedValue, find_option, is_typed

STORY_CHARS = 110
"""Characters up to which a number alone makes a sentence a current value."""

KEY_VALUE_MAX_WORDS, SETTING_MAX_WORDS = 14, 6
"""Words of a sentence such as "standup: 9:15", and of the value in "my topic is coral reefs"."""

REVISION_MAX_CHARS = 200
"""Characters up to which a sentence that no pattern knows may change something."""

_COPULAS = ("is", "are", "will be", "is now", ":", "=")


class EnglishSentence:
    """A sentence with blanks in the place of quotations and idioms, and its values."""

    def __init__(self, masked: str, values: tuple[TypedValue, ...]) -> None:
        self.masked, self.values = masked, values
        self.has_typed = any(map(is_typed, values))

    @cached_property
    def has_value(self) -> bool:
        """It has a value, or an option such as "spaces"."""
        return bool(self.values) or find_option(self.masked) is not None

    @cached_property
    def is_past(self) -> bool:
        """It names a time of the past."""
        return bool(english.PAST.search(self.masked))

    @cached_property
    def may_revise(self) -> bool:
        """It has words that say that something changes."""
        return bool(english.REVISES.search(self.masked))

    @cached_property
    def is_story(self) -> bool:
        """It narrates, or says what somebody said who has no say, or who spoke to others."""
        if english.NARRATES.search(self.masked) or english.ASSESSES.search(self.masked):
            return True
        report = english.REPORTS.search(self.masked)
        return report is not None and bool(report["to_others"] or not english.AUTHORITY.search(self.masked))

    def kind(self) -> StatementKind | None:
        """Return the kind of the sentence by its patterns; None where it binds nobody."""
        starts_order = english.STARTS_ORDER.match(self.masked)
        is_plot = english.TELLS_A_PLOT.search(self.masked) and not starts_order
        is_story, is_hedged = self.is_story or bool(is_plot), bool(english.HEDGE.search(self.masked))
        if not is_story and (not is_hedged or english.OF_ANSWERS.match(self.masked)):
            kind = None if self.is_past and not starts_order else self._order_kind()
            if kind is None and (not self.is_past or self.may_revise):
                kind = self._plan_kind()
            if kind is not None:
                return kind
        is_corrected = bool(english.STRONG_CORRECTION.search(self.masked))
        if is_hedged or (is_story and not is_corrected):
            return None
        if self._sets_value():
            return "value"
        return "correction" if is_corrected and (self.has_value or find_free_value(self.masked)) else None

    def _order_kind(self) -> StatementKind | None:
        """Return the kind of a sentence that says how things are to be: a rule, a limit, a preference or a goal."""
        if self._has_order(english.FORBID):
            return "limit" if self._is_limit() else "rule"
        if english.PREFER.search(self.masked):
            return "preference"
        if self._is_limit():
            return "limit"
        aim = english.AIM.search(self.masked)
        if aim is not None and len(self.masked) <= LONG_CHARS:
            is_dated = any(is_typed(value) and value.start >= aim.end() for value in self.values)
            if is_dated or english.PLAIN_AIM.search(self.masked) or english.BY_WHEN.search(self.masked, aim.end()):
                return "goal"
        is_gated = english.OF_ANSWERS.match(self.masked) or english.GATED.search(self.masked)
        return "rule" if is_gated or self._has_order(english.DEMAND) else None

    def _has_order(self, pattern: re.Pattern[str]) -> bool:
        """True where the pattern matches as an order, not as a part of a narration such as "I ran and always won"."""
        for match in pattern.finditer(self.masked):
            goes_on = match.start() and english.JOINT.match(match[0])
            if not goes_on or not english.SUBJECT.search(self.masked[: match.start() + 1]):
                return True
        return False

    def _is_limit(self) -> bool:
        return bool(english.AT_BOUND.search(self.masked)) and (
            len(self.masked) < 50
            or bool(english.LIMIT_FRAME.search(self.masked))
            or bool(english.STRICT_BOUND.search(self.masked) and not english.PAST_VERB.search(self.masked))
        )

    def _plan_kind(self) -> StatementKind | None:
        """Return the kind of a sentence that says what will be done: a decision or a commitment."""
        if len(self.masked) > LONG_CHARS and not self.may_revise:
            return None
        if english.DECIDE.search(self.masked) or (english.WEAK_DECISION.search(self.masked) and self.has_value):
            return "decision"
        is_firm = self.has_typed or bool(english.HARD_PROMISE.search(self.masked))
        return "commitment" if is_firm and english.PROMISE.search(self.masked) else None

    def _sets_value(self) -> bool:
        """True for a sentence that sets a current value."""
        may_hold = not self.is_past or self.may_revise
        if may_hold and self._sets_owned_value():
            return True
        is_short = len(self.masked.split()) <= KEY_VALUE_MAX_WORDS
        if english.KEY_VALUE.match(self.masked) and self.has_value and is_short:
            return True
        may_be_set = self.has_typed and not self.is_past and len(self.masked) <= STORY_CHARS
        if may_be_set and not english.PAST_VERB.search(self.masked) and english.PRESENT.search(self.masked):
            return True
        fact = english.SET_FACT.search(self.masked) if may_hold else None
        return fact is not None and (self.has_value or bool(english.NAMES_SPEAKER.match(fact[0])))

    def _sets_owned_value(self) -> bool:
        """True for "my X is Y" and its kin, where X is a setting or Y a typed value."""
        owned = english.OWNED.search(self.masked)
        if owned is None or english.PASSING.match(rest := owned["rest"].strip()):
            return False
        head = re.split(r" (?:for|of|with|at|in|on|from|to|by) ", owned["what"])[0]
        has_option = find_option(rest) is not None
        at_value = has_option or any(value.start >= owned.start("rest") - 1 for value in self.values)
        is_own = bool(english.OWN.match(owned[0]) or english.TERSE_SETTING.search(head))
        is_set = self.masked[owned.end("what") : owned.start("rest")].strip().lower() in _COPULAS
        is_terse = is_own and is_set and len(rest.split()) <= SETTING_MAX_WORDS
        if english.SETTING.search(head) and (at_value or is_terse):
            return True
        return at_value and (self.has_typed or has_option or is_terse)

    def revises_unsaid(self) -> bool:
        """True for a sentence that counts where it changes something in the ledger, and only there."""
        if self.is_past or len(self.masked) > REVISION_MAX_CHARS:
            return False
        return bool(english.LIFTS.search(self.masked)) or (self.may_revise and self.has_value)

    def likelihood(self) -> float:
        """Return the likelihood of a sentence that no pattern knows; 0 for quotations, headings, questions, long ones and other languages.

        A sentence that names a time of the past ("last winter") counts by its clauses that tell of the present.
        """
        masked = self.masked
        is_heading = masked.endswith(":") or " " not in masked
        is_foreign = not masked.isascii() and not has_english(masked)
        is_long = len(masked) > LONG_CHARS and not self.values
        if is_heading or is_foreign or is_long or "\x00" in masked or english.ASKS_ONCE.match(masked) or self.is_story:
            return 0.0
        if not self.is_past or english.OBLIGES.search(masked):
            return clause_likelihood(masked)
        present = (clause for clause in english.CLAUSE.split(masked) if not english.PAST.search(clause))
        likelihoods = (statement_likelihood(clause) for clause in present if not english.PAST_VERB.search(clause))
        return max(likelihoods, default=0)


def clause_likelihood(masked: str) -> float:
    """Return the likelihood of the sentence, or of its core where that is likelier.

    The core is what it concludes ("I had a cold, so come at 9") or a correction before its reason ("Make it 9, I had a cold").
    """
    reason = english.CONCLUDES.search(masked)
    head = masked.partition(", ")[0]
    cores = [masked[reason.end() :].strip()] if reason else [head] if english.STRONG_CORRECTION.search(head) else []
    return max(map(statement_likelihood, filter(None, (masked, *cores))))


def does_harm(masked: str, *, is_limit: bool = False) -> bool:
    """True for an order whose breach does harm: by its words, or by what a model of them finds likely."""
    if english.HARD.search(masked) or english.GATED.search(masked):
        return True
    is_style = english.STYLE.search(masked) and not english.HARM.search(masked)
    if english.FORBID.search(masked):
        return not is_style
    if (is_limit or english.ASKS.search(masked)) and english.HARM.search(masked):
        return True
    return not is_style and harm_likelihood(masked) >= MIN_HARM_LIKELIHOOD


def mask_idioms(masked: str) -> str:
    """Blank the phrases of small talk that have a binding word."""
    return english.IDIOMS.sub(lambda span: "\x00" * len(span[0]), masked)


def forbids(masked: str) -> bool:
    """True for a prohibition, also behind an opening such as "quick note"."""
    return any(map(english.FORBID.search, (masked, drop_opening(masked))))
