"""Application of a policy to a view: the plan that makes it fit, and the check of a plan. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from pagein.context.compaction.base import Plan, Policy, make_plan, newest_user_position, old_actions, put_stubs
from pagein.context.compaction.clips import clip_results
from pagein.context.compaction.episodes import may_fold_users
from pagein.context.compaction.floor import floor
from pagein.context.compaction.policies.chat import FoldUsers
from pagein.context.compaction.policies.clip import Clip
from pagein.context.compaction.policies.mask import mask_stubs
from pagein.context.compaction.repeats import fold_repeats
from pagein.context.talk import is_talk
from pagein.context.view.body import is_permanent, preview
from pagein.context.view.cuts import cuts
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.errors import ConfigurationError, OverBudget
from pagein.events.entries import Replacement, Stub
from pagein.events.handles import range_handle
from pagein.events.steps import ActionStep, SummaryStep
from pagein.tokens import Budget

MIN_GAIN_SHARE = 0.02
"""Share of the limit that a compaction below the limit must gain: less is not worth a broken prefix."""


def plan_to_fit(current: View, budget: Budget, policy: Policy) -> Plan | None:
    """Plan a compaction: the policy until it has no more plans, then the floor if the view is still too large.

    Applied to the resulting view it plans nothing, so two views in a row record one compaction. Raises OverBudget, and
    ConfigurationError for a plan that ``check_plan`` refuses.
    """
    whole, after = None, current
    while (planned := _next_plan(after, budget, policy)) is not None:
        plan, after = planned
        whole = plan if whole is None else whole.then(plan)
    if after.tokens <= current.limit:
        return whole
    return plan_floor(current, budget)


def plan_floor(current: View, budget: Budget) -> Plan:
    """Plan with the floor alone, as a policy's plan may stand in its way. Raises OverBudget with the tokens reached.

    A view over its limit alone is handed in. Important steps give way at last: in a part of the limit, what else was to have room does.
    """
    plan = floor(current, budget)
    if plan is not None and current.important:
        plan = _spare_important(current, plan)
    after = current if plan is None else preview(current, plan.replacements)
    is_over, has_important = plan is None or after.tokens > current.limit, current.important or after.important
    if is_over and has_important and current.limit == current.full_limit:
        return plan_floor(replace(current, important=frozenset(), find_important=None), budget)
    if plan is None or after.tokens > current.limit:
        reduced = ("summary", "clip", "mask", "floor", "reasoning")
        staying = [entry.handle for entry in after.entries if entry.tier not in reduced]
        raise OverBudget(after.tokens, current.limit, staying)
    return plan


def _next_plan(view: View, budget: Budget, policy: Policy) -> tuple[Plan, View] | None:
    is_over = view.tokens > view.limit
    # The floor cuts to 256 tokens at once: a long result, and the oldest talk, first have what they have under the ladder.
    policies: tuple[Callable[[View, Budget], Plan | None], ...] = (policy,)
    policies = (policy, Clip(), _fold_talk, floor) if is_over else policies
    policies = (_mask_unimportant, *policies) if view.unimportant else policies
    policies = (_clip_read, *policies) if view.tools.clip else policies
    min_gain = 1 if is_over else max(1, int(view.limit * MIN_GAIN_SHARE))
    for make in policies:
        plan = plan_once(view, budget, make)
        if plan is not None and is_talk(view):
            plan = _join_notices(view, plan)
        if plan is not None and view.important:
            plan = _spare_important(view, plan)
        if plan is not None:
            after = preview(view, check_plan(view, plan).replacements)
            if view.tokens - after.tokens >= min_gain:
                return plan, after
    return None


def plan_once(view: View, budget: Budget, make: Callable[[View, Budget], Plan | None]) -> Plan | None:
    """Plan with a policy; what stays behind the place where its plan breaks the prefix loses its repeats, too.

    Raises ConfigurationError for a policy that returns no plan of ours.
    """
    plan = make(view, budget)
    if not (plan is None or isinstance(plan, Plan)):
        raise ConfigurationError(f"a policy returns a Plan or None, and {make!r} returned {plan!r}")
    if plan is None or not plan.replacements:
        return None
    start = min(by.first for by in plan.replacements)
    folded = tuple(fold_repeats(preview(view, plan.replacements), start))
    return plan.then(Plan(folded, "repeats", "results that a newer one repeats")) if folded else plan


def _mask_unimportant(view: View, budget: Budget) -> Plan | None:
    """Plan stubs for the results of unimportant steps before the newest action, above the high mark."""
    if view.tokens <= view.limit * budget.high:
        return None
    old = (entry for entry in old_actions(view, 1) if entry.first in view.unimportant)
    return make_plan(put_stubs(old, mask_stubs), "mask", "results of steps that are marked as unimportant")


def _clip_read(view: View, budget: Budget) -> Plan | None:
    """Plan clips of the results, behind which the model has spoken, that a rule of their tool makes shorter."""
    del budget

    def clip(entry: ViewEntry) -> Iterator[Stub]:
        for index, call in enumerate(entry.item.tool_calls if isinstance(entry.item, ActionStep) else ()):
            tokens = view.tools.clip_tokens(call)
            if tokens is not None:
                yield from (stub for stub in clip_results(entry, tokens, view.counter) if stub.index == index)

    return make_plan(put_stubs(old_actions(view, 1), clip), "clip", "results longer than their tools' rules allow")


def _spare_important(view: View, plan: Plan) -> Plan | None:
    """Return the plan without what it takes from important steps, whichever policy made it; None if nothing is left."""
    spared: list[Replacement] = []
    for by in plan.replacements:
        covered = [entry for entry in view.run if by.first <= entry.first < by.last]
        if not any(entry.first in view.important for entry in covered):
            spared.append(by)
        elif by.summary is not None:
            spared.extend(_split_around(view, by, covered))
    return replace(plan, replacements=tuple(spared)) if spared else None


def _split_around(view: View, by: Replacement, covered: list[ViewEntry]) -> list[Replacement]:
    """Replace the stretches between important steps: the last one by the summary, the others by a line."""
    after = {entry.first: following.first for entry, following in pairwise(covered)}
    marked = (entry.first for entry in covered if entry.first in view.important)
    bounds = [by.first, *(bound for first in marked for bound in (first, after.get(first, by.last))), by.last]
    parts = [
        replace(by, first=first, last=last)
        for first, last in zip(bounds[::2], bounds[1::2], strict=True)
        if any(first <= entry.first < last and not is_permanent(entry) for entry in covered)
    ]
    lines = (f"Out of view: {range_handle(part.first, part.last)}." for part in parts[:-1])
    older = (replace(part, summary=line, record="") for part, line in zip(parts, lines, strict=False))
    return [*older, *parts[-1:]]


def _join_notices(view: View, plan: Plan) -> Plan:
    """Let one notice stand for all answers that leave between user messages, which stay: not one a message."""
    covered = [
        (replacement.first, replacement.last) for replacement in plan.replacements if replacement.summary is not None
    ]
    standing = (
        Replacement(entry.first, entry.last, summary=entry.item.content)
        for entry in view.run
        if isinstance(entry.item, SummaryStep)
        and not any(first < entry.last and entry.first < last for first, last in covered)
    )
    # A notice is a summary of one line with a handle.
    notices = [by for by in (*plan.replacements, *standing) if by.summary is not None and "\n" not in by.summary]
    notices.sort(key=lambda notice: notice.first)
    if len(notices) < 2:
        return plan
    *others, newest = notices
    text = (
        f"Out of view: {range_handle(others[0].first, newest.last)}, but for the user's words and what else is shown."
    )
    joined = {(notice.first, notice.last): replace(notice, summary="") for notice in others}
    joined[newest.first, newest.last] = replace(newest, summary=text)
    rest = (joined.pop((by.first, by.last), by) if by.summary is not None else by for by in plan.replacements)
    replacements = tuple(rest)
    return replace(plan, replacements=(*replacements, *(by for by in joined.values() if _changes(view, by))))


def _changes(view: View, by: Replacement) -> bool:
    return not any(
        entry.first == by.first and isinstance(entry.item, SummaryStep) and entry.item.content == by.summary
        for entry in view.run
    )


def _fold_talk(view: View, budget: Budget) -> Plan | None:
    """Plan a fold of the oldest talk with an extract, before the floor leaves it out."""
    return FoldUsers()(view, budget) if may_fold_users(view) else None


def check_plan(view: View, plan: Plan) -> Plan:
    """Return the plan if its ranges lie between cuts and the newest user message stays; else raise ConfigurationError.

    A policy's mistake is refused before it is recorded.
    """
    allowed, newest = frozenset(cuts(view)), newest_user_position(view)
    for replacement in plan.replacements:
        handle = range_handle(replacement.first, replacement.last)
        if replacement.first <= newest < replacement.last:
            raise ConfigurationError(f"policy {plan.policy!r} would remove {handle}: the newest user message must stay")
        ends = (replacement.first, replacement.last)
        if replacement.summary is not None and not all(_entry_bound(view, end) in allowed for end in ends):
            raise ConfigurationError(
                f"policy {plan.policy!r} would fold {handle}: a range must begin and end at a position of view.cuts.cuts"
            )
    return plan


def _entry_bound(view: View, position: int) -> int:
    """Return the entry bound that splits the view as a position does: entries of the record alone stand between; or -1."""
    if any(entry.first < position < entry.last for entry in view.run):
        return -1
    return next((entry.first for entry in view.run if entry.first >= position), view.head)
