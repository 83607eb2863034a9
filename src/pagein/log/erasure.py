"""Erasing: what is left of an entry stands where it stood, so that the chain of digests still holds.

A digest covers the body it was made of, and that body is gone. So its row keeps the old digest, which the next row is
chained to, and what stands in place of the body is a *tombstone*: what was left (the kind, the ids of calls, nothing of
what was said), the position of the ``Erased`` entry that says so, and a proof over both, the old digest and the digest
before it. The entry that says so is chained like any other. So a tombstone that was put there by a careless hand is
found, as is one that was changed.

A digest that is kept is still a hash of what was erased: whoever guesses the whole of a short text can check the guess.
With a key (see ``sealing``) nobody can who has not the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from pagein.errors import Conflict, LogErased, LogError
from pagein.events.entries import Body, Erased
from pagein.log.codec import Record, blob_names, encode
from pagein.log.hash_chain import origin
from pagein.log.raw_rows import Row, RowLog, Tip
from pagein.log.rows import seal
from pagein.log.tombstones import tombstoned

TRACE = "erased"
"""The kind of the one entry that is left of a session."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What is to stand in a session of ``after`` entries: by position in it the bodies, each of its entry's kind.

    ``note`` is appended behind them, and says so. ``offset`` is what a branch's own positions are less than those its
    bodies speak of.
    """

    session: str
    after: int
    note: Erased
    bodies: Mapping[int, Body] = field(default_factory=dict)
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Removal:
    """A session that is to go whole. ``trace`` leaves one entry in its place, which says how many there were."""

    session: str
    reason: str = ""
    trace: bool = True


@runtime_checkable
class ErasableLog(RowLog, Protocol):
    """A log that can forget; all of ours are. ``joint`` says that it reaches every session of its store and tenant."""

    joint: bool

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """Make all cuts durably, or none; blobs that nothing names any more go with them.

        Raises Conflict where a session's head is not what its cut says, and what writing raises.
        """
        ...

    def scrub(self) -> bool:
        """Overwrite what was erased in the files too, where that is the log's to do; False where others were in the way."""
        ...


@dataclass(frozen=True, slots=True)
class Remains:
    """What a cut makes of the rows: those that change, and the entry that says so, each with its blobs."""

    rows: tuple[Row, ...]
    note: Record
    blobs: Mapping[str, bytes]


def remains(cut: Cut, rows: Mapping[int, Row], first: str) -> Remains:
    """The rows of a cut, made of those there are: its own and the ones before them. ``first`` is the session's origin.

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
        changed.append(replace(row, body=tombstoned(row, previous, by, record.body)))
    note = encode(cut.note)
    return Remains(tuple(changed), note, blobs)


def needed(cut: Cut) -> Iterator[tuple[int, int]]:
    """The rows that a cut is made of, as ranges ``[start, stop)``."""
    start = stop = -1
    for position in sorted(cut.bodies):
        if position - 1 > stop:
            if stop >= 0:
                yield start, stop
            start = max(position - 1, 0)
        stop = position + 1
    if stop >= 0:
        yield start, stop


def unnamed(dropped: Iterable[Row], left: Iterable[bytes]) -> set[str]:
    """The blobs that rows named before they were erased, and that none of the bodies left names."""
    names = {name for row in dropped for name in blob_names(row.body)}
    if names:
        for body in left:
            names.difference_update(blob_names(body))
    return names


class SessionRows(Protocol):
    """The rows of one session within a transaction that keeps every other writer out."""

    @property
    def key(self) -> tuple[str, str]:
        """The tenant and the session."""
        ...

    def tip(self) -> Tip:
        """The head, and what the next row is chained to."""
        ...

    def stored(self, start: int, stop: int) -> Sequence[Row]:
        """The rows ``[start, stop)`` as they are stored, at most a few hundred."""
        ...

    def between(self, start: int, stop: int) -> Iterator[Row]:
        """The rows ``[start, stop)``."""
        ...

    def keep(self, rows: Sequence[Row], blobs: Iterable[tuple[str, bytes]]) -> None:
        """Write rows, and the blobs they name."""
        ...

    def replace(self, each: Row) -> None:
        """Write another body where a row stands; its digest stays."""
        ...

    def drop_blobs(self, names: Iterable[str]) -> None:
        """Delete blobs."""
        ...

    def head(self) -> int:
        """The number of entries."""
        ...

    def clear(self) -> None:
        """Delete every row and every blob of the session."""
        ...


def cut_out(rows: SessionRows, cut: Cut, at: float) -> None:
    """Put what is left of the entries in their place, and the note behind the last. Raises Conflict, LogError."""
    tip = rows.tip()
    if tip.head != cut.after:
        raise Conflict(cut.after, tip.head)
    before = {row.position: row for start, stop in needed(cut) for row in rows.between(start, stop)}
    made = remains(cut, before, origin(*rows.key))
    rows.keep(seal((made.note,), after=tip.head, at=at, previous=tip.digest), made.blobs.items())
    for row in made.rows:
        rows.replace(row)
    left = (row.body for row in rows.between(0, tip.head))
    rows.drop_blobs(unnamed((before[row.position] for row in made.rows), left))


def take_out(rows: SessionRows, removal: Removal, at: float) -> None:
    """Delete a session's entries and blobs, and leave the note of it where a trace is wanted."""
    there = rows.stored(0, 2)
    if not there or (removal.trace and [row.kind for row in there] == [TRACE]):
        return
    head = rows.head()
    rows.clear()
    if removal.trace:
        note = encode(removed(removal, head))
        rows.keep(seal((note,), after=0, at=at, previous=origin(*rows.key)), ())


def removed(removal: Removal, entries: int) -> Erased:
    """What says that a session was erased."""
    return Erased(((0, entries),), removal.reason, entries)


def further(known: Tip | None, head: int, digest: str) -> Tip:
    """What is known of a session's end, after it was read up to ``head``."""
    return Tip(head, digest) if known is None or head > known.head else known


def refuse_erased(known: Tip | None, tip: Tip, after: int) -> None:
    """Raises LogErased where a writer that goes on from what it ``known`` finds that this is not there any more.

    A session that was erased and has begun anew may have as many entries as it had: the digest tells them apart.
    """
    if known is None or known.head != after or tip.head > after:
        return
    if tip.head < after or tip.digest != known.digest:
        raise LogErased(
            f"this session had {after} entries when this log last looked, and they are not there any more: it was "
            "erased, or its store replaced. Nothing was written; open it again."
        )


def is_worth_keeping(known: Tip | None, tip: Tip) -> bool:
    """Whether a snapshot may be kept of a session that ends at ``tip``. Raises LogErased as ``refuse_erased`` does.

    Of a branch of which nothing is its own yet none is: it may be gone, and nobody would know.
    """
    refuse_erased(known, tip, tip.head if known is None else known.head)
    return tip.head > 0
