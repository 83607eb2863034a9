"""Blobs, and the encoding of values that JSON in UTF-8 cannot or should not carry: large texts, images, lone
surrogates.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
