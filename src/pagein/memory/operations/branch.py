"""Branch operations: fork, switch, rewind, drop, compare."""

from __future__ import annotations

from collections.abc import Sequence

from pagein._common.sequences import count_same
from pagein.errors import ConfigurationError, UnknownBranch, UnknownCheckpoint
from pagein.events.entries import Observed
from pagein.events.handles import parse_handle
from pagein.events.protocol import current_prompt
from pagein.events.steps import Step, SystemPromptStep
from pagein.log.base import Entry
from pagein.memory._state import RunState
from pagein.memory.branches import Branch, Comparison, check_branch_name
from pagein.memory.operations.load import load, write_closing_snapshot
from pagein.memory.operations.record import record
from pagein.memory.operations.summarize import cancel_summary


def list_branches(run: RunState) -> tuple[Branch, ...]:
    """The branches of the run that were not dropped, oldest first."""
    branches = run.runtime.branches.list()
    return tuple(branch for branch in branches if not branch.is_dropped)


def fork(run: RunState, at: int | str | None, name: str | None, now: float) -> Branch:
    """Fork the current branch at a place; the run stays on it."""
    if name is not None:
        check_branch_name(name)
    position = _fork_position(run, at)
    forked = run.runtime.branches.fork(name, position, now)
    return _find_branch(run, forked)


def switch(run: RunState, name: str, now: float) -> None:
    """Go on with another branch, and with a state of its own. A summary at work is cancelled."""
    _find_branch(run, name)
    log = run.runtime.branch_log(name)
    state = run.for_branch()
    load(state, log)  # an error here leaves the run where it is
    cancel_summary(run)
    write_closing_snapshot(run)
    run.runtime.branches.switch(name, now)
    run.runtime.move_to(log, state)


def drop(run: RunState, name: str, now: float) -> None:
    """Leave a branch for good. Raises UnknownBranch, and ConfigurationError for the run's own branch."""
    _find_branch(run, name)
    run.runtime.branches.drop(name, now)


def rewind(run: RunState, to: int | str, now: float) -> Branch:
    """Fork at an earlier place, and go on there; the later entries stay on their branch."""
    branch = fork(run, to, None, now)
    switch(run, branch.name, now)
    return _find_branch(run, branch.name)


def reset(run: RunState, now: float) -> Branch:
    """Go on with the system prompts alone, on a new branch; the run so far stays on its own."""
    entries = run.runtime.read_entries(0, run.fold.head)
    prompts = [entry.body for entry in entries if entry.position in run.fold.system_positions]
    branch = rewind(run, 0, now)
    if prompts:
        steps = [current_prompt(step)[0] for step in prompts if isinstance(step, SystemPromptStep)]
        record(run.runtime.state, steps, strict=True)
    return branch


def compare(run: RunState, left: str, right: str) -> Comparison:
    """Compare the steps of two branches. Raises UnknownBranch."""
    left_entries = _read_branch(run, left)
    right_entries = _read_branch(run, right)
    common = count_same(*([entry.digest for entry in entries] for entries in (left_entries, right_entries)))
    return Comparison(common, _steps_from(left_entries, common), _steps_from(right_entries, common))


def _read_branch(run: RunState, name: str) -> tuple[Entry, ...]:
    return tuple(run.runtime.branch_log(name).read())


def _steps_from(entries: Sequence[Entry], start: int) -> tuple[tuple[int, Step], ...]:
    return tuple((entry.position, entry.body) for entry in entries[start:] if isinstance(entry.body, Step))


def _find_branch(run: RunState, name: str) -> Branch:
    branches = list_branches(run)
    branch = next((branch for branch in branches if branch.name == name), None)
    if branch is None:
        raise UnknownBranch(name, tuple(branch.name for branch in branches))
    return branch


def _fork_position(run: RunState, at: int | str | None) -> int:
    """The number of entries that a fork keeps: a number itself, or up to a checkpoint, or a step with its results.

    Raises ConfigurationError, UnknownCheckpoint.
    """
    head = run.fold.head
    if at is None:
        return head
    if isinstance(at, bool) or not isinstance(at, int | str):
        raise ConfigurationError(f"a place in a run is a position, a handle or a checkpoint's name, not {at!r}")
    if isinstance(at, str):
        return _named_position(run, at)
    if not 0 <= at <= head:
        raise ConfigurationError(f"a position from 0 to {head} is needed, not {at}")
    return at


def _named_position(run: RunState, name: str) -> int:
    from pagein.memory.checkpoints.build import find_checkpoint  # noqa: PLC0415 - loads where a checkpoint is named

    head = run.fold.head
    try:
        checkpoint = find_checkpoint(run, name)
    except UnknownCheckpoint:
        handle = parse_handle(name)
        if handle is None or not 0 <= handle.first < handle.last <= head:
            raise
        return _position_after_results(run, handle.last)
    return head if checkpoint is None else checkpoint.position + 1


def _position_after_results(run: RunState, position: int) -> int:
    """The first position from this one on that has no result of an earlier action."""
    entries = run.runtime.read_entries(position, run.fold.head)
    for entry in entries:
        if not isinstance(entry.body, Observed) or entry.body.late or entry.body.action >= position:
            return entry.position
    return run.fold.head
