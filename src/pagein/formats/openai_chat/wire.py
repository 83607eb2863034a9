"""OpenAI's chat completions, the format of many servers.

Source: the API reference and the request types of the official SDK (``openai.types.chat``). Beyond them, fields of
compatible servers (``reasoning_content``, ``reasoning_details``, ``thinking_blocks``, ``cache_control``) are kept and
returned equal. The legacy ``function_call`` and role ``function`` are read, and written as the ``tool_calls`` and role
``tool`` that replaced them.

A tool message takes text only ("For tool messages, only type text is supported", ``openai.types.chat``). So an image
that a tool returned is sent in a user message behind the results of its turn, after the name that stands in the result:
``result_images`` writes and reads that message. A failed result begins with ``Error:``, as there is no field for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pagein.errors import FormatError
from pagein.events import steps
from pagein.events.messages import Message
from pagein.events.tool_call_encoding import wire_id, wire_name
from pagein.formats import parsing, rendering
from pagein.formats.base import Item, WireFormat
from pagein.formats.openai_chat import rules
from pagein.formats.result_images import ResultImages, take_back_images

NAME: Final = "openai"

# Fields of an assistant message that are parsed as content: counted, searched, and removed with their turn. Reasoning
# comes before the answer; a refusal or audio in place of one.
_FIELDS_BEFORE = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
_FIELDS_AFTER = ("refusal", "audio")

_RENDERED_KEYS = ("role", "content", "tool_calls", "tool_call_id")
"""Keys that the renderer sets; kept fields never override them."""

_SIGN_ROLES = ("tool", "function", "developer")
_SIGN_FIELDS = ("tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content")
_SIGN_PARTS = ("image_url", "input_audio", "file", "refusal")

_IMAGE_CURE = "send the picture's bytes in base64 or its https URL, or leave the part out"


@dataclass(frozen=True, slots=True)
class OpenAIChat(WireFormat):
    """OpenAI chat completions. See ``Format`` for the methods."""

    name = NAME
    problems = staticmethod(rules.problems)

    def parse(self, request: Any) -> tuple[Item, ...]:
        """Parse the messages, in order. Raises FormatError with the path of what is not in the documented shape."""
        rows = parsing.request_fields(request)["messages"]
        items = (_item(parsing.Fields(row, f"messages[{index}]")) for index, row in enumerate(rows))
        return take_back_images(items, has_own_message=True)

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Render the messages; one more message only appends. Empty system messages are omitted."""
        limited = list(rendering.with_call_limit(messages, rules.MAX_CALLS))
        rows: list[dict[str, Any]] = []
        results = ResultImages()
        for message in rendering.with_wire_ids(limited, _wire_id):
            is_first = all(row["role"] in rules.SYSTEM_ROLES for row in rows)
            # A notice becomes the system message it stands for, unless it opens the conversation.
            prompt = None if message.as_system is None or is_first else _message_row(message.as_system)
            row = prompt or _message_row(message)
            rows += [] if row is None else [row]
            if shown := results.parts_after(message, _text_row, _image_or_none):
                rows.append({"role": "user", "content": shown})
        return {"messages": rendering.replace_surrogates(rows)}

    def render_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool as a ``function``."""
        return {"type": "function", "function": dict(definition)}

    @staticmethod
    def _count_row_signs(row: dict[str, Any]) -> int:
        is_own = row.get("role") in _SIGN_ROLES or any(row.get(key) is not None for key in _SIGN_FIELDS)
        return is_own + sum(kind in _SIGN_PARTS for kind in parsing.part_types(row))


# -- parsing


def _item(message: parsing.Fields) -> Item:
    role = message.text("role")
    match role:
        case "system" | "developer":
            content = _content(message)
            also = {} if role == "system" else {"role": role}
            return steps.SystemPromptStep(content, _message_extra(message, also))
        case "user":
            return steps.TaskStep(_content(message), _message_extra(message))
        case "assistant":
            return _action(message)
        case "tool":
            call_id = message.text_or_empty("tool_call_id")
            return steps.Observation(call_id, _content(message, null=""), extra=_message_extra(message))
        case "function":
            # Legacy calls have no id, and a message makes at most one.
            return steps.Observation("", _content(message, null=""), index=0, extra=_message_extra(message))
        case _:
            raise message.error(
                "role", f"unknown role {role!r}; names of your own go in roles={{{str(role)[:20]!r}: 'user'}}"
            )


def _message_extra(message: parsing.Fields, also: dict[str, Any] | None = None) -> steps.Opaque | None:
    return parsing.opaque_extra(NAME, "message", {**(also or {}), **message.rest()})


def _content(message: parsing.Fields, null: str | None = None) -> steps.Content:
    """Take the content of a message. ``null`` replaces missing content; without it, missing content is an error."""
    content = _content_or_none(message)
    if content is not None:
        return content
    if null is None:
        raise message.error("content", "there is no content")
    return null


def _content_or_none(message: parsing.Fields) -> steps.Content | None:
    value = message.take("content")
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise message.error("content", f"expected text or a list of parts, not {parsing.type_name(value)}")
    parts = tuple(_part(row, f"{message.path}.content[{index}]") for index, row in enumerate(value))
    return parsing.mark_lone_text(parts, NAME)


def _part(row: Any, path: str) -> steps.Part:
    part = parsing.Fields(row, path)
    kind = part.text("type")
    match kind:
        case "text":
            return steps.Text(part.text("text"), parsing.opaque_extra(NAME, kind, part.rest()))
        case "image_url":
            return _image(part) or _unread_image(row, path)
        case "refusal":
            part.text(kind)
            return parsing.opaque_part(NAME, kind, row)
        case _:
            return parsing.opaque_part(NAME, kind, row)


def _image(part: parsing.Fields) -> steps.Image | None:
    """Parse an image; None where rendering would not give back the same part."""
    value = part.take("image_url")
    # Some applications write only the URL.
    source = parsing.Fields({"url": value} if isinstance(value, str) else value, f"{part.path}.image_url")
    url = source.text("url")
    detail = source.text_or_empty("detail")
    if not url:
        raise source.error("url", "the URL is empty")
    if source.rest():
        return None
    return parsing.image_at(url, detail, parsing.opaque_extra(NAME, "image_url", part.rest()))


def _unread_image(row: dict[str, Any], path: str) -> steps.Opaque:
    """Keep an image part unread. It goes back unchanged, so raise FormatError for one that the API refuses."""
    source = row["image_url"]
    as_object = {"url": source} if isinstance(source, str) else source
    parsing.Fields(row, path).raise_first(
        (f".image_url{fault}" for fault in rules.image_problems(as_object)), _IMAGE_CURE
    )
    return parsing.opaque_part(NAME, "image_url", {**row, "image_url": as_object})


def _action(message: parsing.Fields) -> steps.ActionStep:
    before = [_message_field(message, key) for key in _FIELDS_BEFORE]
    content = _content_or_none(message)
    after = [_message_field(message, key) for key in _FIELDS_AFTER]
    calls = [_call(parsing.Fields(row, path), row) for row, path in message.rows("tool_calls")]
    legacy = message.take("function_call")
    if legacy is not None:
        function = parsing.Fields(legacy, f"{message.path}.function_call")
        calls.append(steps.ToolCall("", function.text("name"), _arguments(function)))
    fields = [part for part in (*before, *after) if part is not None]
    if fields:
        around = (*before, *steps.as_parts(content), *after)
        content = tuple(part for part in around if part is not None)
    return steps.ActionStep(content, tuple(calls), extra=_message_extra(message))


def _message_field(message: parsing.Fields, key: str) -> steps.Opaque | None:
    value = message.take(key)
    if value is None:
        return None
    # Audio is counted by its transcript; the API needs only its id back.
    text = parsing.readable_text(value) if key == "audio" else parsing.opaque_part(NAME, key, value).text
    return steps.Opaque(NAME, key, parsing.compact_json({key: value}), text)


def _call(call: parsing.Fields, row: Any) -> steps.ToolCall:
    call_id = call.text_or_empty("id")
    kind = call.text_or_empty("type") or "function"
    if kind not in ("function", "custom"):
        whole = {key: value for key, value in row.items() if key != "id"}
        return steps.ToolCall(
            call_id,
            kind,
            parsing.compact_json(row.get(kind)),
            extra=steps.Opaque(NAME, kind, parsing.compact_json(whole)),
        )
    named = call.fields(kind)
    name = named.text("name")
    arguments = _arguments(named) if kind == "function" else named.text("input")
    beside = call.rest() | ({kind: named.rest()} if named.rest() else {})
    if kind == "custom":
        beside = {"type": kind, **beside}
    return steps.ToolCall(call_id, name, arguments, extra=parsing.opaque_extra(NAME, kind, beside))


def _arguments(function: parsing.Fields) -> str:
    value = function.take("arguments")
    if isinstance(value, str | None):
        return value or ""  # some servers send null for a call without arguments
    if isinstance(value, dict):  # some applications pass the parsed arguments
        return parsing.compact_json(value)
    raise FormatError(f"expected JSON text, not {parsing.type_name(value)}", path=f"{function.path}.arguments")


# -- rendering


def _message_row(message: Message) -> dict[str, Any] | None:
    kept_fields = rendering.own_fields(message.extra, NAME) or {}
    beside = {key: value for key, value in kept_fields.items() if key not in _RENDERED_KEYS}
    if beside.get("name"):
        beside["name"] = rules.speaker_name(beside["name"])
    else:
        beside.pop("name", None)
    content, fields = _content_and_fields(message)
    if message.role == "system":
        role = "developer" if kept_fields.get("role") == "developer" else "system"
        return {**beside, "role": role, "content": content} if content else None
    if message.role == "tool":
        output = content or rendering.NO_OUTPUT
        output = rendering.mark_failure(output, _text_row) if message.is_error else output
        return {**beside, "role": "tool", "tool_call_id": message.call_id, "content": output}
    if message.role == "user":
        return {**beside, "role": "user", "content": content or rendering.NO_CONTENT}
    calls = [_call_row(call) for call in message.tool_calls]
    if not content and not calls and not any(fields.get(key) for key in _FIELDS_AFTER):
        content = rendering.NO_CONTENT
    row = {**beside, "role": "assistant", **fields, "content": content}
    return {**row, "tool_calls": calls} if calls else row


def _content_and_fields(message: Message) -> tuple[str | list[dict[str, Any]] | None, dict[str, Any]]:
    """Return the message's content, and the message fields that were parsed as content."""
    if isinstance(message.content, str):
        return message.content, {}
    rows: list[dict[str, Any]] = []
    fields: dict[str, Any] = {}
    lone = ""
    for part in steps.as_parts(message.content):
        row = _part_row(part, message.role)
        if row is None:
            continue
        if "type" not in row:
            fields.update(row)
            continue
        rows.append(row)
        lone = part.text if isinstance(part, steps.Text) and rendering.own_fields(part.extra, NAME) is None else ""
    visible = [row for row in rows if row["type"] not in ("text", "refusal") or row.get(row["type"])]
    if len(visible) == 1 == len(rows) and lone:
        return lone, fields
    if not visible:  # "" and null differ in the chat templates of some models
        return ("" if rows else None), fields
    return visible, fields


def _part_row(part: steps.Part, role: str) -> dict[str, Any] | None:
    match part:
        case steps.Text():
            return {**(rendering.own_fields(part.extra, NAME) or {}), "type": "text", "text": part.text}
        case steps.Image():
            return _image_row(part) if role == "user" else _text_row(rendering.image_placeholder(part))
    row = rendering.own_fields(part, NAME)
    if row is None:
        text = rendering.foreign_text(part)
        return _text_row(text) if text else None
    kind = row.get("type")
    if not isinstance(kind, str):
        return {key: value for key, value in row.items() if key in _FIELDS_BEFORE + _FIELDS_AFTER}
    if kind == "image_url" and any(rules.image_problems(row.get(kind))):
        return _text_row(rendering.image_placeholder(steps.Image(url=part.body)))
    if role in rules.PART_ROLES.get(kind, (role,)):
        return row
    return _text_row(part.text) if kind == "refusal" else None


def _text_row(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image_row(image: steps.Image) -> dict[str, Any]:
    url = image.url
    if not url:
        media_type = rendering.sent_media_type(image) or rules.IMAGE_TYPES[0]
        if media_type not in rules.IMAGE_TYPES:
            return _text_row(rendering.image_placeholder(image))
        url = f"data:{media_type};base64,{rendering.image_base64(image)}"
    # A URL comes from the application; one the API refuses would block every request.
    if not image.data and any(rules.image_problems({"url": url})):
        return _text_row(rendering.image_placeholder(image))
    source = {"url": url, "detail": image.detail} if image.detail in rules.DETAILS else {"url": url}
    return {**(rendering.own_fields(image.extra, NAME) or {}), "type": "image_url", "image_url": source}


def _image_or_none(image: steps.Image) -> dict[str, Any] | None:
    row = _image_row(image)
    return None if row["type"] == "text" else row


def _call_row(call: steps.ToolCall) -> dict[str, Any]:
    beside = rendering.own_fields(call.extra, NAME) or {}
    call_id = call.id
    kind = beside.get("type")
    kind = kind if isinstance(kind, str) else "function"
    if kind not in ("function", "custom"):
        return {**beside, "id": call_id}
    also = beside.get(kind)
    named = dict(also) if isinstance(also, dict) else {}
    named["name"] = wire_name(call.name, rules.NAME_MAX_CHARS)
    named["arguments" if kind == "function" else "input"] = call.arguments
    return {**beside, "id": call_id, "type": kind, kind: named}


def _wire_id(call_id: str) -> str:
    """Return the id unchanged if it has 1 to 40 characters of any text; another one is rewritten."""
    is_valid = rules.is_short_id(call_id) and parsing.is_utf8(call_id)
    return call_id if is_valid else wire_id(call_id, rules.ID_MAX_CHARS)
