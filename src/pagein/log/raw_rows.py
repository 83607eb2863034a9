"""Rows as stores keep them, and the base of logs that read rows from a database in pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pagein.errors import ConfigurationError, LogUnreadable
from pagein.log.base import Entry

SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")


@dataclass(frozen=True, slots=True)
class Row:
    """One entry as it is stored."""

    position: int
    at: float
    kind: str
    version: int
    body: bytes
    digest: str


class Tip(NamedTuple):
    """The head of a session, and the digest of the entry before it."""

    head: int
    digest: str


class RowLogBase:
    """The reading half of a log: a subclass gives its head, its rows in order, and its blobs."""

    def head(self) -> int:
        """The number of entries, which is the next position. Reads the last entry; counts nothing."""
        raise NotImplementedError

    def _read_rows(self, start: int, stop: int) -> Iterator[Row]:
        raise NotImplementedError

    def _find_blob(self, name: str) -> bytes | None:
        raise NotImplementedError

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order, up to the head at the time of the call.

        They are read in pages of some hundred; between two pages no transaction and no lock is held. Raises
        LogUnreadable for an entry that is missing or damaged, LogClosed, and LogUnreachable for a server's.
        """
        from pagein.log.hash_chain import decode_row  # noqa: PLC0415 - it needs rows

        return (decode_row(row, self.blob) for row in self.rows(start, stop))

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


def read_pages(page: Callable[[int, int], Sequence[Row]], start: int, stop: int, path: str) -> Iterator[Sequence[Row]]:
    """The rows ``[start, stop)`` in pages; ``page`` gives the first rows of a range. Raises LogUnreadable where
    one is missing.
    """
    while start < stop:
        rows = page(start, stop)
        # A shorter answer would be a wrong answer.
        if not rows or [row.position for row in rows] != list(range(start, start + len(rows))):
            there = {row.position for row in rows}
            # A damaged index may also give every row, and give them out of order or twice.
            missing = next((position for position in range(start, stop) if position not in there), None)
            what = "entries are out of order" if missing is None else f"entry {missing} is missing"
            raise LogUnreadable(f"{path}: {what}; verify() says more")
        yield rows
        start += len(rows)


def check_waits(timeout: float, synchronous: str) -> str:
    """``synchronous`` in capitals. Raises ConfigurationError for an unknown value, or an invalid timeout."""
    if not isinstance(synchronous, str) or synchronous.upper() not in SYNCHRONOUS:
        raise ConfigurationError(f"synchronous is one of {', '.join(SYNCHRONOUS)}, not {synchronous!r}")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 <= timeout < math.inf:
        raise ConfigurationError(f"timeout is in seconds, 0 or more, not {timeout!r}")
    return synchronous.upper()
