"""The contract of the table of requests: what was sent to a model, one row for each request of a run.

The rows are no part of the record: they may be missing, and thrown away at any time. They hold numbers, positions and
hashes, no text of the run, so what is erased from the log is gone from them, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

REQUEST_MAX_BYTES = 2_048
"""Bytes of a row's body, at most."""


class RequestRow(NamedTuple):
    """A stored row: the number of the request in its run, the head of the log it was made at, when, and its body."""

    number: int
    head: int
    at: float
    body: bytes


class RequestTable(Protocol):
    """The requests of one run, on all its branches. Every method raises a ``LogError``, never a driver's error.

    A row that is added may be lost in a power cut, the log never: adding waits for no disk.
    """

    def add(self, head: int, at: float, body: bytes) -> int:
        """Add a row; return its number, from 1 on."""
        ...

    def replace(self, number: int, body: bytes) -> None:
        """Replace the body of a row; nothing happens where it is gone."""
        ...

    def rows(self, after: int = 0, limit: int | None = None) -> Sequence[RequestRow]:
        """The rows with numbers above ``after``, in order, at most ``limit``."""
        ...

    def last(self) -> int:
        """The number of the last row; 0 where there is none."""
        ...


def hash_request(request: Any) -> str:
    """Hash a rendered request: equal for equal JSON, with its keys in their order."""
    import msgspec  # noqa: PLC0415 - loads with the first request

    return hashlib.sha256(msgspec.json.encode(request)).hexdigest()[:32]


@dataclass(slots=True)
class InMemoryRequests:
    """A RequestTable in this process's memory."""

    _rows: dict[int, RequestRow] = field(default_factory=dict)

    def add(self, head: int, at: float, body: bytes) -> int:
        """See ``RequestTable``."""
        number = self.last() + 1
        self._rows[number] = RequestRow(number, head, at, body)
        return number

    def replace(self, number: int, body: bytes) -> None:
        """See ``RequestTable``."""
        if number in self._rows:
            self._rows[number] = self._rows[number]._replace(body=body)

    def rows(self, after: int = 0, limit: int | None = None) -> Sequence[RequestRow]:
        """See ``RequestTable``."""
        rows = [row for row in list(self._rows.values()) if row.number > after]
        return rows if limit is None else rows[:limit]

    def last(self) -> int:
        """See ``RequestTable``."""
        return max(self._rows, default=0)
