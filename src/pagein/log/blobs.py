"""What JSON in UTF-8 cannot or should not carry, put into words it can: large texts, images, lone surrogates."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pagein.log.hash_chain import blob_name

INLINE_TEXT = 32 * 1024
"""The most a text may take, in bytes of UTF-8, and stay in its body."""

INLINE_BYTES = 1024
"""The most an image may take, in bytes, and stay in its body."""

INLINE_COMPACTION = 4 * 1024
"""The most a compaction may take as JSON, in bytes, and stay in its row: what is longer says one thing many times."""

MOST_INFLATED = 64 * 2**20
"""The most bytes that a deflated body is inflated to: who made a file by hand cannot fill the memory with it."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes stored once under the hash of themselves."""

    name: str
    data: bytes


# In a packed body U+FFFE, which no text should hold, and four hexadecimal digits stand for one code unit that UTF-8
# does not carry, and for U+FFFE. JSON's own escapes will not do: two lone surrogates in a row would be read as a pair.
_UNSPEAKABLE = re.compile("[\ud800-\udfff\ufffe]")
_ESCAPE = re.compile("\ufffe([0-9a-f]{4})")


def packed(value: Any, blobs: dict[str, bytes]) -> Any:
    """The value with what is large replaced by its name, and added to ``blobs``, and its texts escaped."""
    match value:
        case str():
            raw = value.encode("utf-8", "surrogatepass") if len(value) > INLINE_TEXT // 4 else b""
            if len(raw) > INLINE_TEXT:
                return {"$text": _keep(raw, blobs)}
            return _UNSPEAKABLE.sub(lambda found: f"\ufffe{ord(found[0]):04x}", value)
        case bytes():
            return {"$bytes": _keep(value, blobs)} if len(value) > INLINE_BYTES else value
        case dict():
            return {key: packed(each, blobs) for key, each in value.items()}
        case list() | tuple():
            return type(value)(packed(each, blobs) for each in value)
        case _:
            return value


def _keep(data: bytes, blobs: dict[str, bytes]) -> str:
    name = blob_name(data)
    blobs[name] = data
    return name


def unpacked(value: Any, blob: Callable[[str], bytes]) -> Any:
    """What was packed, byte for byte; ``blob`` gives the bytes of a name."""
    match value:
        case str():
            return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), value)
        case {"$text": name}:
            return blob(name).decode("utf-8", "surrogatepass")
        case {"$bytes": name}:
            return blob(name)
        case dict():
            return {key: unpacked(each, blob) for key, each in value.items()}
        case list():
            return [unpacked(each, blob) for each in value]
        case _:
            return value


def deflated(body: bytes, blobs: dict[str, bytes]) -> dict[str, str]:
    """What stands for a whole body of JSON: its name, deflated and added to ``blobs``."""
    return {"$deflated": _keep(zlib.compress(body, 6), blobs)}


def inflated(value: object, blob: Callable[[str], bytes]) -> bytes | None:
    """The body that ``deflated`` took; None for any other value. Raises ValueError for one that is damaged or too long."""
    if not isinstance(value, dict) or [*value] != ["$deflated"]:
        return None
    reading = zlib.decompressobj()
    try:
        body = reading.decompress(blob(value["$deflated"]), MOST_INFLATED)
    except zlib.error as error:
        raise ValueError(f"a deflated body is damaged: {error}") from error
    if not reading.eof:
        raise ValueError("a deflated body is cut off, or longer than any that is written")
    return body
