"""The verbs, written once: generators that yield what they need done, driven sync and async by ``memory``.

What shows and what leaves is in ``paging``, what was recorded is read back in ``history``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagein.effects import Append, Attend, Flow, Read
from pagein.errors import NothingToUndo, UnknownHandle
from pagein.formats import Item
from pagein.log import Compaction, Entry, Pin, Undo, Unpin
from pagein.recording import Handed, admit, unheard
from pagein.session import Session
from pagein.steps import Usage
from pagein.view.handles import Handle, parse_handle


@dataclass(frozen=True, slots=True)
class Recorded:
    """What ``record`` wrote: positions ``[first, last)``, and what had to be mended to be legal."""

    first: int
    last: int
    repairs: tuple[str, ...] = ()


def load(session: Session) -> Flow[None]:
    """Fold the whole log from its first entry, undone compactions left out."""
    entries = yield from Read(0, None)
    session.begin(entries)


def catch_up(session: Session) -> Flow[None]:
    """Fold in what another writer recorded meanwhile."""
    entries = yield from Read(session.fold.head, None)
    if any(isinstance(entry.body, Undo) for entry in entries):
        yield from load(session)
    else:
        session.take(entries)


def nothing() -> Flow[None]:
    """Do nothing, in its turn."""
    yield from ()


def record(
    session: Session,
    items: Sequence[Item] | Handed,
    *,
    strict: bool,
    whole: bool | None = False,
    usage: Usage | None = None,
) -> Flow[Recorded]:
    """Write the items durably, all or none, then show them; learn from what the provider reported."""
    fold = session.fold
    fresh, left = _fresh(session, items, whole)
    admission = admit(fresh, head=fold.head, open_now=fold.open, abandoned=fold.abandoned, strict=strict)
    first = fold.head
    entries: Sequence[Entry] = ()
    if admission.bodies:
        entries = yield from Append(admission.bodies, first)
        session.take(entries)
        if session.has_facts:
            yield from Attend()
    repairs = (*left, *admission.repairs)
    session.repairs.extend(repairs)
    if usage is not None:
        session.learn(usage.input_tokens)
    session.call_back(entries)
    return Recorded(first, fold.head, repairs)


def _fresh(
    session: Session, items: Sequence[Item] | Handed, whole: bool | None
) -> tuple[Sequence[Item], tuple[str, ...]]:
    """What of the items is new, and what was left out; typed steps are all new."""
    if not isinstance(items, Handed):
        return items, ()
    shown = session.rendered.get(items.format)
    since = session.since(shown.head) if shown is not None else ()
    return unheard(items, shown, session.heard, since, whole=whole)


def undo(session: Session) -> Flow[Compaction]:
    """Take back the last compaction that was not taken back already. Raises NothingToUndo."""
    if not session.fold.compactions:
        raise NothingToUndo("no compaction is left to undo")
    position, body = session.fold.compactions[-1]
    # Read before the write: what fails then leaves everything as it was.
    before = yield from Read(0, session.fold.head)
    written = yield from Append((Undo(position),), session.fold.head)
    session.begin((*before, *written))
    return body


def pin(session: Session, text: str) -> Flow[str]:
    """Keep the text verbatim in every view. Gives its handle."""
    entries = yield from Append((Pin(text),), session.fold.head)
    session.take(entries)
    return str(Handle(entries[0].position, entries[0].position + 1))


def unpin(session: Session, handle: str) -> Flow[None]:
    """Let a pin go. Raises UnknownHandle where the handle names no pin."""
    named = parse_handle(handle)
    if named is None or named.first not in session.fold.pinned:
        raise UnknownHandle(handle, session.fold.head)
    session.take((yield from Append((Unpin(named.first),), session.fold.head)))
