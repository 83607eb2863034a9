"""Checkpoint operations: checkpoint, resume, status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pagein.context.compaction.episodes import FOLD_MIN_TOKENS, foldable_stretches, legal_stop
from pagein.context.view.body import is_permanent, preview
from pagein.context.view.layout import ViewEntry
from pagein.events.entries import Compaction, Observed
from pagein.events.handles import range_handle
from pagein.events.protocol import unknown_observation
from pagein.events.steps import Step
from pagein.memory._state import RunState
from pagein.memory.checkpoints.build import current_state, find_checkpoint, write_checkpoint
from pagein.memory.checkpoints.state import (
    RESUMED,
    UNANSWERED,
    CheckpointInfo,
    CheckpointState,
    check_name,
    host_state_json,
)
from pagein.memory.operations.compact import append_plan, handle_line
from pagein.summaries.open_work import OpenWork
from pagein.summaries.renderer import render_summary
from pagein.summaries.sanitize import one_line
from pagein.tokens import TokenCounter

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


def checkpoint(run: RunState, name: str, state: Any = None) -> str:
    """Record the run under a name; return the handle. ``state`` is the application's own. Raises ConfigurationError."""
    info = write_checkpoint(run, check_name(name), host_state_json(state))
    return info.handle


def resume(run: RunState, name: str | None = None, *, fresh: bool = False) -> RunStatus:
    """See ``AgentMemory.resume``."""
    info, started = prepare_resume(run, name, fresh=fresh)
    return _current_status(run, info, started)


def prepare_resume(
    run: RunState, name: str | None = None, *, fresh: bool = False
) -> tuple[CheckpointInfo | None, Compaction | None]:
    """Resume without a status; return the checkpoint that the run starts from, and the compaction of a fresh start."""
    info = find_checkpoint(run, name)
    if run.fold.calls.open:
        bodies = tuple(
            Observed(call.action, call.index, unknown_observation(call)) for call in run.fold.calls.open.values()
        )
        run.append(*bodies)
    if not fresh:
        return info, None
    if name is None:
        since = () if info is None else run.runtime.read_entries(info.position, run.fold.head)
        if info is None or any(isinstance(entry.body, Step | Observed) for entry in since):
            info = write_checkpoint(run, RESUMED, most=RESUME_MAX_ENTRIES)
    return info, None if info is None else start_fresh(run, info)


def status(run: RunState, name: str | None = None) -> RunStatus:
    """The status of the run; writes nothing, so calls without a result stay open."""
    info = find_checkpoint(run, name)
    return _current_status(run, info)


def _current_status(run: RunState, info: CheckpointInfo | None, started: Compaction | None = None) -> RunStatus:
    state = current_state(run, RESUME_MAX_ENTRIES)
    entries = run.runtime.read_entries(0 if info is None else info.position, run.fold.head)
    steps = sum(isinstance(entry.body, Step) for entry in entries)
    unanswered = tuple(work for work in state.live if work.kind in UNANSWERED)
    return RunStatus(run.fold.head, info, state, unanswered, steps, started)


# A view that starts from a checkpoint

STATE_SHARE = 0.25
"""Share of the limit that a checkpoint's state may have in a view that starts from it."""


def start_fresh(run: RunState, checkpoint: CheckpointInfo) -> Compaction | None:
    """Compact everything before the checkpoint into its state, except the user's words and pins; None if that saves nothing."""
    view = run.current_view()
    stretches = foldable_stretches(view, legal_stop(view, checkpoint.position + 1))
    if not stretches:
        return None
    *earlier, newest = stretches
    replacements = [handle_line(view, stretch) for stretch in earlier if _tokens(stretch) > FOLD_MIN_TOKENS]
    saved = view.tokens - preview(view, replacements).tokens + _tokens(newest)
    text = render_checkpoint(
        checkpoint,
        min(int(view.limit * STATE_SHARE), saved - FOLD_MIN_TOKENS),
        view.counter,
        range_handle(0, checkpoint.position),
    )
    line = handle_line(view, newest)
    replacements.append(replace(line, summary=text) if text else line)
    return append_plan(run, view, replacements, "checkpoint", f"started from {checkpoint.name!r}")


def _tokens(stretch: Iterable[ViewEntry]) -> int:
    return sum(entry.tokens for entry in stretch if not is_permanent(entry))


def render_checkpoint(checkpoint: CheckpointInfo, max_tokens: int, counter: TokenCounter, handle: str) -> str:
    """Render a checkpoint as data in at most ``max_tokens`` tokens; "" if nothing has room."""
    lines = [f"Checkpoint {checkpoint.name!r} [{checkpoint.handle}]: where the run stood."]
    lines += [f"- {work.description}" for work in checkpoint.state.live]
    if checkpoint.state.host:
        lines.append(f"Kept with it by the host: {one_line(checkpoint.state.host, 2_000)}")
    while len(lines) > 1 and counter.text("\n".join(lines)) > max_tokens // 2:
        lines.pop()
    lead_in = one_line(lines[0]) + "".join(f"\n{one_line(line, 2_100)}" for line in lines[1:])
    room = max_tokens - counter.text(lead_in) - 1
    body = render_summary(checkpoint.state.summary, room, counter, handle=handle) if room > 0 else ""
    text = f"{lead_in}\n{body}"
    return text if body and counter.text(text) <= max_tokens else ""
