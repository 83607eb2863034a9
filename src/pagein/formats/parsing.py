"""Parsing of untrusted requests: every fault is a FormatError with the path of the wrong value.

Applications pass dicts, tuples and SDK objects, some cyclic, some with bytes inside. They are first converted to plain
JSON values (dict, list, str, int, float, bool, None).
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagein._common.json_values import objects_in
from pagein.errors import FormatError
from pagein.events.steps import ActionStep, Content, Image, Opaque, Part, Text, ToolCall, Usage

IMAGE_DATA_URL = re.compile(r"data:(image/[a-zA-Z0-9.+-]+);base64,(.*)", re.DOTALL)

MAX_DEPTH = 128
"""Deeper than any real tool input; a limit for values that contain themselves."""

# Fields with readable text in provider content that is kept unread, in the order a provider's own client shows them.
_READABLE_KEYS = (
    "title", "name", "text", "thinking", "summary", "refusal", "transcript",
    "filename", "query", "url", "stdout", "stderr", "context",
)  # fmt: skip
_SIGNATURE_KEYS = ("signature", "cited_text")  # repeat or sign what is read elsewhere
_LABEL_MAX_CHARS = 80
PARSED_KEYS = ("parsed", "parsed_arguments", "parsed_output")
"""Fields of structured outputs: the text or the arguments again, as an object of the application. The APIs refuse them."""
_NESTED_KEYS = ("content", "source", "input", "output", "file")


def to_plain_json(value: Any, path: str = "", *, encode_bytes: bool = False) -> Any:
    """Copy a value as plain JSON. Raises FormatError for a value that JSON cannot express, or for a cycle.

    ``encode_bytes`` writes bytes as base64, as the SDKs of Google and AWS do.
    """
    try:
        return _copy_plain(value, 0)
    except _NotPlainError:
        return _convert(value, path, 0, encode_bytes=encode_bytes)


class _NotPlainError(Exception):
    """The value is not plain JSON already."""


_IS_TEXT = frozenset({str})


def _copy_plain(value: Any, depth: int) -> Any:
    """Copy plain JSON fast, without tracking paths: every request passes through here."""
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int:
        return value
    if depth > MAX_DEPTH or kind not in (dict, list):
        raise _NotPlainError
    if kind is list:
        return [_copy_plain(item, depth + 1) for item in value]
    if not _IS_TEXT.issuperset(map(type, value)):
        raise _NotPlainError
    return {key: item if type(item) is str else _copy_plain(item, depth + 1) for key, item in value.items()}


def _convert(value: Any, path: str, depth: int, *, encode_bytes: bool = False) -> Any:
    """Convert any value to plain JSON. Raises FormatError with the path of the fault."""
    if depth > MAX_DEPTH:
        raise FormatError(f"nested deeper than {MAX_DEPTH} levels, or contains itself", path=path)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a StrEnum member becomes its value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise FormatError(f"{value} is not a JSON number", path=path)
        return float(value)
    if encode_bytes and isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    convert = functools.partial(_convert, depth=depth + 1, encode_bytes=encode_bytes)
    if isinstance(value, Mapping):
        return {_convert_key(key, path): convert(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [convert(item, f"{path}[{index}]") for index, item in enumerate(value)]
    return convert(_dump_model(value, path), path)


def _convert_key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise FormatError(f"a key of an object must be text, not {type_name(key)}", path=path)
    return str.__str__(key)


def is_dumpable(value: object) -> bool:
    """True for an object of an SDK. The method is looked up on the type, so that mocks with any attribute do not count."""
    return callable(getattr(type(value), "model_dump", None))


def _dump_model(value: Any, path: str) -> Any:
    if not is_dumpable(value):
        raise FormatError(
            f"{type_name(value)} is not JSON: make it text, a number, a list or an object first", path=path
        )
    try:
        # The SDKs declare every field optional; nulls are their defaults.
        fields = value.model_dump(exclude_none=True)
    except Exception as error:
        raise FormatError(f"{type_name(value)}.model_dump() failed: {error}", path=path) from error
    if isinstance(fields, dict) and not _is_json(artifact := fields.get("artifact")):
        fields["artifact"] = {"not recorded": type_name(artifact)}  # LangChain's, any object: no model is sent it
    return fields


def _is_json(value: Any) -> bool:
    try:
        to_plain_json(value)
    except FormatError:
        return False
    return True


def type_name(value: Any) -> str:
    """Return the type's name for an error message."""
    return "null" if value is None else type(value).__name__


MESSAGE_HINT = 'a message is such as {"role": "user", "content": "Hello."}'


def request_fields(request: Any, names: tuple[str, ...] = ("messages",)) -> dict[str, Any]:
    """Return the named fields of a request as plain JSON. A list, or a single message, is the field ``messages``.

    Raises FormatError.
    """
    if isinstance(request, (list, tuple)):
        return {"messages": to_plain_json(request, "messages")}
    if is_dumpable(request):
        request = _dump_model(request, "messages")
    if not isinstance(request, Mapping):
        raise FormatError(f"expected a list of messages, not {type_name(request)}; {MESSAGE_HINT}", path="messages")
    if "messages" not in request:
        if "role" not in request and not {"type", "content"} <= request.keys():
            raise FormatError(f"the request has no messages, and is none itself; {MESSAGE_HINT}", path="messages")
        return {"messages": to_plain_json([request], "messages")}
    # Other fields (tools as classes, an HTTP client) are ignored.
    fields = {name: to_plain_json(request[name], name) for name in names if request.get(name) is not None}
    if not isinstance(fields.get("messages"), list):
        raise FormatError(f"expected a list, not {type_name(request['messages'])}", path="messages")
    return fields


def request_rows(request: Any) -> list[Any]:
    """Return the messages of a request of any provider as plain JSON, with bytes as base64. Raises FormatError.

    The Responses API's are its ``input``, or one item; Gemini's are its ``contents``. Instructions beside an ``input``
    come first, as a system message.
    """
    if isinstance(request, Mapping) and "contents" in request and "messages" not in request:
        return content_rows(request["contents"])
    messages = (
        request.get("messages", [request] if "role" in request else None) if isinstance(request, Mapping) else request
    )
    if isinstance(messages, (list, tuple)):
        rows: list[Any] = to_plain_json(messages, "messages", encode_bytes=True)
        return rows
    response = _response_row(request)
    return strict_request_rows(request) if response is None else [response]


def _response_row(request: Any) -> dict[str, Any] | None:
    """Return a whole response or one content of Gemini, or a response of Bedrock, as plain JSON; None for any other."""
    if not isinstance(request, Mapping) and not is_dumpable(request):
        return None
    plain = to_plain_json(request, "messages", encode_bytes=True) if not isinstance(request, Mapping) else request
    output = plain.get("output") if isinstance(plain, Mapping) else None
    is_response = isinstance(output, Mapping) and "message" in output
    if not isinstance(plain, Mapping) or not (is_response or {"parts", "candidates"} & plain.keys()):
        return None
    row: dict[str, Any] = to_plain_json(plain, "messages", encode_bytes=True)
    return row


def content_rows(contents: Any) -> list[Any]:
    """Return the ``contents`` of a request to Gemini as plain JSON: a text is the user's. Raises FormatError."""
    rows = contents if isinstance(contents, (list, tuple)) else [contents]
    plain: list[Any] = to_plain_json(rows, "contents", encode_bytes=True)
    return [{"role": "user", "parts": [{"text": row}]} if isinstance(row, str) else row for row in plain]


def strict_request_rows(request: Any) -> list[Any]:
    """Return the messages of a request with ``messages`` or ``input``; bytes are a FormatError."""
    if isinstance(request, Mapping) and "messages" not in request:
        if isinstance(request.get("type"), str) and "role" not in request:
            return [to_plain_json(request, "input")]
        if "input" in request:
            return _input_rows(request)
    messages: list[Any] = request_fields(request)["messages"]
    return messages


def _input_rows(request: Mapping[str, Any]) -> list[Any]:
    value = request["input"]
    rows = [{"role": "user", "content": value}] if isinstance(value, str) else to_plain_json(value, "input")
    if not isinstance(rows, list):
        raise FormatError(f"expected text or a list, not {type_name(rows)}", path="input")
    instructions = to_plain_json(request.get("instructions"), "instructions")
    return (
        [{"role": "system", "content": instructions}, *rows] if isinstance(instructions, str) and instructions else rows
    )


class Fields:
    """The fields of a JSON object that is being parsed. The fields not taken are kept for the provider."""

    __slots__ = ("_rest", "path")

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise FormatError(f"expected an object, not {type_name(value)}", path=path)
        self.path = path
        self._rest = dict(value)

    def take(self, key: str) -> Any:
        """Remove and return a value, or None where there is none."""
        return self._rest.pop(key, None)

    def text(self, key: str) -> str:
        """Take a required text."""
        value = self.take(key)
        if not isinstance(value, str):
            raise self.error(key, f"expected text, not {type_name(value)}")
        return value

    def text_or_empty(self, key: str) -> str:
        """Take a text; absent and null give "", because some servers send no ids."""
        return "" if self._rest.get(key) is None else self.text(key)

    def rows(self, key: str) -> list[tuple[Any, str]]:
        """Take a list as items with their paths; absent and null give an empty list."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(key, f"expected a list, not {type_name(value)}")
        return [(item, f"{self.path_of(key)}[{index}]") for index, item in enumerate(value)]

    def text_or_rows(self, key: str, expected: str) -> str | list[tuple[Any, str]]:
        """Take a required text or list; a list as items with their paths."""
        value = self.take(key)
        if isinstance(value, str):
            return value
        if not isinstance(value, list):
            raise self.error(key, f"expected {expected}, not {type_name(value)}")
        return [(item, f"{self.path_of(key)}[{index}]") for index, item in enumerate(value)]

    def text_or_parts(self, key: str, expected: str, parse: Callable[[Any, str], Part]) -> Content:
        """Take a required text, or a list whose rows ``parse`` reads with their paths."""
        rows = self.text_or_rows(key, expected)
        return rows if isinstance(rows, str) else tuple(parse(row, path) for row, path in rows)

    def fields(self, key: str) -> Fields:
        """Take a required object."""
        return Fields(self.take(key), self.path_of(key))

    def rest(self) -> dict[str, Any]:
        """Return the fields not taken, without nulls, which mean absent in both APIs, and without what an SDK parsed."""
        return {key: value for key, value in self._rest.items() if value is not None and key not in PARSED_KEYS}

    def error(self, key: str, message: str) -> FormatError:
        """Make the error for a wrong field."""
        return FormatError(message, path=self.path_of(key))

    def raise_first(self, faults: Iterable[str], cure: str) -> None:
        """Raise FormatError with the first of the provider's faults in the object, if there is one."""
        for fault in faults:
            inner, _, words = fault.partition(": ")
            raise FormatError(f"{words}; {cure}", path=f"{self.path}{inner}")

    def path_of(self, key: str) -> str:
        """Return the path of a field; fields of the request itself have no prefix."""
        return f"{self.path}.{key}" if self.path else key


def is_utf8(value: Any) -> bool:
    """Return True if all texts of a JSON value encode to UTF-8; a lone surrogate does not."""
    try:
        _encode_texts(value)
    except UnicodeEncodeError:
        return False
    return True


def _encode_texts(value: Any) -> None:
    if isinstance(value, str):
        value.encode()
        return
    items = (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for item in items:
        if type(item) is not str:
            _encode_texts(item)
        elif not item.isascii():
            item.encode()


def compact_json(value: Any) -> str:
    """Encode a value as JSON text that is valid UTF-8, with keys in their order."""
    # A lone surrogate is written as an escape, so it reads back equal.
    return json.dumps(value, ensure_ascii=not is_utf8(value), separators=(",", ":"))


def opaque_part(provider: str, kind: str, value: Any) -> Opaque:
    """Keep provider content as an unread part. Its text is set only where the content has nothing but readable text.

    A part is counted by its text, else by its body, so a document's title must not count for its pages.
    """
    return Opaque(provider, kind, compact_json(value), "" if _has_encoded(value) else readable_text(value))


def opaque_extra(provider: str, kind: str, fields: dict[str, Any]) -> Opaque | None:
    """Keep a provider's other fields; None where there are none."""
    if fields.keys() == {"cache_control"}:
        kind = "cache_control"  # models do not see it, so it is not counted
    return Opaque(provider, kind, compact_json(fields)) if fields else None


def _has_encoded(value: Any, key: str = "") -> bool:
    """Return True if the value has more than ids, types and readable text: files, ciphers, code to run."""
    match value:
        case str():
            return len(value) > _LABEL_MAX_CHARS and key not in (*_READABLE_KEYS, *_NESTED_KEYS, *_SIGNATURE_KEYS)
        case list():
            return any(_has_encoded(item, key) for item in value)
        case dict():
            text_key = "data" if value.get("type") == "text" else ""
            return any(_has_encoded(item, name) for name, item in value.items() if name != text_key)
        case _:
            return False


def readable_text(value: Any) -> str:
    """Return the readable text in a provider's content: titles, text, thinking; no encoded data.

    >>> readable_text({"type": "document", "title": "Plan", "source": {"type": "text", "data": "Ship."}}).splitlines()
    ['Plan', 'Ship.']
    """
    match value:
        case str():
            return value
        case list():
            lines = [readable_text(item) for item in value]
        case dict():
            lines = [value[key] for key in _READABLE_KEYS if isinstance(value.get(key), str)]
            if value.get("type") == "text" and isinstance(value.get("data"), str):
                lines.append(value["data"])
            lines += [readable_text(value[key]) for key in _NESTED_KEYS if value.get(key)]
        case _:
            return ""
    return "\n".join(line for line in lines if line)


def mark_lone_text(parts: tuple[Part, ...], provider: str) -> tuple[Part, ...]:
    """Add an empty extra to a text that is the only part. Without an extra, a lone text is rendered as a string."""
    match parts:
        case (Text(text=text, extra=None),):
            return (Text(text, Opaque(provider, "text", "{}")),)
    return parts


def image_at(url: str, detail: str, extra: Opaque | None) -> Image | None:
    """Return the image at a URL, or in a data URL; None where encoding would not give back that URL."""
    if not url.startswith("data:"):
        return Image(url=url, detail=detail, extra=extra)
    match = IMAGE_DATA_URL.fullmatch(url)
    data = decode_exact_base64(match[2]) if match else None
    return Image(data, match[1], detail=detail, extra=extra) if match and data else None


def token_count(usage: Any, *keys: str) -> int:
    """Return the first count above 0 in a provider's usage; 0 where there is none."""
    values = (usage.get(key) for key in keys) if isinstance(usage, Mapping) else ()
    return next((value for value in values if type(value) is int and value > 0), 0)  # bool is a subclass of int


_INPUT_KEYS = ("input_tokens", "prompt_tokens", "inputTokens", "promptTokenCount", "prompt_token_count")
_INPUT_BESIDE_KEYS = (
    "cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens",
    "toolUsePromptTokenCount", "tool_use_prompt_token_count",
)  # fmt: skip
"""Counts that the count of the input does not include: Anthropic's and Bedrock's of the cache, Gemini's of tools."""
_OUTPUT_KEYS = ("output_tokens", "completion_tokens", "outputTokens", "candidatesTokenCount", "candidates_token_count")
_THOUGHT_KEYS = ("thoughtsTokenCount", "thoughts_token_count")
_CACHED_KEYS = (
    "cache_read_input_tokens", "cacheReadInputTokens", "cachedContentTokenCount", "cached_content_token_count",
    "cached_tokens", "cache_read",
)  # fmt: skip
_DETAIL_KEYS = ("input_tokens_details", "prompt_tokens_details", "input_token_details")


def parse_usage(fields: Any) -> Usage | None:
    """Return the usage of a request as any provider reports it; None where the value is none."""
    if not isinstance(fields, Mapping) or not any(key in fields for key in _INPUT_KEYS):
        return None
    read = token_count(fields, *_INPUT_KEYS) + sum(token_count(fields, key) for key in _INPUT_BESIDE_KEYS)
    cached = (token_count(holder, *_CACHED_KEYS) for holder in (fields, *map(fields.get, _DETAIL_KEYS)))
    output = token_count(fields, *_OUTPUT_KEYS) + token_count(fields, *_THOUGHT_KEYS)
    return Usage(read, output, next(filter(None, cached), 0))


def action_of_rows(
    rows: Iterable[tuple[Any, str]],
    parse_call: Callable[[Any, str], ToolCall | None],
    parse_part: Callable[[Any, str], Part],
    **fields: Any,
) -> ActionStep:
    """Return the action of these rows with their paths: the calls, each at its place among the parts."""
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for row, path in rows:
        call = parse_call(row, path)
        if call is None:
            parts.append(parse_part(row, path))
        else:
            calls.append(replace(call, at=len(parts)))
    return action_step(parts, calls, **fields)


def object_call(call: Fields, id_key: str, provider: str, kind: str) -> ToolCall:
    """Return a call whose ``input`` is an object. Raises FormatError."""
    call_id, name, arguments = call.text_or_empty(id_key), call.text("name"), call.take("input")
    if not isinstance(arguments, dict):
        raise call.error("input", f"expected an object, not {type_name(arguments)}")
    return ToolCall(call_id, name, compact_json(arguments), extra=opaque_extra(provider, kind, call.rest()))


def action_step(parts: Sequence[Part], calls: Sequence[ToolCall], **fields: Any) -> ActionStep:
    """Return the action of these parts and calls. A call behind the last part needs no place."""
    placed = tuple(replace(call, at=None) if call.at == len(parts) else call for call in calls)
    return ActionStep(tuple(parts) if parts or not calls else None, placed, **fields)


def part_types(row: dict[str, Any]) -> Iterator[Any]:
    """Yield the type of each part in a message's content."""
    yield from (part.get("type") for part in objects_in(row.get("content")))


def decode_exact_base64(data: str) -> bytes | None:
    """Decode base64; None where encoding the bytes would not give back the same text."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if content and base64.b64encode(content).decode("ascii") == data else None
