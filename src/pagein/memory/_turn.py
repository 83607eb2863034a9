"""The turn: refresh from other writers, run the operation, then write the checkpoint and the snapshot that are due."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from pagein.errors import Conflict, LogError, PageinError
from pagein.events.entries import Checkpoint, Compaction, Erased, FactsShown, Observed
from pagein.events.steps import Step
from pagein.memory._state import RunState
from pagein.memory.operations.load import (
    load,
    read_new_entries,
    rebuild_after_erasure,
    restart_if_erased,
    write_closing_snapshot,
    write_snapshot,
)
from pagein.memory.operations.summarize import cancel_summary

if TYPE_CHECKING:
    from pagein.memory._runtime import MemoryRuntime

P = ParamSpec("P")
T = TypeVar("T")

UNASKED_CHECKPOINT_MAX_ENTRIES = 600
"""Entries that are read for an automatic checkpoint: each takes about a millisecond, and closing is not to take seconds."""

LIBRARY_ENTRIES = (Compaction, FactsShown, Checkpoint, Erased)
"""Bodies that the library writes of its own accord: an application may write on without a look at them."""

LIBRARY_CONFLICT_ATTEMPTS = 8


def open_memory(runtime: MemoryRuntime) -> None:
    """Fold the log, and resume the run if the options say so."""
    run, schedule = runtime.state, runtime.schedule
    load(run)
    if schedule.resume:
        from pagein.memory.operations.checkpoint import prepare_resume  # noqa: PLC0415 - loads where a run is resumed

        prepare_resume(run, fresh=schedule.resume == "fresh")
    schedule.counted_to = run.fold.head
    runtime.is_folded = True


def run_turn(
    runtime: MemoryRuntime, operation: Callable[Concatenate[RunState, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run one operation of an open memory."""
    if runtime.was_cut_off:
        fold_again(runtime)
    try:
        refresh(runtime.state)
        result = operation(runtime.state, *args, **kwargs)
        _write_due_checkpoint(runtime)
        run = runtime.state  # the operation may have switched to another branch, and with it to another state
        if run.snapshot.is_due(run.fold.head):
            with suppress(LogError):  # a missing snapshot costs time at the next opening, and nothing else
                write_snapshot(run)
    except PageinError:
        raise
    except BaseException:  # Ctrl-C or a time limit may come between any two lines
        runtime.was_cut_off = True
        raise
    return result


def fold_again(runtime: MemoryRuntime) -> None:
    """Go on with a state folded from the log: the turn before was cut off, and only the log knows how far it came."""
    log = runtime.branch_log(runtime.branches.current)
    state = runtime.state.for_branch()
    load(state, log)
    cancel_summary(runtime.state)
    runtime.move_to(log, state)
    runtime.was_cut_off = False


def close_memory(runtime: MemoryRuntime) -> None:
    """Write the checkpoint at close, if anything was recorded since the last one, and a snapshot. Errors are dropped."""
    schedule = runtime.schedule
    if schedule.automatic.close and schedule.counted_to is not None:
        try:
            _count_new_steps(runtime)
        except PageinError:
            return
        if schedule.has_news:
            from pagein.memory.checkpoints.state import CLOSED  # noqa: PLC0415 - loads where a checkpoint is due

            _write_unasked_checkpoint(runtime, CLOSED)
    write_closing_snapshot(runtime.state)


def refresh(run: RunState) -> None:
    """Fold in what the library wrote elsewhere: an erasure, a worker's summary. Raises LogErased for an erased run.

    Entries of another application, and a log that got shorter without a trace, stay unread until a write meets them as a
    Conflict.
    """
    folded_head = head = run.fold.head - run.log.unwritten
    with suppress(LogError):  # the operation that needs the store reports it
        head = run.runtime.head()
    if head == folded_head:
        return
    entries = None if head < folded_head else read_new_entries(run)
    if entries is None:
        restart_if_erased(run)
    elif any(isinstance(entry.body, Erased) for entry in entries):
        rebuild_after_erasure(run)
    elif not run.log.unwritten and all(isinstance(entry.body, LIBRARY_ENTRIES) for entry in entries):
        run.apply_entries(entries)


def retry_if_library_wrote(run: RunState, attempt: Callable[[], T]) -> T:
    """Run the attempt; repeat it after a Conflict with entries of the library alone. Raises Conflict for others."""
    for _ in range(LIBRARY_CONFLICT_ATTEMPTS):
        head = run.fold.head
        try:
            return attempt()
        except Conflict:
            entries = run.runtime.read_entries(head, None)
            if not all(isinstance(entry.body, LIBRARY_ENTRIES) for entry in entries):
                raise
    return attempt()


def _write_due_checkpoint(runtime: MemoryRuntime) -> None:
    schedule = runtime.schedule
    every, after_compaction = schedule.automatic.every, schedule.automatic.compaction
    if not (every or after_compaction) or schedule.counted_to in (None, runtime.state.fold.head):
        return
    has_compacted = _count_new_steps(runtime)
    if (every and schedule.steps >= every) or (after_compaction and has_compacted):
        from pagein.memory.checkpoints.state import AUTOMATIC  # noqa: PLC0415 - loads where a checkpoint is due

        _write_unasked_checkpoint(runtime, AUTOMATIC)


def _count_new_steps(runtime: MemoryRuntime) -> bool:
    """Count the steps since the last checkpoint; True if there is a compaction among the new entries."""
    from pagein.memory.checkpoints.state import checkpoint_info  # noqa: PLC0415 - loads where checkpoints are automatic

    run, schedule = runtime.state, runtime.schedule
    entries = runtime.read_entries(schedule.counted_to or 0, run.fold.head)
    schedule.counted_to = run.fold.head
    for entry in entries:
        if checkpoint_info(entry) is not None:
            schedule.reset()
        elif isinstance(entry.body, Step | Observed):
            schedule.has_news = True
            schedule.steps += isinstance(entry.body, Step)
    return any(isinstance(entry.body, Compaction) for entry in entries)


def _write_unasked_checkpoint(runtime: MemoryRuntime, name: str) -> None:
    """Write a checkpoint; a failure is a problem of the run, and fails no turn."""
    from pagein.memory.checkpoints.build import write_checkpoint  # noqa: PLC0415 - loads where a checkpoint is due

    run, schedule = runtime.state, runtime.schedule
    schedule.reset()
    try:
        write_checkpoint(run, name, most=UNASKED_CHECKPOINT_MAX_ENTRIES)
    except Conflict:
        pass  # another writer goes on, and makes its own
    except PageinError as error:
        run.problems.report(f"checkpoint {type(error).__name__}", f"no checkpoint was made: {error}")
    schedule.counted_to = run.fold.head
