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

from pagein.errors import LogErased, LogError
from pagein.log import Body, Erased
from pagein.log.codec import Record, blob_names, encode
from pagein.log.rows import Row, RowLog, Tip
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


def removed(removal: Removal, entries: int) -> Erased:
    """What says that a session was erased."""
    return Erased(((0, entries),), removal.reason, entries)


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
