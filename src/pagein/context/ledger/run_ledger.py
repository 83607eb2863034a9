"""The run ledger: a fold of what was said into what holds now, and its lines for a view. Pure and bounded.

The newest form of a statement replaces the older one where there is evidence that both are about the same thing: shared
subjects weighed by their rarity in the ledger, a value of the same type, words that revise. Without such evidence both stay.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pagein.context.ledger.english import VALUE_CONCEPTS
from pagein.context.ledger.failures import FailureLedger
from pagein.context.ledger.shortening import shorten, tighten
from pagein.context.ledger.statements import BindingStatement, Speaker, StatementKind, find_statements
from pagein.context.ledger.values import find_values, is_same_type, is_specific, is_when
from pagein.tokens import TokenCounter

MAX_ITEMS = 400
"""Current items of a ledger; beyond it the least valuable is dropped."""

MAX_REPLACED = 400
"""Replaced items of which the texts are remembered."""

MAX_LIKELY = 120
"""Current items that no pattern knew; beyond it the least likely is dropped."""

LIKELY_TOKENS = 800
"""Tokens of a block that such items may have; they take what the others leave."""

TEXT_MAX_CHARS = 300
"""Characters kept of a statement."""

MIN_NEARNESS = 0.75
"""Nearness of two subjects (1: the same) from which a value of the same type replaces the older one unsaid."""

SAME_EVIDENCE = 2.25
"""Evidence from which a revision replaces more than one statement: both say the same of a subject that is nearly the same."""

MIN_REVISED_NEARNESS = 0.2
"""The same where the newer statement says that it revises."""

MIN_SECOND_VALUE_NEARNESS = 0.35
"""The same where it is another value of the older statement that has the type."""

MIN_LIFTED_NEARNESS = 0.35
"""The same where the newer statement lifts a rule; the value counts with the subject."""

MIN_REWORDED_NEARNESS = 0.45
"""The same where the newer statement revises without a value of the same type; the value counts with the subject."""

SHORT_CHARS = 80
"""Characters up to which a revision may refer to what was said shortly before."""

MAX_STEMS = 24
"""Stems of a subject that are kept."""

CHANGE_STEMS = frozenset({"plan", "mind", "thought", "idea", "swap", "drop", "destination", "venue"})
"""Stems that say that something decided changes, and not what."""

DECISION_STEMS = CHANGE_STEMS | {"=approve", "settl", "final"}
"""Stems of a decision that does not say what it is about, such as "It's settled: Vienna"."""

REFERRED_ITEMS = 12
"""Items back to which "make it 40" may refer."""

NEVER_SHOWN_TOKENS = 8
"""Tokens left below which the selection ends."""

WORTH: Mapping[StatementKind, float] = MappingProxyType({
    "rule": 4.0, "limit": 4.0, "correction": 3.2, "value": 3.6, "decision": 3.4, "goal": 3.0, "commitment": 3.0,
    "preference": 2.8,
})  # fmt: skip
"""The worth of an item by its kind; safety rules stand before all others."""

WEAK_FACTOR = 0.5
SMALL_TALK_ODDS = 5
"""Odds of small talk in a chat. The model was fitted on as much small talk as binding sentences; a chat has far more."""

Form = Literal["full", "short", "tight"]


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

    @property
    def key(self) -> tuple[int, int]:
        """The place of the item."""
        return (self.position, self.number)


class LedgerLine(NamedTuple):
    """A line to show: the item, its words, whole or shortened, and the rendered line."""

    item: LedgerItem
    text: str
    line: str
    form: Form


class RunLedger:
    """The statements that hold now in one run, by position. The same texts give the same ledger."""

    def __init__(self) -> None:
        self.items: dict[tuple[int, int], LedgerItem] = {}
        """The current items, by place, oldest first."""
        self.superseded: dict[tuple[int, int], LedgerItem] = {}
        """Items that were replaced or removed, oldest first; at most ``MAX_REPLACED``."""
        self.failures = FailureLedger()
        """The errors of the run."""
        self._stem_counts: Counter[str] = Counter()

    def learn(self, position: int, text: str, speaker: Speaker) -> tuple[LedgerItem, ...]:
        """Fold the text of the next step; return the new items."""
        statements = find_statements(text, speaker)
        number = (
            1 + max((key[1] for key in (*self.items, *self.superseded) if key[0] == position), default=-1)
            if statements
            else 0
        )
        items = []
        for offset, statement in enumerate(statements):
            item = LedgerItem(position, number + offset, _clip_statement(statement), speaker)
            items.append(self._add(item))
        self._drop_surplus()
        return tuple(items)

    def remove(self, position: int, number: int) -> bool:
        """Drop an item; False where there is none. Its text counts as superseded."""
        item = self.items.get((position, number))
        if item is None:
            return False
        self._retire(item, position)
        return True

    def remove_step(self, position: int) -> None:
        """Drop the items of a step."""
        for key in [key for key in self.items if key[0] == position]:
            self.remove(*key)

    def forget(self, is_erased: Callable[[int], bool]) -> None:
        """Drop every trace of the items whose steps were erased."""
        for items in (self.items, self.superseded):
            for key in [key for key in items if is_erased(key[0])]:
                if items is self.items:
                    self._stem_counts.subtract(set(items[key].statement.subject))
                del items[key]

    def superseded_texts(self) -> Mapping[int, tuple[str, ...]]:
        """Return the replaced sentences by position; a sentence that was said again is not among them."""
        current = {item.statement.text for item in self.items.values()}
        texts: dict[int, tuple[str, ...]] = {}
        for (position, _), item in self.superseded.items():
            if item.statement.text not in current:
                texts[position] = (*texts.get(position, ()), item.statement.text)
        return texts

    def select(
        self, hidden: Callable[[int], bool], tokens: int, counter: TokenCounter, *, is_terse: bool = False
    ) -> tuple[LedgerLine, ...]:
        """Return the lines of the current items whose step is hidden, in order of position, within the tokens.

        Safety rules come first, then the others by worth per token, the newest first among equals. All are taken in
        their tightest form; where room is left, they grow to the short form, the worthiest first. Items that no
        pattern knew take what is left then, and the last grows all to the whole form.
        """
        candidates = [_forms(item, counter, is_terse) for item in self.items.values() if hidden(item.position)]
        candidates.sort(key=_rank)
        known = [candidate for candidate in candidates if not _is_guess(candidate.item.statement)]
        likely = [candidate for candidate in candidates if _is_guess(candidate.item.statement)]
        chosen, left = _take(known, tokens)
        left = _grow(chosen, 1, left)
        guessed, unused = _take(likely, min(left, LIKELY_TOKENS))
        left -= min(left, LIKELY_TOKENS) - unused
        chosen += guessed
        for form in (1, 0):
            left = _grow(chosen, form, left)
        lines = [candidate.line(form) for candidate, form in chosen]
        return tuple(sorted(lines, key=lambda line: line.item.key))

    def to_state(self) -> dict[str, Any]:
        """Return the ledger as JSON-safe values."""
        return {
            "items": [_item_state(item) for item in self.items.values()],
            "superseded": [_item_state(item) for item in self.superseded.values()],
            "failures": self.failures.to_state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RunLedger:
        """Restore a ledger from ``to_state``."""
        ledger = cls()
        for row in state["items"]:
            item = _item_from_state(row)
            ledger.items[item.key] = item
            ledger._stem_counts.update(set(item.statement.subject))
        for row in state["superseded"]:
            item = _item_from_state(row)
            ledger.superseded[item.key] = item
        ledger.failures = FailureLedger.from_state(state["failures"])
        return ledger

    def copy(self) -> RunLedger:
        """Return an independent copy."""
        twin = RunLedger()
        twin.items, twin.superseded = dict(self.items), dict(self.superseded)
        twin._stem_counts = self._stem_counts.copy()
        return twin

    def _add(self, item: LedgerItem) -> LedgerItem:
        replaced = self._find_replaced(item)
        for old in replaced:
            self._retire(old, item.position)
        origin = max(replaced, key=lambda old: old.key, default=None)
        if origin is not None and _is_restatement(item.statement, origin.statement):
            item = replace(item, replaced=origin.replaced, is_newer=self._is_contradicting(item.statement))
        elif origin is not None:
            item = replace(item, replaced=origin.position, statement=_inherit(item.statement, origin.statement))
        else:
            item = replace(item, is_newer=self._is_contradicting(item.statement))
        if item.is_newer:
            self.items.update(
                (old.key, replace(old, is_newer=False))
                for old in list(self.items.values())
                if old.is_newer and self._contradicts(item.statement, old.statement)
            )
        self.items[item.key] = item
        self._stem_counts.update(set(item.statement.subject))
        return item

    def _retire(self, item: LedgerItem, position: int) -> None:
        del self.items[item.key]
        self._stem_counts.subtract(set(item.statement.subject))
        self.superseded[item.key] = replace(item, replaced_by=position)
        while len(self.superseded) > MAX_REPLACED:
            del self.superseded[next(iter(self.superseded))]

    def _drop_surplus(self) -> None:
        likely = [item for item in self.items.values() if _is_guess(item.statement)]
        surplus = max(0, len(likely) - MAX_LIKELY)
        for item in sorted(likely, key=lambda item: (item.statement.likelihood, item.key))[:surplus]:
            self._drop(item)
        while len(self.items) > MAX_ITEMS:
            self._drop(min(self.items.values(), key=lambda item: (_worth(item), item.key)))

    def _drop(self, item: LedgerItem) -> None:
        del self.items[item.key]
        self._stem_counts.subtract(set(item.statement.subject))

    # Replacement

    def _find_replaced(self, item: LedgerItem) -> list[LedgerItem]:
        """Return the items that a new one replaces: every restatement, and the one with the most evidence."""
        restated = [old for old in self.items.values() if _is_restatement(item.statement, old.statement)]
        if restated:
            return restated
        scores = [(self._evidence(item.statement, old.statement), old.key) for old in self.items.values()]
        best = max(scores, default=(0.0, (0, 0)))
        if best[0] > 0:
            return [self.items[key] for score, key in scores if key == best[1] or score >= SAME_EVIDENCE]
        referred = self._find_referred(item.statement)
        return [] if referred is None else [referred]

    def _evidence(self, new: BindingStatement, old: BindingStatement) -> float:
        """Return the evidence that the new statement replaces the old one; 0 for none."""
        nearness = self._nearness(new.subject, old.subject)
        is_change = new.value.lower() != old.value.lower()
        is_value_change = is_change and is_same_type(new.value_type, old.value_type)
        if new.old_value and _mentions(old, new.old_value) and (nearness > 0 or is_value_change or not new.subject):
            return 3 + nearness
        if new.lifts and old.kind not in ("value", "goal", "commitment") and not old.lifts:
            nearness = self._nearness(_whole_subject(new), _whole_subject(old))
            return 2 + nearness if nearness >= MIN_LIFTED_NEARNESS else 0.0
        if old.lifts and new.is_prohibition:
            nearness = self._nearness(_whole_subject(new), _whole_subject(old))
            return 2 + nearness if nearness >= MIN_LIFTED_NEARNESS else 0.0
        if new.revises:
            return self._revising_evidence(new, old, nearness, is_value_change=is_value_change)
        if not is_value_change or new.is_prohibition or old.is_prohibition or not _is_same_direction(new, old):
            return 0.0
        return 1 + nearness if nearness >= MIN_NEARNESS else 0.0

    def _revising_evidence(
        self, new: BindingStatement, old: BindingStatement, nearness: float, *, is_value_change: bool
    ) -> float:
        """Return the evidence for a statement that says it revises something."""
        is_when_change = is_when(new.value_type) and is_when(old.value_type) and new.value.lower() != old.value.lower()
        if (is_value_change or is_when_change) and not (
            old.is_prohibition and old.kind == "rule" and not new.is_prohibition
        ):
            # A part of the day replaces a part of the day sooner than a date.
            is_mixed = not is_value_change and "option:daypart" in (new.value_type, old.value_type)
            return (1 if is_mixed else 1.5) + nearness if nearness >= MIN_REVISED_NEARNESS else 0.0
        nearness = self._nearness(new.subject, (stem for stem in old.subject if not stem.isdigit()))
        if nearness >= MIN_SECOND_VALUE_NEARNESS and _has_second_value(new, old):
            return 1 + nearness
        if new.value_type and new.value.lower() == old.value.lower():
            return 0.0
        if not _is_same_family(new.kind, old.kind):
            return 0.0
        nearness = self._nearness(_whole_subject(new), _whole_subject(old))
        return nearness if nearness >= MIN_REWORDED_NEARNESS else 0.0

    def _find_referred(self, new: BindingStatement) -> LedgerItem | None:
        """Return the item that a revision without a subject of its own refers to, such as "make it 40".

        That is the only item with a value of a specific type, else the newest one with such a value where the
        revision is short.
        """
        if not new.revises or not new.value_type:
            return None
        olds = [old for old in reversed(self.items.values()) if is_same_type(new.value_type, old.statement.value_type)]
        olds = [old for old in olds if old.statement.value.lower() != new.value.lower()]
        exact = [old for old in olds if old.statement.value_type == new.value_type]
        if is_specific(new.value_type) and len(exact) == 1:
            return exact[0]
        if len(new.text) > SHORT_CHARS or not set(new.subject) <= {
            *VALUE_CONCEPTS,
            *CHANGE_STEMS,
            f"@{new.value_type[7:]}",
            new.value_type[5:],
        }:
            return None
        olds = exact or olds
        is_decision = bool(CHANGE_STEMS.intersection(new.subject))
        if is_decision:
            # "Change of plans: Lisbon instead" changes what was decided, first what names no subject either.
            olds = [old for old in olds if old.statement.kind in ("decision", "goal", "commitment")]
            olds = [old for old in olds if DECISION_STEMS.issuperset(old.statement.subject)] or olds
        else:
            olds = [old for old in olds if _may_be_referred(old.statement)]
        recent = {item.key for item in [*self.items.values()][-REFERRED_ITEMS:]}
        if is_decision and len(olds) == 1:
            return olds[0]
        return next((old for old in olds if old.key in recent), None)

    def _is_contradicting(self, new: BindingStatement) -> bool:
        return any(self._contradicts(new, old.statement) for old in self.items.values())

    def _contradicts(self, new: BindingStatement, old: BindingStatement) -> bool:
        """True for two orders about the same thing of which one forbids what the other demands, or with other values."""
        if not {new.kind, old.kind} <= {"rule", "limit", "correction", "decision"}:
            return False
        nearness = self._nearness(_whole_subject(new), _whole_subject(old))
        if new.is_prohibition != old.is_prohibition:
            return nearness >= MIN_REWORDED_NEARNESS
        is_other_value = is_same_type(new.value_type, old.value_type) and new.value.lower() != old.value.lower()
        return not new.is_prohibition and is_other_value and nearness >= MIN_REWORDED_NEARNESS

    def _nearness(self, one: Iterable[str], other: Iterable[str]) -> float:
        """Return the cosine of two subjects, their stems weighed by rarity in the ledger."""
        left, right = set(one), set(other)
        shared = self._weigh(left & right)
        return shared / math.sqrt(self._weigh(left) * self._weigh(right)) if shared else 0.0

    def _weigh(self, stems: Iterable[str]) -> float:
        total = len(self.items) + 2
        return sum(math.log(1 + total / (1 + self._stem_counts[stem])) for stem in stems)


def render(lines: Iterable[LedgerLine]) -> str:
    """Return the lines of a selection as one text."""
    return "\n".join(line.line for line in lines)


def render_item(item: LedgerItem, text: str, *, is_tight: bool = False, is_terse: bool = False) -> str:
    """Return the line of an item: its handle, its words, and what it replaced.

    A tight line says that it is new only where its words do not say that something changed. A terse one has the bare
    number of the step, unless its words begin with a number, too.

    >>> item = LedgerItem(12, 0, BindingStatement("rule", "Use tabs."), replaced=4)
    >>> render_item(item, "Use tabs."), render_item(item, "Use tabs.", is_tight=True)
    ('s12 Use tabs. (replaces s4)', 's12 Use tabs. (new)')
    """
    if item.replaced is None and not item.is_newer:
        note = ""
    elif is_tight:
        note = "" if item.statement.revises else " (new)"
    else:
        note = " (newer)" if item.replaced is None else f" (replaces s{item.replaced})"
    letter = "" if is_terse and not text[:1].isdigit() else "s"
    return f"{letter}{item.position} {text}{note}"


@dataclass(frozen=True, slots=True)
class _Candidate:
    item: LedgerItem
    texts: tuple[str, str, str]
    lines: tuple[str, str, str]
    costs: tuple[int, int, int]

    def line(self, form: int) -> LedgerLine:
        names: tuple[Form, Form, Form] = ("full", "short", "tight")
        return LedgerLine(self.item, self.texts[form], self.lines[form], names[form])


def _take(candidates: Iterable[_Candidate], tokens: int) -> tuple[list[tuple[_Candidate, int]], int]:
    """Take the candidates that fit, each in its tightest form; return them, and the tokens left."""
    chosen: list[tuple[_Candidate, int]] = []
    for candidate in candidates:
        if candidate.costs[-1] <= tokens:
            tokens -= candidate.costs[-1]
            chosen.append((candidate, len(candidate.costs) - 1))
        elif tokens < NEVER_SHOWN_TOKENS:
            break
    return chosen, tokens


def _grow(chosen: list[tuple[_Candidate, int]], form: int, tokens: int) -> int:
    """Give the candidates this longer form while the tokens last; return those left."""
    for at, (candidate, current) in enumerate(chosen):
        growth = candidate.costs[form] - candidate.costs[current]
        if form < current and growth <= tokens:
            tokens -= growth
            chosen[at] = (candidate, form)
    return tokens


def _forms(item: LedgerItem, counter: TokenCounter, is_terse: bool) -> _Candidate:
    full, brief, tight = texts = _short_forms(item.statement.text)
    lines = (
        render_item(item, full, is_terse=is_terse),
        render_item(item, brief, is_terse=is_terse),
        render_item(item, tight, is_tight=True, is_terse=is_terse),
    )
    most, some, least = (counter.text(f"{line}\n") for line in lines)
    # A longer form never costs less than a shorter one, so that growing is never a gain.
    return _Candidate(item, texts, lines, (max(most, some, least), max(some, least), least))


def _rank(candidate: _Candidate) -> tuple[bool, float, tuple[int, int]]:
    item = candidate.item
    position, number = item.key
    return (not item.statement.is_safety, -_worth(item) / candidate.costs[-1], (-position, -number))


def _worth(item: LedgerItem) -> float:
    statement = item.statement
    worth = WORTH[statement.kind] * (WEAK_FACTOR if statement.is_weak else 1)
    if _is_guess(statement):
        odds = statement.likelihood / (1 - statement.likelihood)
        worth *= odds / (odds + SMALL_TALK_ODDS)
    return worth + (10 if statement.is_safety else 0)


def _is_guess(statement: BindingStatement) -> bool:
    return statement.likelihood < 1


def _clip_statement(statement: BindingStatement) -> BindingStatement:
    """Return the statement with its text clipped at a word."""
    if len(statement.text) <= TEXT_MAX_CHARS:
        return statement
    text = shorten(statement.text)
    if len(text) > TEXT_MAX_CHARS:
        text = text[: TEXT_MAX_CHARS - 1].rpartition(" ")[0] + "\u2026"
    return replace(statement, text=text)


_WORD = re.compile(r"[^\W_]+")


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


@functools.lru_cache(maxsize=4 * MAX_ITEMS)
def _core_words(text: str) -> tuple[str, ...]:
    return _words(shorten(text))


@functools.lru_cache(maxsize=4 * MAX_ITEMS)
def _short_forms(text: str) -> tuple[str, str, str]:
    """Return the text, its short form and its tight one."""
    short = shorten(text)
    return (text, short, tighten(short))


def _is_restatement(new: BindingStatement, old: BindingStatement) -> bool:
    return _core_words(new.text) == _core_words(old.text)


def _mentions(statement: BindingStatement, value: str) -> bool:
    """True where every word of a value stands in the statement, by its beginning."""
    words = _words(statement.text)
    sought = [word for word in _words(value) if len(word) > 1 or word.isdigit()]
    return bool(sought) and all(any(_is_near(word, other) for other in words) for word in sought)


def _has_second_value(new: BindingStatement, old: BindingStatement) -> bool:
    """True where another value of the old statement has the type of the new one: "60 customers by June", "now 40"."""
    return new.value_type not in ("", "name", "text") and any(
        is_same_type(new.value_type, value.type) and value.text.lower() != new.value.lower()
        for value in find_values(old.text)
    )


def _is_near(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) >= 4 and (one.startswith(other) or other.startswith(one)))


def _whole_subject(statement: BindingStatement) -> tuple[str, ...]:
    """Return the stems of a statement with those of its value."""
    return tuple(dict.fromkeys((*statement.subject, *(word.removesuffix("s") for word in _words(statement.value)))))


_LEAST = re.compile(
    r"\b(?:at least|minimum|min|no (?:less|fewer|earlier|sooner) than|not before|from|after|or more)\b", re.IGNORECASE
)


def _is_same_direction(new: BindingStatement, old: BindingStatement) -> bool:
    """True unless one is a lower and the other an upper bound."""
    if new.revises or new.kind != "limit" or old.kind != "limit":
        return True
    return bool(_LEAST.search(new.text)) == bool(_LEAST.search(old.text))


_FAMILIES = (
    {"rule", "limit", "correction"},
    {"decision", "correction", "rule", "value"},
    {"goal", "correction", "commitment"},
    {"preference", "correction", "rule", "decision"},
    {"value", "limit", "correction", "commitment"},
)


def _inherit(new: BindingStatement, old: BindingStatement) -> BindingStatement:
    """Return the new statement with kind and subject of the one it replaces, which it may only hint at, and its likelihood."""
    new = replace(new, likelihood=max(new.likelihood, old.likelihood))
    if new.lifts:
        return new
    kind = old.kind if new.kind in ("correction", "value") else new.kind
    return replace(new, kind=kind, subject=tuple(dict.fromkeys((*new.subject, *old.subject)))[:MAX_STEMS])


def _may_be_referred(old: BindingStatement) -> bool:
    """True unless it is a prohibition, which needs more than a value to be replaced, or sets a name."""
    return old.value_type not in ("name", "text") and (not old.is_prohibition or old.kind == "limit")


def _is_same_family(one: StatementKind, other: StatementKind) -> bool:
    return any(one in family and other in family for family in _FAMILIES)


def _item_state(item: LedgerItem) -> list[Any]:
    statement = {
        name: value
        for name, value in asdict(item.statement).items()
        if value not in ("", False, ()) and (name, value) != ("likelihood", 1.0)
    }
    return [
        item.position,
        item.number,
        item.speaker,
        item.replaced,
        item.replaced_by,
        False,  # a field that is no more, in the snapshots that are stored
        item.is_newer,
        statement,
    ]


def _item_from_state(row: Iterable[Any]) -> LedgerItem:
    position, number, speaker, replaced, replaced_by, _, is_newer, fields = row
    statement = BindingStatement(**{**fields, "subject": tuple(fields.get("subject", ()))})
    return LedgerItem(position, number, statement, speaker, replaced, replaced_by, is_newer)
