"""From a view over its marks to a plan that fits: the policy until it finds no more, then the floor. Pure."""

from __future__ import annotations

from collections.abc import Callable

from pagein.context.compaction.base import Plan, Policy, newest_user
from pagein.context.compaction.floor import floor
from pagein.context.view.cuts import cuts
from pagein.context.view.fold import preview
from pagein.context.view.view import View
from pagein.errors import ConfigurationError, OverBudget
from pagein.events.handles import range_handle
from pagein.tokens import Budget

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
