"""pydantic-ai's messages, as its own adapter dumps them, to steps and back.

Source: ``pydantic_ai.messages`` 2.x (``ModelRequest``, ``ModelResponse`` and their parts). A part that is neither text,
image, call nor result is kept unread and returned equal, and so are fields that are not understood. Fields that no model
is sent (ids of runs, timestamps, metadata) are kept and cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagein._common.json_values import parse_json
from pagein.errors import FormatError
from pagein.events import steps
from pagein.events.messages import Message
from pagein.formats import rendering
from pagein.formats.base import Item
from pagein.formats.parsing import compact_json, decode_exact_base64, opaque_part, type_name

NAME = "pydantic-ai"

Row = dict[str, Any]

_UNSENT = " "
"""Readable text of fields that no model is sent: they are kept, and count as almost nothing."""

_REQUEST = "_request"
"""Key of the request's own fields, in its first part."""

_OBJECT = "_object"
"""Key in a call whose arguments came as an object, not as JSON text."""

_STATUSES: Mapping[str, steps.Status] = {"success": "ok", "interrupted": "unknown"}
"""Status of a result by its outcome; every other outcome is an error."""

_FROM_URL, _TO_URL = str.maketrans("-_", "+/"), str.maketrans("+/", "-_")
"""Base64 in the letters of URLs, as the adapter writes it, to standard base64 and back."""


def to_items(rows: Sequence[Any]) -> tuple[Item, ...]:
    """Parse messages into steps and results, in order. Raises FormatError with the path of what is no message."""
    return tuple(item for at, row in enumerate(rows) for item in _parse_message(row, f"messages[{at}]"))


def dynamic_ref(item: Item) -> str:
    """Return the name of the function that makes a dynamic system prompt; "" for anything else."""
    fields = rendering.own_fields(item.extra, NAME) if isinstance(item, steps.SystemPromptStep) else None
    return str((fields or {}).get("dynamic_ref") or "")


def _parse_message(row: Any, path: str) -> Iterator[Item]:
    if not isinstance(row, dict) or not isinstance(row.get("parts"), list):
        raise FormatError(f"expected a message with parts, not {type_name(row)}", path=path)
    fields = {key: value for key, value in row.items() if key not in ("parts", "kind") and value is not None}
    for at, part in enumerate(row["parts"]):
        if not isinstance(part, dict) or not isinstance(part.get("part_kind"), str):
            raise FormatError("expected a part with a part_kind", path=f"{path}.parts[{at}]")
    if row.get("kind") == "response":
        yield _parse_response(row["parts"], fields)
        return
    for at, part in enumerate(row["parts"]):
        request = {_REQUEST: fields} if at == 0 and fields else {}
        yield _parse_request_part(part, request, f"{path}.parts[{at}]")


def _parse_request_part(part: Row, request: Row, path: str) -> Item:
    """Parse instructions, the user's text or a result; any other part stays unread."""
    kind, content = part["part_kind"], part.get("content")
    if kind == "system-prompt" and isinstance(content, str):
        return steps.SystemPromptStep(content, _other_fields(part, request, "content"))
    if kind == "user-prompt" and isinstance(content, str):
        return steps.TaskStep(content, _other_fields(part, request, "content"))
    if kind == "user-prompt" and isinstance(content, list):
        return steps.TaskStep(tuple(map(_parse_user_part, content)), _other_fields(part, request, "content"))
    call_id = part.get("tool_call_id")
    is_result = kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name"))
    if is_result and isinstance(call_id, str):
        outcome = str(part.get("outcome", "success"))
        status = _STATUSES.get(outcome, "error") if kind == "tool-return" else "error"
        opaque = steps.Opaque(NAME, "value", compact_json({"content": content}), _readable_text(content))
        result: steps.Content = content if isinstance(content, str) else (opaque,)
        return steps.Observation(call_id, result, status, extra=_other_fields(part, request, "content", "tool_call_id"))
    if kind in ("tool-return", "retry-prompt") and is_result:
        raise FormatError("a result without a tool_call_id", path=path)
    unread = steps.Opaque(NAME, "part", compact_json(part), _readable_text(content))
    extra = steps.Opaque(NAME, "message", compact_json(request), _UNSENT) if request else None
    return steps.TaskStep((unread,), extra)


def _readable_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "" if content is None else json.dumps(content, ensure_ascii=False)


def _other_fields(part: Row, more: Row, *read: str) -> steps.Opaque:
    """The fields of a part without those that were read, and more fields."""
    fields = {key: value for key, value in part.items() if key not in read and value is not None}
    return steps.Opaque(NAME, "message", compact_json({**fields, **more}), _UNSENT)


def _parse_user_part(value: Any) -> steps.Part:
    if isinstance(value, str):
        return steps.Text(value)
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        kind = value["kind"]
        fields = {key: field for key, field in value.items() if key not in ("data", "url", "content")}
        extra = steps.Opaque(NAME, kind, compact_json(fields), _UNSENT)
        if kind == "image-url" and isinstance(value.get("url"), str) and value["url"]:
            return steps.Image(url=value["url"], extra=extra)
        media, data = value.get("media_type"), value.get("data")
        if kind == "binary" and isinstance(media, str) and isinstance(data, str):
            image = decode_exact_base64(data.translate(_FROM_URL)) if media.startswith("image/") else b""
            if image:
                return steps.Image(image, media, extra=extra)
        if kind == "text-content" and isinstance(value.get("content"), str):
            return steps.Text(value["content"], extra)
        return opaque_part(NAME, "content", value)
    return steps.Opaque(NAME, "content", compact_json(value), _readable_text(value))


def _parse_response(parts: list[Row], fields: Row) -> steps.ActionStep:
    content: list[steps.Part] = []
    calls: list[steps.ToolCall] = []
    for part in parts:
        kind, text = part["part_kind"], part.get("content")
        if kind == "text" and isinstance(text, str):
            content.append(steps.Text(text, _other_fields(part, {}, "content")))
        elif kind == "tool-call" and isinstance(part.get("tool_name"), str) and part.get("tool_call_id"):
            calls.append(_parse_call(part, len(content)))
        elif kind == "thinking":
            readable = text if isinstance(text, str) else ""
            content.append(steps.Opaque(NAME, "thinking", compact_json(part), readable))
        else:
            content.append(opaque_part(NAME, "part", part))
    extra = steps.Opaque(NAME, "message", compact_json(fields), _UNSENT) if fields else None
    model = str(fields.get("model_name") or "")
    return steps.ActionStep(tuple(content) or None, tuple(calls), model=model, extra=extra)


def _parse_call(part: Row, at: int) -> steps.ToolCall:
    args = part.get("args")
    text = args if isinstance(args, str) else compact_json({} if args is None else args)
    more = {} if isinstance(args, str) else {_OBJECT: args is not None}
    extra = _other_fields(part, more, "args", "tool_name", "tool_call_id")
    return steps.ToolCall(part["tool_call_id"], part["tool_name"], text, at, extra)


# -- back to messages


def to_rows(messages: Sequence[Message]) -> list[Row]:
    """Render messages as pydantic-ai's: neighbours that no model made are one request, as it sends them itself."""
    rows: list[Row] = []
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        fields = rendering.own_fields(message.extra, NAME) or {}
        if message.role == "assistant":
            parts = list(_response_parts(message)) or [{"content": rendering.NO_CONTENT, "part_kind": "text"}]
            rows.append({**fields, "parts": parts, "kind": "response"})
            continue
        if not rows or rows[-1]["kind"] != "request":
            rows.append({"parts": [], "kind": "request"})
        request = fields.pop(_REQUEST, None)
        if isinstance(request, dict):
            rows[-1] = {**rows[-1], **request}
        rows[-1]["parts"] += _request_parts(message, fields, names)
    return rendering.replace_surrogates(rows)


def _request_parts(message: Message, fields: Row, names: dict[str, str]) -> Iterator[Row]:
    parts = steps.as_parts(message.content)
    own = rendering.own_fields(parts[0], NAME) if len(parts) == 1 and isinstance(parts[0], steps.Opaque) else None
    match message.role:
        case "system":
            yield {**fields, "content": steps.as_text(message.content), "part_kind": "system-prompt"}
        case "tool":
            result = own["content"] if own is not None and "content" in own else steps.as_text(message.content)
            row = {"part_kind": "tool-return", "tool_name": names.get(message.call_id, "tool"), **fields}
            if message.is_error and row["part_kind"] == "tool-return":
                row.setdefault("outcome", "failed")
            yield {**row, "content": result, "tool_call_id": message.call_id}
        case _:
            if own is not None and isinstance(own.get("part_kind"), str):
                yield own
                return
            content = message.content if isinstance(message.content, str) else list(map(_user_part, parts))
            yield {**fields, "content": content or rendering.NO_CONTENT, "part_kind": "user-prompt"}


def _user_part(part: steps.Part) -> Any:
    match part:
        case steps.Text():
            fields = rendering.own_fields(part.extra, NAME)
            return part.text if fields is None else {**fields, "content": part.text}
        case steps.Image():
            fields = rendering.own_fields(part.extra, NAME) or {}
            if part.url:
                return {"kind": "image-url", **fields, "url": part.url}
            data = rendering.image_base64(part).translate(_TO_URL)
            media = part.media_type or "image/png"
            return {"kind": "binary", "media_type": media, **fields, "data": data}
        case steps.Opaque():
            own = rendering.own_fields(part, NAME)
            return part.text if own is None else own


def _response_parts(message: Message) -> Iterator[Row]:
    """The parts of a response, each call at its place between them."""
    for parts, call in rendering.parts_and_calls(message):
        yield from filter(None, map(_response_part, parts))
        if call is not None:
            yield _call_row(call)


def _response_part(part: steps.Part) -> Row | None:
    match part:
        case steps.Text():
            fields = rendering.own_fields(part.extra, NAME) or {}
            return {**fields, "content": part.text, "part_kind": "text"}
        case steps.Image():
            return {"content": rendering.image_placeholder(part), "part_kind": "text"}
        case steps.Opaque():
            own = rendering.own_fields(part, NAME)
            text = rendering.foreign_text(part)
            return own if own is not None else {"content": text, "part_kind": "text"} if text else None


def _call_row(call: steps.ToolCall) -> Row:
    fields = rendering.own_fields(call.extra, NAME) or {}
    is_object = fields.pop(_OBJECT, None)
    args: Any = call.arguments
    if is_object is not None:
        value = parse_json(args, args)
        args = value if isinstance(value, dict) and (value or is_object) else None if not value else args
    return {**fields, "tool_name": call.name, "args": args, "tool_call_id": call.id, "part_kind": "tool-call"}
