"""The fold: builds a view from log entries, one at a time. The cost of an entry does not grow with the log.

The same entries give the same view in any process. An undo folds the log again from the start, without the compaction
it names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pagein.context.ledger.heard import HeardResult, HeardText
from pagein.context.salience.tracker import SalienceTracker
from pagein.context.tool_rules import NO_RULES, Tools
from pagein.context.view.body import ViewBody, find_shown
from pagein.context.view.layout import ContextBlock, EntryTier, Item, ViewEntry, make_entry, messages_of, wire_ids
from pagein.context.view.view import View, request_cost
from pagein.errors import LogUnreadable
from pagein.events import entries, steps
from pagein.events.protocol import TEXT_ACTION, OpenCall, current_prompt, ends_in_call, open_calls, with_observations
from pagein.log.base import Entry
from pagein.tokens import TokenCounter
from pagein.tokens.counter import CachingCounter

if TYPE_CHECKING:
    from pagein.context.ledger.block import Blocks
    from pagein.context.ledger.run_ledger import RunLedger

IMPORTANT_SHARE = 0.3
"""Share of the limit for steps that are marked as important. The newest have it; older ones leave as others do."""


TASK_SHARE = 0.5
"""Share of the limit in which the task of a model that acts in its text stays whole."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The words of an application's list in the place of others: the stub, and the position of the compaction that has it."""

    stub: entries.Stub
    position: int


class Fold:
    """The state of a log folded so far. ``skip`` has the positions of undone compactions.

    ``fold_state`` turns one into JSON-safe values and back.
    """

    def __init__(self, counter: TokenCounter, *, skip: frozenset[int] = frozenset()) -> None:  # noqa: PLR0915 - one a concern
        self.counter = CachingCounter(counter)
        self.skip = skip
        self.head = 0
        """The position of the next entry."""

        # What the view shows.
        self.systems: list[ViewEntry] = []
        self.body = ViewBody()
        self.facts_entries: tuple[ViewEntry, ...] = ()
        """The facts block at the head of the view; empty without one."""
        self.shown_facts: entries.FactsShown | None = None
        """The newest facts block that was recorded, which may be an empty one; None before the first."""
        self.facts_position: int | None = None
        self.used_ids: set[str] = set()
        """The ids of calls in the view, so that no two calls have the same one."""

        # Calls and their results.
        self.open: dict[tuple[int, int], OpenCall] = {}
        """The calls without a result, by action and index."""
        self.abandoned: dict[str, list[OpenCall]] = {}
        """By id, the calls that were closed without a result: one may still come."""
        self.waiting_calls: dict[tuple[int, int], steps.ToolCall] = {}
        """The open and the abandoned calls as they were recorded: their action may be clipped, or have left the view."""
        self.answers: dict[int, list[int]] = {}
        """By action, the positions of the observations that came after it."""
        self._new_observations: dict[int, dict[int, steps.Observation]] = {}
        """By action and index, the observations since the last view: an action is rendered once for all of them."""

        # Compactions and the application's wishes.
        self.compactions: list[int] = []
        """Positions of the compactions in effect."""
        self.cleared = 0
        """Position of the newest compaction that took everything out of the view; 0 for none."""
        self.records: dict[tuple[int, int], str] = {}
        """By range, the summary record behind its replacement, where a model wrote one."""
        self.removed: set[int] = set()
        """Positions of the steps that an application removed by hand: no search finds them."""
        self.edited: set[int] = set()
        """Positions of the steps that an application changed by hand."""
        self.rewritten: dict[tuple[int, str, int], Rewritten] = {}
        """The words that an application's list now has in the place of a message or a result, by position, slot and index."""
        self.wordings: dict[int, list[int]] = {}
        """By the position of a step, those of the compactions that have other words of it, undone ones too: search finds them."""
        self.relisted: dict[int, int] = {}
        """By the position of what a list changed or took back, that of the newest compaction which says so."""
        self.pinned: dict[int, str] = {}
        self.marks: dict[int, entries.Importance] = {}
        """By position, the importance of the steps that are marked."""

        # What was learned from the entries.
        self.tracker = SalienceTracker()
        self.learned_ledger: RunLedger | None = None
        self.heard: list[HeardText | HeardResult] = []
        """What the ledger has not learned from yet: a run that is far from its limit pays nothing."""
        self.ledger_blocks: Blocks = {}
        """The last rendered blocks of the ledger."""

        # Costs in tokens, as recorded.
        self.costs: dict[int, int] = {}
        """The tokens of each step, by position, before any compaction."""
        self.recorded_tokens = 0
        """The tokens of all entries."""
        self.user_costs: list[int] = []
        """The tokens of each user message since the view was cleared."""

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
                self.show_facts(position, body)
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

    def shows_as_at(self, head: int) -> bool:
        """True for a position from which on no list changed anything before it."""
        return head <= self.head and not any(at < head <= changed for at, changed in self.relisted.items())

    def cost_of(self, first: int, last: int) -> int:
        """Tokens of the entries at positions ``[first, last)``, as recorded."""
        return sum(self.costs.get(position, 0) for position in range(first, last))

    def view(self, limit: int, tools: Tools = NO_RULES, extract_worth: float = 0.0) -> View:
        """Return the current view. ``limit`` is the number of tokens its caller compacts it to."""
        self.show_observations()
        systems, run = tuple(self.systems), tuple(self.body.run)
        front = (*self.facts_entries, *self.body.front)
        tokens = request_cost((*systems, *front, *run), self.counter)
        return View(
            systems, front, run, self.head, tokens, limit, self.counter, self.tracker,
            whole_limit=limit, user_tokens=sum(self.user_costs[:-1]), replaced_texts=self._replaced_texts, extract_worth=extract_worth,
            changed_by_hand=frozenset(self.removed | self.edited),
            edited=frozenset(self.edited),
            important=self._important_positions(int(limit * IMPORTANT_SHARE), tools), tools=tools,
            unimportant=frozenset(position for position, mark in self.marks.items() if mark == "low"),
        )  # fmt: skip

    def _important_positions(self, tokens_left: int, tools: Tools) -> frozenset[int]:
        """The positions of the important steps, newest first, as many as fit in: those that are marked, then those that a tool's rule keeps."""
        positions = self._text_agent_task(tokens_left / IMPORTANT_SHARE)
        marked = {position for position, importance in self.marks.items() if importance == "high"}
        run = self.body.run if marked or tools.keep else []
        candidates = [entry for entry in reversed(run) if entry.tier != "summary"]
        unmarked = (entry for entry in candidates if entry.first not in self.marks)
        by_rule = (entry for entry in unmarked if any(map(tools.keeps, getattr(entry.item, "tool_calls", ()))))
        for entry in (*(entry for entry in candidates if entry.first in marked), *by_rule):
            if entry.tokens <= tokens_left:
                tokens_left -= entry.tokens
                positions.add(entry.first)
        return frozenset(positions)

    def _text_agent_task(self, limit: float) -> set[int]:
        """The position of the task, where the model acts in its text: results that look like the user's words would push it out.

        Empty while the user's words are within their share: all of them stay then.
        """
        run = self.body.run if sum(self.user_costs) > limit * TASK_SHARE else []
        task = next((entry for entry in run if entry.tier != "pin"), None)
        if task is None or not isinstance(task.item, steps.TaskStep) or task.tokens > limit * TASK_SHARE:
            return set()
        replies = [
            entry.item for entry in run if isinstance(entry.item, steps.ActionStep) and not entry.item.tool_calls
        ]
        acting = sum(TEXT_ACTION.search(steps.as_text(reply.content)) is not None for reply in replies)
        return {task.first} if acting * 2 > len(replies) else set()

    @property
    def ledger(self) -> RunLedger:
        """The ledger of what holds in the run."""
        return self.teach_ledger(len(self.heard))

    def teach_ledger(self, texts: int) -> RunLedger:
        """Have the ledger learn from this many of the texts and results that it has not learned from yet; return it."""
        from pagein.context.ledger.run_ledger import RunLedger  # noqa: PLC0415 - loads where something leaves

        ledger = self.learned_ledger = self.learned_ledger or RunLedger()
        for heard in self.heard[:texts]:
            heard.teach(ledger)
        del self.heard[:texts]
        return ledger

    def learn_ahead(self) -> None:
        """Learn from all texts of the run, as the next compaction would."""
        _ = self.ledger, self.tracker.names

    def _replaced_texts(self) -> Mapping[int, tuple[str, ...]]:
        return self.ledger.superseded_texts()

    @property
    def system_positions(self) -> tuple[int, ...]:
        """The positions of the system prompts at the head of the view."""
        return tuple(entry.first for entry in self.systems)

    @property
    def facts_tokens(self) -> int:
        """Tokens of the facts block at the head of the view."""
        return sum(entry.tokens for entry in self.facts_entries)

    def show_facts(self, position: int, facts: entries.FactsShown, tokens: int | None = None) -> None:
        """Show a facts block at the head of the view; nothing for an empty one. ``tokens`` is its cost, where that is known."""
        self.shown_facts, self.facts_position = facts, position
        item, why = ContextBlock("facts", facts.text), "known when the view was laid out"
        if tokens is None:
            entry = make_entry(item, position, position + 1, self.counter, tier="facts", why=why)
        else:
            entry = ViewEntry(position, position + 1, item, "facts", why, messages_of(item), tokens)
        self.facts_entries = (entry,) if facts.text else ()

    def _add_step(self, position: int, step: Item) -> None:
        match step:
            case steps.SystemPromptStep():
                prompt, replaces = current_prompt(step)
                if replaces is not None:
                    self._replace_systems(position, prompt, replaces)
                elif self.body.run or self.body.front:
                    self._append(position, prompt, "note", "a system prompt that came late, as a notice")
                else:
                    self.systems.append(self._make_entry(position, prompt, "system", "system prompt"))
            case steps.TaskStep():
                self._append(position, step, "user", "the user's words")
                self.user_costs.append(self.costs[position])
            case steps.ActionStep():
                ids = wire_ids(step, position, self.used_ids)
                for call in open_calls(step, position):
                    self.open[call.action, call.index] = call
                    self.waiting_calls[call.action, call.index] = step.tool_calls[call.index]
                self._append(position, step, "whole", "recorded", ids)
            case entries.Observed() | entries.Pin() | ContextBlock():
                raise LogUnreadable(f"{type(step).__name__} at {position} is not a step")
            case _:
                self._append(position, step, "whole", "recorded")
        if not isinstance(step, steps.SystemPromptStep):
            self.tracker.learn_step(position, step)
            self._hear(position, step)

    def _hear(self, position: int, step: Item) -> None:
        """Queue for the ledger what the user says, answers that call no tool, and results that came with their step."""
        match step:
            case steps.TaskStep(content=content) if not (self.body.run[-2:-1] and ends_in_call(self.body.run[-2].item)):
                self.heard.append(HeardText(position, content, "user"))
            case (
                steps.ActionStep(content=content, tool_calls=(), observations=())
                | steps.FinalAnswerStep(content=content)
            ):
                self.heard.append(HeardText(position, content, "assistant"))
            case steps.ActionStep(tool_calls=calls, observations=observations):
                for index, (call, observation) in enumerate(zip(calls, observations, strict=False)):
                    if observation is not None:
                        self.heard.append(HeardResult(position, position, index, call, observation))

    def _replace_systems(self, position: int, prompt: steps.SystemPromptStep, replaces: tuple[int, ...]) -> None:
        """Show a changed system prompt in the place of those that the application no longer hands over."""
        entry = self._make_entry(position, prompt, "system", "system prompt, as it was changed")
        at = next((at for at, old in enumerate(self.systems) if old.first in replaces), len(self.systems))
        behind = [old for old in self.systems[at:] if old.first not in replaces]
        self.systems[at:] = [entry, *behind]

    def _make_entry(self, position: int, item: Item, tier: EntryTier, why: str, ids: tuple[str, ...] = ()) -> ViewEntry:
        entry = make_entry(item, position, position + 1, self.counter, tier=tier, why=why, ids=ids)
        self._set_cost(position, entry.tokens)
        return entry

    def _set_cost(self, position: int, tokens: int) -> None:
        self.recorded_tokens += tokens - self.costs.get(position, 0)
        self.costs[position] = tokens

    def _append(self, position: int, item: Item, tier: EntryTier, why: str, ids: tuple[str, ...] = ()) -> None:
        self.body.run.append(self._make_entry(position, item, tier, why, ids))

    def _observe(self, position: int, body: entries.Observed) -> None:
        self.answers.setdefault(body.action, []).append(position)
        if body.late:
            self._observe_late(position, body)
            return
        open_call = self.open.pop((body.action, body.index), None)
        if open_call is None:
            raise LogUnreadable(f"the observation at {position} answers no open call")
        self._new_observations.setdefault(body.action, {})[body.index] = body.observation
        self.tracker.learn_observation(body.action, body.observation)
        call = self.waiting_calls[body.action, body.index]
        self.heard.append(HeardResult(position, body.action, body.index, call, body.observation))
        if body.observation.status == "unknown":
            self.abandoned.setdefault(open_call.id, []).append(open_call)
        else:
            del self.waiting_calls[body.action, body.index]

    def _observe_late(self, position: int, body: entries.Observed) -> None:
        """Show a result of a closed call as a note at its own position."""
        call = self._drop_abandoned(body) or self._whole_call_at(body.action, body.index)
        if call is not None:
            self.heard.append(HeardResult(position, body.action, body.index, call, body.observation, is_late=True))
        is_message = body.observation.is_message
        why = "a result that came as a message" if is_message else "a result that came after its call was closed"
        self._append(position, body, "note", why)
        self.tracker.learn_step(position, body)

    def _drop_abandoned(self, late: entries.Observed) -> steps.ToolCall | None:
        """Remove the abandoned call that this late result answers, and return it where it is known."""
        waiting = self.abandoned.pop(late.observation.call_id, [])
        if rest := [call for call in waiting if (call.action, call.index) != (late.action, late.index)]:
            self.abandoned[late.observation.call_id] = rest
        return self.waiting_calls.pop((late.action, late.index), None)

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
        for position, observations in self._new_observations.items():
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
                self._set_cost(position, new.tokens)
        self._new_observations.clear()

    def _compact(self, position: int, body: entries.Compaction) -> None:
        self._note_wordings(position, body)
        if position in self.skip:
            return
        self.show_observations()
        self.compactions.append(position)
        why = f"{body.policy}: {body.reason}"
        for replacement in body.at_steps:
            if body.policy in entries.BY_LIST and find_shown(self.body.run, replacement.first) is None:
                continue  # it left the view before the list took it back
            self.body.replace(replacement, self.counter, why)
            if replacement.record:
                self.records[replacement.first, replacement.last] = replacement.record
            else:
                self.records.pop((replacement.first, replacement.last), None)
        if body.policy in entries.BY_APPLICATION:
            for replacement in body.replacements:
                self._change_by_hand(replacement, is_edit=body.policy == entries.EDIT)
        if body.policy == entries.CLEARED:
            self.cleared = position
            self.user_costs.clear()  # a policy may clip the user's words by what stands in the view

    def _note_wordings(self, position: int, body: entries.Compaction) -> None:
        """Note what a list changed, and the words that it has."""
        stubs = [(by.first, stub) for by in body.replacements for stub in by.stubs if body.policy == entries.REWRITTEN]
        for at, _ in stubs:
            self.wordings.setdefault(at, []).append(position)
        if position not in self.skip:
            self.rewritten |= {(at, stub.slot, stub.index): Rewritten(stub, position) for at, stub in stubs}
        if position not in self.skip and body.policy in entries.BY_LIST:
            changed = [by for by in body.replacements if by.stubs or by.summary is not None]
            self.relisted |= {by.last - 1: position for by in changed}

    def _change_by_hand(self, by: entries.Replacement, *, is_edit: bool) -> None:
        """Forget what was edited or removed by hand, so that no extract and no page-in repeats it; learn the new words."""
        if not by.stubs and by.summary is None:
            return
        if is_edit:
            self._forget_slots(by)
        if by.stubs and by.stubs[0].is_of_result:
            self._hear_result(by.first, by.stubs[0])
            return
        changed = self.edited if by.stubs else self.removed
        changed.update(range(by.first, by.last))
        self.tracker.forget(by.first, by.last)
        # It learns from all that came before first, so that a log folded again gives the same ledger.
        ledger = self.ledger
        ledger.remove_step(by.first)
        if not by.stubs:
            ledger.remove_results(by.first)
        shown = find_shown(self.body.run, by.first)
        if shown is not None and by.stubs:
            self.tracker.learn_step(shown.first, shown.item)
        if shown is None or isinstance(shown.item, steps.TaskStep):  # a list changes words of the user alone
            for stub in by.stubs:
                ledger.learn(by.first, stub.text, "user")

    def _forget_slots(self, by: entries.Replacement) -> None:
        """Drop what the ledger has of the results and arguments that were changed by hand; learn the tasks of new arguments."""
        for stub in by.stubs:
            self.ledger.remove_slot(by.first, stub.slot, stub.index)
            call = self._call_at(by.first, stub.index) if stub.slot == "arguments" else None
            if call is not None:
                self.ledger.plans.learn_edited((by.first, stub.index), replace(call, arguments=stub.text))

    def _hear_result(self, position: int, stub: entries.Stub) -> None:
        """Learn the words that a list, or an edit, has in the place of a result: what its call did is known."""
        shown = find_shown(self.body.run, position)
        if shown is None:
            return
        self.tracker.forget(position, position + 1)
        self.tracker.learn_step(position, shown.item)
        call = None if stub.index == entries.IN_TEXT else self._call_at(position, stub.index)
        if call is not None:
            observation = steps.Observation(call.id, stub.content, index=stub.index)
            self.ledger.failures.learn(position, stub.index, call, observation)

    def _unpin(self, pin: int) -> None:
        if self.pinned.pop(pin, None) is None:
            self.ledger.remove_step(pin)
            self.ledger.remove_open_work(pin)
        for part in (self.body.front, self.body.run):
            part[:] = [entry for entry in part if not (entry.first == pin and isinstance(entry.item, entries.Pin))]


def undone_positions(bodies: Iterable[object]) -> frozenset[int]:
    """Return the positions of the compactions that undo entries name."""
    return frozenset(body.position for body in bodies if isinstance(body, entries.Undo))
