"""The verbs, written once: generators that yield what they need done, driven sync and async by ``memory``.

A flow decides; whoever drives it appends and reads. A failure is raised inside the flow, where the effect was asked
for, so nothing is half applied in either colour.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pagein.compaction import Plan, Policy, newest_user
from pagein.compaction.floor import floor
from pagein.compaction.manual import manual
from pagein.errors import ConfigurationError, NothingToUndo, OverBudget, UnknownHandle
from pagein.formats import Item
from pagein.log import Body, Compaction, Entry, Observed, Pin, Undo, Unpin
from pagein.protocol import with_observations
from pagein.recording import Handed, Rendered, admit, heard_in, unheard
from pagein.steps import ActionStep, Observation, Step, Usage
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.calibration import Calibration
from pagein.view import View
from pagein.view.cuts import cuts
from pagein.view.fold import Fold, preview, undone
from pagein.view.handles import Handle, parse_handle, range_handle

T = TypeVar("T")
Flow = Generator["Effect[Any]", Any, T]


class Effect(Generic[T]):
    """Something a flow needs done; ``yield from`` it gives what it gave."""

    def __iter__(self) -> Generator[Effect[T], T, T]:
        """Hand the effect to whoever drives the flow."""
        return (yield self)


@dataclass(frozen=True)
class Append(Effect[tuple[Entry, ...]]):
    """Write the bodies durably at ``after``, all or none."""

    bodies: tuple[Body, ...]
    after: int


@dataclass(frozen=True)
class Read(Effect[tuple[Entry, ...]]):
    """The entries ``[start, stop)``."""

    start: int
    stop: int | None


def drive(flow: Flow[T], perform: Callable[[Effect[Any]], Any]) -> T:
    """Run a flow to its end, doing each effect at once."""
    try:
        effect = next(flow)
        while True:
            try:
                given = perform(effect)
            except BaseException as error:  # noqa: BLE001 - it belongs inside the flow, whatever it is
                effect = flow.throw(error)
            else:
                effect = flow.send(given)
    except StopIteration as end:
        result: T = end.value
        return result


async def adrive(flow: Flow[T], perform: Callable[[Effect[Any]], Awaitable[Any]]) -> T:
    """Run a flow to its end, awaiting each effect."""
    try:
        effect = next(flow)
        while True:
            try:
                given = await perform(effect)
            except BaseException as error:  # noqa: BLE001 - cancellation too is raised where it struck
                effect = flow.throw(error)
            else:
                effect = flow.send(given)
    except StopIteration as end:
        result: T = end.value
        return result


@dataclass(slots=True)
class Session:
    """What is held of one log between two calls. Everything in it can be derived again from the log."""

    fold: Fold
    policy: Policy
    budget: Budget
    counter: TokenCounter
    calibration: Calibration = field(default_factory=Calibration)
    heard: list[bytes] = field(default_factory=list)
    heard_at: list[int] = field(default_factory=list)
    """The position of each that was heard."""
    rendered: dict[str, Rendered] = field(default_factory=dict)
    """By format, the request given out last."""
    repairs: list[str] = field(default_factory=list)
    asked: int = 0
    """The count of the request shown last, which the next reported usage is compared with."""
    told: tuple[int, int] | None = None
    """What was counted here and by the provider for the last request that both counted."""

    def limit(self, budget: Budget) -> int:
        """The budget's limit in counted tokens, after what the provider's reports taught."""
        return max(1, self.calibration.room(budget.limit))

    def take(self, entries: Sequence[Entry]) -> None:
        """Fold new entries in."""
        for entry in entries:
            self.fold.apply(entry)
            self._hear(entry)
            body = entry.body
            if isinstance(body, ActionStep) and body.usage is not None:
                self.learn(body.usage.input_tokens)

    def begin(self, entries: Sequence[Entry]) -> None:
        """Fold the whole log anew; what was held stays where it cannot be folded."""
        fold = Fold(self.counter, skip=undone(entry.body for entry in entries))
        for entry in entries:
            fold.apply(entry)
        self.fold, self.heard, self.heard_at = fold, [], []
        for entry in entries:
            self._hear(entry)

    def since(self, position: int) -> list[bytes]:
        """What was heard from a position on."""
        return self.heard[bisect_left(self.heard_at, position) :]

    def _hear(self, entry: Entry) -> None:
        said = heard_in(entry)
        self.heard.extend(said)
        self.heard_at.extend([entry.position] * len(said))

    def learn(self, reported: int) -> None:
        """Compare what a provider counted with what was counted here for the request it answered.

        Where the budget reserves nothing for tools, nobody said what they cost: then growth is compared with growth,
        so that what is the same in both requests cancels out, and an exact counter has nothing to learn.
        """
        asked, self.asked = self.asked, 0
        if not asked or reported <= 0:
            return
        if self.budget.tools:
            self.calibration = self.calibration.observe(asked + self.budget.tools, reported)
        elif self.told is not None and not self.calibration.exact:
            grown, told = asked - self.told[0], reported - self.told[1]
            if grown * told > 0:
                self.calibration = self.calibration.observe(abs(grown), abs(told))
        self.told = (asked, reported)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What ``record`` wrote: positions ``[first, last)``, and what had to be mended to be legal."""

    first: int
    last: int
    repairs: tuple[str, ...] = ()


def load(session: Session) -> Flow[None]:
    """Fold the whole log from its first entry, undone compactions left out."""
    entries = yield from Read(0, None)
    session.begin(entries)


def catch_up(session: Session) -> Flow[None]:
    """Fold in what another writer recorded meanwhile."""
    entries = yield from Read(session.fold.head, None)
    if any(isinstance(entry.body, Undo) for entry in entries):
        yield from load(session)
    else:
        session.take(entries)


def nothing() -> Flow[None]:
    """Do nothing, in its turn."""
    yield from ()


def record(
    session: Session,
    items: Sequence[Item] | Handed,
    *,
    strict: bool,
    whole: bool | None = False,
    usage: Usage | None = None,
) -> Flow[Recorded]:
    """Write the items durably, all or none, then show them; learn from what the provider reported."""
    fold = session.fold
    fresh, left = _fresh(session, items, whole)
    admission = admit(fresh, head=fold.head, open_now=fold.open, abandoned=fold.abandoned, strict=strict)
    first = fold.head
    if admission.bodies:
        session.take((yield from Append(admission.bodies, first)))
    repairs = (*left, *admission.repairs)
    session.repairs.extend(repairs)
    if usage is not None:
        session.learn(usage.input_tokens)
    return Recorded(first, fold.head, repairs)


def _fresh(
    session: Session, items: Sequence[Item] | Handed, whole: bool | None
) -> tuple[Sequence[Item], tuple[str, ...]]:
    """What of the items is new, and what was left out; typed steps are all new."""
    if not isinstance(items, Handed):
        return items, ()
    shown = session.rendered.get(items.format)
    since = session.since(shown.head) if shown is not None else ()
    return unheard(items, shown, session.heard, since, whole=whole)


def view(session: Session) -> Flow[View]:
    """The view within budget: what left to get there is recorded first. Raises OverBudget."""
    limit = session.limit(session.budget)
    current = session.fold.view(limit)
    plan = fitting(current, session.budget, session.policy)
    if plan is not None:
        current = yield from commit(session, current, plan)
    session.asked = current.tokens
    return current


def shown(
    session: Session, summary_mode: bool, keep_last_n: int | None, max_tokens: int | None
) -> Flow[View]:
    """The view, or what the manual controls make of it; only the former records a compaction."""
    if not summary_mode and keep_last_n is None and max_tokens is None:
        return (yield from view(session))
    budget = session.budget if max_tokens is None else Budget(max_tokens)
    current = manual(
        session.fold.view(session.limit(budget)), summary_mode=summary_mode, keep_last_n=keep_last_n
    )
    plan = fitting(current, budget, session.policy)
    return current if plan is None else preview(current, plan.replacements)


LEAST = 0.02
"""The share of the limit that a compaction must gain where none is needed: less is not worth a broken prefix."""


def fitting(current: View, budget: Budget, policy: Policy) -> Plan | None:
    """What the policy takes out until it finds no more, and the floor where that is not enough. Pure.

    Asked again about its result it finds nothing, so that two views in a row record one compaction. Raises
    OverBudget, and ConfigurationError for a plan that would break a promise.
    """
    whole, after = None, current
    while (found := _next(after, budget, policy)) is not None:
        plan, after = found
        whole = plan if whole is None else whole.then(plan)
    if after.tokens <= current.limit:
        return whole
    return _least(current, budget)


def _least(current: View, budget: Budget) -> Plan:
    """The floor by itself, where what a policy left first stood in its way. Raises OverBudget, with what it came to."""
    plan = floor(current, budget)
    after = current if plan is None else preview(current, plan.replacements)
    if plan is None or after.tokens > current.limit:
        given_up = ("summary", "clip", "mask", "floor", "reasoning")
        staying = [each.handle for each in after.entries if each.tier not in given_up]
        raise OverBudget(after.tokens, current.limit, staying)
    return plan


def _next(view: View, budget: Budget, policy: Policy) -> tuple[Plan, View] | None:
    is_over = view.tokens > view.limit
    tried: tuple[Callable[[View, Budget], Plan | None], ...] = (policy, floor) if is_over else (policy,)
    least = 1 if is_over else max(1, int(view.limit * LEAST))
    for each in tried:
        plan = each(view, budget)
        if plan is not None:
            after = preview(view, checked(view, plan).replacements)
            if view.tokens - after.tokens >= least:
                return plan, after
    return None


def checked(view: View, plan: Plan) -> Plan:
    """The plan, where it keeps the promises: ranges between legal cuts, the user's newest words left alone.

    Raises ConfigurationError, so that a policy's mistake is not written down for ever.
    """
    allowed, newest = frozenset(cuts(view)), newest_user(view)
    for each in plan.replacements:
        handle = range_handle(each.first, each.last)
        if each.first <= newest < each.last:
            raise ConfigurationError(
                f"policy {plan.policy!r} would take out {handle}: the user's newest words stay"
            )
        if each.summary is not None and not {each.first, each.last} <= allowed:
            raise ConfigurationError(
                f"policy {plan.policy!r} would fold {handle}: a view is split at view.cuts.cuts only"
            )
    return plan


def commit(session: Session, current: View, plan: Plan) -> Flow[View]:
    """Record a plan as a compaction, and give the view it leaves."""
    after = preview(current, plan.replacements)
    body = Compaction(plan.replacements, plan.policy, plan.reason, current.tokens, after.tokens)
    session.take((yield from Append((body,), session.fold.head)))
    return session.fold.view(current.limit)


def compact(session: Session) -> Flow[Compaction | None]:
    """Compact now, to the low mark, whatever the view costs; None where nothing would get smaller."""
    limit = session.limit(session.budget)
    current = session.fold.view(limit)
    # Only the marks are moved: what a policy grants the user's words is a share of the limit, which is the same.
    share = min(1.0, current.tokens * session.budget.low_share / limit)
    pressed = replace(session.budget, high=share, low=share)
    plan = session.policy(current, pressed)
    if plan is None or preview(current, checked(current, plan).replacements).tokens >= current.tokens:
        return None
    yield from commit(session, current, plan)
    return session.fold.compactions[-1][1]


def undo(session: Session) -> Flow[Compaction]:
    """Take back the last compaction that was not taken back already. Raises NothingToUndo."""
    if not session.fold.compactions:
        raise NothingToUndo("no compaction is left to undo")
    position, body = session.fold.compactions[-1]
    # Read before the write: what fails then leaves everything as it was.
    before = yield from Read(0, session.fold.head)
    written = yield from Append((Undo(position),), session.fold.head)
    session.begin((*before, *written))
    return body


def pin(session: Session, text: str) -> Flow[str]:
    """Keep the text verbatim in every view. Gives its handle."""
    entries = yield from Append((Pin(text),), session.fold.head)
    session.take(entries)
    return str(Handle(entries[0].position, entries[0].position + 1))


def unpin(session: Session, handle: str) -> Flow[None]:
    """Let a pin go. Raises UnknownHandle where the handle names no pin."""
    named = parse_handle(handle)
    if named is None or named.first not in session.fold.pinned:
        raise UnknownHandle(handle, session.fold.head)
    session.take((yield from Append((Unpin(named.first),), session.fold.head)))


def steps(session: Session, first: int = 0, last: int | None = None) -> Flow[tuple[tuple[int, Step], ...]]:
    """The steps at positions ``[first, last)``, each action with every observation it has, a late one included."""
    found, _ = yield from told(session, first, session.fold.head if last is None else last)
    return tuple(found.items())


def told(session: Session, first: int, last: int) -> Flow[tuple[dict[int, Step], dict[int, Observation]]]:
    """The steps at positions ``[first, last)``, and the observations that stand there as notes, by position."""
    stop = min(last, session.fold.head)
    entries = yield from Read(first, stop)
    found = {entry.position: entry.body for entry in entries if isinstance(entry.body, Step)}
    notes = {
        entry.position: entry.body.observation
        for entry in entries
        if isinstance(entry.body, Observed) and entry.body.late
    }
    answers = [entry.body for entry in entries if isinstance(entry.body, Observed)]
    # An observation may be far behind its action: a late one is where it came.
    behind = (at for action in found for at in session.fold.answers.get(action, ()) if at >= stop)
    for start, end in _stretches(sorted(behind)):
        more = yield from Read(start, end)
        answers += [entry.body for entry in more if isinstance(entry.body, Observed)]
    by_action: dict[int, dict[int, Observation]] = {}
    for each in answers:
        by_action.setdefault(each.action, {})[each.index] = each.observation
    for action, seen in by_action.items():
        step = found.get(action)
        if isinstance(step, ActionStep):
            found[action] = with_observations(step, seen)
    return found, notes


def _stretches(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Sorted positions as ranges ``[start, end)``, so that neighbours are read at once."""
    start = end = -1
    for each in positions:
        if each != end:
            if start >= 0:
                yield start, end
            start = each
        end = each + 1
    if start >= 0:
        yield start, end
