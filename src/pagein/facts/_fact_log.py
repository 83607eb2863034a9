"""The log of one owner and the book folded from it: read up to now, and written by compare-and-swap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pagein.errors import Conflict, LogErased
from pagein.events.entries import Body, FactScope
from pagein.facts.ledger import Book
from pagein.log.base import Entry, Log

ATTEMPTS = 16
"""Writers that may be first, one after the other, before a change is given up."""


class Shelf:
    """One owner's facts. Two writers cannot both win: the loser reads what the other wrote, and decides again."""

    def __init__(self, scope: FactScope, owner: str, open_log: Callable[[], Log]) -> None:
        self.scope = scope
        self.owner = owner
        self.book = Book()
        self._open = open_log
        self._log: Log | None = None

    @property
    def log(self) -> Log:
        """The log, opened when it is first needed."""
        if self._log is None:
            self._log = self._open()
        return self._log

    def refresh(self) -> bool:
        """Fold in what others wrote; True where that was anything."""
        return self._take(self.log.read(self.book.head))

    def change(self, decide: Callable[[Book], Sequence[Body]], at: float) -> tuple[Entry, ...]:
        """Write what ``decide`` makes of the book as it stands, all or none; asked again where another was first.

        Raises what ``decide`` raises, Conflict after sixteen losses, and LogError; nothing is written then.
        """
        self.refresh()
        for attempt in range(ATTEMPTS):
            bodies = tuple(decide(self.book))
            if not bodies:
                return ()
            try:
                entries = self.log.append(bodies, after=self.book.head, at=at)
            except (Conflict, LogErased) as error:
                if attempt + 1 == ATTEMPTS:
                    raise
                if isinstance(error, LogErased):
                    self._begin_anew()
                self.refresh()
            else:
                self._take(entries)
                return entries
        raise AssertionError("unreachable")  # pragma: no cover

    def entries(self) -> tuple[Entry, ...]:
        """Everything that was written, oldest first."""
        return tuple(self.log.read())

    def close(self) -> None:
        """Release the log; a second call does nothing."""
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _begin_anew(self) -> None:
        """Forget what was folded of a log that another erased whole."""
        book, self.book = self.book, Book()
        self.book.touched = {*book.touched, *book.facts, *book.gone}

    def _take(self, entries: object) -> bool:
        some = False
        for each in entries:  # type: ignore[attr-defined]
            self.book.apply(each)
            some = True
        return some
