"""A log that gives its entries as they are stored, and takes another's so: what moving a session needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from pagein.log.base import Log


@dataclass(frozen=True, slots=True)
class Row:
    """One entry as it lies in a store."""

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


@runtime_checkable
class RowLog(Log, Protocol):
    """A Log of ``tenant`` and ``session`` whose rows can be read and adopted byte for byte; all of ours are."""

    tenant: str
    session: str

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        """The rows ``[start, stop)`` in order, as ``read`` gives their entries."""
        ...

    def blob(self, name: str) -> bytes:
        """The bytes stored under their hash. Raises LogUnreadable where there are none."""
        ...

    def adopt(self, rows: Sequence[Row], blobs: Mapping[str, bytes]) -> None:
        """Write another log's rows durably into this empty one, from position 0 on, or none of them.

        Bodies, times and kinds stay as they are; the digests are derived anew, as they cover tenant and session. The
        rows must be sound: ``blobs`` has every blob they name. Raises Conflict where there are entries already.
        """
        ...
