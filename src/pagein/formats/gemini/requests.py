"""Reading of requests to Gemini: REST's spelling, the SDK's dicts and objects, and single contents, as one shape.

REST writes ``functionCall``, the Python SDK ``function_call``; both are read, REST's is written. Bytes become base64.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pagein.errors import FormatError
from pagein.formats.parsing import content_rows, to_plain_json, type_name

_FREE_KEYS = frozenset({"args", "response", "partMetadata"})
"""Fields with the application's own JSON, whose keys are not ours to write."""

RESPONSE_KEYS = ("usageMetadata", "modelVersion")
"""The fields of a response that are read with its content."""

_SYSTEM_KEYS = ("systemInstruction", "system_instruction")


def read_request(request: Any) -> tuple[Any, list[Any]]:
    """Return the system instruction, None where there is none, and the contents. Raises FormatError."""
    if isinstance(request, Mapping) and not {"parts", "role"} & request.keys():
        key = next((key for key in ("contents", "messages") if key in request), None)
        if key is None:
            raise FormatError("the request has no contents", path="contents")
        system = system_instruction(request)
        request = request[key]
    else:
        system = None
    if request is None:
        raise FormatError("expected a list of contents, not null", path="contents")
    return system, [_response_content(_camel_case(row)) for row in content_rows(request)]


def _response_content(row: Any) -> Any:
    """Return the content of the first candidate where the row is a whole response, with the usage that it reports."""
    match row:
        case {"candidates": [{"content": dict(content)}, *_]}:
            return {**content, **{key: row[key] for key in RESPONSE_KEYS if key in row}}
        case {"candidates": [{"finishReason": reason}, *_]}:
            raise FormatError(
                f"a response without content, whose finish reason is {reason}: ask again", path="contents"
            )
        case _:
            return row


def system_instruction(request: Mapping[Any, Any]) -> Any:
    """Return the system instruction of a request or of its config; None where there is none."""
    config = request.get("config")
    if callable(getattr(type(config), "model_dump", None)):  # a GenerateContentConfig
        config = {key: getattr(config, key, None) for key in _SYSTEM_KEYS}
    for holder in (request, config if isinstance(config, Mapping) else {}):
        for key in _SYSTEM_KEYS:
            if holder.get(key) is not None:
                return _camel_case(to_plain_json(holder[key], key, encode_bytes=True))
    return None


def _camel_case(value: Any) -> Any:
    """Write the keys as REST does, and leave out nulls."""
    match value:
        case list():
            return [_camel_case(item) for item in value]
        case dict():
            named = (
                (re.sub(r"(?<=[a-z0-9])_([a-z])", lambda match: match[1].upper(), key), item)
                for key, item in value.items()
            )
            return {key: item if key in _FREE_KEYS else _camel_case(item) for key, item in named if item is not None}
        case _:
            return value


def system_parts(system: Any) -> list[tuple[Any, str]]:
    """Return the parts of a system instruction with their paths: a text, a content, parts or one part."""
    path = "systemInstruction"
    match system:
        case str():
            return [({"text": system}, path)]
        case {"parts": list(parts)}:
            return [(part, f"{path}.parts[{index}]") for index, part in enumerate(parts)]
        case list():
            texts = ({"text": part} if isinstance(part, str) else part for part in system)
            return [(part, f"{path}[{index}]") for index, part in enumerate(texts)]
        case {"text": _}:
            return [(system, path)]
        case _:
            raise FormatError(f"expected text or a content with parts, not {type_name(system)}", path=path)
