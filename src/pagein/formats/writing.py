"""What both renderers say alike: markers for what would be empty, safe ids and names, opaque parts to their maker."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from pagein.errors import FormatError
from pagein.formats.reading import is_utf8, plain
from pagein.steps import Image, Opaque

NO_CONTENT = "(no content)"
NO_OUTPUT = "(no output)"
CONTINUE = "(continue)"
FAILED = "(error)"
MARKERS = (NO_CONTENT, NO_OUTPUT, CONTINUE, FAILED)
"""Text of ours in a request, where the provider refuses nothing at all or has no place for a flag."""

UNPARSED = "_unparsed_arguments"
"""The key under which arguments that are no JSON object reach a provider that takes only objects."""

_ESCAPED = "pagein-"
_SAFE_ID = re.compile(r"[a-zA-Z0-9_-]+")
_UNSAFE_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def own(part: Opaque | None, provider: str) -> dict[str, Any] | None:
    """The JSON object in a part made by this provider, new at each call; None for another's, or for no object."""
    if part is None or part.provider != provider:
        return None
    return _object(part.body)


def foreign_text(part: Opaque) -> str:
    """What another provider is told of a part that is not its own: a refusal is an answer, all else is private."""
    return part.text if part.kind == "refusal" else ""


def parsed(arguments: str) -> dict[str, Any]:
    """The arguments as a JSON object. No arguments are the empty one; what is no object is wrapped, always alike.

    >>> parsed('{"path": "a.py"}'), parsed(""), parsed("{oops")
    ({'path': 'a.py'}, {}, {'_unparsed_arguments': '{oops'})
    """
    if not arguments.strip():
        return {}
    value = _object(arguments)
    return {UNPARSED: arguments} if value is None else value


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


def wire_id(call_id: str) -> str:
    """The id in the letters every provider takes; two ids never become one, and a usual id stays as it is.

    >>> wire_id("toolu_01A"), wire_id("functions.run-it:0")
    ('toolu_01A', 'pagein-functions-2erun--it-3a0')
    """
    if _SAFE_ID.fullmatch(call_id) and not call_id.startswith(_ESCAPED):
        return call_id
    return _ESCAPED + "".join(map(_letter, call_id.encode("utf-8", "surrogatepass")))


def _letter(byte: int) -> str:
    """A hyphen is doubled and what is not allowed is a hyphen and its byte: it reads back one way only."""
    letter = chr(byte)
    if letter == "-":
        return "--"
    return letter if _SAFE_ID.fullmatch(letter) else f"-{byte:02x}"


def wire_name(name: str, limit: int) -> str:
    """The tool's name in the letters every provider takes: models invent names, and one would block every request."""
    return _UNSAFE_IN_NAME.sub("_", name)[:limit] or "_"


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
