"""A view that starts from a checkpoint: earlier steps leave it, and the checkpoint's state stands for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pagein.context.compaction.base import Plan
from pagein.context.compaction.episodes import FOLD_MIN_TOKENS, covered_range, foldable_stretches, legal_stop
from pagein.context.view.fold import is_kept, preview
from pagein.context.view.view import View, ViewEntry
from pagein.events.entries import Compaction, Replacement
from pagein.events.handles import range_handle
from pagein.memory._effects import Append, Flow
from pagein.memory._state import RunState
from pagein.memory.checkpoints.state import CheckpointInfo
from pagein.summaries.renderer import render_summary
from pagein.summaries.sanitize import one_line
from pagein.tokens import TokenCounter

STATE_SHARE = 0.25
"""Share of the limit that a checkpoint's state may have in a view that starts from it."""


def start_fresh(run: RunState, checkpoint: CheckpointInfo) -> Flow[Compaction | None]:
    """Compact everything before the checkpoint into its state; None if that would save nothing."""
    view = run.current_view()
    plan = plan_fresh_start(view, checkpoint)
    if plan is None:
        return None
    after = preview(view, plan.replacements)
    compaction = Compaction(plan.replacements, plan.policy, plan.reason, view.tokens, after.tokens)
    run.apply_entries((yield from Append((compaction,), run.fold.head)))
    return compaction


def plan_fresh_start(view: View, checkpoint: CheckpointInfo) -> Plan | None:
    """Plan that everything before the checkpoint leaves, except the user's words, pins and system prompts."""
    stretches = foldable_stretches(view, legal_stop(view, checkpoint.position + 1))
    if not stretches:
        return None
    *earlier, newest = stretches
    replacements = [_handle_line(view, stretch) for stretch in earlier if _tokens(stretch) > FOLD_MIN_TOKENS]
    saved = view.tokens - preview(view, replacements).tokens + _tokens(newest)
    text = render_checkpoint(
        checkpoint,
        min(int(view.limit * STATE_SHARE), saved - FOLD_MIN_TOKENS),
        view.counter,
        range_handle(0, checkpoint.position),
    )
    first, last = covered_range(view, newest)
    replacements.append(Replacement(first, last, summary=text) if text else _handle_line(view, newest))
    if preview(view, replacements).tokens >= view.tokens:
        return None
    return Plan(tuple(replacements), "checkpoint", f"started from {checkpoint.name!r}")


def _handle_line(view: View, stretch: Sequence[ViewEntry]) -> Replacement:
    first, last = covered_range(view, tuple(stretch))
    return Replacement(first, last, summary=f"Out of view: {range_handle(first, last)}.")


def _tokens(stretch: Iterable[ViewEntry]) -> int:
    return sum(entry.tokens for entry in stretch if not is_kept(entry))


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
