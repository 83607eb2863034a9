"""Checkpoint operations: checkpoint, resume, status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pagein.events.entries import Compaction, Observed
from pagein.events.protocol import unknown_observation
from pagein.events.steps import Step
from pagein.memory._effects import Append, Flow, Read
from pagein.memory._state import RunState
from pagein.memory.checkpoints.build import current_state, find_checkpoint, write_checkpoint
from pagein.memory.checkpoints.fresh_view import start_fresh
from pagein.memory.checkpoints.state import (
    RESUMED,
    UNANSWERED,
    CheckpointInfo,
    CheckpointState,
    check_name,
    host_state_json,
)
from pagein.summaries.open_work import OpenWork

RESUME_MAX_ENTRIES = 3_000
"""Entries since the last checkpoint that are read for a status; the state names the rest as not read."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a run: the head of its log, its newest checkpoint, and its state now.

    ``unknown`` are the calls in flight when it stopped: each may have run, and is not run again. ``steps`` counts those
    recorded after the checkpoint; ``started`` is the compaction of a fresh start.
    """

    head: int
    checkpoint: CheckpointInfo | None
    state: CheckpointState
    unknown: tuple[OpenWork, ...] = ()
    steps: int = 0
    started: Compaction | None = None


def checkpoint(run: RunState, name: str, state: Any = None) -> Flow[str]:
    """Record the state of the run under a name; return the handle. ``state`` is the host's. Raises ConfigurationError."""
    info = yield from write_checkpoint(run, check_name(name), host_state_json(state))
    return info.handle


def resume(run: RunState, name: str | None = None, *, fresh: bool = False) -> Flow[RunStatus]:
    """Close calls in flight as unknown, and return the status. Raises UnknownCheckpoint.

    With ``fresh`` everything before the checkpoint leaves the view, and its state stands for it; without a name that is
    the state now.
    """
    info, started = yield from prepare_resume(run, name, fresh=fresh)
    return (yield from _current_status(run, info, started))


def prepare_resume(
    run: RunState, name: str | None = None, *, fresh: bool = False
) -> Flow[tuple[CheckpointInfo | None, Compaction | None]]:
    """Resume without a status; return the checkpoint that the run starts from, and the compaction of a fresh start."""
    info = yield from find_checkpoint(run, name)
    if run.fold.open:
        bodies = tuple(Observed(call.action, call.index, unknown_observation(call)) for call in run.fold.open.values())
        run.apply_entries((yield from Append(bodies, run.fold.head)))
    if not fresh:
        return info, None
    if name is None and (info is None or (yield from _has_steps_since(run, info))):
        info = yield from write_checkpoint(run, RESUMED, most=RESUME_MAX_ENTRIES)
    return info, None if info is None else (yield from start_fresh(run, info))


def status(run: RunState, name: str | None = None) -> Flow[RunStatus]:
    """The status of the run; writes nothing, so calls without a result stay open."""
    info = yield from find_checkpoint(run, name)
    return (yield from _current_status(run, info))


def _current_status(run: RunState, info: CheckpointInfo | None, started: Compaction | None = None) -> Flow[RunStatus]:
    state = yield from current_state(run, RESUME_MAX_ENTRIES)
    entries = yield from Read(0 if info is None else info.position, run.fold.head)
    steps = sum(isinstance(entry.body, Step) for entry in entries)
    unanswered = tuple(work for work in state.live if work.kind in UNANSWERED)
    return RunStatus(run.fold.head, info, state, unanswered, steps, started)


def _has_steps_since(run: RunState, info: CheckpointInfo) -> Flow[bool]:
    entries = yield from Read(info.position, run.fold.head)
    return any(isinstance(entry.body, Step | Observed) for entry in entries)
