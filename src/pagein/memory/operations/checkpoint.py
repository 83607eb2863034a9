"""The verbs: checkpoint, checkpoints, resume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pagein.events.entries import Compaction, Observed
from pagein.events.protocol import unknown
from pagein.events.steps import Step
from pagein.memory._effects import Append, Flow, Read
from pagein.memory._state import Session
from pagein.memory.checkpoints.build import found, made, state_now
from pagein.memory.checkpoints.fresh_view import started
from pagein.memory.checkpoints.state import RESUMED, WAITING, Mark, State, checked_name, checked_state
from pagein.summaries.open_work import Live

AT_RESUME = 3_000
"""Entries since the last checkpoint that are read to tell where a run stands; the rest is named as not read."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands as it goes on: the head of its log, its newest checkpoint, and its state now.

    ``unknown`` are the calls that were in flight when it stopped: each may have run, and is not run again. ``steps``
    is how many were recorded behind the checkpoint; ``started`` the compaction by which it starts afresh.
    """

    head: int
    checkpoint: Mark | None
    state: State
    unknown: tuple[Live, ...] = ()
    steps: int = 0
    started: Compaction | None = None


def checkpoint(session: Session, name: str, given: Any = None) -> Flow[str]:
    """Write the state of the run under a name, durably; its handle. ``given`` is JSON-safe. Raises ConfigurationError."""
    name, host = checked_name(name), checked_state(given)
    mark = yield from made(session, name, host)
    return mark.handle


def resume(session: Session, name: str | None = None, *, fresh: bool = False) -> Flow[Standing]:
    """Close what was in flight as unknown, and tell where the run stands. Raises UnknownCheckpoint.

    With ``fresh`` everything before the checkpoint leaves the view, and its state stands for it; without a name that is
    the state now.
    """
    mark, start = yield from going_on(session, name, fresh=fresh)
    return (yield from standing_now(session, mark, start))


def going_on(
    session: Session, name: str | None = None, *, fresh: bool = False
) -> Flow[tuple[Mark | None, Compaction | None]]:
    """What ``resume`` does, and does not tell: the checkpoint that it starts from, and the compaction that starts it."""
    mark = yield from found(session, name)
    if session.fold.open:
        bodies = tuple(
            Observed(call.action, call.index, unknown(call)) for call in session.fold.open.values()
        )
        session.take((yield from Append(bodies, session.fold.head)))
    if not fresh:
        return mark, None
    if name is None and (mark is None or (yield from _is_behind(session, mark))):
        mark = yield from made(session, RESUMED, most=AT_RESUME)
    return mark, None if mark is None else (yield from started(session, mark))


def look(session: Session, name: str | None = None) -> Flow[Standing]:
    """Where the run stands, nothing written: calls without a result are told as they are."""
    mark = yield from found(session, name)
    return (yield from standing_now(session, mark))


def standing_now(session: Session, mark: Mark | None, started: Compaction | None = None) -> Flow[Standing]:
    """Where the run stands, nothing written."""
    state = yield from state_now(session, AT_RESUME)
    since = yield from Read(0 if mark is None else mark.position, session.fold.head)
    steps = sum(isinstance(each.body, Step) for each in since)
    waiting = tuple(each for each in state.live if each.kind in WAITING)
    return Standing(session.fold.head, mark, state, waiting, steps, started)


def _is_behind(session: Session, mark: Mark) -> Flow[bool]:
    """True where something was recorded behind the checkpoint."""
    entries = yield from Read(mark.position, session.fold.head)
    return any(isinstance(each.body, Step | Observed) for each in entries)
