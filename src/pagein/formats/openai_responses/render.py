"""Renders messages as items of the Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from pagein.events import steps
from pagein.events.messages import Message
from pagein.events.tool_call_encoding import wire_name
from pagein.formats import rendering
from pagein.formats.openai_chat.rules import IMAGE_TYPES
from pagein.formats.openai_responses import rules
from pagein.formats.openai_responses.rules import (
    ANSWER_TYPES,
    APPLICATION_ITEMS,
    ITEM_KEY,
    NAME,
    NOTE_KEYS,
    REASONED_KEY,
    SYSTEM_ROLES,
    TEXT_ANSWERS,
    Row,
    call_id_key,
)

_BLANK_SCREENSHOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
"""One white pixel, in place of a screenshot that is no longer in the view."""

_RENDERED_KEYS = ("role", "content", "type", "call_id", "name", "arguments", "input", "output")


def render_items(messages: Iterable[Message]) -> list[Row]:
    """Render messages as items; one more message only appends."""
    rows: list[Row] = []
    call_types: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            rows += _model_items(message, call_types)
        elif message.role == "tool":
            rows.append(_answer_row(message, call_types.get(message.call_id, "")))
        else:
            rows += _notice_items(message, is_first=all(row.get("role") in SYSTEM_ROLES for row in rows))
    return list(_with_item_ids(rows))


def _with_item_ids(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the items with an id where one is needed, and no id twice. A longer request keeps the ids of a shorter one.

    Reasoning that has nothing but the id of an earlier item is left out.
    """
    used: set[str] = set()
    for row in rows:
        is_repeated = rules.item_id(row) in used
        item = {key: value for key, value in row.items() if key != "id"} if is_repeated else row
        if _is_lost_reasoning(item):
            continue
        prefix, own = rules.ID_PREFIXES.get(str(item.get("type"))), rules.item_id(item)
        if prefix and not own:
            own = _derived_id(prefix, item, used)
        used |= {own} - rules.NO_IDS
        yield {**item, "id": own} if prefix else item


def _derived_id(prefix: str, row: Row, used: set[str]) -> str:
    content, attempt = json.dumps(row, sort_keys=True), 0
    while True:
        digest = blake2b(f"{attempt}.{content}".encode(), digest_size=16).hexdigest()
        if f"{prefix}_{digest}" not in used:
            return f"{prefix}_{digest}"
        attempt += 1


def _notice_items(message: Message, *, is_first: bool) -> list[Row]:
    """Render a message of the user or instructions. A notice becomes the system message it stands for, unless first."""
    prompt = [] if message.as_system is None or is_first else list(_input_items(message.as_system))
    return prompt or list(_input_items(message))


def _input_items(message: Message) -> Iterator[Row]:
    """Render a message of the user, or instructions. Items of the application are yielded as they are."""
    fields = rendering.own_fields(message.extra, NAME) or {}
    beside = {key: value for key, value in fields.items() if key not in _RENDERED_KEYS}
    if fields.get("type") == "message":
        beside["type"] = "message"
    parts: list[steps.Part] = []
    for part in steps.as_parts(message.content):
        row = rendering.own_fields(part, NAME) if isinstance(part, steps.Opaque) and part.kind == "item" else None
        is_users = row is not None and message.role == "user" and row.get("type") in APPLICATION_ITEMS
        is_instruction = row is not None and message.role == "system" and row.get("role") in SYSTEM_ROLES
        if row is not None and (is_users or is_instruction):
            yield row
        else:
            parts.append(part)
    if len(parts) < len(steps.as_parts(message.content)) and not parts:
        return
    content = _content_rows(parts, images=message.role == "user")
    if message.role == "system":
        role = "developer" if fields.get("role") == "developer" else "system"
        if content:
            yield {**beside, "role": role, "content": content}
        return
    yield {**beside, "role": "user", "content": content or rendering.NO_CONTENT}


@dataclass(slots=True)
class _Reply:
    """The items of one message of the model. ``has_reasoning`` if the reasoning behind them is in the view."""

    has_reasoning: bool
    rows: list[Row] = field(default_factory=list)

    def add_parts(self, parts: Sequence[steps.Part]) -> None:
        """Add parts as items. Neighbours from one message, or without a mark, become one message."""
        message: Row | None = None
        for part in parts:
            fields = rendering.own_fields(part if isinstance(part, steps.Opaque) else part.extra, NAME) or {}
            if isinstance(part, steps.Opaque) and fields and part.kind in ("reasoning", "item"):
                if not _is_lost_reasoning(fields):
                    self.rows.append(fields)
                message = None
                continue
            row = _model_part_row(part, fields)
            if row is None:
                continue
            if message is None or ITEM_KEY in fields:
                about = fields.get(ITEM_KEY)
                about = about if isinstance(about, dict) else {}
                message = {**self._with_valid_id(about, fields), "role": "assistant", "content": None}
                self.rows.append(message)
            if message["content"] is None and isinstance(part, steps.Text) and _is_plain_string(part):
                message["content"] = row["text"]
            else:
                message["content"] = [*_as_list(message["content"]), row]

    def add_call(self, call: steps.ToolCall) -> str:
        """Add a call, and return the type of its item."""
        fields = rendering.own_fields(call.extra, NAME) or {}
        beside = {key: value for key, value in fields.items() if key not in (*NOTE_KEYS, "call_id")}
        beside = self._with_valid_id(beside, fields)
        kind = beside.get("type") or "function_call"
        if kind not in ("function_call", "custom_tool_call") and kind in ANSWER_TYPES:
            self.rows.append({**beside, "call_id": call.id})
            return str(kind)
        kind, key = ("custom_tool_call", "input") if kind == "custom_tool_call" else ("function_call", "arguments")
        name = wire_name(call.name, rules.NAME_MAX_CHARS)
        self.rows.append({**beside, "type": kind, "call_id": call.id, "name": name, key: call.arguments})
        return kind

    def _with_valid_id(self, row: Row, notes: Row) -> Row:
        """Return the row, without its id where the reasoning that came before it is no longer in the view."""
        is_valid = self.has_reasoning or not notes.get(REASONED_KEY)
        return row if is_valid else {key: value for key, value in row.items() if key != "id"}


def _model_items(message: Message, call_types: dict[str, str]) -> list[Row]:
    """Render a message of the model, and note the type of each call's item in ``call_types``."""
    has_reasoning = any(
        isinstance(part, steps.Opaque) and part.kind == "reasoning" and rendering.own_fields(part, NAME)
        for part in steps.as_parts(message.content)
    )
    reply = _Reply(has_reasoning)
    for parts, call in rendering.parts_and_calls(message):
        reply.add_parts(parts)
        if call is not None:
            call_types[call.id] = reply.add_call(call)
    rows = reply.rows
    while rows and rows[-1].get("type") == "reasoning":
        rows.pop()  # refused without the item that follows it
    return rows or [{"role": "assistant", "content": rendering.NO_CONTENT}]


def _is_lost_reasoning(row: Row) -> bool:
    """Return True for reasoning that the API cannot find: it has neither an id nor its encrypted content."""
    return row.get("type") == "reasoning" and not rules.item_id(row) and not row.get("encrypted_content")


def _is_plain_string(part: steps.Text) -> bool:
    """Return True if the text was a message's whole content, as a string."""
    return part.extra is None or part.extra.kind != "part"


def _as_list(content: Any) -> list[Row]:
    if isinstance(content, str):
        return [{"type": "output_text", "text": content}]
    return content or []


def _model_part_row(part: steps.Part, fields: Row) -> Row | None:
    beside = {key: value for key, value in fields.items() if key not in NOTE_KEYS}
    match part:
        case steps.Text(text=text):
            # An empty text is kept where it has fields of its own.
            return {**beside, "type": "output_text", "text": text} if text or fields else None
        case steps.Image():
            return {"type": "output_text", "text": rendering.image_placeholder(part)}
        case steps.Opaque() if fields:
            return beside
        case steps.Opaque():
            text = rendering.foreign_text(part)
            return {"type": "output_text", "text": text} if text else None


def _answer_row(message: Message, call_type: str) -> Row:
    """Render the item that answers a call of ``call_type``. A replaced output has the shape the API expects."""
    beside = rendering.own_fields(message.extra, NAME) or {}
    kind = ANSWER_TYPES.get(call_type, "function_call_output")
    fields = {key: value for key, value in beside.items() if key not in ("type", "call_id", "output")}
    row = {**fields, "type": kind, call_id_key(kind): message.call_id}
    if kind in TEXT_ANSWERS:
        output = _content_rows(steps.as_parts(message.content), images=True) or rendering.NO_OUTPUT
        return {**row, "output": rendering.mark_failure(output, _text_row) if message.is_error else output}
    parts = steps.as_parts(message.content)
    own = rendering.own_fields(parts[0], NAME) if len(parts) == 1 and isinstance(parts[0], steps.Opaque) else None
    if own is not None:
        return {**row, **own}
    text = steps.as_text(message.content) or rendering.NO_OUTPUT
    return {**row, **_text_output(kind, rendering.mark_failure(text, _text_row) if message.is_error else text)}


def _text_output(kind: str, text: str) -> Row:
    """Return the fields of an answer whose output is replaced by text."""
    match kind:
        case "computer_call_output":
            return {"output": {"type": "computer_screenshot", "image_url": _BLANK_SCREENSHOT}}
        case "shell_call_output":
            outcome = {"type": "exit", "exit_code": 0}
            return {"output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
        case "tool_search_output":
            return {"tools": []}
        case "program_output":
            return {"result": text}
        case _:
            return {"output": text}


def _content_rows(parts: Sequence[steps.Part], *, images: bool) -> str | list[Row]:
    """Render parts of a user's message or a result; a lone text becomes a string."""
    rows: list[Row] = []
    lone = ""
    for part in parts:
        row = _part_row(part, images=images)
        if row is None:
            continue
        rows.append(row)
        lone = part.text if isinstance(part, steps.Text) and rendering.own_fields(part.extra, NAME) is None else ""
    visible = [row for row in rows if row.get("type") != "input_text" or row["text"]]
    if len(visible) == 1 == len(rows) and lone:
        return lone
    return visible


def _part_row(part: steps.Part, *, images: bool) -> Row | None:
    match part:
        case steps.Text():
            return {**(rendering.own_fields(part.extra, NAME) or {}), "type": "input_text", "text": part.text}
        case steps.Image():
            return _image_row(part) if images else _text_row(rendering.image_placeholder(part))
    own = rendering.own_fields(part, NAME)
    if own is not None and isinstance(own.get("type"), str) and images:
        return own
    text = part.text if own is not None else rendering.foreign_text(part)
    return _text_row(text) if text else None


def _text_row(text: str) -> Row:
    return {"type": "input_text", "text": text}


def _image_row(image: steps.Image) -> Row:
    url = image.url
    if not url:
        media_type = rendering.sent_media_type(image) or IMAGE_TYPES[0]
        if media_type not in IMAGE_TYPES:
            return _text_row(rendering.image_placeholder(image))
        url = f"data:{media_type};base64,{rendering.image_base64(image)}"
    detail = {"detail": image.detail} if image.detail else {}
    return {**(rendering.own_fields(image.extra, NAME) or {}), "type": "input_image", "image_url": url, **detail}
