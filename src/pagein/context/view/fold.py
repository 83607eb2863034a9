"""The fold: builds a view from log entries, one at a time. The cost of an entry does not grow with the log.

The same entries give the same view in any process. An undo folds the log again from the start, without the compaction
it names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

from pagein.context.ledger.heard import HeardResult, HeardText, restore_heard
from pagein.context.salience.tracker import SalienceTracker
from pagein.context.tool_rules import NO_RULES, Tools
from pagein.context.view.layout import ContextBlock, Item, messages_of, wire_ids, with_stubs
from pagein.context.view.view import EntryTier, View, ViewEntry, request_cost
from pagein.errors import LogUnreadable
from pagein.events import entries, steps
from pagein.events.protocol import OpenCall, current_prompt, open_calls, with_observations
from pagein.log.base import Entry
from pagein.tokens import TokenCounter
from pagein.tokens.counter import CachingCounter, message_tokens

if TYPE_CHECKING:
    from pagein.context.ledger.block import Blocks
    from pagein.context.ledger.run_ledger import RunLedger

IMPORTANT_SHARE = 0.3
"""Share of the limit for steps that are marked as important. The newest have it; older ones leave as others do."""

_LATE_RESULT = "a result that came after its call was closed"


def make_entry(
    item: Item,
    first: int,
    last: int,
    counter: TokenCounter,
    *,
    tier: EntryTier,
    why: str,
    ids: tuple[str, ...] = (),
    stubs: tuple[entries.Stub, ...] = (),
) -> ViewEntry:
    """Build the view entry of an item: stubs in place, messages rendered, tokens counted."""
    stubbed = with_stubs(item, stubs)
    messages = messages_of(stubbed, ids, late_system=tier == "note")
    tokens = sum(message_tokens(message, counter) for message in messages)
    return ViewEntry(first, last, stubbed, tier, why, messages, tokens, ids, stubs)


def replacement_entry(old: Sequence[ViewEntry], by: entries.Replacement, counter: TokenCounter, why: str) -> ViewEntry:
    """Build the entry that replaces ``old``: a summary of the range, or its one step with stubs in their slots."""
    if by.summary is not None:
        step = steps.SummaryStep(by.summary, by.author)
        return make_entry(step, by.first, by.last, counter, tier="summary", why=why)
    if len(old) != 1:
        raise LogUnreadable(f"a compaction names one step at {by.first}, the view has {len(old)} there")
    slots = {(stub.slot, stub.index) for stub in by.stubs}
    entry = old[0]
    stubs = tuple(stub for stub in entry.stubs if (stub.slot, stub.index) not in slots) + by.stubs
    tier = by.stubs[-1].tier if by.stubs else "whole"
    return make_entry(entry.item, entry.first, entry.last, counter, tier=tier, why=why, ids=entry.ids, stubs=stubs)


def is_kept(entry: ViewEntry) -> bool:
    """True for entries that no compaction removes: pins, and system prompts in the middle of the run."""
    return isinstance(entry.item, entries.Pin | steps.SystemPromptStep)


@dataclass(slots=True)
class ViewBody:
    """The part of a view behind the system prompts: ``front``, then the run in order, each position once.

    ``front`` has the pins and late system prompts whose neighbours were folded.
    """

    front: list[ViewEntry] = field(default_factory=list)
    run: list[ViewEntry] = field(default_factory=list)

    def replace(self, by: entries.Replacement, counter: TokenCounter, why: str) -> None:
        """Replace a range by its summary or stubs; entries that no compaction removes move to the front."""
        start = bisect_left(self.run, by.first, key=lambda entry: entry.first)
        stop = bisect_left(self.run, by.last, key=lambda entry: entry.first)
        old = self.run[start:stop]
        leaving = [entry for entry in old if by.summary is None or not is_kept(entry)]
        if not leaving or old[0].first != by.first:
            raise LogUnreadable(f"a compaction covers [{by.first}, {by.last}), where the view has nothing to replace")
        new = replacement_entry(leaving, by, counter, why)
        if by.summary is not None:
            self.front.extend(entry for entry in old if is_kept(entry))
        self.run[start:stop] = [new]


def preview(view: View, replacements: Iterable[entries.Replacement], why: str = "") -> View:
    """Return the view as it would be after the replacements. Nothing is recorded."""
    body = ViewBody(list(view.front), list(view.run))
    for replacement in replacements:
        body.replace(replacement, view.counter, why)
    front, run = tuple(body.front), tuple(body.run)
    tokens = request_cost((*view.systems, *front, *run), view.counter)
    return replace(view, front=front, run=run, tokens=tokens)


class Fold:
    """The state of a log folded so far. ``skip`` has the positions of undone compactions."""

    def __init__(self, counter: TokenCounter, *, skip: frozenset[int] = frozenset()) -> None:
        self.counter = CachingCounter(counter)
        self.skip = skip
        self.head = 0
        self.open: dict[tuple[int, int], OpenCall] = {}
        self.abandoned: dict[str, list[OpenCall]] = {}
        self._abandoned_calls: dict[tuple[int, int], steps.ToolCall] = {}
        self.compactions: list[int] = []
        """Positions of the compactions in effect."""
        self.cleared = 0
        """Position of the newest compaction that took everything out of the view; 0 for none."""
        self.records: dict[tuple[int, int], str] = {}
        """By range, the summary record behind its replacement, where a model wrote one."""
        self.removed: set[int] = set()
        """Positions of the steps that an application removed by hand: no search finds them."""
        self._edited: set[int] = set()
        self.pinned: dict[int, str] = {}
        self.marks: dict[int, entries.Importance] = {}
        """By position, the importance of the steps that are marked."""
        self.shown_facts: entries.FactsShown | None = None
        """The facts block at the head of the view; None before the first one."""
        self._facts_entries: tuple[ViewEntry, ...] = ()
        self._facts_position: int | None = None
        self.answers: dict[int, list[int]] = {}
        """By action, the positions of the observations that came after it."""
        self.tracker = SalienceTracker()
        self._ledger: RunLedger | None = None
        self.ledger_blocks: Blocks = {}
        """The last rendered blocks of the ledger."""
        self._heard: list[HeardText | HeardResult] = []
        """What the ledger has not learned from yet: a run that is far from its limit pays nothing."""
        self._costs: dict[int, int] = {}
        """By position, tokens of the step as recorded, before any compaction."""
        self.recorded_tokens = 0
        """Tokens of all entries, as recorded."""
        self._user_costs: list[int] = []
        """Tokens of each user message since the view was cleared, as recorded."""
        self._new_observations: dict[int, dict[int, steps.Observation]] = {}
        self._systems: list[ViewEntry] = []
        self._body = ViewBody()
        self._used: set[str] = set()

    def apply(self, entry: Entry) -> None:
        """Fold the next entry in. Raises LogUnreadable if it does not continue this fold."""
        if entry.position != self.head:
            raise LogUnreadable(f"entry {entry.position} came where {self.head} was next")
        self.head += 1
        position, body = entry.position, entry.body
        if isinstance(body, entries.FactsShown):
            self._show_facts(position, body)
            return
        if isinstance(body, entries.FactBody):
            return  # no part of the run
        match body:
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

    def cost_of(self, first: int, last: int) -> int:
        """Tokens of the entries at positions ``[first, last)``, as recorded."""
        return sum(self._costs.get(position, 0) for position in range(first, last))

    def view(self, limit: int, tools: Tools = NO_RULES, extract_worth: float = 0.0) -> View:
        """Return the current view. ``limit`` is the number of tokens its caller compacts it to."""
        self._show_observations()
        systems, run = tuple(self._systems), tuple(self._body.run)
        front = (*self._facts_entries, *self._body.front)
        tokens = request_cost((*systems, *front, *run), self.counter)
        earlier = sum(self._user_costs[:-1])
        return View(
            systems, front, run, self.head, tokens, limit, self.counter, self.tracker,
            whole_limit=limit, user_tokens=earlier, replaced_texts=self._replaced_texts, extract_worth=extract_worth,
            changed_by_hand=frozenset(self.removed | self._edited),
            important=self._important_positions(int(limit * IMPORTANT_SHARE), tools), tools=tools,
            unimportant=frozenset(position for position, mark in self.marks.items() if mark == "low"),
        )  # fmt: skip

    def _important_positions(self, tokens_left: int, tools: Tools) -> frozenset[int]:
        """The steps in view that are marked as important, then those that a tool's rule keeps, as many as fit in; newest first."""
        positions = set[int]()
        marked = {position for position, importance in self.marks.items() if importance == "high"}
        run = self._body.run if marked or tools.keep else []
        candidates = [entry for entry in reversed(run) if entry.tier != "summary"]
        by_rule = (entry for entry in candidates if entry.first not in self.marks and _is_kept_by_rule(entry, tools))
        for entry in (*(entry for entry in candidates if entry.first in marked), *by_rule):
            if entry.tokens <= tokens_left:
                tokens_left -= entry.tokens
                positions.add(entry.first)
        return frozenset(positions)

    @property
    def ledger(self) -> RunLedger:
        """The ledger of what holds in the run."""
        return self.teach_ledger(len(self._heard))

    def teach_ledger(self, texts: int) -> RunLedger:
        """Have the ledger learn from this many of the texts and results that it has not learned from yet; return it."""
        from pagein.context.ledger.run_ledger import RunLedger  # noqa: PLC0415 - loads where something leaves

        if self._ledger is None:
            self._ledger = RunLedger()
        for heard in self._heard[:texts]:
            heard.teach(self._ledger)
        del self._heard[:texts]
        return self._ledger

    def learn_ahead(self) -> None:
        """Learn from all texts of the run, as the next compaction would."""
        _ = self.ledger, self.tracker.names

    def _replaced_texts(self) -> Mapping[int, tuple[str, ...]]:
        return self.ledger.superseded_texts()

    @property
    def run_entries(self) -> Sequence[ViewEntry]:
        """The entries of the run, in order; observations that came since the last view are not in them yet."""
        return self._body.run

    @property
    def system_positions(self) -> tuple[int, ...]:
        """The positions of the system prompts at the head of the view."""
        return tuple(entry.first for entry in self._systems)

    @property
    def facts_tokens(self) -> int:
        """Tokens of the facts block at the head of the view."""
        return sum(entry.tokens for entry in self._facts_entries)

    def _show_facts(self, position: int, facts: entries.FactsShown, tokens: int | None = None) -> None:
        self.shown_facts, self._facts_position = facts, position
        item, why = ContextBlock("facts", facts.text), "known when the view was laid out"
        if tokens is None:
            entry = make_entry(item, position, position + 1, self.counter, tier="facts", why=why)
        else:
            entry = ViewEntry(position, position + 1, item, "facts", why, messages_of(item), tokens)
        self._facts_entries = (entry,) if facts.text else ()

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON-safe values; recorded steps are named by their position in the log."""
        self._show_observations()
        pairs = [(action, at) for action, answers in self.answers.items() for at in answers]
        pairs.sort(key=lambda pair: pair[1])
        waiting = [call for calls in self.abandoned.values() for call in calls]
        return {
            "head": self.head,
            "skip": sorted(self.skip),
            "open": [[call.action, call.index, call.id] for call in self.open.values()],
            "abandoned": [[call.action, call.index, call.id] for call in waiting],
            "compactions": self.compactions,
            "cleared": self.cleared,
            "records": [[*pair, record] for pair, record in self.records.items()],
            "pinned": list(self.pinned.items()),
            "marks": list(self.marks.items()),
            "by_hand": [sorted(self.removed), sorted(self._edited)],
            "known": [self._facts_position, *(entry.tokens for entry in self._facts_entries)],
            "answers": [delta_encode(action for action, _ in pairs), delta_encode(at for _, at in pairs)],
            "costs": [delta_encode(self._costs), list(self._costs.values())],
            "used": sorted(self._used),
            "spoken": self._user_costs,
            "shown": [list(map(_entry_state, part)) for part in (self._systems, self._body.front, self._body.run)],
            "memo": self.tracker.to_state(),
            "ledger": None if self._ledger is None and not self.compactions else self.ledger.to_state(),
            "heard": [heard.to_state() for heard in self._heard],
        }

    @staticmethod
    def required_positions(state: Mapping[str, Any]) -> frozenset[int]:
        """Return the positions whose entries ``from_state`` needs: entries shown as recorded, and their results."""
        verbatim = {values[0] for part in state["shown"] for values in part if values[-1] is None}
        actions, places = map(delta_decode, state["answers"])
        return (
            frozenset(verbatim)
            .union(at for at in state["known"][:1] if at is not None)
            .union(at for action, at in zip(actions, places, strict=True) if action in verbatim)
            .union(position for heard in state["heard"] for position in heard[:-1])
            .union(action for action, _, _ in state["abandoned"])
        )

    @classmethod
    def from_state(cls, counter: TokenCounter, state: Mapping[str, Any], recorded: Mapping[int, Any]) -> Self:
        """Restore a fold from its state; ``recorded`` has the bodies of its ``required_positions``.

        ``counter`` is the one that the state was made with. Raises ValueError, KeyError, TypeError or LogUnreadable
        for a state that does not fit.
        """
        fold = cls(counter, skip=frozenset(state["skip"]))
        fold.head, fold.compactions, fold.cleared = state["head"], state["compactions"], state.get("cleared", 0)
        fold.open = {(action, index): OpenCall(action, index, id) for action, index, id in state["open"]}
        for action, index, id in state["abandoned"]:
            fold.abandoned.setdefault(id, []).append(OpenCall(action, index, id))
            fold._abandoned_calls[action, index] = recorded[action].tool_calls[index]
        fold.records = {(first, last): record for first, last, record in state["records"]}
        fold.pinned = dict(state["pinned"])
        fold.marks = dict(state.get("marks", ()))
        fold.removed, fold._edited = map(set, state.get("by_hand", ((), ())))
        if state["known"][0] is not None:
            position, *tokens = state["known"]
            fold._show_facts(position, recorded[position], *tokens)
        for action, at in zip(*map(delta_decode, state["answers"]), strict=True):
            fold.answers.setdefault(action, []).append(at)
        positions, costs = state["costs"]
        fold._costs = dict(zip(delta_decode(positions), costs, strict=True))
        fold.recorded_tokens = sum(costs)
        fold._used, fold._user_costs = set(state["used"]), list(state["spoken"])
        systems, front, run = ([fold._restore_entry(values, recorded) for values in part] for part in state["shown"])
        fold._systems, fold._body = systems, ViewBody(front, run)
        fold.tracker = SalienceTracker.from_state(state["memo"])
        fold._restore_ledger(state, recorded)
        return fold

    def _restore_ledger(self, state: Mapping[str, Any], recorded: Mapping[int, Any]) -> None:
        if state["ledger"] is not None:
            from pagein.context.ledger.run_ledger import RunLedger  # noqa: PLC0415 - loads where something left

            self._ledger = RunLedger.from_state(state["ledger"])
        self._heard = [restore_heard(recorded, *heard) for heard in state["heard"]]

    def _restore_entry(self, state: Sequence[Any], recorded: Mapping[int, Any]) -> ViewEntry:
        first, last, tier, why, tokens, ids, stub_values, summary_values = state
        stubs = tuple(entries.Stub(*values) for values in stub_values)
        item: Item = recorded[first] if summary_values is None else steps.SummaryStep(*summary_values)
        if isinstance(item, steps.ActionStep):
            observed = (recorded[at] for at in self.answers.get(first, ()))
            answers = {answer.index: answer.observation for answer in observed if not answer.late}
            item = with_observations(item, answers) if answers else item
        elif isinstance(item, steps.SystemPromptStep):
            item, _ = current_prompt(item)
        item = with_stubs(item, stubs)
        messages = messages_of(item, ids, late_system=tier == "note")
        return ViewEntry(first, last, item, tier, why, messages, tokens, tuple(ids), stubs)

    def _add_step(self, position: int, step: Item) -> None:
        match step:
            case steps.SystemPromptStep():
                prompt, replaces = current_prompt(step)
                if replaces is not None:
                    self._replace_systems(position, prompt, replaces)
                elif self._body.run or self._body.front:
                    self._append(position, prompt, "note", "a system prompt that came late, as a notice")
                else:
                    self._systems.append(self._make_entry(position, prompt, "system", "system prompt"))
            case steps.TaskStep():
                self._append(position, step, "user", "the user's words")
                self._user_costs.append(self._costs[position])
            case steps.ActionStep():
                ids = wire_ids(step, position, self._used)
                for call in open_calls(step, position):
                    self.open[call.action, call.index] = call
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
            case steps.TaskStep(content=content):
                self._heard.append(HeardText(position, steps.as_text(content), "user"))
            case (
                steps.ActionStep(content=content, tool_calls=(), observations=())
                | steps.FinalAnswerStep(content=content)
            ):
                self._heard.append(HeardText(position, steps.as_text(content), "assistant"))
            case steps.ActionStep(tool_calls=calls, observations=observations):
                for index, (call, observation) in enumerate(zip(calls, observations, strict=False)):
                    if observation is not None:
                        self._heard.append(HeardResult(position, position, index, call, observation))
            case _:
                pass

    def _replace_systems(self, position: int, prompt: steps.SystemPromptStep, replaces: tuple[int, ...]) -> None:
        """Show a changed system prompt in the place of those that the application no longer hands over."""
        entry = self._make_entry(position, prompt, "system", "system prompt, as it was changed")
        at = next((at for at, old in enumerate(self._systems) if old.first in replaces), len(self._systems))
        kept = [old for old in self._systems if old.first not in replaces]
        self._systems = [*kept[:at], entry, *kept[at:]]

    def _make_entry(self, position: int, item: Item, tier: EntryTier, why: str, ids: tuple[str, ...] = ()) -> ViewEntry:
        entry = make_entry(item, position, position + 1, self.counter, tier=tier, why=why, ids=ids)
        self._set_cost(position, entry.tokens)
        return entry

    def _set_cost(self, position: int, tokens: int) -> None:
        self.recorded_tokens += tokens - self._costs.get(position, 0)
        self._costs[position] = tokens

    def _append(self, position: int, item: Item, tier: EntryTier, why: str, ids: tuple[str, ...] = ()) -> None:
        self._body.run.append(self._make_entry(position, item, tier, why, ids))

    def _observe(self, position: int, body: entries.Observed) -> None:
        self.answers.setdefault(body.action, []).append(position)
        if body.late:
            call = self._drop_abandoned(body) or self._call_at(body.action, body.index)
            if call is not None:
                self._heard.append(HeardResult(position, body.action, body.index, call, body.observation, is_late=True))
            why = "a result that came as a message" if body.observation.is_message else _LATE_RESULT
            self._append(position, body, "note", why)
            self.tracker.learn_step(position, body)
            return
        open_call = self.open.pop((body.action, body.index), None)
        if open_call is None:
            raise LogUnreadable(f"the observation at {position} answers no open call")
        is_abandoned = body.observation.status == "unknown"
        if is_abandoned:
            self.abandoned.setdefault(open_call.id, []).append(open_call)
        self._new_observations.setdefault(body.action, {})[body.index] = body.observation
        if (call := self._call_at(body.action, body.index)) is not None:
            self._heard.append(HeardResult(position, body.action, body.index, call, body.observation))
            if is_abandoned:
                self._abandoned_calls[body.action, body.index] = call
        self.tracker.learn_observation(body.action, body.observation)

    def _call_at(self, position: int, index: int) -> steps.ToolCall | None:
        """A call of the action in the run that begins at the position; None where its results are text."""
        run = self._body.run
        where = bisect_left(run, position, key=lambda entry: entry.first)
        item = run[where].item if where < len(run) and run[where].first == position else None
        calls = item.tool_calls if isinstance(item, steps.ActionStep) else ()
        return calls[index] if index < len(calls) else None

    def _drop_abandoned(self, late: entries.Observed) -> steps.ToolCall | None:
        """Remove the abandoned call that this late result answers, and return it where it is known."""
        waiting = self.abandoned.get(late.observation.call_id, [])
        rest = [call for call in waiting if (call.action, call.index) != (late.action, late.index)]
        if rest:
            self.abandoned[late.observation.call_id] = rest
        else:
            self.abandoned.pop(late.observation.call_id, None)
        return self._abandoned_calls.pop((late.action, late.index), None)

    def _show_observations(self) -> None:
        """Show the observations that came since the last call: each action is rendered once."""
        run = self._body.run
        for action, answers in self._new_observations.items():
            where = bisect_left(run, action, key=lambda entry: entry.first)
            old = run[where] if where < len(run) else None
            if old is None or old.first != action or not isinstance(old.item, steps.ActionStep):
                raise LogUnreadable(f"an observation names {action}, and the view has no action there")
            run[where] = make_entry(
                with_observations(old.item, answers), old.first, old.last, self.counter,
                tier=old.tier, why=old.why, ids=old.ids, stubs=old.stubs,
            )  # fmt: skip
            if not old.stubs:
                self._set_cost(action, run[where].tokens)
        self._new_observations.clear()

    def _compact(self, position: int, body: entries.Compaction) -> None:
        if position in self.skip:
            return
        self._show_observations()
        self.compactions.append(position)
        why = f"{body.policy}: {body.reason}"
        for replacement in body.replacements:
            self._body.replace(replacement, self.counter, why)
            if replacement.record:
                self.records[replacement.first, replacement.last] = replacement.record
            else:
                self.records.pop((replacement.first, replacement.last), None)

        if body.policy in (entries.EDIT, entries.REMOVAL):
            self._change_by_hand(body)
        if body.policy == entries.CLEARED:
            self.cleared = position
            self._user_costs.clear()  # a policy may clip the user's words by what stands in the view

    def _change_by_hand(self, body: entries.Compaction) -> None:
        """Forget what was edited or removed by hand, so that no extract and no page-in repeats it; learn the new words."""
        changed = self.removed if body.policy == entries.REMOVAL else self._edited
        changed.update(range(body.first, body.last))
        self.tracker.forget(body.first, body.last)
        for entry in self._body.run:
            if entry.first == body.first and body.policy == entries.EDIT:
                self.tracker.learn_step(entry.first, entry.item)

    def _unpin(self, pin: int) -> None:
        if self.pinned.pop(pin, None) is None:
            self.ledger.remove_step(pin)
        for part in (self._body.front, self._body.run):
            part[:] = [entry for entry in part if not (entry.first == pin and isinstance(entry.item, entries.Pin))]


def _is_kept_by_rule(entry: ViewEntry, tools: Tools) -> bool:
    return isinstance(entry.item, steps.ActionStep) and any(map(tools.keeps, entry.item.tool_calls))


def _entry_state(entry: ViewEntry) -> list[Any]:
    """Return an entry as JSON-safe values; a recorded step by its position, a summary with its text."""
    item, stubs = entry.item, [[stub.slot, stub.index, stub.text, stub.tier] for stub in entry.stubs]
    summary = [item.content, item.author] if isinstance(item, steps.SummaryStep) else None
    return [entry.first, entry.last, entry.tier, entry.why, entry.tokens, entry.ids, stubs, summary]


def delta_encode(numbers: Iterable[int]) -> list[int]:
    """Return the first number, then the difference of each number to the one before it.

    >>> delta_encode([3, 5, 7]), list(delta_decode([3, 2, 2]))
    ([3, 2, 2], [3, 5, 7])
    """
    every = list(numbers)
    return [number - before for before, number in zip([0, *every], every, strict=False)]


def delta_decode(deltas: Iterable[int]) -> Iterator[int]:
    """Yield the numbers from which ``delta_encode`` made these differences."""
    return accumulate(deltas)


def undone_positions(bodies: Iterable[object]) -> frozenset[int]:
    """Return the positions of the compactions that undo entries name."""
    return frozenset(body.position for body in bodies if isinstance(body, entries.Undo))
