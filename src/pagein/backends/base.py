"""The store contract: the logs of one tenant at one address, with the search index over them."""
# ruff: noqa: ARG002 - a BareLog takes what a StoredLog takes, and refuses it

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Protocol, cast

from pagein.errors import ConfigurationError
from pagein.log.base import Log, LogStore, StoredLog
from pagein.log.requests import InMemoryRequests
from pagein.log.snapshots import Snapshot, SnapshotSlot

if TYPE_CHECKING:
    from pagein.events.entries import Body
    from pagein.log.base import Entry, Verification
    from pagein.log.erasure import Cut, Removal
    from pagein.log.raw_rows import Row
    from pagein.search.base import Embedder
    from pagein.search.index import SearchIndex


class Store(LogStore, Protocol):
    """A LogStore with a search index. ``open_store`` gives one for an address, ``store_of`` one for a log."""

    def search_index(
        self, session: str = "default", *, embedder: Embedder | None = None, own_tools: Collection[str] = ()
    ) -> SearchIndex:
        """Open the index over the tenant's sessions; ``session`` is the one that calls without a session mean.

        The index holds the entries in clear. So it is kept in memory, for this process alone, where the store is
        encrypted, may not be written to, or is in memory itself; here, in any store.
        """
        from pagein.backends.sqlite.search import SqliteSearchIndex  # noqa: PLC0415 - loads where a search is made

        return SqliteSearchIndex(session=session, tenant=self.tenant, embedder=embedder, own_tools=own_tools)

    def verify(self, sessions: Iterable[str]) -> Iterator[tuple[str, Verification]]:
        """Verify the logs of these sessions, one after the other; what they have in common is checked once."""
        for session in sessions:
            with closing(self.log(session)) as log:
                yield session, log.verify()


def stored_log(log: Log) -> StoredLog:
    """The log itself where it is a StoredLog, else the log in a ``BareLog``. Raises ConfigurationError for what is no log."""
    if not hasattr(log, "read"):
        raise ConfigurationError(
            f"a log is needed, not {log!r}: AgentMemory.open(...) opens a memory at an address, pagein.backends.open_log(...) a log"
        )
    return log if isinstance(log, StoredLog) else BareLog(log)


def store_of(log: Log) -> Store:
    """The store of a log; for a log with the five methods of ``Log`` alone, a store that holds this log only."""
    return cast("Store", stored_log(log).store)


class WithoutSnapshots:
    """The snapshots of a log that keeps none."""

    def snapshot_slot(self, before: int | None = None) -> SnapshotSlot:
        """A slot in which nothing may be kept."""
        return SnapshotSlot(None, is_open=False)

    def keep_snapshot(self, snapshot: Snapshot, dropped: int, *, is_past: bool = False) -> None:
        """Keep nothing."""

    def drop_snapshots(self) -> None:
        """Do nothing: there are none."""


class BareLog(WithoutSnapshots, StoredLog):
    """A StoredLog over a log that has only the five methods of ``Log``: it keeps no snapshot and cannot erase."""

    session, tenant, readonly = "default", "", False

    def __init__(self, log: Log) -> None:
        self._log = log
        self.requests = InMemoryRequests()

    @property
    def store(self) -> SingleLogStore:
        """A store that holds this log only."""
        return SingleLogStore(self)

    @property
    def kind(self) -> str:
        """The name of the log's class, for error messages."""
        return type(self._log).__name__

    def head(self) -> int:
        return self._log.head()

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        return self._log.append(bodies, after=after, at=at)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        return self._log.read(start, stop)

    def verify(self) -> Verification:
        return self._log.verify()

    def close(self) -> None:
        self._log.close()

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """Raise ConfigurationError."""
        raise ConfigurationError(
            f"a {self.kind} does not give its rows: moving a session takes a pagein.log.base.StoredLog"
        )

    def blob(self, name: str) -> bytes:
        """Raise ConfigurationError."""
        raise ConfigurationError(f"a {self.kind} does not give its blobs: that takes a pagein.log.base.StoredLog")

    def import_rows(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """Raise ConfigurationError."""
        self.rows()

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """Raise ConfigurationError."""
        raise ConfigurationError(f"a {self.kind} cannot erase: it is no pagein.log.base.StoredLog")


class SingleLogStore(Store):
    """A Store that holds one log and opens no other; its search index is in memory."""

    encrypted, is_durable, can_erase = False, True, False

    def __init__(self, log: BareLog) -> None:
        self._log = log
        self.tenant, self.readonly = log.tenant, log.readonly

    def log(self, session: str = "default") -> StoredLog:
        """The log, where its own session is meant. Raises ConfigurationError for another."""
        if session == self._log.session:
            return self._log
        raise ConfigurationError(
            f"a {self._log.kind} does not open session {session!r} beside it: use AgentMemory.open() for branches"
        )

    def sessions(self) -> tuple[str, ...]:
        """None: the log's session has no name."""
        return ()

    def head(self, session: str) -> int:
        """See ``LogStore``. Raises ConfigurationError for another session than the log's."""
        return self.log(session).head()

    def request_table(self, run: str) -> InMemoryRequests:
        """The requests of the log, in memory, whatever its run is called."""
        del run
        return self._log.requests

    def erase(self, cuts: Sequence[Cut | Removal], *, at: float) -> None:
        """Raise ConfigurationError."""
        self._log.erase(cuts, at=at)

    def close(self) -> None:
        """Do nothing: the log is its owner's."""
