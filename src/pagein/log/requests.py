"""The contract of the table of requests: what was sent to a model, one row for each request of a run.

The rows are no part of the record: they may be missing, and thrown away at any time. They hold numbers, positions and
hashes, no text of the run, so what is erased from the log is gone from them, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
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


def encode_body(values: Mapping[str, Any]) -> bytes:
    """Encode the values of a row as JSON."""
    import msgspec  # noqa: PLC0415 - loads with the first request

    try:
        return msgspec.json.encode(values)
    except UnicodeEncodeError:  # half of a pair of surrogates
        return json.dumps(values, separators=(",", ":")).encode()


_BY_MESSAGES = "m:"
"""The prefix of a digest that is made of the hashes of the messages. One without it is the hash of the whole JSON."""


def hash_request(request: Mapping[str, Any], message_hashes: Sequence[bytes]) -> str:
    """Hash a rendered request by the hashes of its messages, which a turn needs anyway, and by what stands beside them."""
    import msgspec  # noqa: PLC0415 - loads with the first request

    rest = msgspec.json.encode({name: value for name, value in request.items() if name != "messages"})
    return _BY_MESSAGES + hashlib.sha256(b"".join((*message_hashes, rest))).hexdigest()[:32]


def is_same_request(request: Mapping[str, Any], message_hashes: Sequence[bytes], digest: str) -> bool:
    """True if a rendered request is the one that a stored digest was made of."""
    if digest.startswith(_BY_MESSAGES):
        return hash_request(request, message_hashes) == digest
    import msgspec  # noqa: PLC0415 - loads with the first request

    return hashlib.sha256(msgspec.json.encode(request)).hexdigest()[:32] == digest


@dataclass
class InMemoryRequests(RequestTable):
    """A RequestTable in this process's memory."""

    _rows: dict[int, RequestRow] = field(default_factory=dict)

    def add(self, head: int, at: float, body: bytes) -> int:
        number = self.last() + 1
        self._rows[number] = RequestRow(number, head, at, body)
        return number

    def replace(self, number: int, body: bytes) -> None:
        if number in self._rows:
            self._rows[number] = self._rows[number]._replace(body=body)

    def rows(self, after: int = 0, limit: int | None = None) -> Sequence[RequestRow]:
        rows = [row for row in list(self._rows.values()) if row.number > after]
        return rows if limit is None else rows[:limit]

    def last(self) -> int:
        return max(self._rows, default=0)
