"""OpenAI chat completions, as many servers speak it.

Source: the API reference and the request types of the official SDK (``openai.types.chat``). Beyond them, fields of
compatible servers (``reasoning_content``, ``reasoning_details``, ``thinking_blocks``, ``cache_control``) are kept and
returned equal. The legacy ``function_call`` and role ``function`` are read, and written as the ``tool_calls`` and role
``tool`` that replaced them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import (
    ActionStep,
    Content,
    Image,
    Observation,
    Opaque,
    Part,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    as_parts,
)
from pagein.events.tool_call_encoding import wire_id, wire_name
from pagein.formats import rendering as writing
from pagein.formats.base import Item
from pagein.formats.openai_chat import rules as openai_rules
from pagein.formats.parsing import (
    Fields,
    compact,
    exact_base64,
    extra,
    is_utf8,
    kept,
    kind_of,
    readable,
    request_fields,
)

NAME = "openai"

# Fields of an assistant message that are content to us: counted, searched, and dropped with their turn. Servers that
# send reasoning send it before the answer; a refusal or a voice comes in place of one.
_BEFORE = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
_AFTER = ("refusal", "audio")

_OURS = ("role", "content", "tool_calls", "tool_call_id")
"""What only we write: no kept field stands in for a message's role, content or pairing."""

_CURE = "send the picture's bytes in base64 or its https URL, or leave the part out"

_IMAGE_TYPE = re.compile(r"image/[a-zA-Z0-9.+-]+")
_DATA_URL = re.compile(r"data:(image/[a-zA-Z0-9.+-]+);base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """OpenAI chat completions. See ``Format`` for what each verb promises."""

    @property
    def name(self) -> str:
        """The public name."""
        return NAME

    def parse(self, request: Any) -> tuple[Item, ...]:
        """What the messages say, in order. Raises FormatError with the path of what is not of the documented shape."""
        rows = request_fields(request)["messages"]
        return tuple(_item(Fields(row, f"messages[{index}]")) for index, row in enumerate(rows))

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """One wire message for each message; one more message only appends. An empty system message is left out."""
        rows = (_row(message) for message in messages)
        return {"messages": writing.encodable([row for row in rows if row is not None])}

    def problems(self, request: Any) -> tuple[str, ...]:
        """Every rule of chat completions that the request breaks. Raises nothing, whatever it is given."""
        return openai_rules.problems(request)


# -- parsing


def _item(message: Fields) -> Item:
    role = message.text("role")
    match role:
        case "system" | "developer":
            content = _content(message)
            also = {} if role == "system" else {"role": role}
            return SystemPromptStep(content, _beside(message, also))
        case "user":
            return TaskStep(_content(message), _beside(message))
        case "assistant":
            return _action(message)
        case "tool":
            call_id = message.text_or_empty("tool_call_id")
            return Observation(call_id, _content(message, null=""), extra=_beside(message))
        case "function":
            # Legacy calls have no id, and a message makes at most one.
            return Observation("", _content(message, null=""), index=0, extra=_beside(message))
        case _:
            raise message.fault("role", f"unknown role {role!r}")


def _beside(message: Fields, also: dict[str, Any] | None = None) -> Opaque | None:
    return extra(NAME, "message", {**(also or {}), **message.left()})


def _content(message: Fields, null: str | None = None) -> Content:
    """The content of a message that has one. ``null`` is what a missing one means, where it means something."""
    content = _content_or_none(message)
    if content is not None:
        return content
    if null is None:
        raise message.fault("content", "there is no content")
    return null


def _content_or_none(message: Fields) -> Content | None:
    value = message.take("content")
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise message.fault("content", f"expected text or a list of parts, not {kind_of(value)}")
    parts = [_part(row, f"{message.path}.content[{index}]") for index, row in enumerate(value)]
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].extra is None:
        # A lone text is written as a string; the empty extra remembers that this one came as a part.
        parts[0] = replace(parts[0], extra=Opaque(NAME, "text", "{}"))
    return tuple(parts)


def _part(row: Any, path: str) -> Part:
    part = Fields(row, path)
    kind = part.text("type")
    match kind:
        case "text":
            return Text(part.text("text"), extra(NAME, kind, part.left()))
        case "image_url":
            return _image(part) or _kept_image(row, path)
        case "refusal":
            part.text(kind)
            return kept(NAME, kind, row)
        case _:
            return kept(NAME, kind, row)


def _image(part: Fields) -> Image | None:
    """The image, or None where only the part itself would come back byte for byte."""
    value = part.take("image_url")
    # Some hosts write the bare URL.
    source = Fields({"url": value} if isinstance(value, str) else value, f"{part.path}.image_url")
    url = source.text("url")
    detail = source.text_or_empty("detail")
    if not url:
        raise source.fault("url", "the URL is empty")
    if source.left():
        return None
    beside = extra(NAME, "image_url", part.left())
    if not url.startswith("data:"):
        return Image(url=url, detail=detail, extra=beside)
    inline = _DATA_URL.fullmatch(url)
    data = exact_base64(inline[2]) if inline else None
    return Image(data, inline[1], detail=detail, extra=beside) if inline and data else None


def _kept_image(row: dict[str, Any], path: str) -> Opaque:
    """An image only the part itself can say. It goes back as it came, so one the API refuses is refused here."""
    source = row["image_url"]
    spelled = {"url": source} if isinstance(source, str) else source
    Fields(row, path).refuse((f".image_url{fault}" for fault in openai_rules.image(spelled)), _CURE)
    return kept(NAME, "image_url", {**row, "image_url": spelled})


def _action(message: Fields) -> ActionStep:
    before = [_message_field(message, key) for key in _BEFORE]
    content = _content_or_none(message)
    after = [_message_field(message, key) for key in _AFTER]
    calls = [_call(Fields(row, path), row) for row, path in message.rows("tool_calls")]
    legacy = message.take("function_call")
    if legacy is not None:
        function = Fields(legacy, f"{message.path}.function_call")
        calls.append(ToolCall("", function.text("name"), _arguments(function)))
    fields = [part for part in (*before, *after) if part is not None]
    if fields:
        around = (*before, *as_parts(content), *after)
        content = tuple(part for part in around if part is not None)
    return ActionStep(content, tuple(calls), extra=_beside(message))


def _message_field(message: Fields, key: str) -> Opaque | None:
    value = message.take(key)
    if value is None:
        return None
    # A voice counts by what it says; the API needs but its id back.
    text = readable(value) if key == "audio" else kept(NAME, key, value).text
    return Opaque(NAME, key, compact({key: value}), text)


def _call(call: Fields, row: Any) -> ToolCall:
    call_id = call.text_or_empty("id")
    kind = call.text_or_empty("type") or "function"
    if kind not in ("function", "custom"):
        whole = {key: value for key, value in row.items() if key != "id"}
        return ToolCall(call_id, kind, compact(row.get(kind)), extra=Opaque(NAME, kind, compact(whole)))
    named = call.fields(kind)
    name = named.text("name")
    arguments = _arguments(named) if kind == "function" else named.text("input")
    beside = call.left() | ({kind: named.left()} if named.left() else {})
    if kind == "custom":
        beside = {"type": kind, **beside}
    return ToolCall(call_id, name, arguments, extra=extra(NAME, kind, beside))


def _arguments(function: Fields) -> str:
    value = function.take("arguments")
    if isinstance(value, str):
        return value
    if isinstance(value, dict):  # some hosts hand over what they parsed
        return compact(value)
    raise FormatError(f"expected JSON text, not {kind_of(value)}", path=f"{function.path}.arguments")


# -- rendering


def _row(message: Message) -> dict[str, Any] | None:
    kept_fields = writing.own(message.extra, NAME) or {}
    beside = {key: value for key, value in kept_fields.items() if key not in _OURS}
    content, fields = _spoken(message)
    if message.role == "system":
        role = "developer" if kept_fields.get("role") == "developer" else "system"
        return {**beside, "role": role, "content": content} if content else None
    if message.role == "tool":
        answer = {"tool_call_id": _wire_id(message.call_id), "content": content or writing.NO_OUTPUT}
        return {**beside, "role": "tool", **answer}
    if message.role == "user":
        return {**beside, "role": "user", "content": content or writing.NO_CONTENT}
    calls = [_call_row(call) for call in message.tool_calls]
    if not content and not calls and not any(fields.get(key) for key in _AFTER):
        content = writing.NO_CONTENT
    row = {**beside, "role": "assistant", **fields, "content": content}
    return {**row, "tool_calls": calls} if calls else row


def _spoken(message: Message) -> tuple[str | list[dict[str, Any]] | None, dict[str, Any]]:
    """The message's content and the message fields that were content to us."""
    rows: list[dict[str, Any]] = []
    fields: dict[str, Any] = {}
    lone = ""
    for part in as_parts(message.content):
        row = _part_row(part, message.role)
        if row is None:
            continue
        if "type" not in row:
            fields.update(row)
            continue
        rows.append(row)
        lone = part.text if isinstance(part, Text) and writing.own(part.extra, NAME) is None else ""
    shown = [row for row in rows if row["type"] not in ("text", "refusal") or row.get(row["type"])]
    if len(shown) == 1 == len(rows) and lone:
        return lone, fields
    if not shown:  # "" and null are kept apart: chat templates of some models are
        return ("" if rows else None), fields
    return shown, fields


def _part_row(part: Part, role: str) -> dict[str, Any] | None:
    match part:
        case Text():
            return {**(writing.own(part.extra, NAME) or {}), "type": "text", "text": part.text}
        case Image():
            return _image_row(part) if role == "user" else {"type": "text", "text": writing.pictured(part)}
    row = writing.own(part, NAME)
    if row is None:
        text = writing.foreign_text(part)
        return {"type": "text", "text": text} if text else None
    kind = row.get("type")
    if not isinstance(kind, str):
        return {key: value for key, value in row.items() if key in _BEFORE + _AFTER}
    if kind == "image_url" and any(openai_rules.image(row.get(kind))):
        return {"type": "text", "text": writing.pictured(Image(url=part.body))}
    if role in openai_rules.PLACES.get(kind, (role,)):
        return row
    return {"type": "text", "text": part.text} if kind == "refusal" else None


def _image_row(image: Image) -> dict[str, Any]:
    url = image.url
    if not url:
        media_type = image.media_type if _IMAGE_TYPE.fullmatch(image.media_type) else "image/png"
        url = f"data:{media_type};base64,{writing.base64_of(image)}"
    # Bytes of ours are spelled right. A URL is a host's, and one the API refuses would block every request.
    if not image.data and any(openai_rules.image({"url": url})):
        return {"type": "text", "text": writing.pictured(image)}
    source = {"url": url, "detail": image.detail} if image.detail in openai_rules.DETAILS else {"url": url}
    return {**(writing.own(image.extra, NAME) or {}), "type": "image_url", "image_url": source}


def _call_row(call: ToolCall) -> dict[str, Any]:
    beside = writing.own(call.extra, NAME) or {}
    call_id = _wire_id(call.id)
    kind = beside.get("type")
    kind = kind if isinstance(kind, str) else "function"
    if kind not in ("function", "custom"):
        return {**beside, "id": call_id}
    also = beside.get(kind)
    named = dict(also) if isinstance(also, dict) else {}
    named["name"] = wire_name(call.name, openai_rules.MAX_NAME)
    named["arguments" if kind == "function" else "input"] = call.arguments
    return {**beside, "id": call_id, "type": kind, kind: named}


def _wire_id(call_id: str) -> str:
    """The id as it is, since any text is one here; only what would not encode, or is none, is spelled anew."""
    return call_id if call_id and is_utf8(call_id) else wire_id(call_id)
