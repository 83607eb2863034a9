"""The incremental fold: entries of the log in, a view out. The cost of an entry does not grow with history.

Folding the same entries gives the same view, in any process. Only an undo looks back: it folds the log again without
the compaction it names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Self

from pagein.context.salience.tracker import Memo
from pagein.context.view.layout import Aside, Item, messages_of, wire_ids
from pagein.context.view.stubs import with_stubs
from pagein.context.view.view import Shown, ShownAs, View, cost
from pagein.errors import LogUnreadable
from pagein.events.entries import (
    Checkpoint,
    Compaction,
    FactBody,
    FactsShown,
    Observed,
    Pin,
    Replacement,
    Stub,
    Undo,
    Unpin,
)
from pagein.events.protocol import OpenCall, open_calls, with_observations
from pagein.events.steps import ActionStep, Observation, SummaryStep, SystemPromptStep, TaskStep
from pagein.log.base import Entry
from pagein.tokens import TokenCounter
from pagein.tokens.cache import Remembering
from pagein.tokens.requests import message_tokens


def show(
    item: Item,
    first: int,
    last: int,
    counter: TokenCounter,
    *,
    tier: ShownAs,
    why: str,
    ids: tuple[str, ...] = (),
    stubs: tuple[Stub, ...] = (),
) -> Shown:
    """One thing as the view shows it, its stubs in place, counted."""
    stubbed = with_stubs(item, stubs)
    messages = messages_of(stubbed, ids, late_system=tier == "note")
    tokens = sum(message_tokens(each, counter) for each in messages)
    return Shown(first, last, stubbed, tier, why, messages, tokens, ids, stubs)


def replaced(old: Sequence[Shown], by: Replacement, counter: TokenCounter, why: str) -> Shown:
    """What stands where ``old`` stood: a summary of the range, or its one step with stubs in their slots."""
    if by.summary is not None:
        step = SummaryStep(by.summary, by.author)
        return show(step, by.first, by.last, counter, tier="summary", why=why)
    if len(old) != 1:
        raise LogUnreadable(f"a compaction names one step at {by.first}, the view has {len(old)} there")
    slots = {(stub.slot, stub.index) for stub in by.stubs}
    stubs = tuple(each for each in old[0].stubs if (each.slot, each.index) not in slots) + by.stubs
    tier = by.stubs[-1].tier if by.stubs else "whole"
    each = old[0]
    return show(each.item, each.first, each.last, counter, tier=tier, why=why, ids=each.ids, stubs=stubs)


def is_kept(shown: Shown) -> bool:
    """True for what no compaction takes out of the view: pins, and system prompts that came late."""
    return isinstance(shown.item, Pin | SystemPromptStep)


@dataclass(slots=True)
class Body:
    """The part of a view behind the system prompts: settled pins, then the run in order, each position once."""

    kept: list[Shown] = field(default_factory=list)
    run: list[Shown] = field(default_factory=list)

    def replace(self, by: Replacement, counter: TokenCounter, why: str) -> int:
        """Put what stands for a range in its place; what may not leave moves to the front. Returns tokens gained."""
        start = bisect_left(self.run, by.first, key=lambda each: each.first)
        stop = bisect_left(self.run, by.last, key=lambda each: each.first)
        old = self.run[start:stop]
        leaving = [each for each in old if by.summary is None or not is_kept(each)]
        if not leaving or old[0].first != by.first:
            raise LogUnreadable(
                f"a compaction covers [{by.first}, {by.last}), where the view has nothing to replace"
            )
        new = replaced(leaving, by, counter, why)
        if by.summary is not None:
            self.kept.extend(each for each in old if is_kept(each))
        self.run[start:stop] = [new]
        return new.tokens - sum(each.tokens for each in leaving)


def preview(view: View, replacements: Iterable[Replacement], why: str = "") -> View:
    """The view as it would be after the replacements. Nothing is recorded."""
    body = Body(list(view.kept), list(view.run))
    for each in replacements:
        body.replace(each, view.counter, why)
    kept, run = tuple(body.kept), tuple(body.run)
    return replace(view, kept=kept, run=run, tokens=cost((*view.systems, *kept, *run), view.counter))


class Fold:
    """The state of one log folded so far. ``skip`` are the positions of undone compactions."""

    def __init__(self, counter: TokenCounter, *, skip: frozenset[int] = frozenset()) -> None:
        self.counter = Remembering(counter)
        self.skip = skip
        self.head = 0
        self.open: dict[tuple[int, int], OpenCall] = {}
        self.abandoned: dict[str, list[OpenCall]] = {}
        self.compactions: list[int] = []
        """The positions of those that hold."""
        self.records: dict[tuple[int, int], str] = {}
        """By range, the record behind what stands for it, where a model wrote one."""
        self.pinned: dict[int, str] = {}
        self.known: FactsShown | None = None
        """What the head of the view says is known; None where it never was to say anything."""
        self._known: tuple[Shown, ...] = ()
        self._known_at: int | None = None
        self.answers: dict[int, list[int]] = {}
        """By action, the positions of the observations that came after it."""
        self.memo = Memo()
        self._costs: dict[int, int] = {}
        """By position, tokens of what was recorded there, as it stood before anything left."""
        self._unshown: dict[int, dict[int, Observation]] = {}
        self._systems: list[Shown] = []
        self._body = Body()
        self._used: set[str] = set()

    def apply(self, entry: Entry) -> None:
        """Take in the next entry. Raises LogUnreadable where the log does not continue this fold."""
        if entry.position != self.head:
            raise LogUnreadable(f"entry {entry.position} came where {self.head} was next")
        self.head += 1
        position, body = entry.position, entry.body
        if isinstance(body, FactsShown):
            self._know(position, body)
            return
        if isinstance(body, FactBody):
            return  # no part of the run
        match body:
            case Observed():
                self._observe(position, body)
            case Compaction():
                self._compact(position, body)
            case Pin(text=text):
                self.pinned[position] = text
                self._append(position, body, "pin", "pinned")
            case Unpin(position=pin):
                self._unpin(pin)
            case Checkpoint() | Undo():
                pass
            case _:
                self._step(position, body)

    def cost_of(self, first: int, last: int) -> int:
        """Tokens of what was recorded at positions ``[first, last)``, whole."""
        return sum(self._costs.get(each, 0) for each in range(first, last))

    def view(self, limit: int) -> View:
        """The view now, held to ``limit`` tokens by whoever compacts it."""
        self._settle()
        systems, kept, run = tuple(self._systems), (*self._known, *self._body.kept), tuple(self._body.run)
        tokens = cost((*systems, *kept, *run), self.counter)
        return View(systems, kept, run, self.head, tokens, limit, self.counter, self.memo)

    @property
    def known_tokens(self) -> int:
        """Tokens of what the head says is known."""
        return sum(each.tokens for each in self._known)

    def _know(self, position: int, known: FactsShown, tokens: int | None = None) -> None:
        self.known, self._known_at = known, position
        item, why = Aside("facts", known.text), "known when the view was laid out"
        if tokens is None:
            shown = show(item, position, position + 1, self.counter, tier="facts", why=why)
        else:
            shown = Shown(position, position + 1, item, "facts", why, messages_of(item), tokens)
        self._known = (shown,) if known.text else ()

    def kept(self) -> dict[str, Any]:
        """All of it as JSON-safe values; what was recorded stays in the log, and is named by its position."""
        self._settle()
        pairs = [(action, at) for action, found in self.answers.items() for at in found]
        pairs.sort(key=lambda pair: pair[1])
        waiting = [call for calls in self.abandoned.values() for call in calls]
        return {
            "head": self.head,
            "skip": sorted(self.skip),
            "open": [[call.action, call.index, call.id] for call in self.open.values()],
            "abandoned": [[call.action, call.index, call.id] for call in waiting],
            "compactions": self.compactions,
            "records": [[*pair, record] for pair, record in self.records.items()],
            "pinned": list(self.pinned.items()),
            "known": [self._known_at, *(each.tokens for each in self._known)],
            "answers": [steps_of(action for action, _ in pairs), steps_of(at for _, at in pairs)],
            "costs": [steps_of(self._costs), list(self._costs.values())],
            "used": sorted(self._used),
            "shown": [list(map(_kept, each)) for each in (self._systems, self._body.kept, self._body.run)],
            "memo": self.memo.kept(),
        }

    @staticmethod
    def needed(kept: Mapping[str, Any]) -> frozenset[int]:
        """The positions whose entries ``of`` needs: what is shown as it was recorded, and its answers."""
        shown = {each[0] for part in kept["shown"] for each in part if each[-1] is None}
        actions, places = map(sums_of, kept["answers"])
        return (
            frozenset(shown)
            .union(at for at in kept["known"][:1] if at is not None)
            .union(at for action, at in zip(actions, places, strict=True) if action in shown)
        )

    @classmethod
    def of(cls, counter: TokenCounter, kept: Mapping[str, Any], recorded: Mapping[int, Any]) -> Self:
        """The fold that was kept, counted by the same counter; ``recorded`` has the bodies that it needs by position.

        Raises ValueError, KeyError, TypeError or LogUnreadable where they do not fit together.
        """
        fold = cls(counter, skip=frozenset(kept["skip"]))
        fold.head, fold.compactions = kept["head"], kept["compactions"]
        fold.open = {(action, index): OpenCall(action, index, id) for action, index, id in kept["open"]}
        for action, index, id in kept["abandoned"]:
            fold.abandoned.setdefault(id, []).append(OpenCall(action, index, id))
        fold.records = {(first, last): record for first, last, record in kept["records"]}
        fold.pinned = dict(kept["pinned"])
        if kept["known"][0] is not None:
            position, *tokens = kept["known"]
            fold._know(position, recorded[position], *tokens)
        for action, at in zip(*map(sums_of, kept["answers"]), strict=True):
            fold.answers.setdefault(action, []).append(at)
        positions, costs = kept["costs"]
        fold._costs = dict(zip(sums_of(positions), costs, strict=True))
        fold._used = set(kept["used"])
        systems, settled, run = ([fold._restored(each, recorded) for each in part] for part in kept["shown"])
        fold._systems, fold._body = systems, Body(settled, run)
        fold.memo = Memo.of(kept["memo"])
        return fold

    def _restored(self, kept: Sequence[Any], recorded: Mapping[int, Any]) -> Shown:
        first, last, tier, why, tokens, ids, held, said = kept
        stubs = tuple(Stub(*each) for each in held)
        item: Item = recorded[first] if said is None else SummaryStep(*said)
        if isinstance(item, ActionStep):
            came = (recorded[at] for at in self.answers.get(first, ()))
            answers = {each.index: each.observation for each in came if not each.late}
            item = with_observations(item, answers) if answers else item
        item = with_stubs(item, stubs)
        messages = messages_of(item, ids, late_system=tier == "note")
        return Shown(first, last, item, tier, why, messages, tokens, tuple(ids), stubs)

    def _step(self, position: int, step: Item) -> None:
        match step:
            case SystemPromptStep():
                if self._body.run or self._body.kept:
                    self._append(position, step, "note", "a system prompt that came late, as a notice")
                else:
                    shown = self._show(position, step, "system", "system prompt")
                    self._systems.append(shown)
            case TaskStep():
                self._append(position, step, "user", "the user's words")
            case ActionStep():
                ids = wire_ids(step, position, self._used)
                for call in open_calls(step, position):
                    self.open[call.action, call.index] = call
                self._append(position, step, "whole", "recorded", ids)
            case Observed() | Pin() | Aside():
                raise LogUnreadable(f"{type(step).__name__} at {position} is not a step")
            case _:
                self._append(position, step, "whole", "recorded")
        if not isinstance(step, SystemPromptStep):
            self.memo.learn_step(position, step)

    def _show(self, position: int, item: Item, tier: ShownAs, why: str, ids: tuple[str, ...] = ()) -> Shown:
        shown = show(item, position, position + 1, self.counter, tier=tier, why=why, ids=ids)
        self._costs[position] = shown.tokens
        return shown

    def _append(self, position: int, item: Item, tier: ShownAs, why: str, ids: tuple[str, ...] = ()) -> None:
        self._body.run.append(self._show(position, item, tier, why, ids))

    def _observe(self, position: int, body: Observed) -> None:
        self.answers.setdefault(body.action, []).append(position)
        if body.late:
            self._come(body)
            self._append(position, body, "note", "a result that came after its call was closed")
            self.memo.learn_step(position, body)
            return
        call = self.open.pop((body.action, body.index), None)
        if call is None:
            raise LogUnreadable(f"the observation at {position} answers no open call")
        if body.observation.status == "unknown":
            self.abandoned.setdefault(call.id, []).append(call)
        self._unshown.setdefault(body.action, {})[body.index] = body.observation
        self.memo.learn_observation(body.action, body.index, body.observation)

    def _come(self, late: Observed) -> None:
        """A call that was given up has its result after all: it waits for no second one."""
        waiting = self.abandoned.get(late.observation.call_id, [])
        rest = [call for call in waiting if (call.action, call.index) != (late.action, late.index)]
        if rest:
            self.abandoned[late.observation.call_id] = rest
        else:
            self.abandoned.pop(late.observation.call_id, None)

    def _settle(self) -> None:
        """Show what was observed since the last look: an action once, however many results it got."""
        run = self._body.run
        for action, answers in self._unshown.items():
            where = bisect_left(run, action, key=lambda each: each.first)
            old = run[where] if where < len(run) else None
            if old is None or old.first != action or not isinstance(old.item, ActionStep):
                raise LogUnreadable(f"an observation names {action}, and the view has no action there")
            run[where] = show(
                with_observations(old.item, answers), old.first, old.last, self.counter,
                tier=old.tier, why=old.why, ids=old.ids, stubs=old.stubs,
            )  # fmt: skip
            if not old.stubs:
                self._costs[action] = run[where].tokens
        self._unshown.clear()

    def _compact(self, position: int, body: Compaction) -> None:
        if position in self.skip:
            return
        self._settle()
        self.compactions.append(position)
        why = f"{body.policy}: {body.reason}"
        for each in body.replacements:
            self._body.replace(each, self.counter, why)
            if each.record:
                self.records[each.first, each.last] = each.record
            else:
                self.records.pop((each.first, each.last), None)

    def _unpin(self, pin: int) -> None:
        self.pinned.pop(pin, None)
        for shown in (self._body.kept, self._body.run):
            shown[:] = [each for each in shown if not (each.first == pin and isinstance(each.item, Pin))]


def _kept(shown: Shown) -> list[Any]:
    """What is shown as JSON-safe values: by its position, or, of what stands for a range, with its text."""
    item, stubs = shown.item, [[each.slot, each.index, each.text, each.tier] for each in shown.stubs]
    said = [item.content, item.author] if isinstance(item, SummaryStep) else None
    return [shown.first, shown.last, shown.tier, shown.why, shown.tokens, shown.ids, stubs, said]


def steps_of(numbers: Iterable[int]) -> list[int]:
    """The first number, and by how much each one is above the one before it: of sorted ones, small and alike.

    >>> steps_of([3, 5, 7]), list(sums_of([3, 2, 2]))
    ([3, 2, 2], [3, 5, 7])
    """
    every = list(numbers)
    return [each - before for before, each in zip([0, *every], every, strict=False)]


def sums_of(steps: Iterable[int]) -> Iterator[int]:
    """The numbers that ``steps_of`` was given."""
    return accumulate(steps)


def undone(bodies: Iterable[object]) -> frozenset[int]:
    """The positions of the compactions that undo entries name."""
    return frozenset(body.position for body in bodies if isinstance(body, Undo))
