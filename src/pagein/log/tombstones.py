"""What lies in place of a body that was erased: ``{"erased": proof, "by": position, "body": what was left}``."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import Struct

from pagein.errors import LogUnreadable
from pagein.log.hash_chain import proof
from pagein.log.raw_rows import Row


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What was left of a body, with a ``proof`` that it stands where that one stood, ``by`` the entry that says so."""

    proof: str
    by: int
    body: bytes


class _Tombstone(Struct, forbid_unknown_fields=True):
    erased: str
    by: int
    body: msgspec.Raw


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Tombstone).decode
_START = b'{"erased":'


def is_tombstone(body: bytes) -> bool:
    """Whether a stored body is a tombstone, sound or not."""
    return body.startswith(_START)


def as_tombstone(body: bytes) -> Tombstone | None:
    """The tombstone that was stored; None for every other body. Raises LogUnreadable for one that is damaged."""
    if not body.startswith(_START):
        return None
    try:
        found = _decode(body)
    except ValueError as error:
        raise LogUnreadable(f"not a tombstone: {error}") from error
    return Tombstone(found.erased, found.by, bytes(found.body))


def left_of(body: bytes) -> bytes:
    """What a stored body says: the body itself, or what was left of it. Raises LogUnreadable."""
    found = as_tombstone(body)
    return body if found is None else found.body


def tombstoned(row: Row, previous: str, by: int, body: bytes) -> bytes:
    """The tombstone with ``body`` for a row that is chained to the digest ``previous``."""
    return _encode(_Tombstone(_proof(row, previous, by, body), by, msgspec.Raw(body)))


def is_proven(row: Row, previous: str) -> bool:
    """Whether a row's tombstone is the one that was put there, behind that digest. Raises LogUnreadable."""
    found = as_tombstone(row.body)
    return found is not None and found.proof == _proof(row, previous, found.by, found.body)


def _proof(row: Row, previous: str, by: int, body: bytes) -> str:
    # No field can hold a newline, so no two rows spell the same.
    said = f"{previous}\n{row.digest}\n{row.position}\n{row.at.hex()}\n{row.kind}\n{row.version}"
    return proof(said, by=by, body=body)
