"""A wider view for one request: steps that left come back from the log, newest first, and nothing is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pagein.context.view.fold import make_entry
from pagein.context.view.layout import wire_ids
from pagein.context.view.view import View, ViewEntry, request_cost
from pagein.events.entries import Observed
from pagein.events.steps import ActionStep, SummaryStep, SystemPromptStep
from pagein.log.base import Log
from pagein.memory._effects import Flow, Read
from pagein.memory._state import RunState
from pagein.memory.operations.history import READ_AT_ONCE, read_steps_and_notes

WHY = "asked for, and read from the log"


def widen(run: RunState, view: View, most: int, actions: int | None, log: Log | None = None) -> Flow[View]:
    """Return the view with what left it, newest first: ``actions`` whole actions, all of them where it is None.

    It goes on while the view has at most ``most`` tokens. What a host changed by hand stays as it is.
    """
    if not view.has_replaced_entries:
        return view
    older, newer = list(view.run), list[ViewEntry]()
    # Where actions are counted, what is older leaves anyway: its tokens are free.
    kept = view.tokens if actions is None else view.tokens - sum(entry.tokens for entry in view.run)
    free = most - kept
    used = {wire for entry in view.run for wire in entry.ids}
    while older and free > 0 and (actions is None or _count_actions(newer) < actions):
        entry = older.pop()
        if not _has_left(view, entry):
            newer.insert(0, entry)
            free -= 0 if actions is None else entry.tokens
            continue
        first = max(entry.first, entry.last - READ_AT_ONCE)
        used.difference_update(entry.ids)
        restored = yield from _read_entries(run, view, first, entry.last, used, log)
        gone = entry.tokens if actions is None and first == entry.first else 0
        if sum(other.tokens for other in restored) - gone > free:
            fitting = _newest_that_fit(restored, free) if entry.last - entry.first > 1 else []
            older.append(replace(entry, last=fitting[0].first) if fitting else entry)
            newer = [*fitting, *newer]
            break
        newer, free = [*restored, *newer], free - sum(other.tokens for other in restored) + gone
        if first > entry.first:
            older.append(replace(entry, last=first))
    body = (*older, *newer)
    return replace(view, run=body, tokens=request_cost((*view.systems, *view.front, *body), view.counter))


def _count_actions(entries: Sequence[ViewEntry]) -> int:
    return sum(isinstance(entry.item, ActionStep) for entry in entries)


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


def _read_entries(
    run: RunState, view: View, first: int, last: int, used: set[str], log: Log | None
) -> Flow[list[ViewEntry]]:
    """Read the entries of the steps and notes at ``[first, last)`` as they were recorded."""
    steps, notes = yield from read_steps_and_notes(run, first, last, log)
    rows = yield from Read(first, last, log)
    late = {row.position: row.body for row in rows if row.position in notes and isinstance(row.body, Observed)}
    entries = list[ViewEntry]()
    for at in sorted((*steps, *late)):
        item = late.get(at) or steps[at]
        if at in view.changed_by_hand or isinstance(item, SystemPromptStep):
            continue
        ids = wire_ids(item, at, used) if isinstance(item, ActionStep) else ()
        entries.append(make_entry(item, at, at + 1, view.counter, tier="whole", why=WHY, ids=ids))
    return entries
