"""The state of a run: the steps since the last checkpoint, merged by code with that checkpoint's state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pagein.context.view.layout import Item as ViewItem
from pagein.errors import UnknownCheckpoint
from pagein.events.entries import Checkpoint, Observed
from pagein.events.handles import step_handle
from pagein.events.protocol import open_calls, with_observations
from pagein.events.steps import ActionStep, Observation, Step
from pagein.log.base import Entry
from pagein.memory._state import RunState
from pagein.memory.checkpoints.state import UNANSWERED, CheckpointInfo, CheckpointState, checkpoint_info, state_to_json
from pagein.summaries.extractive import extract_summary
from pagein.summaries.merge import merge_all
from pagein.summaries.open_work import OpenWork, find_open_work
from pagein.summaries.progress import find_refuted, find_standing_request
from pagein.summaries.renderer import unresolved_dead_ends
from pagein.summaries.spans import Span, build_span
from pagein.summaries.summary import Summary, SummaryItem

MAX_ITEMS = {
    "constraints": 100, "tasks": 100, "dead_ends": 60, "artifacts": 40, "errors": 12, "decisions": 40, "questions": 8,
    "done": 40, "next_steps": 12, "hints": 0, "not_covered": 0,
}  # fmt: skip
"""Items of each field that a state keeps: the newest, of constraints the first. ``recall`` finds the rest."""

FIRST_ENTRIES = 40
"""Entries at the beginning that are always read: they state the task."""

ENTRIES_PER_SEARCH = 256
"""Entries read at a time in the search for the newest checkpoint."""


def current_state(run: RunState, most: int | None = None) -> CheckpointState:
    """The state at the head: the newest checkpoint's state, and the entries since it.

    Of more than ``most`` entries the first few and the newest are read. The state names the gap between them, and the
    next state reads it.
    """
    previous = find_checkpoint(run)
    before = previous.state if previous is not None else CheckpointState()
    head = run.fold.head
    gap = Span(head, head)
    if most is not None and head - before.since > most:
        gap = Span(before.since + FIRST_ENTRIES, head - most + FIRST_ENTRIES)
    entries = run.runtime.read_entries(before.since, gap.first)
    if gap.first < gap.last:
        entries = (*entries, *run.runtime.read_entries(gap.last, head))
    items = dict(_items(entries))
    steps = {position: item for position, item in items.items() if isinstance(item, Step)}
    span = build_span(sorted(items.items()), before.since, head)
    extract = extract_summary(span, run.fold.learned.tracker)
    refuted = find_refuted(span, closely=True)
    failed = [item for item in extract.dead_ends if item not in refuted]
    questions = (*find_standing_request(span), *extract.questions)
    extract = replace(extract, dead_ends=(*failed, *refuted), questions=questions)
    model_summaries = [record.summary for record in run.log.summaries if record.last > before.since]
    summary = merge_all((before.summary, *model_summaries, extract))
    live = find_open_work(
        steps, run.fold.calls.open, run.fold.calls.abandoned, before.live, run.fold.learned.ledger.waiting.going_on()
    )
    summary = limit_items(_without_unanswered(summary, live))
    if gap.first < gap.last:
        summary = replace(summary, not_covered=(SummaryItem("what was not read yet", handles=(gap.handle,)),))
    # An action whose results are in the gap, or not there yet, is read again by the next state.
    incomplete = (at for at, step in steps.items() if at < gap.first and open_calls(step, at))
    since = min((gap.first, *incomplete, *(action for action, _ in run.fold.calls.open)))
    pins = tuple(SummaryItem(text, handles=(step_handle(at),)) for at, text in run.fold.pinned.items())
    return CheckpointState(summary, pins, live, before.host, since)


def _without_unanswered(summary: Summary, live: Iterable[OpenWork]) -> Summary:
    """The summary without calls that have no result among its done items: an extract counts every call as done."""
    unanswered = {(work.name, work.handle.partition(".")[0]) for work in live if work.kind in UNANSWERED}
    done_items = (
        item for item in summary.done if not any((item.text, handle) in unanswered for handle in item.handles[-1:])
    )
    return replace(summary, done=tuple(done_items))


def _items(entries: Iterable[Entry]) -> Iterator[tuple[int, ViewItem]]:
    """The steps, each with its results, and the late results, by position."""
    steps: dict[int, Step] = {}
    results: dict[int, dict[int, Observation]] = {}
    for entry in entries:
        body = entry.body
        if isinstance(body, Step):
            steps[entry.position] = body
        elif isinstance(body, Observed):
            if body.late:
                yield entry.position, body
            elif body.action in steps:
                results.setdefault(body.action, {})[body.index] = body.observation
    for position, step in steps.items():
        observations = results.get(position)
        if observations and isinstance(step, ActionStep):
            yield position, with_observations(step, observations)
        else:
            yield position, step


def limit_items(summary: Summary) -> Summary:
    """The summary with at most ``MAX_ITEMS`` items of each field, without dead ends that were resolved later."""
    tasks = sorted(summary.tasks, key=lambda task: task.status != "done")  # open tasks are cut last
    whole = replace(summary, dead_ends=unresolved_dead_ends(summary), tasks=tuple(tasks))
    newest: dict[str, Any] = {
        name: getattr(whole, name)[-limit:] if limit else ()
        for name, limit in MAX_ITEMS.items()
        if name != "constraints"
    }
    return replace(whole, constraints=whole.constraints[: MAX_ITEMS["constraints"]], **newest)


def write_checkpoint(run: RunState, name: str, host: str = "", most: int | None = None) -> CheckpointInfo:
    """Record the current state under a name, with the application's state, by default the last one it gave."""
    state = current_state(run, most)
    state = replace(state, host=host or state.host)
    (entry,) = run.append(Checkpoint(name, state_to_json(state)))
    return CheckpointInfo(name, entry.position, entry.at, state)


def checkpoints(run: RunState) -> tuple[CheckpointInfo, ...]:
    """The checkpoints, oldest first, without the notes that applications record for themselves."""
    entries = run.runtime.read_entries(0, run.fold.head)
    return tuple(info for entry in entries if (info := checkpoint_info(entry)) is not None)


def find_checkpoint(run: RunState, name: str | None = None) -> CheckpointInfo | None:
    """The newest checkpoint of a name, or of any; None if there is none at all. Raises UnknownCheckpoint."""
    stop = run.fold.head
    while stop > 0:
        entries = run.runtime.read_entries(max(0, stop - ENTRIES_PER_SEARCH), stop)
        for entry in reversed(entries):
            info = checkpoint_info(entry)
            if info is not None and name in (None, info.name):
                return info
        stop -= ENTRIES_PER_SEARCH
    if name is None:
        return None
    infos = checkpoints(run)
    raise UnknownCheckpoint(name, tuple(dict.fromkeys(info.name for info in infos)))
