"""The fold: builds a view from log entries, one at a time. The cost of an entry does not grow with the log.

``Fold.apply`` says what each kind of entry does. The same entries give the same view in any process. An undo folds the
log again from the start, without the compaction it names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import partial

from pagein.context.tool_rules import NO_RULES, Tools
from pagein.context.view.body import ViewBody, find_shown
from pagein.context.view.calls import RunCalls
from pagein.context.view.changes import StepChanges
from pagein.context.view.layout import ContextBlock, EntryTier, FactsHead, Item, ViewEntry, make_entry, wire_ids
from pagein.context.view.learned import LearnedRun
from pagein.context.view.view import View, important_positions, request_cost, text_agent_task
from pagein.errors import LogUnreadable
from pagein.events import entries, steps
from pagein.events.protocol import current_prompt, with_observations
from pagein.log.base import Entry
from pagein.tokens import TokenCounter
from pagein.tokens.counter import CachingCounter


class StepCosts:
    """The tokens of each step by its position, of all, and of the user's messages."""

    def __init__(self) -> None:
        self.by_position: dict[int, int] = {}
        self.total = 0
        """The tokens of all entries."""
        self.of_user: list[int] = []
        """The tokens of each user message since the view was cleared."""

    def set(self, position: int, tokens: int) -> None:
        """Set the tokens of a step; an action costs more once it has its results."""
        self.total += tokens - self.by_position.get(position, 0)
        self.by_position[position] = tokens

    def sum(self, first: int, last: int) -> int:
        """Tokens of the entries at positions ``[first, last)``."""
        return sum(self.by_position.get(position, 0) for position in range(first, last))


class Fold:
    """The state of a log folded so far. ``skip`` has the positions of undone compactions.

    ``fold_state`` turns one into JSON-safe values and back.
    """

    def __init__(self, counter: TokenCounter, *, skip: frozenset[int] = frozenset()) -> None:
        self.counter = CachingCounter(counter)
        self.skip = skip
        self.head = 0
        """The position of the next entry."""
        self.systems: list[ViewEntry] = []
        self.facts = FactsHead()
        self.body = ViewBody()
        self.used_ids: set[str] = set()
        """The ids of calls in the view, so that no two calls have the same one."""
        self.calls = RunCalls()
        self.changes = StepChanges()
        self.learned = LearnedRun()
        self.costs = StepCosts()
        self.compactions: list[int] = []
        """Positions of the compactions in effect."""
        self.cleared = 0
        """Position of the newest compaction that took everything out of the view; 0 for none."""
        self.records: dict[tuple[int, int], str] = {}
        """By range, the summary record behind its replacement, where a model wrote one."""
        self.pinned: dict[int, str] = {}
        self.marks: dict[int, entries.Importance] = {}
        """By position, the importance of the steps that are marked."""

    def apply(self, entry: Entry) -> None:
        """Fold the next entry in. Raises LogUnreadable if it does not continue this fold."""
        if entry.position != self.head:
            raise LogUnreadable(f"entry {entry.position} came where {self.head} was next")
        self.head += 1
        position, body = entry.position, entry.body
        if isinstance(body, entries.FactBody) and not isinstance(body, entries.FactsShown):
            return  # no part of the run
        match body:
            case entries.FactsShown():
                self.facts.show(position, body, self.counter)
            case entries.Observed():
                self._observe(position, body)
            case entries.Compaction():
                self._compact(position, body)
            case entries.Pin(text=text):
                self.pinned[position] = text
                self._append(position, body, "pin", "pinned")
            case entries.Unpin(position=pin):
                self._unpin(pin)
            case entries.Mark(position=marked, importance=importance):
                self.marks[marked] = importance
            case entries.Checkpoint() | entries.Undo():
                pass
            case _:
                self._add_step(position, body)

    def view(self, limit: int, tools: Tools = NO_RULES, extract_worth: float = 0.0) -> View:
        """Return the current view. ``limit`` is the number of tokens its caller compacts it to."""
        self.show_observations()
        systems, run = tuple(self.systems), tuple(self.body.run)
        front, user_costs = (*self.facts.entries, *self.body.front), self.costs.of_user
        task = text_agent_task(run, sum(user_costs), limit)
        find_important = partial(important_positions, self.marks.copy(), tools, limit, task)
        return View(
            systems, front, run, self.head, request_cost((*systems, *front, *run), self.counter), limit, self.counter,
            self.learned.tracker,
            whole_limit=limit, user_tokens=sum(user_costs[:-1]), replaced_texts=self.learned.replaced_texts,
            extract_worth=extract_worth,
            changed_by_hand=frozenset(self.changes.removed | self.changes.edited),
            edited=frozenset(self.changes.edited),
            important=find_important(run), find_important=find_important,
            tools=tools,
            unimportant=frozenset(position for position, mark in self.marks.items() if mark == "low"),
        )  # fmt: skip

    def shows_as_at(self, head: int) -> bool:
        """True for a position from which on no list changed anything before it."""
        return head <= self.head and self.changes.has_unchanged(head)

    @property
    def system_positions(self) -> tuple[int, ...]:
        """The positions of the system prompts at the head of the view."""
        return tuple(entry.first for entry in self.systems)

    def _add_step(self, position: int, step: Item) -> None:
        match step:
            case steps.SystemPromptStep():
                self._add_system(position, step)
                return  # instructions, of which nothing is learned
            case steps.TaskStep():
                self._append(position, step, "user", "the user's words")
                self.costs.of_user.append(self.costs.by_position[position])
            case steps.ActionStep():
                ids = wire_ids(step, position, self.used_ids)
                self.calls.open_step(position, step)
                self._append(position, step, "whole", "recorded", ids)
            case entries.Observed() | entries.Pin() | ContextBlock():
                raise LogUnreadable(f"{type(step).__name__} at {position} is not a step")
            case _:
                self._append(position, step, "whole", "recorded")
        self.learned.learn_step(position, step, *(entry.item for entry in self.body.run[-2:-1]))

    def _add_system(self, position: int, step: steps.SystemPromptStep) -> None:
        """Show a system prompt: at the head, in the place of those that it replaces, or as a notice where it came late."""
        prompt, replaces = current_prompt(step)
        if replaces is None and (self.body.run or self.body.front):
            self._append(position, prompt, "note", "a system prompt that came late, as a notice")
            return
        why = "system prompt" if replaces is None else "system prompt, as it was changed"
        entry = self._make_entry(position, prompt, "system", why)
        old = replaces or ()
        at = next((at for at, system in enumerate(self.systems) if system.first in old), len(self.systems))
        self.systems[at:] = [entry, *(system for system in self.systems[at:] if system.first not in old)]

    def _make_entry(self, position: int, item: Item, tier: EntryTier, why: str, ids: tuple[str, ...] = ()) -> ViewEntry:
        entry = make_entry(item, position, position + 1, self.counter, tier=tier, why=why, ids=ids)
        self.costs.set(position, entry.tokens)
        return entry

    def _append(self, position: int, item: Item, tier: EntryTier, why: str, ids: tuple[str, ...] = ()) -> None:
        self.body.run.append(self._make_entry(position, item, tier, why, ids))

    def _observe(self, position: int, body: entries.Observed) -> None:
        """Show a result with its call, at the next view; that of a closed call as a note at its own position."""
        if not body.late:
            self.learned.learn_result(position, body, self.calls.close(position, body))
            return
        call = self.calls.close_late(position, body) or self._whole_call_at(body.action, body.index)
        is_message = body.observation.is_message
        why = "a result that came as a message" if is_message else "a result that came after its call was closed"
        self._append(position, body, "note", why)
        self.learned.learn_result(position, body, call)

    def _action_at(self, position: int) -> tuple[int, steps.ActionStep] | None:
        """The action in view that begins at the position, and its number in the run; None where there is none."""
        run = self.body.run
        number = bisect_left(run, position, key=lambda entry: entry.first)
        item = run[number].item if number < len(run) and run[number].first == position else None
        return (number, item) if isinstance(item, steps.ActionStep) else None

    def _call_at(self, position: int, index: int) -> steps.ToolCall | None:
        """A call of the action in view that begins at the position; None where its results are text."""
        place = self._action_at(position)
        calls = place[1].tool_calls if place else ()
        return calls[index] if index < len(calls) else None

    def _whole_call_at(self, position: int, index: int) -> steps.ToolCall | None:
        """The same; None where the view has other arguments than were recorded."""
        place = self._action_at(position)
        stubs = self.body.run[place[0]].stubs if place else ()
        is_changed = any(stub.slot == "arguments" and stub.index == index for stub in stubs)
        return None if is_changed else self._call_at(position, index)

    def show_observations(self) -> None:
        """Show the observations that came since the last call."""
        for position, observations in self.calls.unshown.items():
            place = self._action_at(position)
            if place is None:
                raise LogUnreadable(f"an observation names {position}, and the view has no action there")
            number, action = place
            old = self.body.run[number]
            new = make_entry(
                with_observations(action, observations), old.first, old.last, self.counter,
                tier=old.tier, why=old.why, ids=old.ids, stubs=old.stubs,
            )  # fmt: skip
            self.body.run[number] = new
            if not old.stubs:
                self.costs.set(position, new.tokens)
        self.calls.unshown.clear()

    def _compact(self, position: int, body: entries.Compaction) -> None:
        self.changes.note(position, body, is_undone=position in self.skip)
        if position in self.skip:
            return
        self.show_observations()
        self.compactions.append(position)
        why = f"{body.policy}: {body.reason}"
        for by in body.at_steps:
            if body.policy in entries.BY_LIST and find_shown(self.body.run, by.first) is None:
                continue  # it left the view before the list took it back
            self.body.replace(by, self.counter, why)
            self.records.pop((by.first, by.last), None)
            if by.record:
                self.records[by.first, by.last] = by.record
        for by in body.replacements if body.policy in entries.BY_APPLICATION else ():
            if by.stubs or by.summary is not None:
                self._change_by_hand(by, is_edit=body.policy == entries.EDIT)
        if body.policy == entries.CLEARED:
            self.cleared = position
            self.costs.of_user.clear()  # a policy may clip the user's words by what stands in the view

    def _change_by_hand(self, by: entries.Replacement, *, is_edit: bool) -> None:
        """Learn a change by an application, which the view shows already."""
        for stub in by.stubs if is_edit else ():
            call = self._call_at(by.first, stub.index) if stub.slot == "arguments" else None
            self.learned.forget_slot(by.first, stub, call)
        shown = find_shown(self.body.run, by.first)
        if not by.stubs or not by.stubs[0].is_of_result:
            self.changes.note_by_hand(by)
            self.learned.relearn_step(by, shown)
        elif shown is not None:
            stub = by.stubs[0]
            call = None if stub.index == entries.IN_TEXT else self._call_at(by.first, stub.index)
            self.learned.learn_other_result(by.first, stub, shown, call)

    def _unpin(self, pin: int) -> None:
        if self.pinned.pop(pin, None) is None:
            self.learned.drop_entry(pin)
        for part in (self.body.front, self.body.run):
            part[:] = [entry for entry in part if not (entry.first == pin and isinstance(entry.item, entries.Pin))]


def undone_positions(bodies: Iterable[object]) -> frozenset[int]:
    """Return the positions of the compactions that undo entries name."""
    return frozenset(body.position for body in bodies if isinstance(body, entries.Undo))
