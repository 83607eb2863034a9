"""A view that starts from a checkpoint: everything before it leaves, and its state stands for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pagein.context.compaction.base import Plan
from pagein.context.compaction.episodes import WORTH, folds, legal_stop, span
from pagein.context.view.fold import is_kept, preview
from pagein.context.view.view import Shown, View
from pagein.events.entries import Compaction, Replacement
from pagein.events.handles import range_handle
from pagein.memory._effects import Append, Flow
from pagein.memory._state import Session
from pagein.memory.checkpoints.state import Mark
from pagein.summaries.renderer import rendered
from pagein.summaries.sanitize import one_line
from pagein.tokens import TokenCounter

SMALLEST = 300
"""Tokens that leave below which a line with a handle is not worth it, where there is no room for the state."""

SHARE = 0.25
"""Share of the limit that a checkpoint's state may have in a view that starts from it."""


def started(session: Session, mark: Mark) -> Flow[Compaction | None]:
    """Let everything before the checkpoint leave, its state in its place; None where that would save nothing."""
    current = session.fold.view(session.limit(session.budget))
    plan = fresh(current, mark)
    if plan is None:
        return None
    after = preview(current, plan.replacements)
    body = Compaction(plan.replacements, plan.policy, plan.reason, current.tokens, after.tokens)
    session.take((yield from Append((body,), session.fold.head)))
    return body


def fresh(view: View, mark: Mark) -> Plan | None:
    """What leaves when a run starts from a checkpoint: all before it but the user's words, pins and system prompts."""
    stretches = folds(view, legal_stop(view, mark.position + 1))
    if not stretches:
        return None
    *earlier, newest = stretches
    replacements = [_lined(view, held) for held in earlier if _tokens(held) > WORTH]
    first, last = span(view, newest)
    saved = view.tokens - preview(view, replacements).tokens + _tokens(newest)
    text = told(
        mark, min(int(view.limit * SHARE), saved - WORTH), view.counter, range_handle(0, mark.position)
    )
    replacements.append(
        Replacement(first, last, summary=text or f"Out of view: {range_handle(first, last)}.")
    )
    if preview(view, replacements).tokens >= view.tokens:
        return None
    return Plan(tuple(replacements), "checkpoint", f"started from {mark.name!r}")


def _lined(view: View, held: Sequence[Shown]) -> Replacement:
    first, last = span(view, tuple(held))
    return Replacement(first, last, summary=f"Out of view: {range_handle(first, last)}.")


def _tokens(held: Iterable[Shown]) -> int:
    return sum(each.tokens for each in held if not is_kept(each))


def told(mark: Mark, tokens: int, counter: TokenCounter, handle: str) -> str:
    """A checkpoint as text, as data, in at most ``tokens`` tokens; "" where there is no room for anything."""
    head = [f"Checkpoint {mark.name!r} [{mark.handle}]: where the run stood."]
    head += [f"- {each.told}" for each in mark.state.live]
    if mark.state.host:
        head.append(f"Kept with it by the host: {one_line(mark.state.host, 2_000)}")
    while len(head) > 1 and counter.text("\n".join(head)) > tokens // 2:
        head.pop()
    lead_in = one_line(head[0]) + "".join(f"\n{one_line(each, 2_100)}" for each in head[1:])
    room = tokens - counter.text(lead_in) - 1
    body = rendered(mark.state.summary, room, counter, handle=handle) if room > 0 else ""
    text = f"{lead_in}\n{body}"
    return text if body and counter.text(text) <= tokens else ""
