"""Parses items of the Responses API. The model's consecutive items become one step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pagein.errors import FormatError
from pagein.events import steps
from pagein.formats import parsing
from pagein.formats.base import Item
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

_MODEL_PARTS = ("output_text", "refusal")


def parse_items(rows: Iterable[Any]) -> tuple[Item, ...]:
    """Parse the items of a request. Raises FormatError with the path of the fault."""
    items: list[Item] = []
    turn = _Turn()
    for index, row in enumerate(rows):
        path = f"input[{index}]"
        if not isinstance(row, dict):
            raise FormatError(f"expected an object, not {parsing.type_name(row)}", path=path)
        item = _application_item(row, path)
        if item is not None:
            items += (*turn.take_step(), item)
            continue
        if turn.is_over(row):
            items += turn.take_step()
        turn.add(row, path)
    return (*items, *turn.take_step())


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
