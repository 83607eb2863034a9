"""A statement that binds the agent, and the item of a ledger that has it: its place, what it replaced, and what it is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from pagein.context.ledger.shortening import shorten

StatementKind = Literal["rule", "limit", "decision", "goal", "commitment", "correction", "preference", "value"]
Speaker = Literal["user", "system", "assistant"]

LONG_CHARS = 160
"""Characters from which a value, a decision or a promise is taken for a part of a story."""

TEXT_MAX_CHARS = 300
"""Characters kept of a statement."""

WORTH: Mapping[StatementKind, float] = MappingProxyType({
    "rule": 4.0, "limit": 4.0, "correction": 3.2, "value": 3.6, "decision": 3.4, "goal": 3.0, "commitment": 3.0,
    "preference": 2.8,
})  # fmt: skip
"""The worth of an item by its kind; safety rules stand before all others."""

LIKELY_SAFETY = 0.6
"""Likelihood from which a safety rule that no pattern knew stands with those that one knew."""

SURE_LIKELIHOOD = 0.9
"""The same for other statements: in folds 406 guesses above it bind and 15 are small talk."""

WEAK_FACTOR = 0.5

SMALL_TALK_ODDS = 5
"""Odds of small talk in a chat. The model was fitted on as much small talk as binding sentences; a chat has far more."""


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


@dataclass(frozen=True, slots=True)
class LedgerItem:
    """A statement in the ledger with its place: the step's position and its number among the step's statements."""

    position: int
    number: int
    statement: BindingStatement
    speaker: Speaker = "user"
    replaced: int | None = None
    """The position of the statement that it replaced."""
    replaced_by: int | None = None
    is_newer: bool = False
    """It contradicts an older one that stands, too."""
    about: str = ""
    """What it is about where its words do not say so: those that it replaced, without their value."""

    @property
    def key(self) -> tuple[int, int]:
        """The place of the item."""
        return (self.position, self.number)


def worth_of(item: LedgerItem) -> float:
    """Return what an item is worth in a view, by its kind and by how sure it is."""
    statement = item.statement
    worth = WORTH[statement.kind]
    if is_guess(statement):
        odds = statement.likelihood / (1 - statement.likelihood)
        worth *= odds / (odds + SMALL_TALK_ODDS)
    elif statement.is_weak:
        worth *= WEAK_FACTOR
    return worth + (10 if statement.is_safety else 0)


def is_guess(statement: BindingStatement) -> bool:
    """True for a statement that no pattern knew: a model found it likely."""
    return statement.likelihood < 1


def is_sure(statement: BindingStatement) -> bool:
    """True for a statement that a pattern knew, and for a guess that is as sure; safety rules are sure sooner."""
    return statement.likelihood >= (LIKELY_SAFETY if statement.is_safety else SURE_LIKELIHOOD)


def clip_statement(statement: BindingStatement) -> BindingStatement:
    """Return the statement with its text clipped at a word."""
    if len(statement.text) <= TEXT_MAX_CHARS:
        return statement
    text = shorten(statement.text)
    if len(text) > TEXT_MAX_CHARS:
        text = text[: TEXT_MAX_CHARS - 1].rpartition(" ")[0] + "\u2026"
    return replace(statement, text=text)


def item_state(item: LedgerItem) -> list[Any]:
    """Return an item as JSON-safe values."""
    statement = {
        name: value
        for name, value in asdict(item.statement).items()
        if value not in ("", False, ()) and (name, value) != ("likelihood", 1.0)
    }
    about = item.about or False  # False where a row of an earlier release has it
    return [*item.key, item.speaker, item.replaced, item.replaced_by, about, item.is_newer, statement]


def item_from_state(row: Iterable[Any]) -> LedgerItem:
    """Restore an item from ``item_state``."""
    position, number, speaker, replaced, replaced_by, about, is_newer, fields = row
    statement = BindingStatement(**{**fields, "subject": tuple(fields.get("subject", ()))})
    return LedgerItem(position, number, statement, speaker, replaced, replaced_by, is_newer, about or "")
