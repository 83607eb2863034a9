"""Views of one request alone: with a filter of its own, and nothing recorded.

A wider view has steps that left: they come back from the log, newest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pagein.context.compaction.policies.window import Window
from pagein.context.view.body import preview
from pagein.context.view.layout import ViewEntry, make_entry, wire_ids
from pagein.context.view.view import View, request_cost
from pagein.errors import ConfigurationError, OverBudget
from pagein.events.entries import Observed
from pagein.events.own_steps import SUMMARY, own_note
from pagein.events.steps import ActionStep, FinalAnswerStep, PlanningStep, SummaryStep, SystemPromptStep
from pagein.log.base import Log
from pagein.memory._state import RunState
from pagein.memory.operations import view as view_operation
from pagein.memory.operations.history import READ_AT_ONCE, read_steps_and_notes
from pagein.memory.requests import NO_FILTER, RequestFilter
from pagein.tokens import Budget
from pagein.tokens.budget import RequestRoom, as_budget


def make_filtered_view(run: RunState, filter: RequestFilter, room: RequestRoom = view_operation.NO_ROOM) -> View:
    """Make the view, or with a filter another one that records nothing. Raises OverBudget."""
    if filter == NO_FILTER:
        return view_operation.make_view(run, room)
    budget = _filter_budget(run, filter)
    beside = run.usage.room_beside(room) if filter.max_tokens is None else room.reserve + (room.tools or 0)
    try:
        view_operation.check_room(budget, beside)
        run.usage.set_byte_limit(budget, room)
        return filtered_view(run, filter, run.usage.limit_beside(beside, budget))
    except OverBudget as error:
        raise view_operation.over_budget_of(run, error, beside) from None


def filtered_view(run: RunState, filter: RequestFilter, limit: int, log: Log | None = None) -> View:
    """Filter the view within the limit; what left it comes back as far as the filter asks for it. Raises OverBudget."""
    budget = _filter_budget(run, filter)
    view = _filter(run, run.view(limit), filter, int(limit * budget.high), log)
    reserve = view_operation.reserve_room(run, view)._replace(turns=0)  # nothing is paged in for one request
    plan, room = view_operation.plan_in_first(run.policy, view, budget, reserve.rooms(view.limit))
    if plan is not None:
        view, most = preview(view, plan.replacements), room
        for _ in range(2):  # as nothing is recorded, no need to go down to the low mark
            wider = _filter(run, view, filter, most, log)
            if wider.tokens <= room:
                view = wider
                break
            most -= wider.tokens - room
    return view_operation.add_ledger(run, view, budget)


def _filter(run: RunState, view: View, filter: RequestFilter, most: int, log: Log | None) -> View:
    """Filter the view; what left it comes back, newest first, within ``most`` tokens."""
    if (filter.keep_last_n or filter.max_tokens is not None) and view.has_replaced_entries:
        view = _widen(run, view, most, filter.keep_last_n, log)
    return _filter_steps(view, summary_mode=filter.summary_mode, keep_last_n=filter.keep_last_n)


def _filter_budget(run: RunState, filter: RequestFilter) -> Budget:
    """The budget of a filtered view: the filter's tokens, if it has any, and the bytes of every request."""
    budget = run.usage.budget
    return (
        budget if filter.max_tokens is None else replace(as_budget(filter.max_tokens, "max_tokens"), bytes=budget.bytes)
    )


WIDENED_WHY = "asked for, and read from the log"


def _widen(run: RunState, view: View, most: int, actions: int | None, log: Log | None = None) -> View:
    """Return the view with what left it, newest first: ``actions`` whole actions, all of them where it is None.

    It goes on while the view has at most ``most`` tokens. What an application changed by hand stays as it is.
    """
    widened = _WidenedRun(view, most, actions)
    used = {wire for entry in view.run for wire in entry.ids}
    while (entry := widened.pop_older()) is not None:
        if not _has_left(view, entry):
            widened.keep(entry)
            continue
        first = max(entry.first, entry.last - READ_AT_ONCE)
        used.difference_update(entry.ids)
        restored = _read_entries(run, view, first, entry.last, used, log)
        widened.restore(entry, first, restored)
    body = (*widened.older, *widened.newer)
    return replace(view, run=body, tokens=request_cost((*view.systems, *view.front, *body), view.counter))


class _WidenedRun:
    """The run of a view while what left it comes back: ``older`` entries are as they were, ``newer`` ones are done."""

    def __init__(self, view: View, most: int, actions: int | None) -> None:
        self.older, self.newer = list(view.run), list[ViewEntry]()
        self._actions = actions
        # Where actions are counted, what is older leaves anyway: its tokens are free.
        leaving = 0 if actions is None else _sum_tokens(view.run)
        self._free = most - view.tokens + leaving

    def pop_older(self) -> ViewEntry | None:
        """The next older entry to look at; None where there is no more room, no entry, or no action wanted."""
        actions = sum(isinstance(entry.item, ActionStep) for entry in self.newer)
        is_done = self._free <= 0 or (self._actions is not None and actions >= self._actions)
        return None if is_done or not self.older else self.older.pop()

    def keep(self, entry: ViewEntry) -> None:
        """Keep an entry that is whole."""
        self.newer.insert(0, entry)
        self._free -= 0 if self._actions is None else entry.tokens

    def restore(self, entry: ViewEntry, first: int, restored: Sequence[ViewEntry]) -> None:
        """Put the entries from ``first`` on in the place of the one that stood for them, as many as fit."""
        tokens = _sum_tokens(restored)
        gone = entry.tokens if self._actions is None and first == entry.first else 0
        if tokens - gone > self._free:
            fitting = _newest_that_fit(restored, self._free) if entry.last - entry.first > 1 else []
            self.older.append(replace(entry, last=fitting[0].first) if fitting else entry)
            self.newer[:0], self._free = fitting, 0
            return
        self.newer[:0], self._free = restored, self._free - tokens + gone
        if first > entry.first:
            self.older.append(replace(entry, last=first))


def _sum_tokens(entries: Iterable[ViewEntry]) -> int:
    return sum(entry.tokens for entry in entries)


def _has_left(view: View, entry: ViewEntry) -> bool:
    if entry.last - entry.first == 1 and entry.first in view.changed_by_hand:
        return False
    return isinstance(entry.item, SummaryStep) or bool(entry.stubs)


def _newest_that_fit(entries: Sequence[ViewEntry], room: int) -> list[ViewEntry]:
    fitting = list[ViewEntry]()
    for entry in reversed(entries):
        room -= entry.tokens
        if room < 0:
            break
        fitting.insert(0, entry)
    return fitting


def _read_entries(run: RunState, view: View, first: int, last: int, used: set[str], log: Log | None) -> list[ViewEntry]:
    """Read the entries of the steps and notes at ``[first, last)`` as they were recorded."""
    steps, notes = read_steps_and_notes(run, first, last, log)
    rows = run.runtime.read_entries(first, last, log)
    late = {row.position: row.body for row in rows if row.position in notes and isinstance(row.body, Observed)}
    entries = list[ViewEntry]()
    for at in sorted((*steps, *late)):
        item = late.get(at) or steps[at]
        if at in view.changed_by_hand or isinstance(item, SystemPromptStep):
            continue
        ids = wire_ids(item, at, used) if isinstance(item, ActionStep) else ()
        entries.append(make_entry(item, at, at + 1, view.counter, tier="whole", why=WIDENED_WHY, ids=ids))
    return entries


def _filter_steps(view: View, *, summary_mode: bool, keep_last_n: int | None) -> View:
    """Return the last ``keep_last_n`` actions of a view; in ``summary_mode`` without prompts, plans and prose.

    Summary mode is a filter, not a summary (smolagents ``write_memory_to_messages``): tasks, tool calls, observations
    and errors stay. Nothing is recorded. Raises ConfigurationError for a negative number.
    """
    if keep_last_n is not None:
        if keep_last_n < 0:
            raise ConfigurationError(f"keep_last_n must be 0 or more, not {keep_last_n}")
        plan = Window(keep_last_n, always=True)(view, Budget(view.limit))
        view = view if plan is None else preview(view, plan.replacements, plan.reason)
    if not summary_mode:
        return view
    run = tuple(shortened for entry in view.run if (shortened := _without_prose(entry, view)) is not None)
    return replace(view, systems=(), run=run, tokens=request_cost((*view.front, *run), view.counter))


def _without_prose(entry: ViewEntry, view: View) -> ViewEntry | None:
    note = own_note(entry.item.observation if isinstance(entry.item, Observed) else entry.item)
    if note is not None and SUMMARY in note:
        return _in_summary_mode(entry, note[SUMMARY], view)
    match entry.item:
        case PlanningStep() | FinalAnswerStep() | ActionStep(tool_calls=()):
            return None
        case ActionStep(tool_calls=calls) as step:
            bare = replace(step, content=None, tool_calls=tuple(replace(call, at=None) for call in calls))
            first, last, tier, ids = entry.first, entry.last, entry.tier, entry.ids
            return make_entry(bare, first, last, view.counter, tier=tier, why="summary mode", ids=ids)
        case _:
            return entry


def _in_summary_mode(entry: ViewEntry, text: str | bool, view: View) -> ViewEntry | None:
    """The entry of a step of a user's class with what it says in summary mode; None where that is nothing."""
    item = entry.item
    has_calls = isinstance(item, ActionStep) and bool(item.tool_calls)
    if text is False and not has_calls:
        return None
    if text is True or entry.stubs:
        return entry
    if isinstance(item, Observed):
        item = replace(item, observation=replace(item.observation, content=text or ""))
    elif isinstance(item, ActionStep):
        item = replace(item, content=text or None, tool_calls=tuple(replace(call, at=None) for call in item.tool_calls))
    return make_entry(item, entry.first, entry.last, view.counter, tier=entry.tier, why="summary mode", ids=entry.ids)
