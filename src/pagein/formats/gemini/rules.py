"""Reading and validation of requests to Gemini's ``generateContent``, independent of rendering.

REST writes ``functionCall``, the Python SDK ``function_call``; both are read, REST's is written. Bytes become base64.

Each rule is an error 400 of the API, most of them reported at google-gemini/gemini-cli:

* "Please ensure that the number of function response parts is equal to the number of function call parts of the function
  call turn" (#5443), and in its order, as calls need no id;
* "Please ensure that function call turn comes immediately after a user turn or after a function response turn" (#11814),
  "... function response turn comes immediately after a function call turn" (langchain-ai/langchain#27799);
* "contents.parts must not be empty" (vercel/ai#3775), "required oneof field 'data' must have one initialized field"
  (router-for-me/CLIProxyAPI#1293);
* "Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots
  (.), colons (:), or dashes (-), with a maximum length of 64" (kaitranntt/ccs#25);
* images are PNG, JPEG, WebP, HEIC or HEIF, says the guide to image understanding.

Where models differ (two contents of one role, a request that ends with the model), the strict rule applies. Signatures of
thoughts are not checked: only Gemini 3 asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pagein.errors import FormatError
from pagein.formats.anthropic.rules import order_problems
from pagein.formats.parsing import content_rows, is_dumpable, is_utf8, to_plain_json, type_name

ROLES = ("user", "model")
NAME_MAX_CHARS = 64
IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
DATA_KEYS = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
    "toolCall", "toolResponse",
)  # fmt: skip
"""The fields of a part of which it has exactly one, unless it is of a kind that is not known."""
_BESIDE_DATA = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_BASE64 = re.compile(r"[a-zA-Z0-9+/=_-]+")

_FREE_KEYS = frozenset({"args", "response", "partMetadata"})
"""Fields with the application's own JSON, whose keys are not ours to write."""

RESPONSE_KEYS = ("usageMetadata", "modelVersion")
"""The fields of a response that are read with its content."""

BYTE_KEYS = ("data", "thoughtSignature")
"""What the SDK has as bytes, and REST as base64."""
URL_ALPHABET = str.maketrans("-_", "+/")
"""From the alphabet of base64 that the SDK writes as JSON to the usual one."""
_SYSTEM_KEYS = ("systemInstruction", "system_instruction")

Row = dict[str, Any]


# -- reading: the SDK's dicts and objects, and single contents, as one shape


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
    if is_dumpable(config):  # a GenerateContentConfig
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


def unify_row(row: Any) -> Any:
    """Return a content with REST's keys, and with base64 in its usual alphabet. Raises FormatError."""
    return _unify("", _camel_case(content_rows([row])[0]))


def _unify(key: str, value: Any) -> Any:
    match value:
        case _ if key in _FREE_KEYS:
            return value
        case str() if key in BYTE_KEYS:
            return value.translate(URL_ALPHABET)
        case list():
            return [_unify("", item) for item in value]
        case dict():
            return {name: _unify(name, item) for name, item in value.items()}
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


# -- rules


def problems(request: Any) -> tuple[str, ...]:
    """Return every rule the request breaks, in order of the contents. Never raises."""
    try:
        system, rows = read_request(request)
        instructions = [] if system is None else system_parts(system)
    except FormatError as error:
        return (str(error),)
    if not rows:
        return ("contents: there is none",)
    shapes = [f"contents[{index}]{fault}" for index, row in enumerate(rows) for fault in _shape_problems(row)]
    if shapes:
        return tuple(shapes)
    faults = [
        f"{path}: only texts that are not empty may stand here"
        for part, path in instructions
        if not (isinstance(part, dict) and isinstance(part.get("text"), str) and part["text"])
    ]
    faults += [*order_problems(rows, "contents"), *_pair_problems(rows)]
    for index, row in enumerate(rows):
        for place, part in enumerate(row["parts"]):
            faults += (f"contents[{index}].parts[{place}]{fault}" for fault in _part_problems(part, row["role"]))
        if not is_utf8(row):
            faults.append(f"contents[{index}]: contains a lone surrogate, which is not UTF-8")
    if not is_utf8(system):
        faults.append("systemInstruction: contains a lone surrogate, which is not UTF-8")
    return tuple(faults)


def _shape_problems(row: Any) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f": expected an object, not {type_name(row)}"
        return
    if row.get("role") not in ROLES:
        yield f".role: {row.get('role')!r} is none of user, model"
    parts = row.get("parts")
    if not isinstance(parts, list) or not parts:
        yield ".parts: must be a list with at least one part"
        return
    for place, part in enumerate(parts):
        if not isinstance(part, dict):
            yield f".parts[{place}]: expected an object, not {type_name(part)}"


def _pair_problems(rows: list[Row]) -> Iterator[str]:
    """Check that the content behind a turn with calls begins with one response for each, in their order."""
    used: set[str] = set()
    calls: list[Row] = []
    for index, row in enumerate(rows):
        responses = _objects(row, "functionResponse")
        if row["role"] == "user":
            yield from (f"contents[{index}]{fault}" for fault in _response_problems(calls, responses))
            kinds = ["functionResponse" in part for part in row["parts"]]
            if kinds != sorted(kinds, reverse=True):
                yield f"contents[{index}]: a function response behind other parts"
        calls = _objects(row, "functionCall") if row["role"] == "model" else []
        for call in calls:
            call_id = str(call.get("id") or "")
            if call_id and call_id in used:
                yield f"contents[{index}]: the id {call_id!r} of a call is used twice"
            used.add(call_id)
    if calls:
        yield f"contents[{len(rows) - 1}]: {len(calls)} function calls without a response"


def _objects(row: Row, key: str) -> list[Row]:
    return [part[key] for part in row["parts"] if isinstance(part.get(key), dict)]


def _response_problems(calls: list[Row], responses: list[Row]) -> Iterator[str]:
    if len(calls) != len(responses):
        yield f": {len(responses)} function responses to {len(calls)} function calls"
        return
    for place, (call, response) in enumerate(zip(calls, responses, strict=True)):
        if call.get("name") != response.get("name"):
            yield f": response {place} is to {response.get('name')!r}, the call is to {call.get('name')!r}"
        if (call.get("id") or "") != (response.get("id") or ""):
            yield f": response {place} has the id {response.get('id')!r}, the call has {call.get('id')!r}"


def _part_problems(part: Row, role: str) -> Iterator[str]:
    kinds = [key for key in DATA_KEYS if key in part] or sorted(part.keys() - _BESIDE_DATA)[:1]
    if len(kinds) != 1:
        yield f": {len(kinds)} of the fields of data, must be one"
        return
    value = part[kinds[0]]
    match kinds[0]:
        case "text":
            if not isinstance(value, str):
                yield f".text: expected text, not {type_name(value)}"
            elif not value and "thoughtSignature" not in part:
                yield ".text: empty"
        case "functionCall":
            yield from _call_problems(value, role)
        case "functionResponse":
            yield from _function_response_problems(value, role)
        case "inlineData":
            yield from (f".inlineData{fault}" for fault in blob_problems(value))
        case "fileData":
            if not isinstance(value, dict) or not isinstance(value.get("fileUri"), str) or not value["fileUri"]:
                yield ".fileData.fileUri: missing or empty"


def _call_problems(call: Any, role: str) -> Iterator[str]:
    if role != "model":
        yield ".functionCall: may not stand in a content of the user"
    yield from (f".functionCall{fault}" for fault in _name_problems(call))
    if isinstance(call, dict) and not isinstance(call.get("args", {}), dict):
        yield f".functionCall.args: expected an object, not {type_name(call['args'])}"


def _function_response_problems(response: Any, role: str) -> Iterator[str]:
    if role != "user":
        yield ".functionResponse: may not stand in a content of the model"
    yield from (f".functionResponse{fault}" for fault in _name_problems(response))
    if isinstance(response, dict) and not isinstance(response.get("response"), dict):
        yield f".functionResponse.response: expected an object, not {type_name(response.get('response'))}"


def _name_problems(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f": expected an object, not {type_name(value)}"
    elif not isinstance(value.get("name"), str) or not NAME.fullmatch(value["name"]):
        yield f".name: {value.get('name')!r} is not 1 to {NAME_MAX_CHARS} of a-z, A-Z, 0-9, _, ., : and -, a letter or _ first"


def blob_problems(blob: Any) -> Iterator[str]:
    """Yield every rule that inline data breaks, with the place in it."""
    if not isinstance(blob, dict):
        yield f": expected an object, not {type_name(blob)}"
        return
    media_type = blob.get("mimeType")
    if not isinstance(media_type, str) or not media_type:
        yield ".mimeType: missing"
    elif media_type.startswith("image/") and media_type not in IMAGE_TYPES:
        yield f".mimeType: {media_type!r} is none of {', '.join(IMAGE_TYPES)}"
    if not isinstance(blob.get("data"), str) or not _BASE64.fullmatch(blob["data"]):
        yield ".data: no base64"
