"""The base of the stores in a database: opens logs, and lends a connection for the sessions as a whole."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Protocol, TypedDict, TypeVar

from pagein.errors import LogUnreadable
from pagein.log import hash_chain
from pagein.log.base import Entry, StoredLog
from pagein.log.encryption import Encryption, Key, encryption_for, hide_key
from pagein.log.erasure import Cut, Removal
from pagein.log.hash_chain import check_name
from pagein.log.raw_rows import Row, Tip, check_waits


class ConnectedLog(StoredLog, Protocol):
    """A StoredLog with a connection of its own."""

    store: Any  # a store of its own database, which the log may be given

    @property
    def is_open(self) -> bool:
        """False after ``close``."""
        ...


LogT = TypeVar("LogT", bound=ConnectedLog)


class StoreOptions(TypedDict, total=False):
    """The options of a store in a database and of its logs; see ``open_store``."""

    tenant: str
    timeout: float
    synchronous: str
    readonly: bool
    key: Key | None


class DatabaseStore(Generic[LogT]):
    """The base of stores in a database: a subclass opens a log.

    For the sessions as a whole the store uses the connection of an open log or, where none is open, one of its own.
    """

    can_erase = True

    def __init__(
        self,
        *,
        tenant: str = "",
        timeout: float = 5.0,
        synchronous: str = "FULL",
        readonly: bool = False,
        key: Key | None = None,
    ) -> None:
        self.tenant = check_name("tenant", tenant)
        self.timeout, self.readonly = timeout, readonly
        self.synchronous = check_waits(timeout, synchronous)
        self._key = hide_key(key)
        self._borrowed: weakref.ref[LogT] | None = None
        self._own: LogT | None = None

    @property
    def encrypted(self) -> bool:
        """True where there is a key."""
        return self._key is not None

    def encryption(self, session: str) -> Encryption:
        """The encryption of a session; the identity without a key."""
        return encryption_for(self._key, self.tenant, session)

    def _open(self, session: str) -> LogT:
        raise NotImplementedError

    def log(self, session: str = "default") -> LogT:
        """Open the log of a session."""
        log = self._open(session)
        log.store = self
        self.borrow(log)
        return log

    def borrow(self, log: LogT) -> None:
        """Use this log's connection for the sessions as a whole while it is open."""
        if self._borrowed_log() is None:
            self._borrowed = weakref.ref(log)

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """See ``LogStore``."""
        self._any_log().erase(cuts, at=at)

    def close(self) -> None:
        """Release the store's own connection; a second call does nothing."""
        log, self._own = self._own, None
        if log is not None:
            log.close()

    def _borrowed_log(self) -> LogT | None:
        log = None if self._borrowed is None else self._borrowed()
        return log if log is not None and log.is_open else None

    def _any_log(self) -> LogT:
        log = self._borrowed_log() or self._own
        if log is None:
            log = self._own = self._open("default")
        return log


class RowLogBase:
    """The reading half of a log: a subclass gives its head, pages of its rows in order, and its blobs."""

    session: str
    tenant: str
    path: str
    """The place of the log, for error messages: a server's address without the password."""
    page_rows: int
    """The largest number of rows of a page."""
    _tip: Tip | None = None
    """The newest entry that this log has read or written."""

    def head(self) -> int:
        """The number of entries, which is the next position. Reads the last entry; counts nothing."""
        raise NotImplementedError

    def _page(self, start: int, stop: int) -> list[Row]:
        """The first rows of ``[start, stop)``, decrypted."""
        raise NotImplementedError

    def _find_blob(self, name: str) -> bytes | None:
        raise NotImplementedError

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order, up to the head at the time of the call.

        They are read in pages of some hundred; between two pages no transaction and no lock is held. Raises
        LogUnreadable for an entry that is missing or damaged, LogClosed, and LogUnreachable for a server's.
        """
        return (hash_chain.decode_row(row, self.blob) for row in self.rows(start, stop))

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The same entries as they are stored."""
        head = self.head()
        return self._read_rows(max(start, 0), head if stop is None else min(stop, head))

    def blob(self, name: str) -> bytes:
        """The bytes stored under their hash. Raises LogUnreadable where there are none."""
        data = self._find_blob(name)
        if data is None:
            raise LogUnreadable(f"the blob {name} is missing")
        return data

    def _verify_rows(self, audit: hash_chain.ChainVerifier, head: int | None) -> None:
        """Verify the rows before ``head``; before the first page that cannot be read, where the head is not known."""
        position = 0
        while head is None or position < head:
            try:
                rows = self._page(position, position + self.page_rows if head is None else head)
            except LogUnreadable as error:
                if head is None:
                    audit.add_unreadable(position, str(error))
                    break
                position = self._verify_one_by_one(audit, position, min(position + self.page_rows, head))
                continue
            if not rows:
                break
            for row in rows:
                audit.add_row(row)
            position = rows[-1].position + 1

    def _verify_one_by_one(self, audit: hash_chain.ChainVerifier, start: int, stop: int) -> int:
        for position in range(start, stop):
            try:
                rows = self._page(position, position + 1)
            except LogUnreadable as error:
                audit.add_unreadable(position, str(error))
            else:
                for row in rows:
                    audit.add_row(row)
        return stop

    def _read_rows(self, start: int, stop: int) -> Iterator[Row]:
        """The rows ``[start, stop)``. Raises LogUnreadable where one is missing."""
        while start < stop:
            rows = self._page(start, stop)
            # A shorter answer would be a wrong answer.
            if not rows or [row.position for row in rows] != list(range(start, start + len(rows))):
                there = {row.position for row in rows}
                # A damaged index may also give every row, and give them out of order or twice.
                missing = next((position for position in range(start, stop) if position not in there), None)
                what = "entries are out of order" if missing is None else f"entry {missing} is missing"
                raise LogUnreadable(f"{self.path}: {what}; verify() says more")
            yield from rows
            start += len(rows)
            self._tip = hash_chain.later_tip(self._tip, start, rows[-1].digest)
