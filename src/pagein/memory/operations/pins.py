"""Pins: texts that stand in every view, word for word, until they are unpinned."""

from __future__ import annotations

from pagein.errors import ConfigurationError, UnknownHandle
from pagein.events.entries import Pin, Unpin
from pagein.events.handles import Handle, parse_handle
from pagein.memory._effects import Append, Flow
from pagein.memory._state import RunState


def pin(run: RunState, text: str) -> Flow[str]:
    """Keep the text in every view; return its handle. Raises ConfigurationError for an empty text."""
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError(f"a pin is text to keep in every view, not {text!r}")
    entries = yield from Append((Pin(text),), run.fold.head)
    run.apply_entries(entries)
    return str(Handle(entries[0].position, entries[0].position + 1))


def unpin(run: RunState, handle: str) -> Flow[None]:
    """Let a pin go. Raises UnknownHandle if the handle names no pin."""
    parsed = parse_handle(handle) if isinstance(handle, str) else None
    if parsed is None or parsed.first not in run.fold.pinned:
        raise UnknownHandle(str(handle), run.fold.head)
    run.apply_entries((yield from Append((Unpin(parsed.first),), run.fold.head)))
