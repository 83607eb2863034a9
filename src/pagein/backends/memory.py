"""Logs and a store that last as long as their objects: for tests, and for runs that are not resumed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pagein.backends.base import Store, WithoutSnapshots
from pagein.backends.database_store import RowLogBase
from pagein.errors import Conflict, LogClosed
from pagein.events.entries import Body
from pagein.log import hash_chain
from pagein.log.base import Entry, Verification
from pagein.log.codec import Record, blob_names, encode
from pagein.log.erasure import TRACE_KIND, Cut, Removal, apply_cut, removal_note
from pagein.log.raw_rows import Row, Tip
from pagein.log.requests import InMemoryRequests


@dataclass(slots=True)
class _SessionEntries:
    """The rows and blobs of one session in memory."""

    rows: list[Row] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def without(self, cut: Cut | Removal, at: float, first: str) -> tuple[list[Row], dict[str, bytes]]:
        """The rows and blobs that a cut leaves; ``first`` is the session's origin. Raises Conflict, LogError."""
        rows, blobs = list(self.rows), dict(self.blobs)
        if isinstance(cut, Cut):
            if cut.after != len(rows):
                raise Conflict(cut.after, len(rows))
            changes = apply_cut(cut, dict(enumerate(rows)), first)
            blobs.update(changes.blobs)
            previous = rows[-1].digest if rows else first
            for row in changes.rows:
                rows[row.position] = row
            rows += hash_chain.chain_rows((changes.note,), after=len(rows), at=at, previous=previous)
        elif rows and not (cut.trace and [row.kind for row in rows] == [TRACE_KIND]):
            note = encode(removal_note(cut, len(rows)))
            rows = list(hash_chain.chain_rows((note,), after=0, at=at, previous=first)) if cut.trace else []
        names = {name for row in rows for name in blob_names(row.body)}
        return rows, {name: data for name, data in blobs.items() if name in names}


class InMemoryLog(WithoutSnapshots, RowLogBase):
    """A StoredLog in this process's memory, with the semantics of the durable ones.

    Entries are kept encoded, as on disk, so that no reader and no writer can change the record. Threads may
    share one log.
    """

    readonly = False

    def __init__(self, *, session: str = "default", tenant: str = "") -> None:
        self.session = hash_chain.check_name("session", session)
        self._closed = False
        self.attach(InMemoryStore(tenant=tenant))

    def attach(self, store: InMemoryStore) -> None:
        """Become a log of this store."""
        self.store, self.tenant, self._lock = store, store.tenant, store.lock
        entries = store.entries(self.session)
        self._rows, self._blobs = entries.rows, entries.blobs

    def head(self) -> int:
        """The number of entries, which is the next position. Raises LogClosed after close()."""
        self._check_open()
        return len(self._rows)

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """Append all bodies at positions ``after`` and on, or none; ``at`` in seconds since the epoch.

        Raises Conflict when the head is no longer ``after``, LogError for a body that could not be read back.
        """
        records = [encode(body) for body in bodies]
        at = hash_chain.check_time(at)
        with self._lock:
            return self._write(records, after, at)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The same entries as they are stored."""
        self._check_open()
        end = len(self._rows)
        return iter(self._rows[max(start, 0) : end if stop is None else max(min(stop, end), 0)])

    def import_rows(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """See ``StoredLog``."""
        with self._lock:
            self._check_open()
            if self._rows:
                raise Conflict(0, len(self._rows))
            self._blobs.update(blobs)
            self._rows += hash_chain.rechain_rows(rows, hash_chain.origin(self.tenant, self.session))

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """See ``StoredLog``; any session of the store may be named."""
        self._check_open()
        self.store.erase(cuts, at=at)
        self._tip = None

    def verify(self) -> Verification:
        """Derive every hash again, and report each fault with its position. Raises LogClosed after close()."""
        self._check_open()
        audit = hash_chain.ChainVerifier(self.tenant, self.session, self._blobs.get)
        for row in tuple(self._rows):
            audit.add_row(row)
        return audit.result()

    def close(self) -> None:
        """Refuse every later call; a second close does nothing. The entries stay in the store."""
        self._closed = True

    def _write(self, records: Sequence[Record], after: int, at: float) -> tuple[Entry, ...]:
        self._check_open()
        previous = self._rows[-1].digest if self._rows else hash_chain.origin(self.tenant, self.session)
        hash_chain.refuse_erased(self._tip, Tip(len(self._rows), previous), after)
        if after != len(self._rows):
            raise Conflict(after, len(self._rows))
        rows = hash_chain.chain_rows(records, after=after, at=at, previous=previous)
        for record in records:
            self._blobs.update((blob.name, blob.data) for blob in record.blobs)
        self._rows += rows
        self._tip = Tip(len(self._rows), self._rows[-1].digest if self._rows else previous)
        return hash_chain.make_entries(rows, records)

    def _find_blob(self, name: str) -> bytes | None:
        self._check_open()
        return self._blobs.get(name)

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed("this log was closed; open it again")


class InMemoryStore(Store):
    """A Store in this process's memory: all logs of a session share its entries."""

    readonly = encrypted = is_durable = False
    can_erase = True

    def __init__(self, *, tenant: str = "") -> None:
        self.tenant = hash_chain.check_name("tenant", tenant)
        self.lock = threading.Lock()
        """Held while a log of the store is written to."""
        self._sessions: dict[str, _SessionEntries] = {}
        self._requests: dict[str, InMemoryRequests] = {}

    def entries(self, session: str) -> _SessionEntries:
        """The rows and blobs of a session, which all its logs share."""
        return self._sessions.setdefault(session, _SessionEntries())

    def log(self, session: str = "default") -> InMemoryLog:
        log = InMemoryLog(session=session, tenant=self.tenant)
        log.attach(self)
        return log

    def sessions(self) -> tuple[str, ...]:
        with self.lock:
            return tuple(sorted(name for name, entries in self._sessions.items() if entries.rows))

    def head(self, session: str) -> int:
        return len(self.entries(session).rows)

    def request_table(self, run: str) -> InMemoryRequests:
        return self._requests.setdefault(run, InMemoryRequests())

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        at = hash_chain.check_time(at)
        with self.lock:
            remaining = {
                cut.session: self.entries(cut.session).without(cut, at, hash_chain.origin(self.tenant, cut.session))
                for cut in cuts
            }
            for session, (rows, blobs) in remaining.items():
                entries = self.entries(session)
                entries.rows[:] = rows
                entries.blobs.clear()
                entries.blobs.update(blobs)
            for cut in cuts:
                if isinstance(cut, Removal):
                    self._requests.pop(cut.session, None)

    def close(self) -> None:
        """Do nothing: entries last as long as the store."""
