"""The base of logs that read rows from a database in pages."""

from __future__ import annotations

from collections.abc import Iterator

from pagein.errors import LogUnreadable
from pagein.log import hash_chain
from pagein.log.base import Entry
from pagein.log.raw_rows import Row, Tip


class RowLogBase:
    """The reading half of a log: a subclass gives its head, pages of its rows in order, and its blobs."""

    session: str
    tenant: str
    path: str
    """The place of the log, for error messages: a server's address without the password."""
    page_rows: int
    """How many rows a page has at most."""
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
