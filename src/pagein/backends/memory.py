"""A log that lasts as long as its object: for tests, and for runs that nobody will resume."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from pagein.errors import Conflict, LogClosed, LogError, LogUnreadable
from pagein.events.entries import Body
from pagein.log.base import Entry, Verification
from pagein.log.codec import Record, blob_names, encode
from pagein.log.erasure import TRACE, Cut, Removal, refuse_erased, remains, removed
from pagein.log.hash_chain import origin
from pagein.log.raw_rows import Row, Tip
from pagein.log.rows import Audit, checked_name, checked_time, opened, relinked, seal, written


class InMemoryLog:
    """A Log in this process's memory, with the semantics of the durable ones.

    Entries are kept encoded, as on disk, so that no reader and no writer can reach into the record. Threads may share
    one log.
    """

    joint = False
    """It reaches its own session only."""

    def __init__(self, *, session: str = "default", tenant: str = "") -> None:
        self.session = checked_name("session", session)
        self.tenant = checked_name("tenant", tenant)
        self._rows: list[Row] = []
        self._blobs: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._tip: Tip | None = None

    def beside(self, session: str) -> Self:
        """A log of its own, empty, of the same tenant."""
        return type(self)(session=session, tenant=self.tenant)

    def head(self) -> int:
        """The number of entries, which is the next position. Raises LogClosed after close()."""
        self._check_open()
        return len(self._rows)

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """All bodies at positions ``after`` and on, or none; ``at`` in seconds since the epoch.

        Raises Conflict when the head is no longer ``after``, LogError for a body that could not be read back.
        """
        records = [encode(body) for body in bodies]
        at = checked_time(at)
        with self._lock:
            return self._write(records, after, at)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order, up to the head at the time of the call.

        Raises LogClosed after close().
        """
        return (opened(row, self.blob) for row in self.rows(start, stop))

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The same entries as they are stored."""
        self._check_open()
        end = len(self._rows)
        return iter(self._rows[max(start, 0) : end if stop is None else max(min(stop, end), 0)])

    def adopt(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """See ``pagein.log.raw_rows.RowLog.adopt``."""
        with self._lock:
            self._check_open()
            if self._rows:
                raise Conflict(0, len(self._rows))
            self._blobs.update(blobs)
            self._rows += relinked(rows, origin(self.tenant, self.session))

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """Make the cuts in this session, all or none. See ``pagein.log.erasure``."""
        if any(each.session != self.session for each in cuts):
            raise LogError("a log in memory has one session, and erases in no other. Nothing was erased.")
        at = checked_time(at)
        with self._lock:
            self._check_open()
            rows, blobs = list(self._rows), dict(self._blobs)
            for each in cuts:
                rows = (
                    self._cut(rows, blobs, each, at) if isinstance(each, Cut) else self._taken(rows, each, at)
                )
                kept = {name for row in rows for name in blob_names(row.body)}
                blobs = {name: data for name, data in blobs.items() if name in kept}
            self._rows[:] = rows
            self._blobs.clear()
            self._blobs.update(blobs)

    def scrub(self) -> bool:
        """Nothing: what was erased is in no file."""
        return True

    def verify(self) -> Verification:
        """Derive every hash again, and say what is wrong and where. Raises LogClosed after close()."""
        self._check_open()
        audit = Audit(self.tenant, self.session, self._blobs.get)
        for row in tuple(self._rows):
            audit.row(row)
        return audit.result()

    def close(self) -> None:
        """Forget nothing, but refuse every later call; a second close does nothing."""
        self._closed = True

    def _write(self, records: Sequence[Record], after: int, at: float) -> tuple[Entry, ...]:
        self._check_open()
        previous = self._rows[-1].digest if self._rows else origin(self.tenant, self.session)
        refuse_erased(self._tip, Tip(len(self._rows), previous), after)
        if after != len(self._rows):
            raise Conflict(after, len(self._rows))
        rows = seal(records, after=after, at=at, previous=previous)
        for record in records:
            self._blobs.update((blob.name, blob.data) for blob in record.blobs)
        self._rows += rows
        self._tip = Tip(len(self._rows), self._rows[-1].digest if self._rows else previous)
        return written(rows, records)

    def _cut(self, rows: list[Row], blobs: dict[str, bytes], cut: Cut, at: float) -> list[Row]:
        if cut.after != len(rows):
            raise Conflict(cut.after, len(rows))
        first = origin(self.tenant, self.session)
        made = remains(cut, dict(enumerate(rows)), first)
        blobs.update(made.blobs)
        previous = rows[-1].digest if rows else first
        for row in made.rows:
            rows[row.position] = row
        return [*rows, *seal((made.note,), after=len(rows), at=at, previous=previous)]

    def _taken(self, rows: list[Row], removal: Removal, at: float) -> list[Row]:
        if not rows or (removal.trace and [row.kind for row in rows] == [TRACE]):
            return rows
        note = encode(removed(removal, len(rows)))
        first = origin(self.tenant, self.session)
        return list(seal((note,), after=0, at=at, previous=first)) if removal.trace else []

    def blob(self, name: str) -> bytes:
        """The bytes stored under their hash. Raises LogUnreadable where there are none."""
        self._check_open()
        data = self._blobs.get(name)
        if data is None:
            raise LogUnreadable(f"the blob {name} is missing")
        return data

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed("this log was closed; open it again")
