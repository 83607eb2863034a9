"""The bytes of a view, where the budget limits them: planned as tokens are, with every entry counted by its JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from pagein.context.compaction.apply import plan_to_fit
from pagein.context.compaction.base import Plan
from pagein.context.view.body import preview
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View, request_cost
from pagein.errors import OverBudget
from pagein.memory._state import RunState
from pagein.memory.operations.compact import commit_plan
from pagein.memory.operations.facts_block import record_head_text, without_facts
from pagein.tokens import Budget
from pagein.tokens.bytes import BYTES_A_UNIT, ByteCounter

_COUNTER = ByteCounter()

MAX_WEIGHED = 8_192
"""Entries whose bytes are remembered from view to view."""


def fit_bytes(
    run: RunState, view: View, show_ledger: Callable[[View], View], plan_tokens: Callable[[View], Plan | None]
) -> View:
    """Record a compaction where the view has more bytes than it may; return the view after it.

    ``show_ledger`` gives the view with as much of the ledger as it has the bytes for: the block takes in notices of the run,
    so that both together are less than one beside the other. ``plan_tokens`` plans for the tokens, which must fit afterwards.
    The compaction leaves room for what stood beside the run in the last view, or stands beside it in the first, as far as
    what must stay allows; facts give way to it. Raises OverBudget before any write.
    """
    last, full = run.usage.last_view, run.view_with_ledger(view)
    tail = () if last is None else last.tail
    if has_room(run, full.with_tail(tail) if tail else full):
        return view
    ledger = _ledger_entries(last or full)
    if last is not None:
        shown = show_ledger(view)
        is_shorter = _count_tokens(_ledger_entries(shown)) < _count_tokens(ledger)
        if not is_shorter and has_room(run, shown.with_tail(tail)):
            return view
    beside = (*tail, *ledger)
    try:
        plan = _plan_both(run, view, beside, plan_tokens)
    except OverBudget:
        bare = without_facts(view)
        if bare is view:
            raise
        plan = _plan_both(run, bare, (), plan_tokens)
        record_head_text(run, "")
        view = run.view(view.limit)
    if plan is not None:
        _, view = commit_plan(run, view, plan)
    return view


def _ledger_entries(view: View) -> list[ViewEntry]:
    return [entry for entry in view.front if entry.tier == "ledger"]


def _plan_both(
    run: RunState, view: View, beside: Iterable[ViewEntry], plan_tokens: Callable[[View], Plan | None]
) -> Plan | None:
    """Plan for the bytes; for the tokens first, where they do not fit after a plan for the bytes. Raises OverBudget."""
    plan = _plan(run, view, run.usage.budget, beside)
    if plan is None:
        return None
    try:
        plan_tokens(preview(view, plan.replacements))
    except OverBudget:
        first = plan_tokens(view)
        if first is None:
            raise
        second = _plan(run, preview(view, first.replacements), run.usage.budget)
        plan = first if second is None else first.then(second)
        plan_tokens(preview(view, plan.replacements))
    return plan


def hold_to_bytes(run: RunState, view: View, budget: Budget) -> View:
    """The view within its bytes, nothing recorded: for a view that is made for one request. Raises OverBudget."""
    plan = _plan(run, view, budget)
    return view if plan is None else preview(view, plan.replacements)


def has_room(run: RunState, view: View) -> bool:
    """True where the view, with all that stands in it, has no more bytes than it may."""
    limit = run.usage.byte_limit
    return limit is None or request_cost(_weigh(run, view.request_entries), _COUNTER) <= limit // BYTES_A_UNIT


def _plan(run: RunState, view: View, budget: Budget, beside: Iterable[ViewEntry] = ()) -> Plan | None:
    """Plan a compaction to the bytes that the view may have; None where it has no more. Raises OverBudget."""
    limit = run.usage.byte_limit
    if limit is None:
        return None
    systems, front, entries = (_weigh(run, part) for part in (view.systems, view.front, view.run))
    units, tokens = limit // BYTES_A_UNIT, request_cost((*systems, *front, *entries), _COUNTER)
    weighed = replace(
        view, systems=systems, front=front, run=entries, tail=(), tokens=tokens, limit=units, whole_limit=units, counter=_COUNTER
    )  # fmt: skip
    room = weighed.limit - _count_tokens(_weigh(run, beside))
    if weighed.tokens <= room:
        return None
    if 0 < room < weighed.limit:
        with suppress(OverBudget):
            return plan_to_fit(replace(weighed, limit=room), budget, run.policy)
    if weighed.tokens <= weighed.limit:
        return None
    try:
        return plan_to_fit(weighed, budget, run.policy)
    except OverBudget as error:
        raise OverBudget(error.needed * BYTES_A_UNIT, limit, error.steps, unit="bytes") from None


def _count_tokens(entries: Iterable[ViewEntry]) -> int:
    return sum(entry.tokens for entry in entries)


def _weigh(run: RunState, entries: Iterable[ViewEntry]) -> tuple[ViewEntry, ...]:
    """The entries with their bytes in place of their tokens; those of the last views are remembered."""
    known = run.usage.weighed
    if len(known) > MAX_WEIGHED:
        known.clear()
    weighed: list[ViewEntry] = []
    for entry in entries:
        pair = known.get(id(entry))
        if pair is None or pair[0] is not entry:
            tokens = sum(map(_COUNTER.message, entry.messages))
            pair = known[id(entry)] = (entry, replace(entry, tokens=tokens))
        weighed.append(pair[1])
    return tuple(weighed)
