"""The contracts of logs: append-only entries of one session, each known by its position.

Nothing is ever edited or removed, except by erasure (see ``erasure``). ``append`` is compare-and-swap on the
head: of two writers one wins, and the other raises Conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pagein.events.entries import Body

if TYPE_CHECKING:
    from pagein.log.erasure import Cut, Removal
    from pagein.log.raw_rows import Row
    from pagein.log.requests import RequestTable
    from pagein.log.snapshots import Snapshot, SnapshotSlot


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the log. ``at`` is seconds since the epoch; ``digest`` hashes this body and all before it.

    For an erased entry, ``erased`` is the position of the ``Erased`` entry, ``body`` is what was left, and the
    digest is still that of the original body.
    """

    position: int
    at: float
    body: Body
    digest: str
    erased: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault that ``verify`` detected, and its position (None: the whole log)."""

    position: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of ``verify``: ``ok`` when every hash was derived again and agrees.

    ``erased`` counts the entries that were erased, wholly or in part, and are proven by their tombstones.
    """

    entries: int
    problems: tuple[Problem, ...] = ()
    erased: int = 0

    @property
    def ok(self) -> bool:
        """True when nothing is wrong."""
        return not self.problems


class Log(Protocol):
    """The append-only record of one session. Every method raises a ``LogError``, never a driver's error."""

    def head(self) -> int:
        """The number of entries, which is the next position."""
        ...

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """Write all bodies durably at positions ``after`` and on, or none of them.

        Raises Conflict when the head is no longer ``after``.
        """
        ...

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order, each as it was recorded, byte for byte."""
        ...

    def verify(self) -> Verification:
        """Derive every hash again, and report each fault with its position. Never raises for damage it can name."""
        ...

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        ...


@runtime_checkable
class StoredLog(Log, Protocol):
    """The log of one session of a store. Besides entries it gives rows and blobs, keeps a snapshot, and can erase.

    With ``readonly`` every method that writes raises LogUnwritable.
    """

    session: str
    tenant: str
    readonly: bool

    @property
    def store(self) -> LogStore:
        """The store that holds this log and the tenant's other sessions."""
        ...

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The rows ``[start, stop)`` in order: the entries that ``read`` gives, as they are stored."""
        ...

    def blob(self, name: str) -> bytes:
        """The bytes stored under their hash. Raises LogUnreadable where there are none."""
        ...

    def import_rows(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """Write another log's rows durably into this empty log, from position 0 on, or none of them.

        Bodies, times and kinds stay as they are. The digests are derived again, as they cover tenant and session. The
        rows must be sound: ``blobs`` has every blob they name. Raises Conflict where there are entries already.
        """
        ...

    def snapshot_slot(self, before: int | None = None) -> SnapshotSlot:
        """The snapshot of this session, if one is there and whole; the last past one of at most ``before`` entries, with it."""
        ...

    def keep_snapshot(self, snapshot: Snapshot, dropped: int, *, is_past: bool = False) -> None:
        """Replace the snapshot; nothing is kept where snapshots were dropped since ``dropped``.

        A past one stays beside it, until the snapshots are dropped.
        """
        ...

    def drop_snapshots(self) -> None:
        """Drop the snapshots of this run and of all its branches, those included that a writer is about to keep.

        A snapshot quotes entries, so every erasure calls this.
        """
        ...

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """Erase in this session and in others of its store; see ``LogStore.erase``."""
        ...


class LogStore(Protocol):
    """The logs of one tenant at one address. Every method raises a ``LogError``, never a driver's error."""

    tenant: str
    readonly: bool

    @property
    def encrypted(self) -> bool:
        """True where bodies, blobs and digests are encrypted."""
        ...

    @property
    def is_durable(self) -> bool:
        """True where the entries outlive this process."""
        ...

    @property
    def can_erase(self) -> bool:
        """True where entries can be erased."""
        ...

    def log(self, session: str = "default") -> StoredLog:
        """Open the log of a session; the caller closes it."""
        ...

    def sessions(self) -> tuple[str, ...]:
        """The names of the tenant's sessions that have an entry, sorted."""
        ...

    def head(self, session: str) -> int:
        """The number of entries of a session, without opening its log."""
        ...

    def request_table(self, run: str) -> RequestTable:
        """The table of the requests of a run, by the name of its session; erasing that session whole empties it."""
        ...

    def import_sessions(self, sessions: Mapping[str, tuple[Sequence[Row], Mapping[str, bytes]]]) -> None:
        """Write the rows and blobs of sessions without entries, each whole or not at all: see ``StoredLog.import_rows``."""
        for session, (rows, blobs) in sessions.items():
            with closing(self.log(session)) as log:
                log.import_rows(rows, blobs)

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """Make all cuts durably in one transaction, or none; blobs that no entry names any more are deleted.

        Snapshots of the runs go too. Raises Conflict where a session's head is not the one its cut names.
        """
        ...

    def scrub(self, erased: Collection[str] = ()) -> bool:
        """Overwrite in the files what was erased, where that is the store's task, and search them for these words of it.

        False where another connection blocked it, or a word is still there. By default it does nothing.
        """
        del erased
        return True

    def close(self) -> None:
        """Release what the store itself holds; a second call does nothing. Open logs stay open."""
        ...
