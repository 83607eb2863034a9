"""The verbs, written once: generators that yield what they need done, driven sync and async by ``memory``.

What shows and what leaves is in ``paging``, what was recorded is read back in ``history``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pagein.context.page_in import Part, Sights
from pagein.context.view.fold import Fold, undone
from pagein.errors import LogErased, LogError, LogUnreadable, NothingToUndo, UnknownHandle
from pagein.events.entries import Body, Compaction, Erased, Pin, Undo, Unpin
from pagein.events.handles import Handle, parse_handle
from pagein.events.steps import Usage
from pagein.formats import Item
from pagein.log.base import Entry, Log
from pagein.log.snapshots import Snapshot
from pagein.memory._effects import Anew, Append, Attend, Flow, Head, Keep, Look, Read
from pagein.memory._state import Held, Session
from pagein.memory.operations.history import stretches
from pagein.memory.operations.ingest import Admission, Handed, admit, unheard
from pagein.memory.operations.view import QUIET, made_ready, thrown_away, undisturbed
from pagein.memory.snapshots import MISFITS, is_due, key_of, needed, packed, restored, unpacked

PAGE = 1_000
"""Entries that are read at a time where a whole log is folded: no more of it is ever held."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What ``record`` wrote: positions ``[first, last)``, and what had to be mended to be legal."""

    first: int
    last: int
    repairs: tuple[str, ...] = ()


def load(session: Session, log: Log | None = None) -> Flow[None]:
    """Fold the log, the run's or another one: from its snapshot where there is one that fits, else from its first entry."""
    shelf = yield from Look(log)
    held, kept, dropped = None, None, 0
    if shelf is not None and key_of(session.counter):
        kept, dropped = 0 if shelf.is_open else None, shelf.dropped
        if shelf.snapshot is not None:
            held = yield from _from_snapshot(session, shelf.snapshot, log)
        if held is not None and shelf.snapshot is not None and shelf.is_open:
            kept = shelf.snapshot.position
    if held is not None:
        session.tail, session.part = held.tail, held.part
    session.hold(held or (yield from _anew(session, log)))
    session.kept, session.dropped = kept, dropped


def reload(session: Session) -> Flow[None]:
    """Fold the whole log from its first entry, whatever a snapshot says; the next one is made of that."""
    session.hold((yield from _anew(session)))
    session.kept = None if session.kept is None else 0


def _from_snapshot(session: Session, snapshot: Snapshot, log: Log | None) -> Flow[Held | None]:
    """What a snapshot and the entries behind it give; None where it is of another log or release, or an undo takes back
    what it folded.
    """
    last = yield from Read(snapshot.position - 1, snapshot.position, log)
    if not _fits(snapshot, session, last):
        return None
    try:
        value = unpacked(snapshot.body)
        bodies: dict[int, Body] = {}
        for start, stop in stretches(sorted(needed(value))):
            bodies.update((each.position, each.body) for each in (yield from Read(start, stop, log)))
        held = restored(value, session.counter, bodies)
    except MISFITS:
        return None
    held.tip = snapshot.digest
    return held if (yield from _follow(held, log)) is None else None


def _fits(snapshot: Snapshot, session: Session, last: Sequence[Entry]) -> bool:
    """Whether it can be read here, and is of this log: the digest of its last entry covers all before."""
    return snapshot.key == key_of(session.counter) and [each.digest for each in last] == [snapshot.digest]


def _anew(session: Session, log: Log | None = None, skip: frozenset[int] = frozenset()) -> Flow[Held]:
    """What the log gives folded from its first entry, undone compactions left out."""
    while True:
        held = Held(Fold(session.counter, skip=skip))
        found = yield from _follow(held, log)
        if found is None:
            return held
        skip = found


def _follow(held: Held, log: Log | None) -> Flow[frozenset[int] | None]:
    """Fold in what is behind, a page at a time. Where that takes back what was folded already: all that is undone."""
    skip, is_undone = held.fold.skip, False
    start = at = held.fold.head
    while page := (yield from Read(at, at + PAGE, log)):
        found = undone(entry.body for entry in page)
        # What was erased since a snapshot is in it still.
        is_erased = start > 0 and any(isinstance(entry.body, Erased) for entry in page)
        is_undone = is_undone or is_erased or not found <= skip
        skip |= found
        at += len(page)
        if not is_undone:
            held.take(page)
    return skip if is_undone else None


def keep(session: Session, *, closing: bool = False) -> Flow[None]:
    """Keep a snapshot where one is due. One that cannot be kept costs time at the next opening, and nothing else."""
    if is_due(session.fold.head, session.kept, closing=closing):
        with suppress(LogError):
            if closing:
                yield from made_ready(session)
            yield from keep_now(session)


def keep_now(session: Session) -> Flow[None]:
    """Keep a snapshot of the run as it stands, due or not. Raises LogError."""
    # Where it fails, too: it is tried again when as much has come again.
    head = session.kept = session.fold.head
    last = yield from Read(head - 1, head)
    if last:
        held = Held(session.fold, session.heard, session.heard_at, session.recorded)
        held.tail, held.part = session.tail, session.part
        snapshot = Snapshot(head, last[0].digest, key_of(session.counter), packed(held))
        yield from Keep(snapshot, session.dropped)


def catch_up(session: Session) -> Flow[None]:
    """Fold in what another writer recorded meanwhile; where it erased something, forget what was made of that.

    Raises LogErased where it erased the whole run.
    """
    entries = yield from _news(session)
    if entries is None:
        yield from _begun_anew(session)
        raise LogErased(
            "what this memory goes on from is not there any more: it was erased without a trace, or its store replaced. "
            "Nothing was written; open it again."
        )
    if any(isinstance(entry.body, Erased) for entry in entries):
        yield from healed(session)
    elif any(isinstance(entry.body, Undo) for entry in entries):
        yield from reload(session)
    else:
        session.take(entries)


def heed(session: Session) -> Flow[None]:
    """Before a verb: fold in what the library wrote meanwhile elsewhere, as an erasure, or a worker's summary.

    What another host said is left: the next write tells of it, by a Conflict. So is a history that is not there any more
    and that nobody says he erased. Raises LogErased where the run was erased whole.
    """
    known = head = session.fold.head - session.unwritten
    with suppress(LogError):  # a store that does not answer is told of by the verb that needs it
        head = yield from Head()
    if head == known:
        return
    entries = None if head < known else (yield from _news(session))
    if entries is None:
        yield from _begun_anew(session)
    elif any(isinstance(entry.body, Erased) for entry in entries):
        yield from healed(session)
    elif not session.unwritten and all(isinstance(entry.body, QUIET) for entry in entries):
        session.take(entries)


def healed(session: Session) -> Flow[None]:
    """Forget what was made of the log, and fold it again: something in it was erased.

    What the host handed over is remembered by its hash: handed over again, it is not recorded again.
    """
    head, heard, heard_at = session.fold.head, session.heard, session.heard_at
    yield from thrown_away(session)
    session.written.clear()
    session.tried.clear()
    session.tail = session.last = None
    session.sights, session.part, session.rests_until = Sights(), Part(), 0
    yield from load(session)
    new = bisect_left(session.heard_at, head)
    session.heard = [*heard, *session.heard[new:]]
    session.heard_at = [*heard_at, *session.heard_at[new:]]
    session.kept = None  # a snapshot would write down the hashes of what was erased


def _news(session: Session) -> Flow[Sequence[Entry] | None]:
    """What was recorded behind what is folded in; None where that is not there any more."""
    head = session.fold.head - session.unwritten
    start = max(head - 1, 0)
    entries = yield from Read(start, None)
    if head and (not entries or (session.tip and entries[0].digest != session.tip)):
        return None
    return entries[head - start :]


def _begun_anew(session: Session) -> Flow[None]:
    """Go on with an empty run where another memory erased this one, and say so once: raises LogErased. Else nothing."""
    if not (yield from Anew()):
        return
    session.rendered.clear()
    yield from healed(session)
    session.heard, session.heard_at = [], []
    raise LogErased(
        "another memory erased this run, whole. Nothing was written; this memory goes on with an empty run. Drop what "
        "the host still holds of it, and call again."
    )


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
    fresh, left = _fresh(session, items, whole)

    def written() -> Flow[tuple[Admission, Sequence[Entry]]]:
        fold = session.fold
        admission = admit(fresh, head=fold.head, open_now=fold.open, abandoned=fold.abandoned, strict=strict)
        return admission, (yield from Append(admission.bodies, fold.head)) if admission.bodies else ()

    admission, entries = yield from undisturbed(session, written)
    first = session.fold.head
    if entries:
        session.take(entries)
        if session.has_facts:
            yield from Attend()
    repairs = (*left, *admission.repairs)
    session.repairs.extend(repairs)
    if usage is not None:
        session.learn(usage.input_tokens)
    session.call_back(entries)
    return Recorded(first, session.fold.head, repairs)


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
    position = session.fold.compactions[-1]
    # Read before the write: what fails then leaves everything as it was.
    entries = yield from Read(position, position + 1)
    held = yield from _anew(session, skip=session.fold.skip | {position})
    written = yield from Append((Undo(position),), session.fold.head)
    held.take(written)
    session.hold(held)
    session.kept = None if session.kept is None else 0  # what there is has what was taken back
    body = entries[0].body
    if not isinstance(body, Compaction):
        raise LogUnreadable(f"entry {position} is no compaction")
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
