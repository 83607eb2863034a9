"""Making the view: within budget, with facts and page-in where they belong. The turn never waits for a model."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pagein.context.compaction.apply import plan_once, plan_to_fit
from pagein.context.compaction.base import Plan, Policy
from pagein.context.compaction.episodes import shortens_unread
from pagein.context.ledger.block import own_tokens, reserve_tokens, with_ledger
from pagein.context.page_in.limits import is_user_turn, reserved_tokens
from pagein.context.view.body import preview
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.context.worth import pays_sooner, pays_where_lapsed
from pagein.errors import OverBudget
from pagein.events.callbacks import NearLimit
from pagein.events.handles import range_handle
from pagein.memory._state import AHEAD_OF_NEED_PER_TURN, AHEAD_OF_NEED_SHARE, RunState
from pagein.memory._turn import retry_if_library_wrote
from pagein.memory.operations import facts_block
from pagein.memory.operations.byte_limit import fit_bytes, has_room, hold_to_bytes
from pagein.memory.operations.compact import commit_plan
from pagein.memory.operations.page_in import add_page_in
from pagein.memory.operations.summarize import collect_summary, start_due_summary
from pagein.tokens import Budget
from pagein.tokens.budget import RequestRoom

MAX_PLANS = 8
"""Plans that are joined in one turn, at most: each makes the view smaller."""

NEAR_SHARE = 0.8
"""Share of the limit from which a view is near it."""

LEDGER_AHEAD_SHARE, LEDGER_TEXTS_PER_TURN = 0.4, 4
"""Share of the limit from which the ledger learns ahead of need, and texts in each turn. Reading a long task takes 30 ms, so it
begins before the turn that begins to index."""

NO_ROOM = RequestRoom()


class Reserve(NamedTuple):
    """Tokens to leave free behind the run: for the ledger, most first, and for the turns that the user's words bring back."""

    ledger: tuple[int, ...] = (0,)
    turns: int = 0

    def rooms(self, room: int) -> tuple[int, ...]:
        """The rooms to plan the run in, the best first: beside both, half of the turns, less and less ledger, nothing."""
        run_and_turns = room - self.ledger[0]
        rooms = (run_and_turns - self.turns, run_and_turns - self.turns // 2)
        return (*rooms, *(room - tokens for tokens in self.ledger), room)


def make_view(run: RunState, room: RequestRoom = NO_ROOM) -> View:
    """Make the view within budget, with this room kept free; record first what leaves it. Raises OverBudget."""
    beside = run.usage.room_beside(room)
    try:
        check_room(run.usage.budget, beside)
        run.usage.set_byte_limit(run.usage.budget, room)
        view = retry_if_library_wrote(run, lambda: _make_view_once(run, room))
    except OverBudget as error:
        raise over_budget_of(run, error, beside) from None
    # Where nobody listens, only the first time is looked for, and only where the view is large enough.
    if run.callbacks is not None or not (run.has_warned or view.tokens < NEAR_SHARE * view.limit):
        _notice_nearness(run)
        run.run_events()
    return view


def over_budget_of(run: RunState, error: OverBudget, beside: int) -> OverBudget:
    """The error with what the request keeps free, in its unit."""
    if error.unit == "bytes":
        beside = (run.usage.budget.bytes or error.limit) - error.limit
    return OverBudget(error.needed, error.limit, error.steps, beside, unit=error.unit)


def _notice_nearness(run: RunState) -> None:
    """Note once that the view came near its limit, with what would leave; log it the first time that something would."""
    view = run.current_view()
    if run.was_near or view.tokens < NEAR_SHARE * view.limit:
        return
    run.was_near = True
    high = min(1.0, max(0.01, (view.tokens - 1) / view.limit))
    budget = replace(run.usage.budget, high=high, low=min(high, run.usage.budget.low_share), soft=None)
    plan = plan_once(view, budget, run.policy)
    leaving = () if plan is None else tuple(range_handle(by.first, by.last) for by in plan.replacements)
    after = view.tokens if plan is None else preview(view, plan.replacements).tokens
    near = NearLimit(view.tokens, view.limit, view.tokens / view.limit, leaving, after)
    run.events.append(near)
    if leaving and not run.has_warned:
        run.has_warned = True
        import logging  # noqa: PLC0415 - loads where there is something to say

        logging.getLogger("pagein.view").warning("%s", near)


def check_room(budget: Budget, beside: int) -> None:
    """Raise OverBudget if a request keeps the whole budget free."""
    if beside >= budget.limit:
        raise OverBudget(1, budget.limit - beside, ())


def _has_room(run: RunState, view: View) -> bool:
    return run.usage.byte_limit is None or has_room(run, view)


def add_ledger(run: RunState, view: View, budget: Budget) -> View:
    """The view within its bytes, with the block of what holds and is not shown; nothing is recorded. Raises OverBudget.

    The block is the longest that there are tokens and bytes for. It takes in notices of the run: a view that has too many
    bytes without it may fit with it.
    """
    with_block = _show_ledger(run, view)
    if _has_room(run, with_block):
        return with_block
    return _show_ledger(run, hold_to_bytes(run, view, budget))


def _show_ledger(run: RunState, view: View) -> View:
    if not view.has_replaced_entries:
        return view
    return with_ledger(
        view, run.fold.learned.ledger, run.fold.learned.blocks, lambda with_block: _has_room(run, with_block)
    )


def _make_view_once(run: RunState, room: RequestRoom) -> View:
    if run.summaries.job is not None:
        collect_summary(run, 0.0)
    beside = run.usage.room_beside(room)
    # A compaction is recorded for what several requests keep free; what one alone does narrows its own view.
    limit, request_limit = run.usage.limit_beside(run.usage.recorded_room(beside)), run.usage.limit_beside(beside)
    view = _standing_view(run, limit)
    narrow = None if request_limit == limit else narrow_view(run, view, (), request_limit)  # raises before any write
    if run.usage.byte_limit is not None:
        show_ledger = partial(_show_ledger, run)
        view = fit_bytes(run, view, show_ledger, lambda view: _plan_with_reserve(run, view, limit)[0])
    view, facts = _fit_with_facts(run, view)
    if run.summaries.summarizer is not None:  # of what leaves next, beside the room for the ledger and a question
        start_due_summary(run, replace(view, limit=max(1, reserve_room(run, view).rooms(view.limit)[0])))
    if narrow is not None:
        try:
            view, facts = narrow_view(run, view, facts, request_limit)
        except OverBudget:
            view, facts = narrow  # what was recorded just now stands in the way
    view = add_ledger(run, view, run.usage.budget)
    with_facts = view.with_tail(facts) if facts else view
    view = with_facts if with_facts.tokens <= view.limit and _has_room(run, with_facts) else view
    view = _with_page_ins(run, view, keeps_place=narrow is None)
    run.usage.note_request(view, room, is_narrow=narrow is not None)
    return view


def _standing_view(run: RunState, limit: int) -> View:
    """The run's view before anything leaves it. Where it is large, what will leave soon is learned in parts."""
    if run.facts_block.is_on or run.fold.facts.tokens:
        facts_block.ensure_head_block(run, limit)
    view = run.view(limit)
    if view.tokens > limit * AHEAD_OF_NEED_SHARE:
        run.fold.learned.tracker.learn_ahead(AHEAD_OF_NEED_PER_TURN)
    if view.tokens > limit * LEDGER_AHEAD_SHARE:
        run.fold.learned.teach_ledger(LEDGER_TEXTS_PER_TURN)
    return view


def _with_page_ins(run: RunState, view: View, *, keeps_place: bool) -> View:
    """The view with its page-ins. They keep their place in the next view, unless this one is of one request alone."""
    if not run.page_in.is_due(view):
        return view
    occasion, shown = run.page_in.occasion, run.page_in.shown
    with_page_in = add_page_in(run, view)
    view = with_page_in if _has_room(run, with_page_in) else view
    run.page_in.in_last_view = run.page_in.shown
    if not keeps_place:
        run.page_in.occasion, run.page_in.shown = occasion, shown
    return view


def narrow_view(
    run: RunState, view: View, facts: tuple[ViewEntry, ...], limit: int
) -> tuple[View, tuple[ViewEntry, ...]]:
    """Return the view, and its facts, in the smaller limit of this request alone; nothing is recorded.

    Facts give way to what must stay. Raises OverBudget.
    """
    view = replace(view, limit=limit, whole_limit=limit)
    room = limit - sum(entry.tokens for entry in facts)
    try:
        plan, _ = _plan_with_reserve(run, view, room if room > 0 else limit)
    except OverBudget:
        facts, view = (), facts_block.without_facts(view)
        plan, _ = _plan_with_reserve(run, view, limit)
    return (view if plan is None else preview(view, plan.replacements)), facts


def _fit_with_facts(run: RunState, view: View) -> tuple[View, tuple[ViewEntry, ...]]:
    """Compact the view so that it and the facts beside it fit the limit; facts give way to what must stay."""
    limit, facts = view.limit, tuple[ViewEntry, ...]()
    if run.facts_block.is_on:
        facts = facts_block.place_in_tail(run, view, int(limit * facts_block.FACTS_SHARE))
    room = limit - sum(entry.tokens for entry in facts)
    try:
        plan, room = _plan_with_reserve(run, view, room)
    except OverBudget:
        without_facts = facts_block.without_facts(view)
        if not facts and without_facts is view:
            raise
        facts = ()
        plan, room = _plan_with_reserve(run, without_facts, limit)
        if without_facts is not view:
            facts_block.record_head_text(run, "")
            view = run.view(limit)
    if plan is None:
        room = limit - sum(entry.tokens for entry in facts)  # the space for the user's question is theirs, too
        plan = _plan_for_page_ins(run, view, room) or _plan_where_lapsed(run, view, room)
        if plan is not None:
            # What leaves now may add to the ledger, for which the next view would compact again.
            more, room = _plan_with_reserve(run, preview(view, plan.replacements), room)
            plan = plan if more is None else plan.then(more)
    if plan is None:
        return view, facts
    _, view = commit_plan(run, replace(view, limit=room), plan)
    view = replace(view, limit=limit)
    if facts:
        # A compaction breaks the prefix anyway, so the facts are placed anew.
        free = limit - view.tokens - facts_block.FACTS_FRAME_TOKENS
        facts = facts_block.place_in_tail(run, view, min(int(limit * facts_block.FACTS_SHARE), free))
    return view, facts


def reserve_room(run: RunState, view: View) -> Reserve:
    """Return the tokens to leave free for what comes back: 0 while everything is in view."""
    if view.tokens <= view.limit and not view.has_replaced_entries:
        return Reserve()
    ledger = reserve_tokens(view, run.fold.learned.ledger, run.fold.learned.blocks)
    if not is_user_turn(view):
        return Reserve(ledger)
    return Reserve(ledger, reserved_tokens(replace(view, limit=max(1, view.limit - ledger[0])), run.page_in.share))


def _plan_with_reserve(run: RunState, view: View, room: int) -> tuple[Plan | None, int]:
    """Plan with room for the ledger and the user's question, as far as what must stay allows; return the room, too.

    What leaves may add to the ledger, so the plan goes on until the next view would plan nothing. Raises OverBudget.
    """
    plan, planned_room = None, room
    for _ in range(MAX_PLANS):
        reserve = reserve_room(run, view)
        more, planned_room = plan_in_first(run.policy, view, run.usage.budget, reserve.rooms(room))
        if more is None:
            break
        # What the model has not read yet comes before what the ledger would have beyond its own share.
        wider = room - own_tokens(reserve.ledger, view.full_limit)
        if planned_room < wider and shortens_unread(view, more):
            with suppress(OverBudget):
                more, planned_room = plan_to_fit(replace(view, limit=wider), run.usage.budget, run.policy), wider
        if more is None:
            break
        plan = more if plan is None else plan.then(more)
        view = preview(view, more.replacements)
    return plan, planned_room


def _plan_for_page_ins(run: RunState, view: View, room: int) -> Plan | None:
    """Plan a compaction where the page-ins have no space any more, if that costs less than that they leave."""
    page_ins = run.page_in.entries_since(run.last_compaction)
    if not page_ins:
        return None
    tokens = with_ledger(view, run.fold.learned.ledger, run.fold.learned.blocks).tokens
    if tokens + sum(entry.tokens for entry in page_ins) <= room:
        return None
    plan = _plan_sooner(run, view, room)
    return plan if plan is not None and pays_sooner(view, plan, page_ins) else None


def _plan_where_lapsed(run: RunState, view: View, room: int) -> Plan | None:
    """Plan a compaction that will soon be due where the provider's cache has lapsed: it costs nothing now."""
    prices = run.page_in.prices
    is_soon_due = 2 * view.tokens > room  # what it frees is less than the view
    newest = max((entry.first for entry in view.run), default=-1)
    if not is_soon_due or prices.cached >= 1 or run.last_compaction > newest:
        return None
    seconds = run.runtime.requests.seconds_since_last()
    if seconds is None or seconds < prices.lifetime:
        return None
    plan = _plan_sooner(run, view, room)
    if plan is None or not pays_where_lapsed(replace(view, limit=room), plan):
        return None
    return replace(plan, reason=f"{plan.reason}; the cache had lapsed")


def _plan_sooner(run: RunState, view: View, room: int) -> Plan | None:
    """Plan a compaction of a view that is not above the high mark yet."""
    budget = run.usage.budget
    high = min(budget.high, (view.tokens - 1) / room)
    lowered = replace(budget, high=high, low=None if budget.low is None else min(budget.low, high), soft=None)
    with suppress(OverBudget):
        return plan_to_fit(replace(view, limit=room), lowered, run.policy)
    return None


def plan_in_first(policy: Policy, view: View, budget: Budget, rooms: Iterable[int]) -> tuple[Plan | None, int]:
    """Plan in the first of the rooms in which what must stay fits; return it, too. Raises OverBudget."""
    *preferred, last = dict.fromkeys(rooms)
    for room in preferred:
        if room > 0:
            with suppress(OverBudget):
                return plan_to_fit(replace(view, limit=room), budget, policy), room
    return plan_to_fit(replace(view, limit=last), budget, policy), last
