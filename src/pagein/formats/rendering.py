"""What both renderers say alike: markers for what would be empty, pictures, opaque parts to their maker."""

from __future__ import annotations

import base64
import json
from typing import Any

from pagein.errors import FormatError
from pagein.events.steps import Image, Opaque
from pagein.formats.parsing import is_utf8, plain

NO_CONTENT = "(no content)"
NO_OUTPUT = "(no output)"
CONTINUE = "(continue)"
FAILED = "(error)"
MARKERS = (NO_CONTENT, NO_OUTPUT, CONTINUE, FAILED)
"""Text of ours in a request, where the provider refuses nothing at all or has no place for a flag."""


def own(part: Opaque | None, provider: str) -> dict[str, Any] | None:
    """The JSON object in a part made by this provider, new at each call; None for another's, or for no object."""
    if part is None or part.provider != provider:
        return None
    return _object(part.body)


def foreign_text(part: Opaque) -> str:
    """What another provider is told of a part that is not its own: a refusal is an answer, all else is private."""
    return part.text if part.kind == "refusal" else ""


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = plain(json.loads(text))  # plain: no NaN, nothing deeper than what can be walked
    except (ValueError, RecursionError, FormatError):
        return None
    return value if isinstance(value, dict) else None


def pictured(image: Image) -> str:
    """What stands for an image where the provider takes none; short, whatever the image's URL."""
    return f"[image {image.digest[:12]}]"


def base64_of(image: Image) -> str:
    """The image's bytes as the wire spells them."""
    return base64.b64encode(image.data).decode("ascii")


def encodable(value: Any) -> Any:
    """The value with each lone surrogate as U+FFFD, so that its JSON is UTF-8; itself where there is none."""
    return value if is_utf8(value) else _mended(value)


def _mended(value: Any) -> Any:
    match value:
        case str():
            # By way of UTF-16, which also joins a pair that was split into two characters.
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_mended(item) for item in value]
        case dict():
            return {_mended(key): _mended(item) for key, item in value.items()}
        case _:
            return value
