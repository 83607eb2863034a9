"""The run ledger: a fold of what was said and done into what holds now, what failed and what is open. Pure and bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pagein.context.ledger.answers import Answers
from pagein.context.ledger.error_lines import has_failed
from pagein.context.ledger.evidence import Evidence
from pagein.context.ledger.failures import FailureLedger
from pagein.context.ledger.items import (
    BindingStatement,
    LedgerItem,
    Speaker,
    clip_statement,
    is_guess,
    is_sure,
    item_from_state,
    item_state,
    worth_of,
)
from pagein.context.ledger.open_work import OpenLines
from pagein.context.ledger.revised_words import about_without, words_about
from pagein.context.ledger.revisions import RevisionFinder, inherit, is_restatement
from pagein.context.ledger.speakers import Speakers
from pagein.context.ledger.statements import find_statements
from pagein.context.ledger.task_plans import TaskPlans
from pagein.context.ledger.waiting import WaitingItems
from pagein.events.entries import Slot
from pagein.events.handles import Place
from pagein.events.steps import Observation, ToolCall, as_text

MAX_ITEMS = 400
"""Current items of a ledger; beyond it the least valuable is dropped."""

MAX_REPLACED = 400
"""Replaced items of which the texts are remembered."""

MAX_LIKELY = 120
"""Current items that no pattern knew; beyond it the least likely is dropped."""


class RunLedger:
    """The statements that hold now in one run, by position. The same texts give the same ledger."""

    def __init__(self) -> None:
        self.items: dict[tuple[int, int], LedgerItem] = {}
        """The current items, by place, oldest first."""
        self.superseded: dict[tuple[int, int], LedgerItem] = {}
        """Items that were replaced or removed, oldest first; at most ``MAX_REPLACED``."""
        self.failures = FailureLedger()
        """The errors of the run."""
        self.plans = TaskPlans()
        """The lists of tasks."""
        self.waiting = WaitingItems()
        """Work that goes on elsewhere."""
        self.answers = Answers()
        """The model's answers behind its calls."""
        self._speakers = Speakers()
        self._stem_counts: Counter[str] = Counter()

    def learn(self, position: int, text: str, speaker: Speaker) -> tuple[LedgerItem, ...]:
        """Fold the text of the next step; return the new items."""
        statements = self._find_statements(text, speaker)
        if not statements:
            return ()
        number = 1 + max((key[1] for key in (*self.items, *self.superseded) if key[0] == position), default=-1)
        items = []
        for offset, statement in enumerate(statements):
            item = LedgerItem(position, number + offset, clip_statement(statement), speaker)
            items.append(self._add(item))
        self._drop_surplus()
        return tuple(items)

    def learn_result(self, place: Place, call: ToolCall, observation: Observation) -> None:
        """Fold the result of a call at this place: its errors, the lists of tasks, and what goes on elsewhere."""
        text, failed = as_text(observation.content), has_failed(observation)
        self.failures.learn(*place, call, observation)
        self.answers.has_called = True
        if not failed:
            self.plans.learn(place, call, text)
        self.waiting.learn(place, call, text, has_failed=failed)

    def learn_work(self, position: int, text: str, whole: str, *, is_own: bool) -> None:
        """Fold what a text says of the work: what is over, and where the model says it, its answer and its list of tasks.

        ``whole`` has what the application put beside it, too, as a notice that something is over.
        """
        self.waiting.learn_text(position, text, whole)
        if not text:
            return  # nobody spoke
        self.answers.learn(position, text, is_own=is_own)
        if is_own:
            self.plans.learn_text(position, text)

    def _find_statements(self, text: str, speaker: Speaker) -> tuple[BindingStatement, ...]:
        """Find the statements of a text. Where several people talk to one another, what may be small talk is for them."""
        if speaker != "user":
            return find_statements(text, speaker)
        statements = find_statements(self._speakers.hear(text), speaker)
        if not self._speakers.are_several:
            return statements
        return tuple(statement for statement in statements if not (is_guess(statement) or statement.is_weak))

    def remove(self, position: int, number: int) -> bool:
        """Drop an item; False where there is none. Its text counts as superseded."""
        item = self.items.get((position, number))
        if item is None:
            return False
        self._retire(item, position)
        return True

    def remove_step(self, position: int) -> None:
        """Drop the items of a step, and its answer."""
        self.answers.by_position.pop(position, None)
        for key in [key for key in self.items if key[0] == position]:
            self.remove(*key)

    def remove_results(self, position: int) -> None:
        """Drop the errors of a step's results, and what is open by them."""
        self.failures.remove_step(position)
        self.remove_open_work(position)

    def has_open_work(self, position: int) -> bool:
        """True where a step made a list of tasks, or began what goes on."""
        return self.plans.has_step(position) or self.waiting.has_step(position)

    def remove_open_work(self, position: int) -> None:
        """Drop what is open by a step."""
        self.plans.remove_step(position)
        self.waiting.remove_step(position)

    def remove_slot(self, position: int, slot: Slot, index: int) -> None:
        """Drop the errors of a slot of a step, and what is open by it."""
        self.plans.remove_slot((position, index), slot)
        if slot != "content":
            self.waiting.remove_result((position, index))
            self.failures.remove_step(position, index)

    def forget(self, is_erased: Callable[[int], bool]) -> None:
        """Drop every trace of the items whose steps were erased."""
        for items in (self.items, self.superseded):
            for key in [key for key in items if is_erased(key[0])]:
                if items is self.items:
                    self._stem_counts.subtract(set(items[key].statement.subject))
                del items[key]

    def superseded_texts(self) -> Mapping[int, tuple[str, ...]]:
        """Return the replaced sentences by position; a sentence that was said again is not among them, nor a guess that was not dropped."""
        current = {item.statement.text for item in self.items.values()}
        texts: dict[int, tuple[str, ...]] = {}
        for (position, _), item in self.superseded.items():
            is_gone = is_sure(item.statement) or item.replaced_by == position
            if item.statement.text not in current and is_gone:
                texts[position] = (*texts.get(position, ()), item.statement.text)
        return texts

    def find_open(
        self, is_hidden: Callable[[int], bool], hides_words: Callable[[int], bool], newest: int = -1
    ) -> OpenLines:
        """Return what is open by the steps whose results are hidden, and the lists of those that hide the model's words.

        Steps in view change nothing, so a block stays as it is. But what is over is so by steps before ``newest``, the
        newest one that left: the words of the user stay in view for long.
        """
        return OpenLines(self.plans.find_hidden(hides_words), self.waiting.find_hidden(is_hidden, newest))

    def to_state(self) -> dict[str, Any]:
        """Return the ledger as JSON-safe values."""
        return {
            "items": [item_state(item) for item in self.items.values()],
            "superseded": [item_state(item) for item in self.superseded.values()],
            "failures": self.failures.to_state(),
            "open": [self.plans.to_state(), self.waiting.to_state(), *self.answers.to_state()],
            "speakers": self._speakers.to_state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RunLedger:
        """Restore a ledger from ``to_state``."""
        ledger = cls()
        ledger.items = {item.key: item for item in map(item_from_state, state["items"])}
        ledger.superseded = {item.key: item for item in map(item_from_state, state["superseded"])}
        for item in ledger.items.values():
            ledger._stem_counts.update(set(item.statement.subject))
        ledger.failures = FailureLedger.from_state(state["failures"])
        plans, waiting, *answers = state["open"]
        ledger.plans, ledger.waiting = TaskPlans.from_state(plans), WaitingItems.from_state(waiting)
        ledger.answers = Answers.from_state(*answers)
        ledger._speakers = Speakers.from_state(state.get("speakers", []))
        return ledger

    def _add(self, item: LedgerItem) -> LedgerItem:
        evidence = Evidence(self.items, self._stem_counts)
        replaced = RevisionFinder(evidence).find_replaced(item)
        for old in replaced:
            about = about_without(item.statement, old)
            if about is None:
                self._retire(old, item.position)
            else:
                self.items[old.key] = replace(old, about=about)
        origin = max(replaced, key=lambda old: old.key, default=None)
        if origin is not None and is_restatement(item.statement, origin.statement):
            item = replace(item, replaced=origin.replaced, is_newer=evidence.contradicts_any(item.statement))
        elif origin is not None:
            about = words_about(item.statement, origin)
            statement = inherit(item.statement, origin.statement)
            item = replace(item, replaced=origin.position, about=about, statement=statement)
        else:
            item = replace(item, is_newer=evidence.contradicts_any(item.statement))
        if item.is_newer:
            self.items.update(
                (old.key, replace(old, is_newer=False))
                for old in list(self.items.values())
                if old.is_newer and evidence.contradicts(item.statement, old.statement)
            )
        self.items[item.key] = item
        self._stem_counts.update(set(item.statement.subject))
        return item

    def _retire(self, item: LedgerItem, position: int) -> None:
        self._drop(item)
        self.superseded[item.key] = replace(item, replaced_by=position)
        while len(self.superseded) > MAX_REPLACED:
            del self.superseded[next(iter(self.superseded))]

    def _drop_surplus(self) -> None:
        likely = [item for item in self.items.values() if is_guess(item.statement)]
        surplus = max(0, len(likely) - MAX_LIKELY)
        for item in sorted(likely, key=lambda item: (item.statement.likelihood, item.key))[:surplus]:
            self._drop(item)
        while len(self.items) > MAX_ITEMS:
            self._drop(min(self.items.values(), key=lambda item: (worth_of(item), item.key)))

    def _drop(self, item: LedgerItem) -> None:
        del self.items[item.key]
        self._stem_counts.subtract(set(item.statement.subject))
