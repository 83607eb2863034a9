"""Pins and the ledger: what stands in every view until it is let go. A pin is asked for, an entry of the ledger was said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from pagein.context.compaction.apply import plan_floor
from pagein.context.view.layout import make_entry
from pagein.errors import ConfigurationError, OverBudget, UnknownHandle
from pagein.events.entries import Importance, Mark, Pin, Unpin
from pagein.events.handles import parse_handle, step_handle
from pagein.memory._state import RunState
from pagein.memory.operations.byte_limit import hold_to_bytes
from pagein.memory.operations.facts_block import without_facts
from pagein.tokens import TokenCounter
from pagein.tokens.budget import RequestRoom
from pagein.tokens.bytes import BYTES_A_UNIT, ByteCounter

MODEL_PIN_SHARE = 0.125
"""Share of the limit for what the model pinned by itself: as much as facts have. Any text that a model reads may ask it to
pin something, and a pin is in every view; the user's own pins have no such share."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Something that was said and still holds: where, by whom, its kind and its words; ``replaces`` is the older wording.

    ``kind`` is rule, limit, decision, goal, commitment, correction, preference or value. Handles are of the steps.
    """

    handle: str
    speaker: str
    kind: str
    text: str
    is_safety: bool
    replaces: str | None = None


def ledger(run: RunState) -> tuple[LedgerEntry, ...]:
    """Return what holds in the run, in the order in which it was said; nothing of a step that was taken out of it."""
    return tuple(
        LedgerEntry(
            step_handle(item.position),
            item.speaker,
            item.statement.kind,
            item.statement.text,
            item.statement.is_safety,
            None if item.replaced is None else step_handle(item.replaced),
        )
        for item in run.fold.learned.ledger.items.values()
    )


def pin(run: RunState, text: str) -> str:
    """See ``AgentMemory.pin``."""
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError(f"a pin is text to keep in every view, not {text!r}")
    return _record_pin(run, _pin_of(run, text))


def pin_for_model(run: RunState, text: str) -> str:
    """Keep a text that the model asked for, within the model's share of the budget. Raises ConfigurationError beyond it.

    What the application pinned stays the application's.
    """
    own = _pin_of(run, text)
    if (standing := _find_pin(run, own)) is not None:
        return step_handle(standing)
    pinned = replace(own, author="model")
    shown = ((entry.first, entry.item) for entry in run.current_view().entries)
    others = {at: item.text for at, item in shown if isinstance(item, Pin) and item.author}
    _check_share(run.usage.limit(), "tokens", run.fold.counter, pinned, others)
    if run.usage.budget.bytes is not None:
        _check_share(run.usage.budget.bytes // BYTES_A_UNIT, "times four bytes", ByteCounter(), pinned, others)
    return _record_pin(run, pinned)


def _pin_of(run: RunState, text: str) -> Pin:
    return Pin("\n".join(entries_at(run, text)) or text)


def _find_pin(run: RunState, pinned: Pin) -> int | None:
    """Return the position of the same pin; None where there is none."""
    return next((entry.first for entry in run.current_view().entries if entry.item == pinned), None)


def _record_pin(run: RunState, pinned: Pin) -> str:
    if (standing := _find_pin(run, pinned)) is not None:  # a program pins its rules each time it starts
        return step_handle(standing)
    _check_fits(run, pinned)
    return step_handle(run.append(pinned)[0].position)


def _check_share(limit: int, unit: str, counter: TokenCounter, pinned: Pin, others: Mapping[int, str]) -> None:
    """Raise ConfigurationError where the model's pins would have more than their share of the limit."""
    share = int(limit * MODEL_PIN_SHARE)
    needed, taken = _cost(pinned, counter), sum(_cost(Pin(words), counter) for words in others.values())
    if needed > share - taken:
        handles = ", ".join(map(step_handle, list(others)[-8:]))
        cure = f"Forget one of {handles}, pin less" if others else "Pin less"
        raise ConfigurationError(
            f"nothing was pinned: the text has {needed} {unit}, and of {share} for the model's pins "
            f"{max(0, share - taken)} are free. {cure}, or take a note."
        )


def _cost(pinned: Pin, counter: TokenCounter) -> int:
    return make_entry(pinned, 0, 0, counter, tier="pin", why="").tokens


def _check_fits(run: RunState, pinned: Pin) -> None:
    """Raise OverBudget if no view would fit with this pin, which would be in every one."""
    head = run.fold.head
    entry = make_entry(pinned, head, head + 1, run.fold.counter, tier="pin", why="pinned")
    view = without_facts(run.current_view())
    view = replace(view, front=(*view.front, entry)).with_tail(())
    budget = run.usage.budget
    try:
        if view.tokens > view.limit:
            plan_floor(view, budget)
        run.usage.set_byte_limit(budget, RequestRoom())
        hold_to_bytes(run, view, budget)
    except OverBudget as error:
        raise OverBudget(error.needed, error.limit, error.steps, refused="this pin", unit=error.unit) from None


def unpin(run: RunState, handle: str) -> None:
    """Drop a pin, or the ledger's entries of a step and what is open by it. Raises UnknownHandle if the handle names neither."""
    parsed = parse_handle(handle) if isinstance(handle, str) else None
    is_known = parsed is not None and (
        parsed.first in run.fold.pinned
        or bool(entries_at(run, handle))
        or run.fold.learned.ledger.has_open_work(parsed.first)
    )
    if parsed is None or not is_known:
        raise UnknownHandle(str(handle), run.fold.head, "only a pin, or an entry of the ledger, can be dropped")
    run.append(Unpin(parsed.first))


def is_application_pin(run: RunState, handle: str) -> bool:
    """True for the handle of a pin that no model made."""
    entries = run.current_view().entries
    return any(
        isinstance(entry.item, Pin) and not entry.item.author and step_handle(entry.first) == handle
        for entry in entries
    )


def mark(run: RunState, handle: str, importance: Importance) -> None:
    """See ``AgentMemory.mark``."""
    check_importance(importance)
    position = step_position(run, handle)
    if position is None:
        raise UnknownHandle(
            str(handle), run.fold.head, "mark takes the handle of one step; a result is marked with its step"
        )
    run.append(Mark(position, importance))


def step_position(run: RunState, handle: str) -> int | None:
    """Return the position of the step that a handle names; None where the text names none."""
    parsed = parse_handle(handle) if isinstance(handle, str) else None
    if parsed is None or parsed.last != parsed.first + 1 or not run.fold.costs.sum(parsed.first, parsed.last):
        return None
    return parsed.first


def check_importance(importance: object) -> None:
    """Raise ConfigurationError for what is no importance."""
    if importance not in get_args(Importance):
        raise ConfigurationError(f'importance is "high", "normal" or "low", not {importance!r}')


def entries_at(run: RunState, handle: str) -> list[str]:
    """Return the words of the ledger's entries at a step's handle."""
    parsed = parse_handle(handle.strip())
    if parsed is None or str(parsed) != step_handle(parsed.first):
        return []
    return [item.statement.text for item in run.fold.learned.ledger.items.values() if item.position == parsed.first]
