"""``pagein checkpoint``, ``resume`` and ``log --graph``: where a run stands, written down and told; its branches."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.open import open_log
from pagein.cli import _output as screen
from pagein.cli import _stores as stores
from pagein.cli._options import AsJson, SessionName
from pagein.cli._stores import Store, TenantName
from pagein.errors import ConfigurationError
from pagein.events.entries import Compaction
from pagein.events.handles import step_handle
from pagein.log.base import Log
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.branches import Branch, Grove
from pagein.memory.checkpoints import Automatic, Mark, Standing
from pagein.memory.checkpoints.state import as_mark
from pagein.summaries.renderer import entry

Graph = Annotated[bool, Parameter(help="Its branches instead, as a tree.", show_default=False)]

LINES = 12
"""Lines of each list that are shown; --json has all."""


def checkpoint(
    db: Store,
    name: Annotated[str, Parameter(help="What to call it; of several of one name the newest counts.")],
    /,
    *,
    session: SessionName = None,
    tenant: TenantName = "",
    json: AsJson = False,
) -> int:
    """Write down where a run stands, under a name: what was done, is to do, was ruled out, is still going on.

    For example:

      pagein checkpoint run.db "tests pass"
    """
    with opened(db, session, tenant) as memory:
        handle = memory.checkpoint(name)
        mark = memory.checkpoints()[-1]
    if json:
        screen.show_json(_mark(mark))
    else:
        screen.show(f"{handle}: {name}")
    return 0


def resume(
    db: Store,
    /,
    *,
    session: SessionName = None,
    tenant: TenantName = "",
    name: Annotated[
        str | None, Parameter(help="The checkpoint to start from; without it, where the run is.")
    ] = None,
    fresh: Annotated[
        bool,
        Parameter(help="Start a new view from the checkpoint alone; undo takes it back.", show_default=False),
    ] = False,
    budget: Annotated[int, Parameter(help="Tokens a request may have, for --fresh.")] = 100_000,
    look: Annotated[bool, Parameter(help="Only tell; write nothing.", show_default=False)] = False,
    json: AsJson = False,
) -> int:
    """Tell where a run stands after it stopped, and close what was in flight as unknown.

    A call that was in flight may have run; it is never run again by pagein, and
    its result is accepted once if it still comes.

    For example:

      pagein resume run.db
      pagein resume run.db --fresh
      pagein resume run.db --look --json
    """
    if look and fresh:
        raise ConfigurationError("--look writes nothing, and --fresh does: use one of them")
    with opened(db, session, tenant, readonly=look, budget=budget) as memory:
        stands = memory.standing(name) if look else memory.resume(name, fresh=fresh)
    if json:
        screen.show_json(standing(stands))
    else:
        for line in _told(stands):
            screen.show(screen.clean(line))
    return 0


def graph(db: str, session: str, tenant: str, *, json: bool) -> int:
    """Print the branches of a run as a tree, each with its checkpoints and compactions."""

    def log_of(name: str) -> Log:
        return open_log(db, session=name, tenant=tenant, readonly=True)

    grove = Grove(log_of(session), log_of)
    with contextlib.closing(grove):
        grove.current = grove.last()
        found = grove.branches()
        noted = {each.name: list(_noted(grove.log(each.name), each)) for each in found}
    if json:
        screen.show_json([{**asdict(each), "noted": noted[each.name]} for each in found])
        return 0
    for line in _tree(found, noted, None, ""):
        screen.show(screen.clean(line))
    return 0


def _noted(log: Log, branch: Branch) -> Iterator[dict[str, Any]]:
    """The checkpoints and compactions that are a branch's own."""
    for each in log.read(branch.at):
        body = each.body
        if (mark := as_mark(each)) is not None:
            yield {"handle": mark.handle, "kind": "checkpoint", "text": mark.name}
        elif isinstance(body, Compaction):
            said = f"{body.tokens_before:,} to {body.tokens_after:,} tokens by {body.policy}"
            yield {"handle": step_handle(each.position), "kind": "compaction", "text": said}


def _tree(
    branches: Sequence[Branch], noted: Mapping[str, Sequence[dict[str, Any]]], parent: str | None, before: str
) -> Iterator[str]:
    children = [each for each in branches if each.parent == parent]
    for each in children:
        is_last = each is children[-1]
        stem, rest = ("", "") if parent is None else ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        where = "" if parent is None else f", from {parent} at {each.at}"
        here = " *" if each.is_current else ""
        yield f"{before}{stem}{each.name}{here}: {each.head:,} entries{where}"
        bar = "│" if any(below.parent == each.name for below in branches) else " "
        for one in noted[each.name]:
            yield f"{before}{rest}{bar}  {one['handle']} {one['kind']}: {one['text']}"
        yield from _tree(branches, noted, each.name, before + rest)


@contextlib.contextmanager
def opened(db: str, session: str | None, tenant: str, **options: Any) -> Iterator[AgentMemory]:
    """The memory of the session that is meant, which must be there; closing it makes no checkpoint of its own."""
    name = stores.chosen(db, stores.sessions(db, tenant), session)
    options["checkpoints"] = Automatic(close=False)
    with AgentMemory.open(db, session=name, tenant=tenant, **options) as memory:
        yield memory


def standing(stands: Standing) -> dict[str, Any]:
    """Where a run stands as JSON-safe values."""
    started = stands.started
    return {
        "entries": stands.head,
        "checkpoint": None if stands.checkpoint is None else _mark(stands.checkpoint),
        "steps_since": stands.steps,
        "unknown": [each.dict() for each in stands.unknown],
        "state": stands.state.dict(),
        "fresh": None
        if started is None
        else {"before": started.tokens_before, "after": started.tokens_after},
    }


def _mark(mark: Mark) -> dict[str, Any]:
    return {"name": mark.name, "handle": mark.handle, "at": mark.at, "state": mark.state.dict()}


def _told(stands: Standing) -> Iterator[str]:
    mark = stands.checkpoint
    yield f"{stands.head:,} entries"
    if mark is not None:
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(mark.at))
        yield f"last checkpoint: {mark.name} [{mark.handle}], {when}; {stands.steps} steps since"
    state = stands.state
    said = state.summary
    one = {"asked": said.objective, "state": said.state}
    yield from (f"{title}: {entry(each)}" for title, each in one.items() if each is not None)
    lists = {
        "live": [each.told for each in state.live],
        "pinned": list(map(entry, state.pins)),
        "rules": list(map(entry, said.constraints)),
        "to do": list(map(entry, state.to_do)),
        "dead ends": list(map(entry, said.dead_ends)),
        "decided": list(map(entry, said.decisions)),
        "done": list(map(entry, state.done)),
    }
    for title, lines in lists.items():
        if lines:
            yield f"{title}:"
            yield from (f"  {each}" for each in lines[-LINES:])
        if len(lines) > LINES:
            yield f"  and {len(lines) - LINES} before"
    if stands.started is not None:
        yield f"a new view: {stands.started.tokens_before:,} to {stands.started.tokens_after:,} tokens"
