"""A branch of a run: its parents' entries up to the fork, read where they are stored, then its own.

Nothing is copied: a fork costs the same after ten entries and after ten thousand. Positions and handles stay
the same. The own entries are a session of the store with a hash chain of its own. The digest of the last entry
before the fork proves which entries the branch continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pagein.errors import Conflict, LogUnreadable
from pagein.events.entries import Body
from pagein.log.base import Entry, LogStore, Problem, StoredLog, Verification

if TYPE_CHECKING:
    from pagein.log.erasure import Cut, Removal
    from pagein.log.raw_rows import Row
    from pagein.log.snapshots import Snapshot, SnapshotSlot

REGISTRY, OWN = "pagein:branches:", "pagein:branch:"
"""What the names of the sessions begin with that hold which branches there are, and the entries of one."""


def is_branching(session: str) -> bool:
    """True for the session of a branch or of a registry of branches.

    >>> is_branching("pagein:branches:web-app"), is_branching("web-app")
    (True, False)
    """
    return isinstance(session, str) and session.startswith((REGISTRY, OWN))


def run_of(session: str) -> str:
    """The session of the run that a branch is of; any other session is its own.

    >>> run_of("pagein:branch:3:web-app"), run_of("web-app")
    ('web-app', 'web-app')
    """
    number, colon, run = session.removeprefix(OWN).partition(":")
    return run if session.startswith(OWN) and colon and number.isdigit() else session


@dataclass(frozen=True, slots=True)
class BranchPiece:
    """The entries ``[first, last)`` of a branch; ``log`` holds them from position ``first - offset`` on.

    ``digest`` is that of the last of them at the time of the fork; "" where it is not known.
    """

    log: StoredLog
    offset: int
    first: int
    last: int
    digest: str = ""

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        """The entries of ``[start, stop)`` that are in this piece. Raises LogUnreadable where one is missing."""
        start, stop = max(start, self.first), min(stop, self.last)
        if start >= stop:
            return
        expected = start
        for entry in self.log.read(start - self.offset, stop - self.offset):
            yield _shift_entry(entry, self.offset)
            expected += 1
        if expected < stop:
            raise LogUnreadable(f"entry {expected} is missing in the run that this branch was forked from")

    def count_erased(self) -> int:
        """Count its erased entries."""
        entries = self.log.read(self.first - self.offset, self.last - self.offset)
        return sum(entry.erased is not None for entry in entries)

    def find_problems(self) -> Iterator[Problem]:
        """Find the faults in this piece."""
        verification = self.log.verify()
        for problem in verification.problems:
            if problem.position is None or self.first <= problem.position + self.offset < self.last:
                yield _shift_problem(problem, self.offset)
        if verification.entries + self.offset < self.last:
            yield Problem(verification.entries + self.offset, "the run that this branch was forked from ends here")
            return
        last = next(self.log.read(self.last - 1 - self.offset, self.last - self.offset), None)
        if self.digest and last is not None and last.digest != self.digest:
            yield Problem(self.last - 1, "the entry is not the one that this branch was forked behind")


class BranchLog(StoredLog):
    """A StoredLog over the ``pieces`` before the fork, oldest first and without gaps, and the branch's ``own`` log behind them.

    Appending writes to ``own`` alone. Closing it closes nothing but ``own``: the owner of the pieces closes them.
    """

    def __init__(self, pieces: Sequence[BranchPiece], own: StoredLog) -> None:
        self.pieces, self.own = tuple(pieces), own
        self._at = self.pieces[-1].last if self.pieces else 0
        self.session, self.tenant, self.readonly = own.session, own.tenant, own.readonly

    @property
    def store(self) -> LogStore:
        """The store of the branch's own entries."""
        return self.own.store

    def head(self) -> int:
        """The number of entries, those before the fork among them."""
        return self._at + self.own.head()

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """Append to the branch's own log. Raises Conflict, and what the store raises."""
        try:
            entries = self.own.append(bodies, after=after - self._at, at=at)
        except Conflict as error:
            raise Conflict(error.expected + self._at, error.head + self._at) from error
        return tuple(_shift_entry(entry, self._at) for entry in entries)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order, up to the head at the time of the call."""
        head = self.head()
        return self._read_pieces(max(start, 0), head if stop is None else min(stop, head))

    def _read_pieces(self, start: int, stop: int) -> Iterator[Entry]:
        for piece in self.pieces:
            yield from piece.read(start, stop)
        if stop > self._at:
            for entry in self.own.read(max(start - self._at, 0), stop - self._at):
                yield _shift_entry(entry, self._at)

    def verify(self) -> Verification:
        """Derive every hash again: those of the runs before the fork, of the fork, and of the branch's own entries."""
        problems = [problem for piece in self.pieces for problem in piece.find_problems()]
        own = self.own.verify()
        problems += (_shift_problem(problem, self._at) for problem in own.problems)
        erased = own.erased + (0 if problems else sum(piece.count_erased() for piece in self.pieces))
        return Verification(self._at + own.entries, tuple(problems), erased)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The entries as the rows of one session by itself, for an export: the digests are derived again."""
        from pagein.log.hash_chain import origin, rechain_rows  # noqa: PLC0415 - loads where a log is opened

        rows = rechain_rows(self._all_rows(), origin(self.tenant, self.session))
        return iter(rows[max(start, 0) : len(rows) if stop is None else max(stop, 0)])

    def _all_rows(self) -> Iterator[Row]:
        for piece in self.pieces:
            for row in piece.log.rows(piece.first - piece.offset, piece.last - piece.offset):
                yield replace(row, position=row.position + piece.offset)
        for row in self.own.rows():
            yield replace(row, position=row.position + self._at)

    def blob(self, name: str) -> bytes:
        """The bytes stored under their hash, in whichever run has them. Raises LogUnreadable where none has."""
        for log in (self.own, *(piece.log for piece in reversed(self.pieces))):
            try:
                return log.blob(name)
            except LogUnreadable:
                continue
        raise LogUnreadable(f"the blob {name} is missing")

    def import_rows(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """See ``StoredLog``. Raises Conflict for a branch that begins with another's entries."""
        if self._at:
            raise Conflict(0, self.head())
        self.own.import_rows(rows, blobs)

    def snapshot_slot(self, before: int | None = None) -> SnapshotSlot:
        """The branch's own snapshot, else one of a run it was forked from that ends before the fork."""
        own = self.own.snapshot_slot(before)
        if own.snapshot is not None:
            return own
        for piece in reversed(self.pieces):
            limit = None if before is None else min(before, piece.last)
            snapshot = piece.log.snapshot_slot(limit).snapshot
            if snapshot is not None and snapshot.position <= piece.last:
                return replace(own, snapshot=snapshot)
        return own

    def keep_snapshot(self, snapshot: Snapshot, dropped: int, *, is_past: bool = False) -> None:
        self.own.keep_snapshot(snapshot, dropped, is_past=is_past)

    def drop_snapshots(self) -> None:
        self.own.drop_snapshots()

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        self.own.erase(cuts, at=at)

    def close(self) -> None:
        """Release the branch's own log; a second call does nothing."""
        self.own.close()


def _shift_entry(entry: Entry, by: int) -> Entry:
    return replace(entry, position=entry.position + by) if by else entry


def _shift_problem(problem: Problem, by: int) -> Problem:
    return problem if problem.position is None else replace(problem, position=problem.position + by)
