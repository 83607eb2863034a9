"""A branch of a run: the entries of others up to where it was forked, read where they lie, and its own from there on.

Nothing is copied: a fork costs the same after ten entries and after ten thousand. Positions and handles stay as they
are. The own entries are a session of the store like any other, with a chain of digests of their own; what they hang on
is proven by the digest of the last entry before the fork.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pagein.errors import Conflict, LogUnreadable
from pagein.events.entries import Body
from pagein.log.base import Entry, Log, Problem, Verification
from pagein.log.hash_chain import origin
from pagein.log.raw_rows import Row, RowLog
from pagein.log.snapshots import Shelf, Snapshot, SnapshotLog

REGISTRY, OWN = "pagein:branches:", "pagein:branch:"
"""What the names of the sessions begin with that hold which branches there are, and the entries of one."""


def is_branching(session: str) -> bool:
    """Whether a session is one of these, and no run's.

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
class Piece:
    """The entries at positions ``[first, last)`` of a branch, which ``log`` has ``first - offset`` on.

    ``digest`` is that of the last of them as it was when the branch was forked there; "" where that is not known.
    """

    log: Log
    offset: int
    first: int
    last: int
    digest: str = ""

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        """Those of ``[start, stop)`` that are in this piece. Raises LogUnreadable where one is missing."""
        start, stop = max(start, self.first), min(stop, self.last)
        if start >= stop:
            return
        expected = start
        for entry in self.log.read(start - self.offset, stop - self.offset):
            yield _moved(entry, self.offset)
            expected += 1
        if expected < stop:
            raise LogUnreadable(f"entry {expected} is missing in the run that this branch was forked from")

    def erased(self) -> int:
        """How many of its entries were erased."""
        found = self.log.read(self.first - self.offset, self.last - self.offset)
        return sum(each.erased is not None for each in found)

    def problems(self) -> Iterator[Problem]:
        """What is wrong in it."""
        found = self.log.verify()
        for each in found.problems:
            if each.position is None or self.first <= each.position + self.offset < self.last:
                yield _shifted(each, self.offset)
        if found.entries + self.offset < self.last:
            yield Problem(found.entries + self.offset, "the run that this branch was forked from ends here")
            return
        last = next(self.log.read(self.last - 1 - self.offset, self.last - self.offset), None)
        if self.digest and last is not None and last.digest != self.digest:
            yield Problem(self.last - 1, "the entry is not the one that this branch was forked behind")


class BranchLog:
    """A Log over the ``pieces`` before the fork, in order and without gaps, and ``own`` behind them.

    Appending writes to ``own`` alone. Closing it closes nothing but ``own``: the pieces belong to whoever opened them.
    """

    def __init__(self, pieces: Sequence[Piece], own: Log) -> None:
        self._pieces, self._own = tuple(pieces), own
        self._at = self._pieces[-1].last if self._pieces else 0
        self.session: str = getattr(own, "session", "default")
        self.tenant: str = getattr(own, "tenant", "")
        self.readonly: bool = getattr(own, "readonly", False)

    @property
    def own(self) -> Log:
        """The log that holds the entries of this branch alone."""
        return self._own

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The entries before the fork, oldest first."""
        return self._pieces

    def head(self) -> int:
        """The number of entries, those before the fork among them."""
        return self._at + self._own.head()

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """All bodies at positions ``after`` and on, or none. Raises Conflict, and what the store raises."""
        try:
            entries = self._own.append(bodies, after=after - self._at, at=at)
        except Conflict as error:
            raise Conflict(error.expected + self._at, error.found + self._at) from error
        return tuple(_moved(each, self._at) for each in entries)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order, up to the head at the time of the call."""
        head = self.head()
        return self._read(max(start, 0), head if stop is None else min(stop, head))

    def _read(self, start: int, stop: int) -> Iterator[Entry]:
        for piece in self._pieces:
            yield from piece.read(start, stop)
        if stop > self._at:
            for entry in self._own.read(max(start - self._at, 0), stop - self._at):
                yield _moved(entry, self._at)

    def verify(self) -> Verification:
        """Derive every hash again: those of the runs before the fork, of the fork, and of the branch's own entries."""
        problems = [each for piece in self._pieces for each in piece.problems()]
        own = self._own.verify()
        problems += (_shifted(each, self._at) for each in own.problems)
        erased = own.erased + (0 if problems else sum(piece.erased() for piece in self._pieces))
        return Verification(self._at + own.entries, tuple(problems), erased)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The entries as those of one session by itself, as an export has them: the digests are derived anew."""
        from pagein.log.rows import relinked  # noqa: PLC0415 - loads where a log is opened

        rows = relinked(self._all_rows(), origin(self.tenant, self.session))
        return iter(rows[max(start, 0) : len(rows) if stop is None else max(stop, 0)])

    def _all_rows(self) -> Iterator[Row]:
        for piece in self._pieces:
            for row in _rows(piece.log).rows(piece.first - piece.offset, piece.last - piece.offset):
                yield replace(row, position=row.position + piece.offset)
        for row in _rows(self._own).rows():
            yield replace(row, position=row.position + self._at)

    def blob(self, name: str) -> bytes:
        """The bytes stored under their hash, by whichever run had them. Raises LogUnreadable where there are none."""
        for log in (self._own, *(piece.log for piece in reversed(self._pieces))):
            try:
                return _rows(log).blob(name)
            except LogUnreadable:
                continue
        raise LogUnreadable(f"the blob {name} is missing")

    def adopt(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """See ``pagein.log.raw_rows.RowLog.adopt``; a branch that begins with another's entries adopts none."""
        if self._at:
            raise Conflict(0, self.head())
        _rows(self._own).adopt(rows, blobs)

    def shelf(self) -> Shelf:
        """The branch's own snapshot, else one of a run it was forked from that ends before the fork."""
        own = _shelf(self._own)
        if own.snapshot is not None:
            return own
        for piece in reversed(self._pieces):
            found = _shelf(piece.log).snapshot
            if found is not None and found.position <= piece.last:
                return replace(own, snapshot=found)
        return own

    def keep(self, snapshot: Snapshot, dropped: int) -> None:
        """See ``pagein.log.snapshots.SnapshotLog``."""
        if isinstance(self._own, SnapshotLog):
            self._own.keep(snapshot, dropped)

    def drop_snapshots(self) -> None:
        """Those of the run and of all its branches."""
        if isinstance(self._own, SnapshotLog):
            self._own.drop_snapshots()

    def close(self) -> None:
        """Release the branch's own log; a second call does nothing."""
        self._own.close()


def _rows(log: Log) -> RowLog:
    if not isinstance(log, RowLog):
        raise LogUnreadable(f"a {type(log).__name__} does not give its rows")
    return log


def _shelf(log: Log) -> Shelf:
    return log.shelf() if isinstance(log, SnapshotLog) else Shelf(None, is_open=False)


def _moved(entry: Entry, by: int) -> Entry:
    return replace(entry, position=entry.position + by) if by else entry


def _shifted(problem: Problem, by: int) -> Problem:
    return problem if problem.position is None else replace(problem, position=problem.position + by)
