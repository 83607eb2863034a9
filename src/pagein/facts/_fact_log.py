"""The log of one owner's facts and the ledger folded from it, written by compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pagein._common.retry import retry_on_conflict
from pagein.errors import Conflict, LogErased
from pagein.events.entries import Body, FactScope
from pagein.facts.ledger import Ledger
from pagein.log.base import Entry, LogStore, StoredLog

MAX_ATTEMPTS = 16
"""Conflicts with other writers in a row before a change is given up."""


class FactLog:
    """The facts of one owner. Of two writers one wins; the other reads what was written, and decides again."""

    def __init__(self, scope: FactScope, owner: str, store: LogStore, session: str) -> None:
        self.scope = scope
        self.owner = owner
        self.ledger = Ledger()
        self._store, self._session = store, session
        self._log: StoredLog | None = None

    @property
    def log(self) -> StoredLog:
        """The log, opened when it is first needed."""
        if self._log is None:
            self._log = self._store.log(self._session)
        return self._log

    def refresh(self) -> bool:
        """Fold in the entries of other writers; return True if there were any."""
        return self._apply_entries(self.log.read(self.ledger.head))

    def change(self, decide: Callable[[Ledger], Sequence[Body]], at: float) -> tuple[Entry, ...]:
        """Append what ``decide`` returns for the current ledger, all or nothing; retry after a conflict.

        Raises what ``decide`` raises, Conflict after sixteen attempts, and LogError; nothing is written then.
        """

        def attempt() -> tuple[Entry, ...]:
            self.refresh()
            bodies = tuple(decide(self.ledger))
            if not bodies:
                return ()
            try:
                entries = self.log.append(bodies, after=self.ledger.head, at=at)
            except LogErased:
                self._reset_ledger()
                raise
            self._apply_entries(entries)
            return entries

        return retry_on_conflict(attempt, attempts=MAX_ATTEMPTS, errors=(Conflict, LogErased))

    def entries(self) -> tuple[Entry, ...]:
        """Every entry, oldest first."""
        return tuple(self.log.read())

    def close(self) -> None:
        """Release the log; a second call does nothing."""
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _reset_ledger(self) -> None:
        """Start over with an empty ledger, after the log was erased whole."""
        ledger, self.ledger = self.ledger, Ledger()
        self.ledger.touched = {*ledger.touched, *ledger.facts, *ledger.removals}

    def _apply_entries(self, entries: Iterable[Entry]) -> bool:
        head = self.ledger.head
        for entry in entries:
            self.ledger.apply(entry)
        return self.ledger.head > head
