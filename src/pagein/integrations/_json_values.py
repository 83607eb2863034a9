"""Anything as JSON-safe values: pictures whole, text never taken for JSON, nothing that raises."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from PIL import Image as Pillow

from pagein.events.steps import Image

DEPTH = 12
"""Levels of nesting that are kept; what is deeper is kept as its repr."""


def png(picture: Pillow.Image) -> bytes:
    """The picture as PNG, whatever its mode, so that it can be restored."""
    held = io.BytesIO()
    try:
        picture.save(held, "PNG")
    except (OSError, ValueError):
        held = io.BytesIO()  # PNG has no CMYK, no YCbCr, no floats
        picture.convert("RGBA" if "transparency" in picture.info else "RGB").save(held, "PNG")
    return held.getvalue()


def as_image(picture: Pillow.Image) -> Image:
    """The picture as a part of ours."""
    return Image(png(picture), "image/png")


def as_picture(image: Image) -> Pillow.Image:
    """The part as a picture again. Raises OSError for bytes that are none."""
    return Pillow.open(io.BytesIO(image.data))


def plain(value: Any, *, pictures: bool = True, depth: int = DEPTH) -> Any:
    """The value as JSON-safe values. Pictures are PNG in base64, or with ``pictures=False`` named by their hash.

    A str stays the str it was (smolagents parses those that look like JSON). What JSON has no shape for keeps its
    public fields under ``_type``, or its repr.
    """
    match value:
        case None | bool() | int():
            return value
        case str():
            return str(value)
        case float():
            return value if math.isfinite(value) else repr(value)
        case Pillow.Image():
            return picture(value, whole=pictures)
        case bytes() | bytearray():
            return {"_type": "bytes", "base64": base64.b64encode(value).decode()}
    if depth <= 0:
        return _told(value)
    return _nested(value, pictures, depth - 1)


def picture(value: Pillow.Image, *, whole: bool) -> dict[str, Any]:
    """A picture as JSON-safe values: its hash, and its bytes where they are wanted whole."""
    data = png(value)
    named = {
        "type": "image",
        "media_type": "image/png",
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return {**named, "data": base64.b64encode(data).decode()} if whole else named


def _nested(value: Any, pictures: bool, depth: int) -> Any:
    if isinstance(value, Enum):
        return plain(value.value, pictures=pictures, depth=depth)
    if isinstance(value, Mapping):
        return {_key(key): plain(each, pictures=pictures, depth=depth) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each, pictures=pictures, depth=depth) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {each.name: getattr(value, each.name, None) for each in dataclasses.fields(value)}
        return {name: plain(each, pictures=pictures, depth=depth) for name, each in named.items()}
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict) and not isinstance(value, type) and not callable(value):
        public = {name: each for name, each in fields.items() if not name.startswith("_")}
        kept = {_key(name): plain(each, pictures=pictures, depth=depth) for name, each in public.items()}
        return {"_type": type(value).__name__, **kept} if kept else _told(value)
    return _told(value)


def _key(key: object) -> str:
    return key if isinstance(key, str) else _told(key)


def _told(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - someone's __str__; a record may not fail for it
        return f"<{type(value).__name__}>"
