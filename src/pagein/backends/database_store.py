"""The base of the stores in a database: opens logs, and lends a connection for the sessions as a whole."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypedDict, TypeVar

from pagein.log.base import StoredLog
from pagein.log.encryption import Encryption, Key, encryption_for, hide_key
from pagein.log.erasure import Cut, Removal
from pagein.log.hash_chain import check_name
from pagein.log.raw_rows import check_waits


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
