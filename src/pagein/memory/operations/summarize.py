"""Having a model write summaries while the run goes on: starting, collecting and cancelling its job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from pagein.context.compaction.apply import check_plan, plan_once
from pagein.context.compaction.base import Plan
from pagein.context.view.view import View
from pagein.events.entries import Replacement
from pagein.events.steps import as_text
from pagein.memory._state import RunState
from pagein.memory.operations.history import read_steps_and_notes
from pagein.summaries.job import JobOutcome, Summarizer, SummaryJob, SummaryRange

SOURCE_SHARE_OF_REQUEST = 0.7
"""Share of a request up to which a quoted source is expected to fit into it."""

REBUILD_COST_FACTOR = 4
"""Times the cost of the new steps up to which a summary is rebuilt from its whole source, not merged with the one before.
Merging by code loses only the model's second look; rebuilding at every compaction would ask for the run again and again."""

QUOTED_SOURCE_FACTOR, REQUEST_OVERHEAD_TOKENS = 2.5, 1_800
"""Tokens of a request for each token of its source, with its quotes and another model's counter, and those of its prompt:
what a job is expected to cost. What it may cost is reserved when it is asked."""

RETRY_GROWTH_SHARE = 0.1
"""Share of the limit by which the view grows before another job starts ahead of time, after one that gave nothing."""


def start_due_summary(run: RunState, view: View) -> None:
    """Start a job if none is at work: for summaries that stand, or from the soft mark on for what leaves next."""
    if run.summaries.job is not None or start_summary(run, view, ()):
        return
    if view.tokens < max(run.summaries.rest_until, int(view.limit * run.usage.budget.soft_share)):
        return
    run.summaries.rest_until = view.tokens + int(view.limit * RETRY_GROWTH_SHARE)
    plan = plan_ahead(run, view)
    if plan is not None:
        start_summary(run, view, plan.replacements)


def plan_ahead(run: RunState, view: View) -> Plan | None:
    """The plan for what leaves at the soft mark; None below the mark, or if nothing would leave."""
    budget, mark = run.usage.budget, run.usage.budget.soft_share
    if view.tokens < int(view.limit * mark):
        return None
    plan = plan_once(view, replace(budget, high=mark, low=min(budget.low_share, mark), soft=None), run.policy)
    return None if plan is None else check_plan(view, plan)


def start_summary(run: RunState, view: View, replacements: Sequence[Replacement]) -> bool:
    """Start a job for the ranges of long summaries, and of the replacements; False if there is nothing to write."""
    summarizer, writers = run.summaries.summarizer, run.writers
    if summarizer is None or (writers is not None and writers.summaries.resting_seconds):
        return False
    if writers is not None:
        writers.allow(run.fold.costs.total)
    from pagein.summaries.records import long_summaries  # noqa: PLC0415 - loads where a model writes

    ranges = []
    for replacement in long_summaries(view, replacements):
        summary_range = _range_to_write(run, summarizer, replacement.first, replacement.last)
        if summary_range is not None:
            ranges.append(summary_range)
    if ranges:
        # Only the user and the application may make a rule.
        trusted = [message for entry in view.entries if entry.tier in ("system", "user") for message in entry.messages]
        run.summaries.job = SummaryJob(
            tuple(ranges),
            run.counter,
            tuple(run.fold.pinned.values()),
            tuple(as_text(message.content) for message in trusted),
            view.messages() if summarizer.holds_run and view.tokens <= _affordable_tokens(run, summarizer) else (),
            None if writers is None else writers.summaries,
        )
        run.runtime.begin_job(run.summaries.job)
    return bool(ranges)


def _range_to_write(run: RunState, summarizer: Summarizer, first: int, last: int) -> SummaryRange | None:
    """The part of a range that no record covers, or all of it if rebuilding is cheap; None if it is not worth a request.

    It ends early where the whole of it would cost more than the model may spend.
    """
    from pagein.summaries.records import MIN_SOURCE_TOKENS, chain_records, merge_records  # noqa: PLC0415
    from pagein.summaries.spans import build_span  # noqa: PLC0415 - loads where a model writes

    chain = chain_records([*run.log.summaries, *run.summaries.records], first, last)
    start = chain[-1].last if chain else first
    max_source = _affordable_tokens(run, summarizer) / QUOTED_SOURCE_FACTOR
    if (
        chain
        and run.fold.costs.sum(first, last) <= max_source
        and _is_worth_rebuilding(run, summarizer, first, start, last)
    ):
        start = first
    while start < last and run.fold.costs.sum(start, last) > max_source:
        last -= max(1, (last - start) // 8)
    if start >= last or (start, last) in run.summaries.requested:
        return None
    if run.fold.costs.sum(start, last) < MIN_SOURCE_TOKENS:
        return None
    run.summaries.requested.add((start, last))
    # User messages that stay in view are never within a range.
    source, _ = read_steps_and_notes(run, start, last)
    span = build_span(source.items(), start, last)
    if not span.texts:
        return None
    return SummaryRange(first, last, span, merge_records(chain).summary if start > first else None)


def _affordable_tokens(run: RunState, summarizer: Summarizer) -> float:
    """Tokens beside prompt and answer that a request may have."""
    left = None if run.writers is None else run.writers.tokens_left
    return inf if left is None else left - REQUEST_OVERHEAD_TOKENS - summarizer.settings.output_tokens


def _is_worth_rebuilding(run: RunState, summarizer: Summarizer, first: int, start: int, last: int) -> bool:
    """True if the whole source fits into a request, and costs few times what is new in it, or is to be read whole."""
    whole, new = run.fold.costs.sum(first, last), run.fold.costs.sum(start, last)
    max_tokens = summarizer.settings.max_request_tokens * SOURCE_SHARE_OF_REQUEST
    return new > 0 and whole <= max_tokens and (summarizer.is_direct or whole <= new * REBUILD_COST_FACTOR)


def collect_summary(run: RunState, timeout: float | None) -> bool:
    """Wait at most ``timeout`` seconds (None: as long as it takes) for the job; True if none is at work."""
    if run.summaries.job is not None:
        outcome = run.runtime.collect_job(timeout)
        if outcome is None:
            return False
        run.summaries.job = None
        _keep_outcome(run, outcome)
    return True


def cancel_summary(run: RunState) -> None:
    """Cancel the job at work: its source is erased, or is of another branch."""
    if run.summaries.job is not None:
        run.summaries.job = None
        run.runtime.cancel_job()


def _keep_outcome(run: RunState, outcome: JobOutcome) -> None:
    problem, problems = outcome.problem, run.problems
    name = run.summaries.summarizer.name if run.summaries.summarizer else "nobody"
    if problem is not None:
        kind = f"{type(problem).__name__} {getattr(problem, 'reason', '')}".strip()
        problems.report(
            kind, f"{name} wrote no summary, an extract stands instead: {type(problem).__name__}: {problem}"
        )
    if outcome.records:
        if problem is None:
            # The next outage is reported again; rejected answers, which come now and then, stay reported once.
            problems.reported = {kind for kind in problems.reported if kind.startswith("SummaryRejected")}
        run.summaries.records.extend(outcome.records)
    if run.writers is not None and (rest := run.writers.summaries.rest_of(name)) is not None:
        problems.report(type(rest).__name__, str(rest))
