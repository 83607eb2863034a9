"""Pins and the ledger: what stands in every view until it is let go. A pin is asked for, an entry of the ledger was said."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.errors import ConfigurationError, UnknownHandle
from pagein.events.entries import Pin, Unpin
from pagein.events.handles import Handle, parse_handle, step_handle
from pagein.memory._effects import Append, Flow
from pagein.memory._state import RunState


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


def ledger(run: RunState) -> Flow[tuple[LedgerEntry, ...]]:
    """Return what holds in the run, in the order in which it was said."""
    yield from ()
    return tuple(
        LedgerEntry(
            step_handle(item.position),
            item.speaker,
            item.statement.kind,
            item.statement.text,
            item.statement.is_safety,
            None if item.replaced is None else step_handle(item.replaced),
        )
        for item in run.fold.ledger.items.values()
    )


def pin(run: RunState, text: str) -> Flow[str]:
    """Keep the text in every view; return its handle. Raises ConfigurationError for an empty text.

    The handle of a step with an entry of the ledger pins the entry's words: they are confirmed, and never give way.
    """
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError(f"a pin is text to keep in every view, not {text!r}")
    said = _entries_at(run, text)
    entries = yield from Append((Pin("\n".join(said) if said else text),), run.fold.head)
    run.apply_entries(entries)
    return str(Handle(entries[0].position, entries[0].position + 1))


def unpin(run: RunState, handle: str) -> Flow[None]:
    """Let a pin, or what a step has in the ledger, go. Raises UnknownHandle if the handle names neither."""
    parsed = parse_handle(handle) if isinstance(handle, str) else None
    if parsed is None or (parsed.first not in run.fold.pinned and not _entries_at(run, handle)):
        raise UnknownHandle(str(handle), run.fold.head)
    run.apply_entries((yield from Append((Unpin(parsed.first),), run.fold.head)))


def _entries_at(run: RunState, handle: str) -> list[str]:
    """Return the words of the ledger's entries at a step's handle."""
    parsed = parse_handle(handle.strip())
    if parsed is None or str(parsed) != step_handle(parsed.first):
        return []
    return [item.statement.text for item in run.fold.ledger.items.values() if item.position == parsed.first]
