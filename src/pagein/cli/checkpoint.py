"""``pagein checkpoint``, ``pagein resume`` and ``pagein log --graph``: the status and the branches of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.open import open_store
from pagein.cli import _output
from pagein.cli._options import AsJson
from pagein.cli._settings import ANY_RUN, RunOptions
from pagein.cli._stores import StoreAddress
from pagein.errors import ConfigurationError
from pagein.events.entries import Compaction
from pagein.events.handles import step_handle
from pagein.log.base import Log
from pagein.memory.branches import Branch, Branches
from pagein.memory.checkpoints import CheckpointInfo, RunStatus
from pagein.memory.checkpoints.state import checkpoint_info
from pagein.summaries.renderer import render_item

Graph = Annotated[bool, Parameter(help="Print the branches as a tree.")]

SHOWN_MAX_ITEMS = 12
"""Items of each list that are printed; --json has all."""


def checkpoint(
    db: StoreAddress,
    name: Annotated[str, Parameter(help="Name of the checkpoint. Of several with one name, the newest counts.")],
    /,
    *,
    run: RunOptions = ANY_RUN,
    json: AsJson = False,
) -> int:
    """Save the status of a run under a name: what is done, to do, ruled out and in progress.

    For example:

      pagein checkpoint run.db "tests pass"
    """
    with run.open_memory(db) as memory:
        handle = memory.checkpoint(name)
        info = memory.checkpoints()[-1]
    if json:
        _output.print_json(_checkpoint_as_dict(info))
    else:
        _output.print_text(f"{handle}: {name}")
    return 0


def resume(
    db: StoreAddress,
    /,
    *,
    run: RunOptions = ANY_RUN,
    name: Annotated[str | None, Parameter(help="Checkpoint to start from. Default: the run's present status.")] = None,
    fresh: Annotated[bool, Parameter(help="Start a new view from the checkpoint alone. Undo reverts it.")] = False,
    budget: Annotated[int, Parameter(help="Maximum tokens of a request, for --fresh.")] = 100_000,
    look: Annotated[bool, Parameter(help="Print the status only; write nothing.")] = False,
    json: AsJson = False,
) -> int:
    """Print the status of a run that stopped, and close calls in flight as unknown.

    A call in flight may have run. pagein never runs it again, and accepts its
    result once if it still arrives.

    For example:

      pagein resume run.db
      pagein resume run.db --fresh
      pagein resume run.db --look --json
    """
    if look and fresh:
        raise ConfigurationError("--look writes nothing and --fresh writes: use one of them")
    with run.open_memory(db, readonly=look, budget=budget) as memory:
        status = memory.status(name) if look else memory.resume(name, fresh=fresh)
    if json:
        _output.print_json(status_as_dict(status))
    else:
        for line in _status_lines(status):
            _output.print_text(line)
    return 0


def print_graph(db: str, session: str, tenant: str, *, json: bool) -> int:
    """Print the branches of a run as a tree, each with its checkpoints and compactions."""
    store = open_store(db, tenant=tenant, readonly=True)
    tree = Branches(store.log(session))
    with contextlib.closing(tree):
        tree.current = tree.last_branch
        branches = tree.list()
        events = {branch.name: list(_own_events(tree.log(branch.name), branch)) for branch in branches}
    if json:
        _output.print_json([{**asdict(branch), "noted": events[branch.name]} for branch in branches])
        return 0
    for line in _render_tree(branches, events, None, ""):
        _output.print_text(line)
    return 0


def _own_events(log: Log, branch: Branch) -> Iterator[dict[str, Any]]:
    """The checkpoints and compactions of a branch, without those of its parent."""
    for entry in log.read(branch.at):
        body = entry.body
        if (info := checkpoint_info(entry)) is not None:
            yield {"handle": info.handle, "kind": "checkpoint", "text": info.name}
        elif isinstance(body, Compaction):
            text = f"{body.tokens_before:,} to {body.tokens_after:,} tokens by {body.policy}"
            yield {"handle": step_handle(entry.position), "kind": "compaction", "text": text}


def _render_tree(
    branches: Sequence[Branch], events: Mapping[str, Sequence[dict[str, Any]]], parent: str | None, indent: str
) -> Iterator[str]:
    children = [branch for branch in branches if branch.parent == parent]
    for branch in children:
        is_last = branch is children[-1]
        stem, rest = ("", "") if parent is None else ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        origin = "" if parent is None else f", from {parent} at {branch.at}"
        current = " *" if branch.is_current else ""
        yield f"{indent}{stem}{branch.name}{current}: {_output.count_of(branch.head, 'entry', 'entries')}{origin}"
        bar = "│" if any(other.parent == branch.name for other in branches) else " "
        for event in events[branch.name]:
            yield f"{indent}{rest}{bar}  {event['handle']} {event['kind']}: {event['text']}"
        yield from _render_tree(branches, events, branch.name, indent + rest)


def status_as_dict(status: RunStatus) -> dict[str, Any]:
    """The status of a run as JSON-safe values."""
    started = status.started
    return {
        "entries": status.head,
        "checkpoint": None if status.checkpoint is None else _checkpoint_as_dict(status.checkpoint),
        "steps_since": status.steps,
        "unknown": [call.dict() for call in status.unknown],
        "state": status.state.dict(),
        "fresh": None if started is None else {"before": started.tokens_before, "after": started.tokens_after},
    }


def _checkpoint_as_dict(info: CheckpointInfo) -> dict[str, Any]:
    return {"name": info.name, "handle": info.handle, "at": info.at, "state": info.state.dict()}


def _status_lines(status: RunStatus) -> Iterator[str]:
    info = status.checkpoint
    yield _output.count_of(status.head, "entry", "entries")
    if info is not None:
        when = _output.format_time(info.at, seconds=True)
        yield f"last checkpoint: {info.name} [{info.handle}], {when} UTC; {_output.count_of(status.steps, 'step')} since"
    state = status.state
    summary = state.summary
    single = {"asked": summary.objective, "state": summary.state}
    yield from (f"{title}: {render_item(item)}" for title, item in single.items() if item is not None)
    lists = {
        "live": [item.description for item in state.live],
        "pinned": list(map(render_item, state.pins)),
        "rules": list(map(render_item, summary.constraints)),
        "to do": list(map(render_item, state.to_do)),
        "dead ends": list(map(render_item, summary.dead_ends)),
        "decided": list(map(render_item, summary.decisions)),
        "done": list(map(render_item, state.done)),
    }
    for title, lines in lists.items():
        if lines:
            yield f"{title}:"
            yield from (f"  {line}" for line in lines[-SHOWN_MAX_ITEMS:])
        if len(lines) > SHOWN_MAX_ITEMS:
            yield f"  and {len(lines) - SHOWN_MAX_ITEMS} before"
    if status.started is not None:
        yield f"a new view: {status.started.tokens_before:,} to {status.started.tokens_after:,} tokens"
