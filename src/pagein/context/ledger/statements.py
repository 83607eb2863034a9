"""Recognition of binding statements in what a user, a system prompt or the assistant says, without a model.

A sentence binds the agent where it forbids, demands, limits, decides, aims, promises, corrects, prefers or sets a
current value. Questions, hypotheses, narration, quotations and pasted text bind nobody. English is read by the patterns
here, other languages by the table in ``binding_words``.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import Literal

from pagein.context.ledger import english, instructions
from pagein.context.ledger.binding_words import (
    ALLERGY,
    FOREIGN_KINDS,
    IDIOMS,
    blank_code,
    fold_letters,
    folds,
    foreign_patterns,
    foreign_subject,
    guess_language,
    has_english,
    holds_number,
    part_numbers,
    revises,
)
from pagein.context.ledger.chosen_values import choose_value, find_free_value, shift
from pagein.context.ledger.dictated import CLAUSE_CHARS, TOLD_CHARS, is_dictated
from pagein.context.ledger.likelihood import (
    MIN_HARM_LIKELIHOOD,
    MIN_LIKELIHOOD,
    harm_likelihood,
    is_known,
    statement_likelihood,
)
from pagein.context.ledger.own_words import OwnSentence, own_sentences
from pagein.context.ledger.shortening import drop_opening
from pagein.context.ledger.values import (
    TypedValue,
    find_option,
    find_values,
    is_specific,
    is_typed,
    is_when,
    subject_stems,
)
from pagein.events.secrets import holds_secret

StatementKind = Literal["rule", "limit", "decision", "goal", "commitment", "correction", "preference", "value"]
Speaker = Literal["user", "system", "assistant"]

STORY_CHARS = 110
"""Characters up to which a number alone makes a sentence a current value."""

LONG_CHARS = 160
"""Characters from which a value, a decision or a promise is taken for a part of a story."""

KEY_VALUE_MAX_WORDS, SETTING_MAX_WORDS = 14, 6
"""Words of a sentence such as "standup: 9:15", and of the value in "my topic is coral reefs"."""

MAX_GUESSES = 6
"""Statements of one text that no pattern knows; a text with more of them tells a story."""

REVISION_LIKELIHOOD = 0.25
"""Likelihood from which a sentence is taken that says that something changed, and has a value."""

DOUBTFUL_LIKELIHOOD, TOLD_LIKELIHOOD = 0.3, 0.7
"""Likelihood below which a sentence that a pattern knows is a guess. In folds 25 of those bind and 16 are small talk, above it 963 and 41.
Of what is told in speech, all but orders must have the other one."""

PATTERN_ODDS = 4
"""Odds that a sentence binds where a pattern knows it, against one of the same likelihood that none knows: 2 to 10 in folds."""

SMALL_TALK_LIKELIHOOD = 0.15
"""Likelihood below which a sentence that a pattern knows may be small talk: "Never give up!"."""

HARMLESS_LIKELIHOOD = 0.03
"""The same for a safety rule: in folds none of 280 that bind is below it."""

MAX_STATEMENTS = 120
"""Statements taken from one text."""

MAX_REMEMBERED = 2_048
"""Sentences of which the reading is remembered: many runs begin with the same system prompt."""


@dataclass(frozen=True, slots=True)
class BindingStatement:
    """A sentence that binds the agent: its kind, its words, and what it is about."""

    kind: StatementKind
    text: str
    """The sentence as it was said, with white space normalised."""
    is_safety: bool = False
    """A prohibition, a permission or a limit whose breach does harm."""
    subject: tuple[str, ...] = ()
    """The stems that say what it is about; ``=spend`` and ``@indent`` are concepts."""
    value: str = ""
    """The number, date, name or option it sets; empty without one."""
    value_type: str = ""
    revises: bool = False
    """It says that it changes something said before."""
    lifts: bool = False
    """It allows again what was forbidden, or ends what held."""
    old_value: str = ""
    """The value it says to be replaced, as in "not X but Y"; empty without one."""
    is_prohibition: bool = False
    is_weak: bool = False
    """It may be small talk: a fact with a number, an idea for the moment. It is worth less."""
    likelihood: float = 1.0
    """Less than 1 where no pattern knows the sentence, and its words alone make it likely that it binds."""


def find_statements(text: str, speaker: Speaker) -> tuple[BindingStatement, ...]:
    """Return the binding statements of a text in order; of the assistant, decisions and commitments alone.

    >>> [(item.kind, item.value) for item in find_statements("Hi! My budget is 1,200 EUR. Never book Ryanair?", "user")]
    [('value', '1,200 EUR')]
    """
    statements = []
    for sentence in own_sentences(text, is_written_for_agent=speaker == "system"):
        statement = _read_assistant(sentence) if speaker == "assistant" else _read_sentence(sentence)
        if statement is not None and sentence.is_standing:  # such a text changes nothing said before
            statement = replace(statement, revises=False, lifts=False, old_value="")
        if statement is not None and not holds_secret(sentence.text):
            statements.append(statement)
    if len(text) > CLAUSE_CHARS and is_dictated(text) and guess_language(text) == "English":
        statements = [one for one in statements if _counts_in_speech(one, is_long=len(text) > TOLD_CHARS)]
    return _without_surplus_guesses(_without_surplus(statements))


def _counts_in_speech(statement: BindingStatement, *, is_long: bool) -> bool:
    """True for a statement that counts among all that somebody tells: it begins as an order, sets a limit, or is short and likely."""
    said = english.spell_out(statement.text)
    likelihood = max(map(_clause_likelihood, (said, said.partition(" because ")[0]))) * (statement.likelihood == 1)
    if english.TOLD_ORDER.match(said) or (statement.kind == "limit" and english.TOLD_LIMIT.search(said)):
        return likelihood >= DOUBTFUL_LIKELIHOOD and not (is_long and len(said) > CLAUSE_CHARS)
    is_told = is_long or len(said) > STORY_CHARS or (statement.kind == "rule" and english.TELLS_OF.match(said))
    return likelihood >= TOLD_LIKELIHOOD and not is_told


def _without_surplus(statements: list[BindingStatement]) -> list[BindingStatement]:
    """Return the first ``MAX_STATEMENTS``, safety rules before others."""
    ranked = sorted(range(len(statements)), key=lambda number: (not statements[number].is_safety, number))
    return [statements[number] for number in sorted(ranked[:MAX_STATEMENTS])]


def _without_surplus_guesses(statements: list[BindingStatement]) -> tuple[BindingStatement, ...]:
    """Leave out the guesses of a text that are less likely than its best ones."""
    guesses = [number for number, statement in enumerate(statements) if statement.likelihood < 1]
    guesses.sort(key=lambda number: -statements[number].likelihood)
    surplus = frozenset(guesses[MAX_GUESSES:])
    return tuple(one for number, one in enumerate(statements) if number not in surplus)


@functools.lru_cache(maxsize=MAX_REMEMBERED)
def _read_sentence(sentence: OwnSentence) -> BindingStatement | None:
    """Read a sentence of the user or of the system prompt."""
    plain = sentence.masked.replace("\u2019", "'").replace("\u00b4", "'")
    whole = guess_language(plain if "\x00" not in plain else sentence.text)
    if whole != "English":
        spoken = blank_code(plain)
        language = guess_language(spoken)
        if language != "English":
            return _read_foreign(sentence, plain, spoken, language)
        if not has_english(spoken, least=2):
            return None  # all that is not English is quoted
    return _read_governed(sentence) if sentence.lead else _read_english(sentence, plain)


def _read_governed(sentence: OwnSentence) -> BindingStatement | None:
    """Read an item with the line that governs it, which says when it holds, or demands or forbids it."""
    lead, start = sentence.lead, len(sentence.lead)
    is_standing = sentence.is_standing or instructions.recurs(lead)
    item = replace(
        sentence, text=sentence.text[start:], masked=sentence.masked[start:], lead="", is_standing=is_standing
    )
    statement = _read_sentence(item)
    if instructions.forces(lead):
        values = tuple(find_values(item.masked))
        kind: StatementKind = "limit" if statement is not None and statement.kind == "limit" else "rule"
        statement = _statement(item, item.masked, kind, values)
        statement = replace(
            statement,
            is_safety=_does_harm(
                f"Do not {item.masked}" if instructions.negates(lead) else sentence.masked, is_limit=False
            ),
            is_prohibition=statement.is_prohibition or instructions.negates(lead),
            lifts=False,
        )
    if statement is None:
        return None
    subject = dict.fromkeys((*statement.subject, *subject_stems(lead, ())))
    return replace(statement, text=sentence.text, subject=tuple(subject))


def _read_english(sentence: OwnSentence, plain: str) -> BindingStatement | None:
    """Read an English sentence."""
    masked = IDIOMS.sub(lambda span: "\x00" * len(span[0]), english.part_clauses(english.spell_out(plain)))
    masked = english.TOLD_ME.sub(lambda aside: " " * len(aside[0]), masked)
    masked = english.TAG_QUESTION.sub(lambda tag: "." + " " * (len(tag[0]) - 1), masked)
    is_question = "?" in masked[-4:] or (masked[-1:].isalnum() and bool(english.QUESTION.match(masked)))
    if english.WISH.match(masked) and (english.LASTING if is_question else english.LASTS).search(masked):
        return _statement(sentence, masked, "preference", tuple(find_values(masked)))
    if is_question and not english.REQUEST.match(masked):
        return _read_wish(sentence, masked)
    # An order to do something once holds no more when it is done; until then the user's newest words are in view.
    is_task = english.TASK.match(masked) and not english.LASTS.search(masked)
    if (is_task and not sentence.is_standing) or (
        english.HYPOTHESIS.match(masked) and not english.REQUEST.match(masked)
    ):
        return None
    core = drop_opening(masked)
    core_values = tuple(find_values(core))  # a capital right behind "Please remember:" makes no name
    values = tuple(shift(value, len(masked) - len(core)) for value in core_values)
    kind = _kind_of(masked, values)
    if kind is None and core != masked:
        kind = _kind_of(core, core_values)
    if sentence.is_standing:
        return _read_standing(sentence, masked, kind, values)
    if kind is not None:
        is_sure = kind == "rule" and english.OF_ANSWERS.match(masked)
        return _doubt(_statement(sentence, masked, kind, values), 1.0 if is_sure else _clause_likelihood(masked))
    likelihood = _likelihood(masked, values)
    if likelihood >= REVISION_LIKELIHOOD and _may_revise(masked, values) and is_known(masked):
        return replace(_statement(sentence, masked, "correction", values), revises=True, likelihood=likelihood)
    if likelihood < MIN_LIKELIHOOD or not is_known(masked):
        return _read_wish(sentence, masked) if is_question else None
    does_harm = _does_harm(masked, is_limit=False)
    guess = _statement(sentence, masked, "rule" if does_harm else "value", values)
    return replace(guess, is_safety=does_harm and not guess.lifts, is_weak=not does_harm, likelihood=likelihood)


def _read_standing(
    sentence: OwnSentence, masked: str, kind: StatementKind | None, values: tuple[TypedValue, ...]
) -> BindingStatement | None:
    """Read a sentence among instructions: each order is a rule, and what describes binds nobody."""
    if kind in (None, "value", "correction") and english.ORDERS.match(drop_opening(masked)):
        kind = "rule"
    if kind is None and _likelihood(masked, values) >= MIN_LIKELIHOOD and _does_harm(masked, is_limit=False):
        kind = "rule"
    is_set = find_option(masked) is not None or any(re.search(r"\d", value.text) for value in values)
    return None if kind is None or (kind == "value" and not is_set) else _statement(sentence, masked, kind, values)


def _read_wish(sentence: OwnSentence, masked: str) -> BindingStatement | None:
    """Read a wish that is put as a question and holds from now on: "Could you name files client first, then year?"."""
    lead = english.POLITE.match(masked)
    if lead is None or not english.STANDS.search(masked):
        return None
    likelihood = statement_likelihood(f"{masked[lead.end() :].rstrip('? ')}.")
    wish = _statement(sentence, masked, "preference", tuple(find_values(masked)))
    return replace(wish, likelihood=likelihood) if likelihood >= MIN_LIKELIHOOD else None


def _doubt(statement: BindingStatement, likelihood: float) -> BindingStatement:
    """Return the statement as a guess where its words are more those of small talk; such a guess revises nothing."""
    if likelihood >= (HARMLESS_LIKELIHOOD if statement.is_safety else DOUBTFUL_LIKELIHOOD):
        return statement
    odds = PATTERN_ODDS * likelihood / (1 - likelihood)
    doubted = replace(statement, is_safety=False, likelihood=odds / (1 + odds))
    return replace(doubted, is_weak=True, revises=False) if likelihood < SMALL_TALK_LIKELIHOOD else doubted


def _likelihood(masked: str, values: tuple[TypedValue, ...]) -> float:
    """Return the likelihood of a sentence that no pattern knows; 0 for quotations, headings, questions, long ones and other languages.

    A sentence that names a time of the past ("last winter") counts by its clauses that tell of the present.
    """
    is_heading = masked.endswith(":") or " " not in masked
    is_foreign = not masked.isascii() and not has_english(masked)
    is_long = len(masked) > LONG_CHARS and not values
    if is_heading or is_foreign or is_long or "\x00" in masked or english.ASKS_ONCE.match(masked) or _is_story(masked):
        return 0.0
    if not english.PAST.search(masked) or english.OBLIGES.search(masked):
        return _clause_likelihood(masked)
    present = (clause for clause in english.CLAUSE.split(masked) if not english.PAST.search(clause))
    return max((statement_likelihood(clause) for clause in present if not english.PAST_VERB.search(clause)), default=0)


def _clause_likelihood(masked: str) -> float:
    """Return the likelihood of the sentence, or of its core where that is likelier.

    The core is what it concludes ("I had a cold, so come at 9") or a correction before its reason ("Make it 9, I had a cold").
    """
    reason = english.CONCLUDES.search(masked)
    head = masked.partition(", ")[0]
    cores = [masked[reason.end() :].strip()] if reason else [head] if english.STRONG_CORRECTION.search(head) else []
    return max(map(statement_likelihood, filter(None, (masked, *cores))))


def _read_assistant(sentence: OwnSentence) -> BindingStatement | None:
    """Read a sentence of the assistant: a decision or a commitment, no next step."""
    masked = IDIOMS.sub(lambda span: "\x00" * len(span[0]), sentence.masked.replace("\u2019", "'"))
    if "?" in masked[-4:] or english.HYPOTHESIS.match(masked):
        return None
    if any(pattern.search(masked) for pattern in (english.STEP_NOW, english.PAST, english.HEDGE)):
        return None
    is_pledge = english.PLEDGE_VERB.search(masked) or english.AGENT_PROMISES.search(masked)
    kind: StatementKind | None = "commitment" if is_pledge else None
    if english.AGENT_DECIDES.search(masked):
        kind = "decision"
    return None if kind is None else _statement(sentence, masked, kind, tuple(find_values(masked)))


def _kind_of(masked: str, values: tuple[TypedValue, ...]) -> StatementKind | None:
    """Return the kind of an English sentence, None where it binds nobody."""
    is_plot = english.TELLS_A_PLOT.search(masked) and not english.STARTS_ORDER.match(masked)
    is_story = _is_story(masked) or bool(is_plot)
    is_past, is_hedged = bool(english.PAST.search(masked)), bool(english.HEDGE.search(masked))
    if not is_story and (not is_hedged or english.OF_ANSWERS.match(masked)):
        kind = None if is_past and not english.STARTS_ORDER.match(masked) else _order_kind(masked, values)
        if kind is None and (not is_past or english.REVISES.search(masked)):
            kind = _plan_kind(masked, values)
        if kind is not None:
            return kind
    is_corrected = bool(english.STRONG_CORRECTION.search(masked))
    if is_hedged or (is_story and not is_corrected):
        return None
    if _is_value(masked, values, is_past=is_past):
        return "value"
    return "correction" if is_corrected and (_has_value(masked, values) or find_free_value(masked)) else None


def _is_story(masked: str) -> bool:
    """True for a narration, and for what somebody said who has no say, or who spoke to others."""
    if english.NARRATES.search(masked) or english.ASSESSES.search(masked):
        return True
    report = english.REPORTS.search(masked)
    return report is not None and bool(report["to_others"] or not english.AUTHORITY.search(masked))


def _order_kind(masked: str, values: tuple[TypedValue, ...]) -> StatementKind | None:
    """Return the kind of a sentence that says how things are to be: a rule, a limit, a preference or a goal."""
    if _find_order(english.FORBID, masked):
        return "limit" if _is_limit(masked) else "rule"
    if english.PREFER.search(masked):
        return "preference"
    if _is_limit(masked):
        return "limit"
    aim = english.AIM.search(masked)
    if aim is not None and len(masked) <= LONG_CHARS:
        is_dated = any(is_typed(value) and value.start >= aim.end() for value in values)
        if is_dated or english.PLAIN_AIM.search(masked) or english.BY_WHEN.search(masked, aim.end()):
            return "goal"
    is_rule = english.OF_ANSWERS.match(masked) or english.GATED.search(masked) or _find_order(english.DEMAND, masked)
    return "rule" if is_rule else None


def _plan_kind(masked: str, values: tuple[TypedValue, ...]) -> StatementKind | None:
    """Return the kind of a sentence that says what will be done: a decision or a commitment."""
    if len(masked) > LONG_CHARS and not english.REVISES.search(masked):
        return None
    if english.DECIDE.search(masked) or (english.WEAK_DECISION.search(masked) and _has_value(masked, values)):
        return "decision"
    is_firm = any(map(is_typed, values)) or bool(english.HARD_PROMISE.search(masked))
    return "commitment" if is_firm and english.PROMISE.search(masked) else None


def _has_value(masked: str, values: tuple[TypedValue, ...]) -> bool:
    return bool(values) or find_option(masked) is not None


def _may_revise(masked: str, values: tuple[TypedValue, ...]) -> bool:
    """True for a sentence that counts where it changes something in the ledger, and only there."""
    if english.PAST.search(masked) or len(masked) > 200:
        return False
    if english.LIFTS.search(masked):
        return True
    return bool(english.REVISES.search(masked)) and _has_value(masked, values)


def _find_order(pattern: re.Pattern[str], masked: str) -> bool:
    """True where the pattern matches as an order, not as a part of a narration such as "I ran and always won"."""
    return any(
        not (english.JOINT.match(match[0]) and match.start() and english.SUBJECT.search(masked[: match.start() + 1]))
        for match in pattern.finditer(masked)
    )


def _is_limit(masked: str) -> bool:
    return bool(english.AT_BOUND.search(masked)) and (
        len(masked) < 50
        or bool(english.LIMIT_FRAME.search(masked))
        or bool(english.STRICT_BOUND.search(masked) and not english.PAST_VERB.search(masked))
    )


def _is_value(masked: str, values: tuple[TypedValue, ...], *, is_past: bool) -> bool:
    """True for a sentence that sets a current value."""
    has_typed, has_value = any(map(is_typed, values)), _has_value(masked, values)
    may_hold = not is_past or bool(english.REVISES.search(masked))
    if may_hold and _sets_owned_value(masked, values, has_typed=has_typed):
        return True
    if english.KEY_VALUE.match(masked) and has_value and len(masked.split()) <= KEY_VALUE_MAX_WORDS:
        return True
    may_be_set = has_typed and not is_past and len(masked) <= STORY_CHARS
    if may_be_set and not english.PAST_VERB.search(masked) and english.PRESENT.search(masked):
        return True
    fact = english.SET_FACT.search(masked) if may_hold else None
    return fact is not None and (has_value or bool(english.NAMES_SPEAKER.match(fact[0])))


def _sets_owned_value(masked: str, values: tuple[TypedValue, ...], *, has_typed: bool) -> bool:
    """True for "my X is Y" and its kin, where X is a setting or Y a typed value."""
    owned = english.OWNED.search(masked)
    if owned is None or english.PASSING.match(rest := owned["rest"].strip()):
        return False
    head = re.split(r" (?:for|of|with|at|in|on|from|to|by) ", owned["what"])[0]
    has_option = find_option(rest) is not None
    at_value = has_option or any(value.start >= owned.start("rest") - 1 for value in values)
    is_own = bool(english.OWN.match(owned[0]) or english.TERSE_SETTING.search(head))
    is_set = masked[owned.end("what") : owned.start("rest")].strip().lower() in english.COPULAS
    words = len(rest.split())
    if english.SETTING.search(head) and (at_value or (is_own and is_set and words <= SETTING_MAX_WORDS)):
        return True
    return at_value and (has_typed or has_option or (is_own and is_set and words <= SETTING_MAX_WORDS))


def _read_foreign(sentence: OwnSentence, plain: str, spoken: str, language: str) -> BindingStatement | None:
    """Read a sentence in another language by its binding words; ``spoken`` is it without addresses and code."""
    if english.FOREIGN_QUESTION.search(plain):
        return None
    is_folded, lower = folds(language, spoken), spoken.lower()
    words, folded = foreign_patterns(language, is_folded=is_folded), fold_letters(lower) if is_folded else lower
    parted = part_numbers(plain)
    values = tuple(find_values(parted))
    if language == "German" and not english.GERMAN_NAME.search(plain):
        # German writes every noun like a name: one counts behind "ist" alone.
        values = tuple(value for value in values if value.type != "name")
    has_value = bool(values) or holds_number(plain) or find_option(plain) is not None
    is_revision = has_value and revises(words.change, folded)
    is_allergy = bool(ALLERGY.search(folded))
    is_lifted, is_story = bool(words.lifts.search(folded)), bool(words.story.search(folded))
    matches = (
        (kind, number == 0)
        for number, (kind, pattern) in enumerate(zip(FOREIGN_KINDS, words.kinds, strict=True))
        if not (is_story and kind != "decision" and not is_revision and not is_allergy)
        and (has_value or kind not in ("limit", "value"))
        and pattern.search(folded)
    )
    others = (("preference", is_allergy), ("correction", is_revision), ("rule", is_lifted and not is_story))
    other = next((kind for kind, is_kind in others if is_kind), None)
    kind, is_prohibition = next(matches, (other, False))
    if kind is None:
        return None
    value = choose_value(parted, values)
    if value is not None and value.type == "option:register" and not english.SAYS_DU.search(plain):
        value = None  # "Du darfst ..." is no choice between "du" and "Sie"
    return BindingStatement(
        kind,  # type: ignore[arg-type]
        sentence.text,
        is_safety=(is_prohibition or is_allergy) and not is_lifted,
        subject=foreign_subject(parted, value, language),
        value=value.text if value else "",
        value_type=value.type if value else "",
        revises=bool(words.change.search(folded)),
        lifts=is_lifted,
        is_prohibition=is_prohibition and not is_lifted,
    )


def _statement(
    sentence: OwnSentence, masked: str, kind: StatementKind, values: tuple[TypedValue, ...]
) -> BindingStatement:
    value = choose_value(masked, values) or find_free_value(masked)
    old = _old_value(masked)
    is_prohibition = any(map(english.FORBID.search, (masked, drop_opening(masked))))
    lifts = bool(english.LIFTS.search(masked)) and not (
        is_prohibition and not re.search(r"\bno longer\b", masked, re.IGNORECASE)
    )
    subject = _subject(_blank_opening(masked, value), value, old)
    # A concept says what the sentence is about, also where another part of it refers to what was said before.
    if (
        len(subject) < 2
        and not "".join(subject).startswith(("=", "@"))
        and english.REFERS.search(masked)
        and sentence.before
    ):
        typed = tuple(value for value in find_values(sentence.before) if value.type != "name")
        subject = tuple(dict.fromkeys((*subject, *subject_stems(sentence.before, typed))))
    return BindingStatement(
        kind,
        sentence.text,
        is_safety=_is_safety(masked, kind, lifts=lifts),
        subject=subject,
        value=value.text if value else "",
        value_type=value.type if value else "",
        revises=bool(english.REVISES.search(masked)) or (old != "" and not english.GONE.search(masked)),
        lifts=lifts,
        old_value=old,
        is_prohibition=is_prohibition,
        is_weak=kind in ("value", "decision", "commitment") and _is_weak(masked, kind),
    )


def _blank_opening(masked: str, value: TypedValue | None) -> str:
    """Blank phrases such as "quick note", which say nothing about the subject."""
    dropped = len(masked) - len(drop_opening(masked))
    is_opening = not value or value.start >= dropped
    return " " * dropped + masked[dropped:] if is_opening else masked


def _is_weak(masked: str, kind: StatementKind) -> bool:
    """True where nothing but a number, or a plan of the speaker's own, makes the sentence a statement."""
    if re.search(r"\b(?:I think|probably|I guess|for now|try)\b", masked, re.IGNORECASE) or len(masked) > LONG_CHARS:
        return True
    if kind == "value":
        owned = english.OWNED.search(masked)
        is_setting = owned is not None and bool(english.SETTING.search(owned["what"]))
        return not (
            is_setting
            or english.SET_FACT.search(masked)
            or english.KEY_VALUE.match(masked)
            or english.REVISES.search(masked)
        )
    return kind == "decision" and not english.DECIDE.search(masked)


def _is_safety(masked: str, kind: StatementKind, *, lifts: bool) -> bool:
    if lifts:
        return False
    if english.LASTING_LIKE.search(masked):
        return True
    if kind in ("rule", "limit"):
        return _does_harm(masked, is_limit=kind == "limit")
    return kind in ("decision", "value", "commitment") and bool(english.HARD.search(masked))


def _does_harm(masked: str, *, is_limit: bool) -> bool:
    """True for an order whose breach does harm: by its words, or by what a model of them finds likely."""
    if english.HARD.search(masked) or english.GATED.search(masked):
        return True
    is_style = english.STYLE.search(masked) and not english.HARM.search(masked)
    if english.FORBID.search(masked):
        return not is_style
    if (is_limit or english.ASKS.search(masked)) and english.HARM.search(masked):
        return True
    return not is_style and harm_likelihood(masked) >= MIN_HARM_LIKELIHOOD


def _subject(masked: str, value: TypedValue | None, old: str) -> tuple[str, ...]:
    text = masked.replace(old, " " * len(old)) if old else masked
    chosen = (value,) if value is not None else ()
    stems = subject_stems(text, chosen)
    if value is not None and (english.REVISES.search(masked) or english.CONCLUDES.search(masked)):
        start = max((end.end() for end in english.CLAUSE_END.finditer(text, 0, value.start)), default=0)
        ending = english.CLAUSE_END.search(text, value.end)
        clause = text[start : ending.start() if ending else len(text)]
        inner = shift(value, -start)
        is_enough = is_specific(value.type) or english.MOVED.search(clause)
        if is_enough or not english.PRONOUN_CLAUSE.match(clause):
            stems = subject_stems(clause, (inner,)) or (() if is_enough else stems)
    if english.GOES_LIVE.search(masked):
        stems = tuple(part for stem in stems for part in (("=launch", "=deploy") if stem == "=address" else (stem,)))
    if value is not None and is_when(value.type):
        stems = tuple(stem for stem in stems if stem != "@daypart")
    if value is not None and value.type.startswith("option:"):
        stems = tuple(dict.fromkeys((*stems, f"@{value.type[7:]}")))
    elif value is not None and value.type.startswith("unit:"):
        stems = tuple(dict.fromkeys((*stems, value.type[5:], *subject_stems(value.type[5:], ()))))
    elif english.MOVED.search(masked):
        stems = tuple(dict.fromkeys((*stems, "=address")))
    elif value is not None and value.type in english.TYPE_CONCEPTS:
        stems = tuple(dict.fromkeys((*stems, english.TYPE_CONCEPTS[value.type])))
    return stems


def _old_value(masked: str) -> str:
    replaced = english.find_old_and_new(masked)
    return "" if replaced is None else replaced[0]
