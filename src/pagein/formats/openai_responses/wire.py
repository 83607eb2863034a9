"""Items of OpenAI's Responses API, a flat list, also used by other servers and the OpenAI Agents SDK.

Source: the API reference and the item types of the official SDK (``openai.types.responses``). The model's
consecutive items (reasoning, messages, calls) are one step. Items of unknown types, and all reasoning, are kept unread
and returned equal.

The API refuses a call or message with a server's id without the reasoning that it came with. So the id is removed when
the reasoning is no longer in the view; the API accepts such items without an id. An item that must have one
(``rules.ID_PREFIXES``) gets an id made from its content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from pagein.errors import FormatError
from pagein.events import steps
from pagein.events.messages import Message
from pagein.events.tool_call_encoding import wire_id, wire_name
from pagein.formats import parsing, rendering
from pagein.formats.base import Item, WireFormat
from pagein.formats.openai_chat.rules import IMAGE_TYPES, SYSTEM_ROLES
from pagein.formats.openai_responses import rules
from pagein.formats.openai_responses.rules import (
    ANSWER_TYPES,
    APPLICATION_ITEMS,
    ITEM_KEY,
    NAME,
    NOTE_KEYS,
    REASONED_KEY,
    TEXT_ANSWERS,
    Row,
    call_id_key,
)

_SIGN_PARTS = ("input_text", "output_text", "input_image", "input_file")
_MODEL_PARTS = ("output_text", "refusal")

_BLANK_SCREENSHOT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
"""One white pixel, in place of a screenshot that is no longer in the view."""

_RENDERED_KEYS = ("role", "content", "type", "call_id", "name", "arguments", "input", "output")


@dataclass(frozen=True, slots=True)
class OpenAIResponses(WireFormat):
    """Items of the Responses API. See ``Format`` for the methods."""

    name = NAME
    own_key = "input"

    def parse(self, request: Any) -> tuple[Item, ...]:
        """Parse a list of items, one item, or a request with ``input``. Raises FormatError with the path of the fault."""
        return _parse_items(parsing.strict_request_rows(request))

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Render the items, under ``messages``; one more message only appends. Empty instructions are omitted."""
        rows = _render_items(rendering.with_wire_ids(messages, _wire_id))
        return {"messages": rendering.replace_surrogates(rows)}

    def problems(self, request: Any) -> tuple[str, ...]:
        """Return every rule of the Responses API that the items break. Never raises."""
        try:
            rows = parsing.strict_request_rows(request)
        except FormatError as error:
            return (str(error),)
        return rules.problems(rows)

    def keywords(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request with ``input`` in place of ``messages``."""
        return {"input": request["messages"], **{key: value for key, value in request.items() if key != "messages"}}

    def render_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool as a flat ``function``."""
        return {"type": "function", **definition}

    @staticmethod
    def _count_row_signs(row: Row) -> int:
        kind = row.get("type")
        # A call or an output is an item that is no message.
        is_item = isinstance(kind, str) and "role" not in row and ("content" not in row or kind == "reasoning")
        return is_item + sum(kind in _SIGN_PARTS for kind in parsing.part_types(row))


# -- parsing


def _parse_items(rows: Iterable[Any]) -> tuple[Item, ...]:
    """Parse the items of a request. Raises FormatError with the path of the fault."""
    items: list[Item] = []
    turn, rows = _Turn(), list(rows)
    of_answers = _references_of_answers(rows)
    for index, row in enumerate(rows):
        path = f"input[{index}]"
        if not isinstance(row, dict):
            raise FormatError(f"expected an object, not {parsing.type_name(row)}", path=path)
        item = _application_item(row, path)
        if item is not None and index not in of_answers:
            items += (*turn.take_step(), item)
            continue
        if turn.is_over(row):
            items += turn.take_step()
        turn.add(row, path)
    return (*items, *turn.take_step())


def _references_of_answers(rows: Sequence[Any]) -> set[int]:
    """The references that stand before an item of the model: mostly to its reasoning, without which it may not be sent."""
    found, is_answer = set[int](), False
    for index in range(len(rows) - 1, -1, -1):
        row = rows[index]
        if not isinstance(row, dict) or row.get("type") != "item_reference":
            is_answer = isinstance(row, dict) and rules.maker_of(row) == "model"
        elif is_answer:
            found.add(index)
    return found


def _application_item(row: Row, path: str) -> Item | None:
    """Parse an item of the application or user; None for an item of the model."""
    kind, role = row.get("type") or "message", row.get("role")
    if not isinstance(kind, str):
        raise FormatError(f"expected text, not {parsing.type_name(kind)}", path=f"{path}.type")
    if kind == "item_reference" and not isinstance(row.get("id"), str):
        raise FormatError("a reference needs the id of the item that it means; give it, or the item", path=f"{path}.id")
    if kind in APPLICATION_ITEMS:
        return steps.TaskStep((parsing.opaque_part(NAME, "item", row),))
    if kind != "message" and role in SYSTEM_ROLES:
        return steps.SystemPromptStep((parsing.opaque_part(NAME, "item", row),))  # such as Codex's ``additional_tools``
    if kind != "message":
        return _observation(row, kind, path)
    message = parsing.Fields(row, path)
    match role:
        case "system" | "developer":
            content = _content(message, "content")
            also = {"role": role} if role == "developer" else {}
            message.take("role")
            return steps.SystemPromptStep(content, parsing.opaque_extra(NAME, "message", {**also, **message.rest()}))
        case "user":
            content = _content(message, "content")
            message.take("role")
            return steps.TaskStep(content, parsing.opaque_extra(NAME, "message", message.rest()))
        case "assistant":
            return None
        case _:
            raise FormatError(f"{role!r} is no role of an item, and there is no known type", path=f"{path}.role")


def _content(fields: parsing.Fields, key: str) -> steps.Content:
    content = fields.text_or_parts(key, "text or a list of parts", _part)
    return content if isinstance(content, str) else parsing.mark_lone_text(content, NAME)


@dataclass(slots=True)
class _Turn:
    """The model's items since the last item of another author: parts, and calls at their places."""

    parts: list[steps.Part] = field(default_factory=list)
    calls: list[steps.ToolCall] = field(default_factory=list)
    has_message: bool = False
    has_reasoning: bool = False

    def is_over(self, row: Row) -> bool:
        """Return True if the item begins another step: a message after a message, without a call between."""
        return self.has_message and not self.calls and (row.get("type") or "message") == "message"

    def take_step(self) -> tuple[steps.ActionStep, ...]:
        """Return the step of the turn, if there is one, and reset the turn."""
        if not self.parts and not self.calls:
            return ()
        step = steps.ActionStep(tuple(self.parts) or None, tuple(self.calls))
        self.parts, self.calls, self.has_message, self.has_reasoning = [], [], False, False
        return (step,)

    def add(self, row: Row, path: str) -> None:
        """Add an item. Raises FormatError."""
        kind = row.get("type") or "message"
        if kind == "message":
            self.has_message = True
            mark = {REASONED_KEY: True} if self.has_reasoning and row.get("id") else {}
            follows = bool(self.parts) and not (self.calls and self.calls[-1].at == len(self.parts))
            self.parts += _message_parts(row, path, mark, follows=follows)
        elif kind in ANSWER_TYPES and isinstance(row.get("call_id"), str):
            self.calls.append(self._call(parsing.Fields(row, path), row, kind))
        else:
            self.has_reasoning = self.has_reasoning or kind == "reasoning"
            self.parts.append(parsing.opaque_part(NAME, "reasoning" if kind == "reasoning" else "item", row))

    def _call(self, call: parsing.Fields, row: Row, kind: str) -> steps.ToolCall:
        call.take("type")
        call_id = call.text("call_id")
        mark = {REASONED_KEY: True} if self.has_reasoning and row.get("id") else {}
        at = len(self.parts)
        if kind not in ("function_call", "custom_tool_call"):
            whole = {key: value for key, value in row.items() if key != "call_id"}
            return steps.ToolCall(
                call_id,
                kind,
                parsing.compact_json(call.rest()),
                at,
                steps.Opaque(NAME, kind, parsing.compact_json({**whole, **mark})),
            )
        name = call.text("name")
        arguments = call.text_or_empty("arguments") if kind == "function_call" else call.text("input")
        beside = {**({} if kind == "function_call" else {"type": kind}), **call.rest(), **mark}
        return steps.ToolCall(call_id, name, arguments, at, parsing.opaque_extra(NAME, "call", beside))


def _message_parts(row: Row, path: str, mark: Row, *, follows: bool) -> Iterator[steps.Part]:
    """Parse a message of the model to parts. The first keeps the fields of the item, so that it comes back equal.

    A message that ``follows`` another part is marked, because unmarked texts in a row are rendered as one message.
    """
    content = row.get("content")
    about = {key: value for key, value in row.items() if key not in ("content", "role") and value is not None}
    first_fields = {ITEM_KEY: about, **mark} if about or mark or follows else {}
    if isinstance(content, str):
        yield steps.Text(content, parsing.opaque_extra(NAME, "text", first_fields))
        return
    if not isinstance(content, list):
        raise FormatError(f"expected text or a list of parts, not {parsing.type_name(content)}", path=f"{path}.content")
    if not content or not all(_is_model_part(part) for part in content):
        yield parsing.opaque_part(NAME, "item", row)
        return
    for at, part in enumerate(content):
        notes = {} if at else first_fields
        if part["type"] == "refusal":
            yield steps.Opaque(NAME, "refusal", parsing.compact_json({**part, **notes}), part["refusal"])
            continue
        known = ("type", "text", *parsing.PARSED_KEYS)
        beside = {key: value for key, value in part.items() if key not in known} | notes
        # The empty extra marks a lone text that came in a list.
        is_noted = beside or len(content) == 1
        yield steps.Text(part["text"], steps.Opaque(NAME, "part", parsing.compact_json(beside)) if is_noted else None)


def _is_model_part(part: Any) -> bool:
    if not isinstance(part, dict) or part.get("type") not in _MODEL_PARTS or any(key in part for key in NOTE_KEYS):
        return False
    return isinstance(part.get("text" if part["type"] == "output_text" else "refusal"), str)


def _observation(row: Row, kind: str, path: str) -> steps.Observation | None:
    """Parse an item that answers a call; None for any other item."""
    key = call_id_key(kind)
    if kind not in ANSWER_TYPES.values() or not isinstance(row.get(key), str):
        return None
    beside = {name: value for name, value in row.items() if name not in (key, "output") and value is not None}
    if kind == "function_call_output":
        del beside["type"]
    output = row.get("output")
    if isinstance(output, str) or kind in TEXT_ANSWERS:
        content = _content(parsing.Fields(row, path), "output")
    else:
        output_field = {} if output is None else {"output": output}
        content = (steps.Opaque(NAME, "output", parsing.compact_json(output_field), parsing.readable_text(output)),)
    return steps.Observation(row[key], content, extra=parsing.opaque_extra(NAME, "message", beside))


def _part(row: Any, path: str) -> steps.Part:
    """Parse one part of a user's message or of a result. Raises FormatError."""
    part = parsing.Fields(row, path)
    kind = part.text("type")
    if kind == "input_text":
        return steps.Text(part.text("text"), parsing.opaque_extra(NAME, "text", part.rest()))
    url = row.get("image_url")
    if kind == "input_image" and isinstance(url, str) and url:
        part.take("image_url")
        detail = part.text_or_empty("detail")
        if image := parsing.image_at(url, detail, parsing.opaque_extra(NAME, kind, part.rest())):
            return image
    return parsing.opaque_part(NAME, kind, row)


# -- rendering


def _render_items(messages: Iterable[Message]) -> list[Row]:
    """Render messages as items; one more message only appends."""
    rows: list[Row] = []
    call_types: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            rows += _model_items(message, call_types)
        elif message.role == "tool":
            rows.append(_answer_row(message, call_types.get(message.call_id, "")))
        else:
            is_first = all(row.get("role") in SYSTEM_ROLES for row in rows)
            # A notice becomes the system message it stands for, unless it opens the conversation.
            prompt = [] if message.as_system is None or is_first else list(_input_items(message.as_system))
            rows += prompt or _input_items(message)
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


def _wire_id(call_id: str) -> str:
    """Return the id if the API accepts it (1 to 64 characters of any text), else a rewritten one."""
    is_valid = 0 < len(call_id) <= rules.ID_MAX_CHARS and parsing.is_utf8(call_id)
    return call_id if is_valid else wire_id(call_id, rules.ID_MAX_CHARS)
