"""Tombstones, stored in place of an erased body: ``{"erased": proof, "by": position, "body": what was left}``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from pagein.errors import LogUnreadable
from pagein.log.blobs import hash_bytes

if TYPE_CHECKING:
    from pagein.log.raw_rows import Row


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The rest of an erased body, with a ``proof`` of its place in the chain; ``by`` is the position of the
    ``Erased`` entry.
    """

    proof: str
    by: int
    body: bytes


class _TombstoneJson(Struct, forbid_unknown_fields=True):
    erased: str
    by: int
    body: msgspec.Raw


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_TombstoneJson).decode
_START = b'{"erased":'


def is_tombstone(body: bytes) -> bool:
    """True for a stored body that is a tombstone, sound or not."""
    return body.startswith(_START)


def parse_tombstone(body: bytes) -> Tombstone | None:
    """Parse a tombstone; None for every other body. Raises LogUnreadable for a damaged one."""
    if not body.startswith(_START):
        return None
    try:
        stored = _decode(body)
    except ValueError as error:
        raise LogUnreadable(f"not a tombstone: {error}") from error
    return Tombstone(stored.erased, stored.by, bytes(stored.body))


def remaining_body(body: bytes) -> bytes:
    """The body itself, or what a tombstone left of it. Raises LogUnreadable."""
    tombstone = parse_tombstone(body)
    return body if tombstone is None else tombstone.body


def make_tombstone(row: Row, previous: str, by: int, body: bytes) -> bytes:
    """Make the tombstone of a row that is chained to the digest ``previous``; ``body`` is what was left."""
    return _encode(_TombstoneJson(_proof(row, previous, by, body), by, msgspec.Raw(body)))


def is_proven(row: Row, previous: str) -> bool:
    """True where the tombstone of a row behind that digest carries its proof. Raises LogUnreadable."""
    tombstone = parse_tombstone(row.body)
    return tombstone is not None and tombstone.proof == _proof(row, previous, tombstone.by, tombstone.body)


def _proof(row: Row, previous: str, by: int, body: bytes) -> str:
    # No field can hold a newline, so no two rows spell the same.
    head = f"{previous}\n{row.digest}\n{row.position}\n{row.at.hex()}\n{row.kind}\n{row.version}"
    return hash_bytes(f"erased\n{head}\n{by}\n".encode() + body)
