"""Compacting: a policy's plan becomes an entry of the log, with the summaries that a model wrote meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pagein.context.compaction.apply import check_plan, plan_once
from pagein.context.compaction.base import Plan
from pagein.context.compaction.episodes import covered_range
from pagein.context.view.body import is_permanent, preview
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.errors import LogUnreadable, NothingToUndo
from pagein.events.entries import BY_LIST, CLEARED, Compaction, Replacement, RetentionScore, Undo
from pagein.events.handles import range_handle
from pagein.events.steps import SummaryStep
from pagein.memory._state import RunState
from pagein.memory.operations.facts_block import renew_head_block
from pagein.memory.operations.history import read_steps_and_notes
from pagein.memory.operations.load import fold_from_start
from pagein.memory.operations.summarize import collect_summary, start_summary


def compact(run: RunState, *, wait: bool = False) -> Compaction | None:
    """Compact to the low mark, whatever the view costs; None if nothing would get smaller.

    With ``wait`` a model writes its summaries first; where it fails, extracts stand.
    """
    collect_summary(run, None if wait else 0.0)
    view, budget = run.current_view(), run.usage.budget
    # Only the marks move: a policy grants the user's words a share of the limit, which stays the same.
    mark = min(1.0, view.tokens * budget.low_share / view.limit)
    plan = plan_once(view, replace(budget, high=mark, low=mark, soft=None), run.policy)
    if plan is None or preview(view, check_plan(view, plan).replacements).tokens >= view.tokens:
        return None
    if wait and start_summary(run, view, plan.replacements):
        collect_summary(run, None)
    compaction, _ = commit_plan(run, view, plan)
    run.run_events()
    return compaction


def commit_plan(run: RunState, view: View, plan: Plan) -> tuple[Compaction, View]:
    """Record a plan as a compaction; return it, and the view after it."""
    replacements = attach_summaries(run, view, plan.replacements)
    after = preview(view, replacements)
    if run.facts_block.is_on:
        with run.problems.guard("nothing was read for facts"):
            run.runtime.extract_facts(flush=True)
    scores = _measure_retention(run, view, replacements)
    compaction = Compaction(replacements, plan.policy, plan.reason, view.tokens, after.tokens, scores)
    head_block = renew_head_block(run, view, after)
    run.append(compaction, *head_block)
    if run.callbacks is not None:
        run.events.append(compaction)
    run.was_near = False
    run.summaries.rest_until = 0
    return compaction, run.view(view.limit)


def clear_view(run: RunState) -> Compaction | None:
    """Take everything said so far out of the view, but calls that wait for a result; None if that would save nothing."""
    view = run.current_view()
    waiting = min((call.action for call in run.fold.calls.open.values()), default=view.head)
    leaving = tuple(entry for entry in view.run if entry.first < waiting)
    if all(map(is_permanent, leaving)):
        return None
    return append_plan(run, view, (handle_line(view, leaving),), CLEARED, "the view was cleared")


def handle_line(view: View, stretch: Sequence[ViewEntry]) -> Replacement:
    """Replace a stretch by a line with its handle."""
    first, last = covered_range(view, tuple(stretch))
    return Replacement(first, last, summary=f"Out of view: {range_handle(first, last)}.")


def append_plan(
    run: RunState, view: View, replacements: Sequence[Replacement], policy: str, reason: str
) -> Compaction | None:
    """Record replacements as they are, without summaries and scores; None if they would save nothing."""
    compaction = Compaction(tuple(replacements), policy, reason, view.tokens, preview(view, replacements).tokens)
    if compaction.tokens_after >= view.tokens:
        return None
    run.append(compaction)
    run.was_near = False
    return compaction


def attach_summaries(run: RunState, view: View, replacements: tuple[Replacement, ...]) -> tuple[Replacement, ...]:
    """Put the model's summaries into the replacements of their ranges, and renew summaries that stand already."""
    summarizer = run.summaries.summarizer
    if summarizer is None:
        return replacements
    from pagein.summaries.records import (  # noqa: PLC0415 - loads where a model writes
        chain_records,
        compose_replacement,
        encode_record,
        long_summaries,
        merge_records,
    )

    records = [*run.log.summaries, *run.summaries.records]
    composed: dict[tuple[int, int], Replacement] = {}
    summaries = list(long_summaries(view, replacements))
    for summary in summaries:
        place = summary.first, summary.last
        chain = chain_records(records, *place)
        record = merge_records(chain) if chain else None
        if record is None or encode_record(record) == run.fold.records.get(place):
            continue
        replacement = compose_replacement(view, summary, record, summarizer.name, is_newest=summary is summaries[-1])
        if replacement.record:
            composed[place] = replacement
    attached = tuple(composed.pop((plain.first, plain.last), plain) for plain in replacements)
    return (*attached, *composed.values())


def _measure_retention(run: RunState, view: View, replacements: Iterable[Replacement]) -> tuple[RetentionScore, ...]:
    """Count, by kind, the key items of the leaving steps that their summaries still show."""
    from pagein.summaries.fidelity import measure_fidelity  # noqa: PLC0415 - loads where something leaves
    from pagein.summaries.key_items import find_key_items  # noqa: PLC0415
    from pagein.summaries.spans import build_span  # noqa: PLC0415

    parser = run.fold.learned.tracker.parser
    totals: dict[str, RetentionScore] = {}
    for replacement in replacements:
        first, last = replacement.first, replacement.last
        leaving = [
            entry.first for entry in view.run if first <= entry.first < last and not isinstance(entry.item, SummaryStep)
        ]
        if replacement.summary is None or not leaving:
            continue
        steps, _ = read_steps_and_notes(run, leaving[0], last)
        span = build_span(((at, steps[at]) for at in leaving if at in steps), first, last)
        fidelity = measure_fidelity(
            find_key_items(span, parser), replacement.summary, pins=run.fold.pinned.values(), parser=parser
        )
        for score in fidelity.scores:
            total = totals.get(score.kind, RetentionScore(score.kind, 0, 0, 0))
            totals[score.kind] = RetentionScore(
                score.kind,
                total.total + score.total,
                total.in_sight + score.in_sight,
                total.reachable + score.reachable,
            )
    return tuple(total for total in totals.values() if total.total)


def undo(run: RunState) -> Compaction:
    """Take back the last compaction that holds, but what a list words anew: the view says what that says. Raises NothingToUndo."""
    run.runtime.branches.check_writable()  # the last compaction may be one that no log has
    for position in reversed(run.fold.compactions):
        compaction = run.runtime.read_entries(position, position + 1)[0].body
        if not isinstance(compaction, Compaction):
            raise LogUnreadable(f"entry {position} is no compaction")
        if compaction.policy not in BY_LIST:
            break
    else:
        raise NothingToUndo("no compaction is left to undo")
    # Everything is read before the write: an error then leaves the run as it was.
    folded = fold_from_start(run, skip=run.fold.skip | {position})
    folded.apply(run.runtime.append((Undo(position),), run.fold.head))
    run.restart_from(folded)
    run.snapshot.outdate()
    return compaction
