"""Erasure of entries: a tombstone takes the place of a body, and the hash chain still holds.

A digest covers the body it was made of, and that body is gone. So its row keeps the old digest, which the next
row is chained to. In place of the body stands a *tombstone*: what was left (the kind, the ids of calls, no
content), the position of the ``Erased`` entry, and a proof over both, the old digest and the digest before it.
The ``Erased`` entry is chained like any other. So ``verify`` finds a tombstone that was forged or changed.

A kept digest is still a hash of the erased content: a guess of the whole of a short text can be checked against
it. With a key (see ``encryption``) that takes the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pagein.errors import Conflict, LogError
from pagein.events.entries import Body, Erased
from pagein.events.handles import group_positions
from pagein.log.codec import Record, blob_names, encode, make_tombstone
from pagein.log.hash_chain import SessionRows, chain_rows, origin
from pagein.log.raw_rows import Row

TRACE_KIND = "erased"
"""The kind of the one entry that is left of a session."""


@dataclass(frozen=True, slots=True)
class Cut:
    """New bodies for some positions of a session of ``after`` entries, each of its entry's kind.

    ``note`` is appended behind them as the record of it. ``offset`` is the difference between the positions
    that a branch's bodies speak of and its own.
    """

    session: str
    after: int
    note: Erased
    bodies: Mapping[int, Body] = field(default_factory=dict)
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Removal:
    """A session to erase whole. ``trace`` leaves one entry in its place, which says how many there were.

    With ``after`` only a session of that many entries is erased.
    """

    session: str
    reason: str = ""
    trace: bool = True
    after: int | None = None


@dataclass(frozen=True, slots=True)
class CutResult:
    """The rows that a cut changes, and the entry that records it, with their blobs."""

    rows: tuple[Row, ...]
    note: Record
    blobs: Mapping[str, bytes]


def apply_cut(cut: Cut, rows: Mapping[int, Row], first: str) -> CutResult:
    """Make the rows of a cut from the stored ones and the rows before them. ``first`` is the session's origin.

    Raises LogError for a body of another kind than its entry, and for an entry that is not there.
    """
    changed: list[Row] = []
    blobs: dict[str, bytes] = {}
    by = cut.after + cut.offset
    for position, body in sorted(cut.bodies.items()):
        row, record = rows.get(position), encode(body)
        if row is None or row.kind != record.kind:
            there = "nothing" if row is None else f"a {row.kind}"
            raise LogError(f"entry {position} is {there}, no {record.kind}. Nothing was erased.")
        previous = rows[position - 1].digest if position else first
        blobs.update((blob.name, blob.data) for blob in record.blobs)
        row = replace(row, version=record.version)
        changed.append(replace(row, body=make_tombstone(row, previous, by, record.body)))
    note = encode(cut.note)
    return CutResult(tuple(changed), note, blobs)


def orphaned_blobs(dropped: Iterable[Row], bodies: Iterable[bytes]) -> set[str]:
    """The blobs that the erased rows named and no remaining body names."""
    names = {name for row in dropped for name in blob_names(row.body)}
    if names:
        for body in bodies:
            names.difference_update(blob_names(body))
    return names


def make_cut(rows: SessionRows, cut: Cut, at: float) -> None:
    """Replace the bodies, and append the note. Raises Conflict, LogError."""
    tip = rows.tip()
    if tip.head != cut.after:
        raise Conflict(cut.after, tip.head)
    needed = group_positions(max(0, at) for position in cut.bodies for at in (position - 1, position))
    before = {row.position: row for start, stop in needed for row in rows.read_range(start, stop)}
    changes = apply_cut(cut, before, origin(*rows.key))
    rows.add(chain_rows((changes.note,), after=tip.head, at=at, previous=tip.digest), changes.blobs.items())
    for row in changes.rows:
        rows.replace(row)
    bodies = (row.body for row in rows.read_range(0, tip.head))
    rows.drop_blobs(orphaned_blobs((before[row.position] for row in changes.rows), bodies))


def remove_session(rows: SessionRows, removal: Removal, at: float) -> None:
    """Delete a session's entries and blobs; append the note where a trace is wanted. Raises Conflict."""
    if removal.after not in (None, head := rows.stored_tip().head):
        raise Conflict(removal.after or 0, head)
    there = rows.read_stored(0, 2)
    if not there or (removal.trace and [row.kind for row in there] == [TRACE_KIND]):
        return
    rows.clear()
    if removal.trace:
        note = encode(removal_note(removal, head))
        rows.add(chain_rows((note,), after=0, at=at, previous=origin(*rows.key)), ())


def removal_note(removal: Removal, entries: int) -> Erased:
    """The entry that records the erasure of a session."""
    return Erased(((0, entries),), removal.reason, entries)
