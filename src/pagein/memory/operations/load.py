"""Folding the log of a run: from its snapshot or its first entry, after other writers, and after an erasure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from pagein.context.view.fold import Fold, undone_positions
from pagein.context.view.fold_state import required_positions
from pagein.errors import LogErased, LogError
from pagein.events.entries import Body, Erased, Undo
from pagein.events.handles import group_positions
from pagein.log.base import Entry, Log
from pagein.log.snapshots import Snapshot
from pagein.memory import snapshots
from pagein.memory._state import PAST_SNAPSHOT_ENTRIES, FoldedLog, RunState
from pagein.memory.operations.page_in import prepare_page_in
from pagein.memory.operations.summarize import cancel_summary

ENTRIES_PER_READ = 1_000
"""Entries read at a time while a log is folded: no more of it is ever in memory at once."""


MAX_PAST_STATES = 64
"""States kept in memory for requests of the past: those of the last 32,000 entries of a run whose store has none."""


def load(run: RunState, log: Log | None = None) -> None:
    """Fold the run's log, or another one: from a snapshot that fits, else from the first entry."""
    slot = run.runtime.snapshot_slot(log)
    restored, position, dropped = None, None, 0
    if slot is not None and snapshots.snapshot_key(run.counter):
        position, dropped = 0 if slot.is_open else None, slot.dropped
        if slot.snapshot is not None:
            restored = _restore_snapshot(run, slot.snapshot, log)
            if restored is not None and _fold_rest(run, restored.log, log) is not None:
                restored = None  # an undo or an erasure changed what it folded
            if restored is not None and slot.is_open:
                position = slot.snapshot.position
    if restored is None:
        run.restart_from(fold_from_start(run, log))
    else:
        run.restart_from(restored.log)
        run.page_in.occasion, run.page_in.shown = restored.occasion, restored.page_ins
    run.snapshot.position, run.snapshot.dropped = position, dropped


def reload(run: RunState) -> None:
    """Fold the log from its first entry, and let the next snapshot replace the one in the store."""
    run.restart_from(fold_from_start(run))
    run.snapshot.outdate()


def _restore_snapshot(run: RunState, snapshot: Snapshot, log: Log | None) -> snapshots.RestoredSnapshot | None:
    """Restore a snapshot; None if it is of another release, counter or log, or damaged."""
    last = run.runtime.read_entries(snapshot.position - 1, snapshot.position, log)
    if not _matches_log(snapshot, run, last):
        return None
    try:
        value = snapshots.decode_body(snapshot.body)
        bodies: dict[int, Body] = {}
        for start, stop in group_positions(required_positions(value["fold"])):
            entries = run.runtime.read_entries(start, stop, log)
            bodies.update((entry.position, entry.body) for entry in entries)
        restored = snapshots.restore(value, run.counter, bodies)
    except snapshots.RESTORE_ERRORS:
        return None
    restored.log.last_digest = snapshot.digest
    return restored


def _matches_log(snapshot: Snapshot, run: RunState, last: Sequence[Entry]) -> bool:
    """True if the snapshot is of this counter and this log: the digest of its last entry covers all entries before."""
    return snapshot.key == snapshots.snapshot_key(run.counter) and [entry.digest for entry in last] == [snapshot.digest]


def fold_from_start(run: RunState, log: Log | None = None, skip: frozenset[int] = frozenset()) -> FoldedLog:
    """Fold a log from its first entry, without the compactions at ``skip`` and those undone."""
    while True:
        folded = FoldedLog(Fold(run.counter, skip=skip))
        undone = _fold_rest(run, folded, log)
        if undone is None:
            return folded
        skip = undone


def _fold_rest(run: RunState, folded: FoldedLog, log: Log | None) -> frozenset[int] | None:
    """Fold the entries that follow; if they undo an entry already folded, return every undone position instead."""
    skip, must_refold = folded.fold.skip, False
    start = position = folded.fold.head
    while page := run.runtime.read_entries(position, position + ENTRIES_PER_READ, log):
        undone = undone_positions(entry.body for entry in page)
        # A snapshot still has what was erased after it.
        is_erased = start > 0 and any(isinstance(entry.body, Erased) for entry in page)
        must_refold = must_refold or is_erased or not undone <= skip
        skip |= undone
        position += len(page)
        if not must_refold:
            folded.apply(page)
    return skip if must_refold else None


def write_snapshot(run: RunState) -> None:
    """Keep a snapshot of the run as it stands, due or not. Raises LogError."""
    head = run.fold.head
    is_past_due = run.snapshot.is_past_due(head)
    run.snapshot.position = head  # moved first: after a failure the next attempt waits for as many entries again
    last = run.runtime.read_entries(head - 1, head)
    if last:
        body = snapshots.encode_snapshot(run.log, run.page_in)
        snapshot, dropped = (
            Snapshot(head, last[0].digest, snapshots.snapshot_key(run.counter), body),
            run.snapshot.dropped,
        )
        run.runtime.log.keep_snapshot(snapshot, dropped)
        if is_past_due:
            past = replace(snapshot, body=snapshots.encode_past(run.log))
            run.runtime.log.keep_snapshot(past, dropped, is_past=True)


def load_past(run: RunState, branch: str, log: Log, before: int) -> FoldedLog:
    """The state of a branch from which a request of the past is rendered: the last one kept of at most ``before`` entries."""
    name, folded = run.past.last or ("", FoldedLog(Fold(run.counter)))
    run.past.last = None  # it is folded on, and kept again where that went well
    head = folded.fold.head
    if name == branch and 0 <= before - head <= PAST_SNAPSHOT_ENTRIES:
        entries = run.runtime.read_entries(head - 1, head, log)
        if [entry.digest for entry in entries] == [folded.last_digest]:
            return folded
    slot = run.runtime.snapshot_slot(log, before)
    stored = None if slot is None else slot.snapshot
    own = (snapshot for (name, at), snapshot in run.past.states.items() if name == branch and at <= before)
    candidates = (snapshot for snapshot in (stored, *own) if snapshot is not None)
    last = max(candidates, key=lambda snapshot: snapshot.position, default=None)
    restored = None if last is None else _restore_snapshot(run, last, log)
    return FoldedLog(Fold(run.counter)) if restored is None else restored.log


def keep_past(run: RunState, branch: str, folded: FoldedLog) -> None:
    """Keep a state in memory, where the store has none, for the next request that is rendered again."""
    key, head = snapshots.snapshot_key(run.counter), folded.fold.head
    if key and folded.last_digest:
        run.past.states[branch, head] = Snapshot(head, folded.last_digest, key, snapshots.encode_past(folded))
        if len(run.past.states) > MAX_PAST_STATES:
            del run.past.states[next(iter(run.past.states))]


def write_closing_snapshot(run: RunState) -> None:
    """Keep a snapshot with the page-in prepared, if anything is new. Without one, opening takes longer."""
    if run.snapshot.is_due(run.fold.head, closing=True):
        with suppress(LogError):
            prepare_page_in(run)
            write_snapshot(run)


def catch_up(run: RunState) -> None:
    """Fold in the entries of other writers. Raises LogErased if the run was erased whole."""
    entries = read_new_entries(run)
    if entries is None:
        restart_if_erased(run)
        raise LogErased(
            "what this memory goes on from is not there any more: it was erased without a trace, or its store replaced. "
            "Nothing was written; open it again."
        )
    if any(isinstance(entry.body, Erased) for entry in entries):
        rebuild_after_erasure(run)
    elif any(isinstance(entry.body, Undo) for entry in entries):
        reload(run)
    else:
        run.apply_entries(entries)


def read_new_entries(run: RunState) -> Sequence[Entry] | None:
    """Read the entries after the folded ones; None if the last folded entry is no longer in the log."""
    head = run.fold.head - run.log.unwritten
    start = max(head - 1, 0)
    entries = run.runtime.read_entries(start, None)
    if head and (not entries or (run.log.last_digest and entries[0].digest != run.log.last_digest)):
        return None
    entries = entries[head - start :]
    if entries:  # who wrote them may have given out requests, too
        run.transcript.knows_requests = False
    return entries


def rebuild_after_erasure(run: RunState) -> None:
    """Drop everything derived from the log, and fold it again without what was erased.

    The fingerprints stay: an erased item that the application hands over again is not recorded again.
    """
    head = run.fold.head
    fingerprints, positions = run.log.fingerprints, run.log.fingerprint_positions
    cancel_summary(run)
    run.summaries.clear()
    run.page_in.clear()
    run.past.clear()
    run.usage.last_view = None
    load(run)
    new = bisect_left(run.log.fingerprint_positions, head)
    run.log.fingerprints = [*fingerprints, *run.log.fingerprints[new:]]
    run.log.fingerprint_positions = [*positions, *run.log.fingerprint_positions[new:]]
    run.snapshot.position = None  # a snapshot would store the fingerprints of what was erased


def restart_if_erased(run: RunState) -> None:
    """Go on with an empty run if another memory erased this one, and raise LogErased once to say so."""
    if not run.runtime.restart_empty():
        return
    restart_empty(run)
    raise LogErased(
        "another memory erased this run, whole. Nothing was written; this memory goes on with an empty run. Drop what "
        "your application still has of it, and call again."
    )


def restart_empty(run: RunState) -> None:
    """Fold a run that was erased whole, and forget the application's items too."""
    run.transcript.forget_lists()
    rebuild_after_erasure(run)
    run.log.fingerprints, run.log.fingerprint_positions = [], []


def do_nothing(run: RunState) -> None:
    """Do nothing: a turn of its own still opens the memory, and refreshes it."""
    del run
