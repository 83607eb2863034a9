"""The incremental fold: entries of the log in, a view out. The cost of an entry does not grow with history.

Folding the same entries gives the same view, in any process. Only an undo looks back: it folds the log again without
the compaction it names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pagein.errors import LogUnreadable
from pagein.log import (
    Checkpoint,
    Compaction,
    Entry,
    FactBody,
    FactsShown,
    Observed,
    Pin,
    Replacement,
    Stub,
    Undo,
    Unpin,
)
from pagein.protocol import OpenCall, open_calls, with_observations
from pagein.steps import ActionStep, Observation, SummaryStep, SystemPromptStep, TaskStep
from pagein.tokens import TokenCounter
from pagein.tokens.remembering import Remembering
from pagein.tokens.requests import message_tokens
from pagein.view import Shown, ShownAs, View, cost
from pagein.view.layout import Aside, Item, messages_of, wire_ids
from pagein.view.memo import Memo
from pagein.view.stubs import with_stubs


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
        self.compactions: list[tuple[int, Compaction]] = []
        self.pinned: dict[int, str] = {}
        self.known: FactsShown | None = None
        """What the head of the view says is known; None where it never was to say anything."""
        self._known: tuple[Shown, ...] = ()
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

    def _know(self, position: int, known: FactsShown) -> None:
        self.known = known
        shown = show(
            Aside("facts", known.text), position, position + 1, self.counter, tier="facts",
            why="known when the view was laid out",
        )  # fmt: skip
        self._known = (shown,) if known.text else ()

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
            self._costs[action] = max(self._costs.get(action, 0), run[where].tokens)
        self._unshown.clear()

    def _compact(self, position: int, body: Compaction) -> None:
        if position in self.skip:
            return
        self._settle()
        self.compactions.append((position, body))
        why = f"{body.policy}: {body.reason}"
        for each in body.replacements:
            self._body.replace(each, self.counter, why)

    def _unpin(self, pin: int) -> None:
        self.pinned.pop(pin, None)
        for shown in (self._body.kept, self._body.run):
            shown[:] = [each for each in shown if not (each.first == pin and isinstance(each.item, Pin))]


def undone(bodies: Iterable[object]) -> frozenset[int]:
    """The positions of the compactions that undo entries name."""
    return frozenset(body.position for body in bodies if isinstance(body, Undo))
