"""Shared parts of the renderers: markers for empty content, images, provider content."""

from __future__ import annotations

import base64
import json
from typing import Any

from pagein.errors import FormatError
from pagein.events.steps import Image, Opaque
from pagein.formats.parsing import is_utf8, to_plain_json

NO_CONTENT = "(no content)"
NO_OUTPUT = "(no output)"
CONTINUE = "(continue)"
FAILED = "(error)"
MARKERS = (NO_CONTENT, NO_OUTPUT, CONTINUE, FAILED)
"""Texts that pagein inserts where a provider refuses empty content or has no field for a flag."""


def own_fields(part: Opaque | None, provider: str) -> dict[str, Any] | None:
    """Parse the JSON object in a part made by this provider; None for another's part, or for no object."""
    if part is None or part.provider != provider:
        return None
    return _parse_object(part.body)


def foreign_text(part: Opaque) -> str:
    """Return the text that other providers get for a part: a refusal's text, else nothing."""
    return part.text if part.kind == "refusal" else ""


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = to_plain_json(json.loads(text))  # no NaN, and a limited depth
    except (ValueError, RecursionError, FormatError):
        return None
    return value if isinstance(value, dict) else None


def image_placeholder(image: Image) -> str:
    """Return a short text in place of an image that the provider does not accept."""
    return f"[image {image.digest[:12]}]"


def image_base64(image: Image) -> str:
    """Encode the image's bytes as base64."""
    return base64.b64encode(image.data).decode("ascii")


def replace_surrogates(value: Any) -> Any:
    """Replace each lone surrogate by U+FFFD, so that the value's JSON is UTF-8; the same value where there is none."""
    return value if is_utf8(value) else _replace_in(value)


def _replace_in(value: Any) -> Any:
    match value:
        case str():
            # UTF-16 also joins a pair of surrogates that was split into two characters.
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_replace_in(item) for item in value]
        case dict():
            return {_replace_in(key): _replace_in(item) for key, item in value.items()}
        case _:
            return value
