"""Views of one request alone: with a filter of its own, and nothing recorded."""

from __future__ import annotations

from dataclasses import replace

from pagein.context.compaction.apply import filter_view
from pagein.context.view.fold import preview
from pagein.context.view.view import View
from pagein.errors import OverBudget
from pagein.log.base import Log
from pagein.memory._effects import Flow
from pagein.memory._state import RunState
from pagein.memory.operations.view import (
    NO_ROOM,
    add_ledger,
    check_room,
    make_view,
    over_budget_of,
    plan_in_first,
    reserve_room,
    within_bytes,
)
from pagein.memory.requests import NO_FILTER, RequestFilter
from pagein.tokens import Budget
from pagein.tokens.budget import RequestRoom


def make_filtered_view(run: RunState, filter: RequestFilter, room: RequestRoom = NO_ROOM) -> Flow[View]:
    """Make the view, or with a filter another one that records nothing. Raises OverBudget."""
    if filter == NO_FILTER:
        return (yield from make_view(run, room))
    budget = _filter_budget(run, filter)
    beside = run.usage.room_beside(room) if filter.max_tokens is None else room.reserve + (room.tools or 0)
    try:
        check_room(budget, beside)
        run.usage.set_byte_limit(budget, room)
        return (yield from filtered_view(run, filter, run.usage.limit_beside(beside, budget)))
    except OverBudget as error:
        raise over_budget_of(run, error, beside) from None


def filtered_view(run: RunState, filter: RequestFilter, limit: int, log: Log | None = None) -> Flow[View]:
    """Filter the view within the limit; what left it comes back as far as the filter asks for it. Raises OverBudget."""
    budget = _filter_budget(run, filter)
    view = run.view(limit)
    if (filter.keep_last_n or filter.max_tokens is not None) and view.has_replaced_entries:
        from pagein.memory.operations.widen import widen  # noqa: PLC0415 - loads where something left

        view = yield from widen(run, view, int(limit * budget.high), filter.keep_last_n, log)
    view = filter_view(view, summary_mode=filter.summary_mode, keep_last_n=filter.keep_last_n)
    ledger, _ = reserve_room(run, view)
    plan, _ = plan_in_first(run.policy, view, budget, (*(view.limit - tokens for tokens in ledger), view.limit))
    view = view if plan is None else preview(view, plan.replacements)
    return add_ledger(run, within_bytes(run, view, budget))


def _filter_budget(run: RunState, filter: RequestFilter) -> Budget:
    """The budget of a filtered view: the filter's tokens, if it has any, and the bytes of every request."""
    budget = run.usage.budget
    return budget if filter.max_tokens is None else replace(Budget(filter.max_tokens), bytes=budget.bytes)
