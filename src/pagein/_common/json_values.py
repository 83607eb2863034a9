"""JSON text as values, and any value as JSON-safe values, pictures included; nothing here raises."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import math
from collections import UserString
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any

MAX_NESTING = 12
"""Levels of nesting that are kept; deeper values are kept as their repr."""


def parse_json(text: str | bytes, default: Any = None) -> Any:
    """The value of JSON text; the default for text that is no JSON, or nested too deep."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none in anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings_in(value: Any, *, with_keys: bool = True) -> Iterator[str]:
    """All texts in a JSON value, the keys of its objects before their values."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from strings_in(item, with_keys=with_keys)
        case dict():
            for key, item in value.items():
                if with_keys:
                    yield key
                yield from strings_in(item, with_keys=with_keys)


def is_picture(value: object) -> bool:
    """True for a picture of Pillow, which is not imported for it."""
    return any(kind.__module__ == "PIL.Image" and kind.__name__ == "Image" for kind in type(value).__mro__)


def png_bytes(picture: Any) -> bytes:
    """Encode the picture as PNG, whatever its mode, so that it can be restored."""
    file = io.BytesIO()
    try:
        picture.save(file, "PNG")
    except (OSError, ValueError):
        file = io.BytesIO()  # PNG has no CMYK, no YCbCr, no floats
        picture.convert("RGBA" if "transparency" in picture.info else "RGB").save(file, "PNG")
    return file.getvalue()


def to_json_value(value: Any, *, pictures: bool = True, depth: int = MAX_NESTING) -> Any:
    """Convert a value to JSON-safe values. Pictures are PNG in base64; with ``pictures=False`` their hash alone.

    A str stays as it is (smolagents parses those that look like JSON). Other objects keep their public fields under
    ``_type``, or their repr.
    """
    match value:
        case None | bool() | int():
            return value
        case str() | UserString():  # the latter is a sequence of its own kind
            return str(value)
        case float():
            return value if math.isfinite(value) else repr(value)
        case bytes() | bytearray() | memoryview():
            return {"_type": "bytes", "base64": base64.b64encode(bytes(value)).decode()}
    if is_picture(value):
        return _picture_row(value, with_data=pictures)
    if depth <= 0:
        return _to_text(value)
    return _nested_value(value, pictures, depth - 1)


def _picture_row(picture: Any, *, with_data: bool) -> dict[str, Any]:
    data = png_bytes(picture)
    row = {"type": "image", "media_type": "image/png", "sha256": hashlib.sha256(data).hexdigest()}
    return {**row, "data": base64.b64encode(data).decode()} if with_data else row


def _nested_value(value: Any, pictures: bool, depth: int) -> Any:
    def convert(inner: Any) -> Any:
        return to_json_value(inner, pictures=pictures, depth=depth)

    if isinstance(value, Enum):
        return convert(value.value)
    if isinstance(value, Mapping):
        return {_key_text(key): convert(inner) for key, inner in value.items()}
    if isinstance(value, Sequence | AbstractSet):
        return [convert(inner) for inner in value]
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):  # a number of numpy
        return convert(value.item())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        return {name: convert(inner) for name, inner in fields.items()}
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict) and not isinstance(value, type) and not callable(value):
        public = {name: inner for name, inner in attributes.items() if not name.startswith("_")}
        row = {_key_text(name): convert(inner) for name, inner in public.items()}
        return {"_type": type(value).__name__, **row} if row else _to_text(value)
    return _to_text(value)


def _key_text(key: object) -> str:
    return key if isinstance(key, str) else _to_text(key)


def _to_text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a foreign __str__; a record may not fail for it
        return f"<{type(value).__name__}>"
