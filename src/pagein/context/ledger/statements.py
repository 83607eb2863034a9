"""The way from a text to the statements in it that bind the agent, without a model.

``find_statements`` goes it: it takes the speaker's own sentences (``own_words``), reads each, and leaves out what a text has too
much of. A sentence binds where it forbids, demands, limits, decides, aims, promises, corrects, prefers or sets a current
value. Questions, hypotheses, narration, quotations and pasted text bind nobody. English is read by the patterns of
``english.txt``, other languages by ``languages.txt``. ``revisions`` says which statement of a run a newer one replaces.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from pagein.context.ledger import english, instructions
from pagein.context.ledger.binding_words import blank_code, guess_language, has_english
from pagein.context.ledger.chosen_values import shift
from pagein.context.ledger.dictated import CLAUSE_CHARS, TOLD_CHARS, is_dictated
from pagein.context.ledger.english_sentence import (
    STORY_CHARS,
    EnglishSentence,
    clause_likelihood,
    does_harm,
    mask_idioms,
)
from pagein.context.ledger.foreign_sentence import read_foreign
from pagein.context.ledger.items import BindingStatement, Speaker, StatementKind
from pagein.context.ledger.likelihood import MIN_LIKELIHOOD, is_known, statement_likelihood
from pagein.context.ledger.own_words import OwnSentence, own_sentences
from pagein.context.ledger.shortening import drop_opening
from pagein.context.ledger.spelling import part_clauses, spell_out
from pagein.context.ledger.statement_parts import build_statement
from pagein.context.ledger.values import find_option, find_values, subject_stems
from pagein.events.secrets import holds_secret

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


@functools.lru_cache(maxsize=MAX_REMEMBERED)
def _read_sentence(sentence: OwnSentence) -> BindingStatement | None:
    """Read a sentence of the user or of the system prompt in its language."""
    plain = sentence.masked.replace("\u2019", "'").replace("\u00b4", "'")
    whole = guess_language(plain if "\x00" not in plain else sentence.text)
    if whole != "English":
        spoken = blank_code(plain)
        language = guess_language(spoken)
        if language != "English":
            return read_foreign(sentence, plain, spoken, language)
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
        kind: StatementKind = "limit" if statement is not None and statement.kind == "limit" else "rule"
        statement = build_statement(item, item.masked, kind, tuple(find_values(item.masked)))
        is_negative = instructions.negates(lead)
        statement = replace(
            statement,
            is_safety=does_harm(f"Do not {item.masked}" if is_negative else sentence.masked),
            is_prohibition=statement.is_prohibition or is_negative,
            lifts=False,
        )
    if statement is None:
        return None
    subject = dict.fromkeys((*statement.subject, *subject_stems(lead, ())))
    return replace(statement, text=sentence.text, subject=tuple(subject))


def _read_english(sentence: OwnSentence, plain: str) -> BindingStatement | None:
    """Read an English sentence: as a wish, as an order among instructions, by its patterns, else by its likelihood."""
    masked = mask_idioms(part_clauses(spell_out(plain)))
    masked = english.TOLD_ME.sub(lambda aside: " " * len(aside[0]), masked)
    masked = english.TAG_QUESTION.sub(lambda tag: "." + " " * (len(tag[0]) - 1), masked)
    is_question = "?" in masked[-4:] or (masked[-1:].isalnum() and bool(english.QUESTION.match(masked)))
    if english.WISH.match(masked) and (english.LASTING if is_question else english.LASTS).search(masked):
        return build_statement(sentence, masked, "preference", tuple(find_values(masked)))
    if is_question and not english.REQUEST.match(masked):
        return _read_wish(sentence, masked)
    if _binds_nobody(masked, is_standing=sentence.is_standing):
        return None
    core = drop_opening(masked)
    core_values = tuple(find_values(core))  # a capital right behind "Please remember:" makes no name
    reading = EnglishSentence(masked, tuple(shift(value, len(masked) - len(core)) for value in core_values))
    kind = reading.kind()
    if kind is None and core != masked:
        kind = EnglishSentence(core, core_values).kind()
    if sentence.is_standing:
        return _read_standing(sentence, reading, kind)
    if kind is not None:
        is_sure = kind == "rule" and english.OF_ANSWERS.match(masked)
        statement = build_statement(sentence, masked, kind, reading.values)
        return _doubt(statement, 1.0 if is_sure else clause_likelihood(masked))
    return _guess(sentence, reading) or (_read_wish(sentence, masked) if is_question else None)


def _read_wish(sentence: OwnSentence, masked: str) -> BindingStatement | None:
    """Read a wish that is put as a question and holds from now on: "Could you name files client first, then year?"."""
    lead = english.POLITE.match(masked)
    if lead is None or not english.STANDS.search(masked):
        return None
    likelihood = statement_likelihood(f"{masked[lead.end() :].rstrip('? ')}.")
    wish = build_statement(sentence, masked, "preference", tuple(find_values(masked)))
    return replace(wish, likelihood=likelihood) if likelihood >= MIN_LIKELIHOOD else None


def _binds_nobody(masked: str, *, is_standing: bool) -> bool:
    """True for a hypothesis, and for an order to do something once, unless it stands among instructions.

    Such an order holds no more when it is done; until then the user's newest words are in view.
    """
    if not is_standing and english.TASK.match(masked) and not english.LASTS.search(masked):
        return True
    return bool(english.HYPOTHESIS.match(masked)) and not english.REQUEST.match(masked)


def _read_standing(
    sentence: OwnSentence, reading: EnglishSentence, kind: StatementKind | None
) -> BindingStatement | None:
    """Read a sentence among instructions: each order is a rule, and what describes binds nobody."""
    masked = reading.masked
    if (kind in (None, "value", "correction") and english.ORDERS.match(drop_opening(masked))) or (
        kind is None and reading.likelihood() >= MIN_LIKELIHOOD and does_harm(masked)
    ):
        kind = "rule"
    is_set = find_option(masked) is not None or any(re.search(r"\d", value.text) for value in reading.values)
    if kind is None or (kind == "value" and not is_set):
        return None
    return build_statement(sentence, masked, kind, reading.values)


def _doubt(statement: BindingStatement, likelihood: float) -> BindingStatement:
    """Return the statement as a guess where its words are more those of small talk; such a guess revises nothing."""
    if likelihood >= (HARMLESS_LIKELIHOOD if statement.is_safety else DOUBTFUL_LIKELIHOOD):
        return statement
    odds = PATTERN_ODDS * likelihood / (1 - likelihood)
    doubted = replace(statement, is_safety=False, likelihood=odds / (1 + odds))
    return replace(doubted, is_weak=True, revises=False) if likelihood < SMALL_TALK_LIKELIHOOD else doubted


def _guess(sentence: OwnSentence, reading: EnglishSentence) -> BindingStatement | None:
    """Read a sentence that no pattern knows where its words make it likely that it binds, or that it changes something."""
    likelihood = reading.likelihood()
    is_revision = likelihood >= REVISION_LIKELIHOOD and reading.revises_unsaid()
    if (not is_revision and likelihood < MIN_LIKELIHOOD) or not is_known(reading.masked):
        return None
    if is_revision:
        revision = build_statement(sentence, reading.masked, "correction", reading.values)
        return replace(revision, revises=True, likelihood=likelihood)
    is_harmful = does_harm(reading.masked)
    guess = build_statement(sentence, reading.masked, "rule" if is_harmful else "value", reading.values)
    return replace(guess, is_safety=is_harmful and not guess.lifts, is_weak=not is_harmful, likelihood=likelihood)


def _read_assistant(sentence: OwnSentence) -> BindingStatement | None:
    """Read a sentence of the assistant: a decision or a commitment, no next step."""
    masked = mask_idioms(sentence.masked.replace("\u2019", "'"))
    if "?" in masked[-4:] or english.HYPOTHESIS.match(masked):
        return None
    if any(pattern.search(masked) for pattern in (english.STEP_NOW, english.PAST, english.HEDGE)):
        return None
    if english.AGENT_DECIDES.search(masked):
        return build_statement(sentence, masked, "decision", tuple(find_values(masked)))
    if english.PLEDGE_VERB.search(masked) or english.AGENT_PROMISES.search(masked):
        return build_statement(sentence, masked, "commitment", tuple(find_values(masked)))
    return None


def _counts_in_speech(statement: BindingStatement, *, is_long: bool) -> bool:
    """True for a statement that counts among all that somebody tells: it begins as an order, sets a limit, or is short and likely."""
    words = spell_out(statement.text)
    likelihood = max(map(clause_likelihood, (words, words.partition(" because ")[0]))) * (statement.likelihood == 1)
    if english.TOLD_ORDER.match(words) or (statement.kind == "limit" and english.TOLD_LIMIT.search(words)):
        return likelihood >= DOUBTFUL_LIKELIHOOD and not (is_long and len(words) > CLAUSE_CHARS)
    is_told = is_long or len(words) > STORY_CHARS or (statement.kind == "rule" and english.TELLS_OF.match(words))
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
