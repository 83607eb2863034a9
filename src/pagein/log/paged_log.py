"""What logs have in common that read their rows from a database, some hundred at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from pagein.errors import ConfigurationError, LogUnreadable
from pagein.log.base import Entry
from pagein.log.raw_rows import Row
from pagein.log.rows import opened

SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


class ByRows:
    """The reading half of a Log, for one that says what its head is, gives rows in order, and finds blobs."""

    def head(self) -> int:
        """The number of entries, which is the next position; a look at the last one, not a count."""
        raise NotImplementedError

    def _whole_rows(self, start: int, stop: int) -> Iterator[Row]:
        raise NotImplementedError

    def _find_blob(self, name: str) -> bytes | None:
        raise NotImplementedError

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order, up to the head at the time of the call.

        They come from the database some hundred at a time, and between two nothing is held: no transaction, no lock.
        Raises LogUnreadable for an entry that is missing or damaged, LogClosed, and LogUnreachable for a server's.
        """
        return (opened(row, self.blob) for row in self.rows(start, stop))

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The same entries as they are stored."""
        head = self.head()
        return self._whole_rows(max(start, 0), head if stop is None else min(stop, head))

    def blob(self, name: str) -> bytes:
        """The bytes stored under their hash. Raises LogUnreadable where there are none."""
        data = self._find_blob(name)
        if data is None:
            raise LogUnreadable(f"the blob {name} is missing")
        return data


def whole_pages(
    page: Callable[[int, int], Sequence[Row]], start: int, stop: int, path: str
) -> Iterator[Sequence[Row]]:
    """The rows of ``[start, stop)`` as ``page`` gives the first of them. Raises LogUnreadable where one is missing."""
    while start < stop:
        rows = page(start, stop)
        # A shorter answer would be a wrong answer.
        if not rows or [row.position for row in rows] != list(range(start, start + len(rows))):
            there = {row.position for row in rows}
            # A damaged index may also give every row, and give them out of order or twice.
            missing = next((each for each in range(start, stop) if each not in there), None)
            what = "entries are out of order" if missing is None else f"entry {missing} is missing"
            raise LogUnreadable(f"{path}: {what}; verify() says more")
        yield rows
        start += len(rows)


def checked_waits(timeout: float, synchronous: str) -> str:
    """``synchronous`` in capitals. Raises ConfigurationError for one that does not exist, or a timeout that is none."""
    if not isinstance(synchronous, str) or synchronous.upper() not in SYNCHRONOUS:
        raise ConfigurationError(f"synchronous is one of {', '.join(SYNCHRONOUS)}, not {synchronous!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout < math.inf:
        raise ConfigurationError(f"timeout is in seconds, 0 or more, not {timeout!r}")
    return synchronous.upper()
