"""The state of a run, made of the log: what is new since the last checkpoint, merged with what that one says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pagein.context.view.layout import Item as Shows
from pagein.errors import UnknownCheckpoint
from pagein.events.entries import Checkpoint, Observed
from pagein.events.handles import step_handle
from pagein.events.protocol import open_calls, with_observations
from pagein.events.steps import ActionStep, Observation, Step
from pagein.log.base import Entry
from pagein.memory._effects import Append, Flow, Read
from pagein.memory._state import Session
from pagein.memory.checkpoints.state import WAITING, Mark, State, as_json, as_mark
from pagein.summaries.extractive import extracted
from pagein.summaries.merge import merged_all
from pagein.summaries.open_work import live_in
from pagein.summaries.renderer import standing
from pagein.summaries.spans import Span, span_of
from pagein.summaries.summary import Item, Summary

KEPT = {
    "constraints": 100, "tasks": 100, "dead_ends": 60, "artifacts": 40, "errors": 12, "decisions": 40, "questions": 8,
    "done": 40, "next_steps": 12, "hints": 0, "not_covered": 0,
}  # fmt: skip
"""Entries of each field that a state keeps, the newest; of constraints the first. The rest is a recall away."""

FIRST = 40
"""Entries at the beginning that are read where not all are: there the task was said."""

AT_ONCE = 256
"""Entries read at a time when the newest checkpoint is looked for."""


def state_now(session: Session, most: int | None = None) -> Flow[State]:
    """Where the run stands at its head: the newest checkpoint's state, and what was recorded since.

    Of more than ``most`` entries the first few and the newest are read, and what was not is named; the next one reads it.
    """
    previous = yield from found(session)
    before = previous.state if previous is not None else State()
    head = session.fold.head
    gap = Span(head, head)
    if most is not None and head - before.since > most:
        gap = Span(before.since + FIRST, head - most + FIRST)
    entries = yield from Read(before.since, gap.first)
    if gap.first < gap.last:
        entries = (*entries, *(yield from Read(gap.last, head)))
    items = dict(_items(entries))
    steps = {at: each for at, each in items.items() if isinstance(each, Step)}
    said = extracted(span_of(sorted(items.items()), before.since, head), session.fold.memo)
    written = [each.summary for each in session.recorded if each.last > before.since]
    both = merged_all((before.summary, *written, said))
    pins = tuple(Item(text, handles=(step_handle(at),)) for at, text in session.fold.pinned.items())
    live = live_in(steps, session.fold.open, session.fold.abandoned, before.live)
    cut = (
        at for at, each in steps.items() if at < gap.first and open_calls(each, at)
    )  # by the gap, or by the head
    since = min((gap.first, *cut, *(action for action, _ in session.fold.open)))
    # What was called is told as done unless it failed; a call without a result is neither.
    waiting = {(each.name, each.handle.partition(".")[0]) for each in live if each.kind in WAITING}
    done = tuple(
        each for each in both.done if not any((each.text, at) in waiting for at in each.handles[-1:])
    )
    summary = bounded(replace(both, done=done))
    if gap.first < gap.last:
        summary = replace(summary, not_covered=(Item("what was not read yet", handles=(gap.handle,)),))
    return State(summary, pins, live, before.host, since)


def _items(entries: Iterable[Entry]) -> Iterator[tuple[int, Shows]]:
    """The steps, each with the results it has, and the results that came too late for that."""
    steps: dict[int, Step] = {}
    answers: dict[int, dict[int, Observation]] = {}
    for each in entries:
        body = each.body
        if isinstance(body, Step):
            steps[each.position] = body
        elif isinstance(body, Observed):
            if body.late:
                yield each.position, body
            elif body.action in steps:
                answers.setdefault(body.action, {})[body.index] = body.observation
    for position, step in steps.items():
        seen = answers.get(position)
        yield position, with_observations(step, seen) if seen and isinstance(step, ActionStep) else step


def bounded(summary: Summary) -> Summary:
    """The summary with the newest entries of each field, and without the dead ends that turned out to be none."""
    tasks = sorted(summary.tasks, key=lambda each: each.status != "done")  # open ones are cut last
    held = replace(summary, dead_ends=standing(summary), tasks=tuple(tasks))
    cut: dict[str, Any] = {
        name: getattr(held, name)[-most:] if most else ()
        for name, most in KEPT.items()
        if name != "constraints"
    }
    return replace(held, constraints=held.constraints[: KEPT["constraints"]], **cut)


def made(session: Session, name: str, host: str = "", most: int | None = None) -> Flow[Mark]:
    """Write the state now under a name; the host's own state is the last one it gave."""
    state = yield from state_now(session, most)
    state = replace(state, host=host or state.host)
    entries = yield from Append((Checkpoint(name, as_json(state)),), session.fold.head)
    session.take(entries)
    return Mark(name, entries[0].position, entries[0].at, state)


def checkpoints(session: Session) -> Flow[tuple[Mark, ...]]:
    """The checkpoints, oldest first; what hosts note down for themselves is none."""
    entries = yield from Read(0, session.fold.head)
    return tuple(mark for each in entries if (mark := as_mark(each)) is not None)


def found(session: Session, name: str | None = None) -> Flow[Mark | None]:
    """The newest checkpoint of a name, or of any. Raises UnknownCheckpoint for a name that none has."""
    stop = session.fold.head
    while stop > 0:
        entries = yield from Read(max(0, stop - AT_ONCE), stop)
        for each in reversed(entries):
            mark = as_mark(each)
            if mark is not None and name in (None, mark.name):
                return mark
        stop -= AT_ONCE
    if name is None:
        return None
    known = yield from checkpoints(session)
    raise UnknownCheckpoint(name, tuple(dict.fromkeys(each.name for each in known)))
