"""The bytes of a stored body: blobs by their hash, values that JSON cannot carry, and tombstones.

A tombstone stands in place of an erased body: ``{"erased": proof, "by": position, "body": rest}``.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from pagein.errors import LogUnreadable

if TYPE_CHECKING:
    from pagein.log.raw_rows import Row

_ALGORITHM = "s2:"  # SHA-256; a later algorithm gets another prefix, so that both can live in one log

INLINE_TEXT_MAX_BYTES = 32 * 1024
"""The most a text may take, in bytes of UTF-8, and stay in its body."""

INLINE_IMAGE_MAX_BYTES = 1024
"""The most an image may take, in bytes, and stay in its body."""

INLINE_COMPACTION_MAX_BYTES = 4 * 1024
"""The most a compaction may take as JSON, in bytes, and stay in its row: what is longer says one thing many times."""

INFLATED_MAX_BYTES = 64 * 2**20
"""The most bytes that a deflated body is inflated to: who made a file by hand cannot fill the memory with it."""


def hash_bytes(data: bytes) -> str:
    """Hash bytes: the algorithm's prefix and the hash in hexadecimal. A blob is stored once, under this name."""
    return _ALGORITHM + hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes stored once under the hash of themselves."""

    name: str
    data: bytes


# In a packed body U+FFFE, which no text should hold, and four hexadecimal digits stand for one code unit that UTF-8
# does not carry, and for U+FFFE. JSON's own escapes will not do: two lone surrogates in a row would be read as a pair.
_UNSPEAKABLE = re.compile("[\ud800-\udfff\ufffe]")
_ESCAPE = re.compile("\ufffe([0-9a-f]{4})")


def pack(value: Any, blobs: dict[str, bytes]) -> Any:
    """Replace large values by their names, add them to ``blobs``, and escape texts."""
    match value:
        case str():
            raw = value.encode("utf-8", "surrogatepass") if len(value) > INLINE_TEXT_MAX_BYTES // 4 else b""
            if len(raw) > INLINE_TEXT_MAX_BYTES:
                return {"$text": _store_blob(raw, blobs)}
            return _UNSPEAKABLE.sub(lambda match: f"\ufffe{ord(match[0]):04x}", value)
        case bytes():
            return {"$bytes": _store_blob(value, blobs)} if len(value) > INLINE_IMAGE_MAX_BYTES else value
        case dict():
            return {key: pack(item, blobs) for key, item in value.items()}
        case list() | tuple():
            return type(value)(pack(item, blobs) for item in value)
        case _:
            return value


def _store_blob(data: bytes, blobs: dict[str, bytes]) -> str:
    name = hash_bytes(data)
    blobs[name] = data
    return name


def unpack(value: Any, blob: Callable[[str], bytes]) -> Any:
    """Reverse ``pack``, byte for byte; ``blob`` gives the bytes of a name."""
    match value:
        case str():
            return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), value)
        case {"$text": name}:
            return blob(name).decode("utf-8", "surrogatepass")
        case {"$bytes": name}:
            return blob(name)
        case dict():
            return {key: unpack(item, blob) for key, item in value.items()}
        case list():
            return [unpack(item, blob) for item in value]
        case _:
            return value


def deflate(body: bytes, blobs: dict[str, bytes]) -> dict[str, str]:
    """Replace a whole JSON body by its name; it is deflated and added to ``blobs``."""
    return {"$deflated": _store_blob(zlib.compress(body, 6), blobs)}


def inflate(value: object, blob: Callable[[str], bytes]) -> bytes | None:
    """Reverse ``deflate``; None for any other value. Raises ValueError for a body that is damaged or too long."""
    if not isinstance(value, dict) or [*value] != ["$deflated"]:
        return None
    reading = zlib.decompressobj()
    try:
        body = reading.decompress(blob(value["$deflated"]), INFLATED_MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"a deflated body is damaged: {error}") from error
    if not reading.eof:
        raise ValueError("a deflated body is cut off, or longer than any that is written")
    return body


def inflated_size(data: bytes) -> int:
    """The bytes that a deflated body has once it is inflated, at most one more than are ever inflated; nothing is kept."""
    reading, size, rest = zlib.decompressobj(), 0, data
    try:
        while rest and size <= INFLATED_MAX_BYTES:
            size += len(reading.decompress(rest, 1 << 20))
            rest = reading.unconsumed_tail
    except zlib.error:
        return len(data)
    return size


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The rest of an erased body, with a ``proof`` of its place in the chain; ``by`` is the Erased entry's position."""

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
