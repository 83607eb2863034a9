"""OpenAI's Responses API: a flat list of items, as servers that speak it and the OpenAI Agents SDK keep it.

Source: the API reference and the item types of the official SDK (``openai.types.responses``). What the model makes
between two turns of others (reasoning, messages, calls) is one step, each item at its place. An item of a kind that is
not known, and every item of reasoning, is kept unread and returned equal.

A call or a message that came with reasoning is refused under its server's id without it, so where the reasoning has
left the view the id goes too: the API takes such items without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import (
    ActionStep,
    Content,
    Image,
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
from pagein.formats.openai_responses import outputs as outputs
from pagein.formats.openai_responses import rules as openai_responses_rules
from pagein.formats.openai_responses.outputs import ANSWERS, NAME, Row
from pagein.formats.parsing import Fields, compact, extra, kept, kind_of, rows_of

_TOLD = ("item_reference", "mcp_approval_response")
"""Items of the host's own, that nothing the model makes."""

_ITEM, _THOUGHT = "_item", "_thought"
"""Where we note the own fields of the message that a part begins, and that reasoning stood before it."""

_NOTES = (_ITEM, _THOUGHT)
_OURS = ("role", "content", "type", "call_id", "name", "arguments", "input", "output")
_SPOKEN = ("output_text", "refusal")


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """Items of the Responses API. See ``Format`` for what each verb promises."""

    @property
    def name(self) -> str:
        """The public name."""
        return NAME

    def parse(self, request: Any) -> tuple[Item, ...]:
        """What the items say, in order: a list, one item, or a request with ``input``. Raises FormatError, with a path."""
        items: list[Item] = []
        turn = _Turn()
        for index, row in enumerate(rows_of(request)):
            path = f"input[{index}]"
            if not isinstance(row, dict):
                raise FormatError(f"expected an object, not {kind_of(row)}", path=path)
            told = _told(row, path)
            if told is None:
                if turn.is_over(row):
                    items += turn.ended()
                turn.take(row, path)
                continue
            items += (*turn.ended(), told)
        return (*items, *turn.ended())

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """The items, under ``messages``; one message more only appends. Empty instructions are left out."""
        rows: list[Row] = []
        asked: dict[str, str] = {}
        for message in messages:
            if message.role == "assistant":
                rows += _spoken(message, asked)
            elif message.role == "tool":
                rows.append(
                    outputs.answer(message, asked.get(message.call_id, ""), _wire_id(message.call_id))
                )
            else:
                rows += _said(message)
        return {"messages": writing.encodable(rows)}

    def problems(self, request: Any) -> tuple[str, ...]:
        """Every rule of the Responses API that the items break. Raises nothing, whatever it is given."""
        try:
            rows = rows_of(request)
        except FormatError as error:
            return (str(error),)
        return openai_responses_rules.problems(rows)


# -- parsing


def _told(row: Row, path: str) -> Item | None:
    """The step or the answer that an item is by itself; None for what the model makes."""
    kind, role = row.get("type") or "message", row.get("role")
    if not isinstance(kind, str):
        raise FormatError(f"expected text, not {kind_of(kind)}", path=f"{path}.type")
    if kind in _TOLD:
        return TaskStep((kept(NAME, "item", row),))
    if kind != "message":
        return outputs.observed(row, kind, path)
    message = Fields(row, path)
    match role:
        case "system" | "developer":
            content = _content(message)
            also = {"role": role} if role == "developer" else {}
            message.take("role")
            return SystemPromptStep(content, extra(NAME, "message", {**also, **message.left()}))
        case "user":
            content = _content(message)
            message.take("role")
            return TaskStep(content, extra(NAME, "message", message.left()))
        case "assistant":
            return None
        case _:
            raise FormatError(
                f"{role!r} is no role of an item, and there is no known type", path=f"{path}.role"
            )


def _content(message: Fields) -> Content:
    value = message.take("content")
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise message.fault("content", f"expected text or a list of parts, not {kind_of(value)}")
    parts = tuple(outputs.part_of(row, f"{message.path}.content[{at}]") for at, row in enumerate(value))
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].extra is None:
        # A lone text is written as a string; the empty extra remembers that this one came as a part.
        return (replace(parts[0], extra=Opaque(NAME, "text", "{}")),)
    return parts


@dataclass(slots=True)
class _Turn:
    """What the model made since somebody else spoke: parts, and calls at their places."""

    parts: list[Part] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    spoke: bool = False
    thought: bool = False

    def is_over(self, row: Row) -> bool:
        """Whether the item begins another step: a message behind a message, where nothing was called yet."""
        return self.spoke and not self.calls and (row.get("type") or "message") == "message"

    def ended(self) -> tuple[ActionStep, ...]:
        """The step it was, and nothing is left of it."""
        if not self.parts and not self.calls:
            return ()
        step = ActionStep(tuple(self.parts) or None, tuple(self.calls))
        self.parts, self.calls, self.spoke, self.thought = [], [], False, False
        return (step,)

    def take(self, row: Row, path: str) -> None:
        """Add an item. Raises FormatError."""
        kind = row.get("type") or "message"
        if kind == "message":
            self.spoke = True
            mark = {_THOUGHT: True} if self.thought and row.get("id") else {}
            follows = bool(self.parts) and not (self.calls and self.calls[-1].at == len(self.parts))
            self.parts += _message_parts(row, path, mark, follows=follows)
        elif kind in ANSWERS and isinstance(row.get("call_id"), str):
            self.calls.append(self._call(Fields(row, path), row, kind))
        else:
            # The summary is what a person could read; without one the item counts as what it is.
            self.thought = self.thought or kind == "reasoning"
            self.parts.append(kept(NAME, "reasoning" if kind == "reasoning" else "item", row))

    def _call(self, call: Fields, row: Row, kind: str) -> ToolCall:
        call.take("type")
        call_id = call.text("call_id")
        mark = {_THOUGHT: True} if self.thought and row.get("id") else {}
        at = len(self.parts)
        if kind not in ("function_call", "custom_tool_call"):
            whole = {key: value for key, value in row.items() if key != "call_id"}
            return ToolCall(
                call_id, kind, compact(call.left()), at, Opaque(NAME, kind, compact({**whole, **mark}))
            )
        name = call.text("name")
        said = call.text("arguments" if kind == "function_call" else "input")
        beside = {**({} if kind == "function_call" else {"type": kind}), **call.left(), **mark}
        return ToolCall(call_id, name, said, at, extra(NAME, "call", beside))


def _message_parts(row: Row, path: str, mark: Row, *, follows: bool) -> Iterator[Part]:
    """A message of the model as parts; the first knows the fields of the item, so that it comes back equal.

    One that ``follows`` another part says so, for texts that stand together are one message.
    """
    content = row.get("content")
    about = {key: value for key, value in row.items() if key not in ("content", "role") and value is not None}
    begun = {_ITEM: about, **mark} if about or mark or follows else {}
    if isinstance(content, str):
        yield Text(content, extra(NAME, "text", begun))
        return
    if not isinstance(content, list):
        raise FormatError(f"expected text or a list of parts, not {kind_of(content)}", path=f"{path}.content")
    if not content or not all(_is_spoken(each) for each in content):
        yield kept(NAME, "item", row)
        return
    for at, each in enumerate(content):
        held = {} if at else begun
        if each["type"] == "refusal":
            yield Opaque(NAME, "refusal", compact({**each, **held}), each["refusal"])
            continue
        beside = {key: value for key, value in each.items() if key not in ("type", "text")} | held
        # The empty extra remembers that a lone text came in a list.
        is_noted = beside or len(content) == 1
        yield Text(each["text"], Opaque(NAME, "part", compact(beside)) if is_noted else None)


def _is_spoken(part: Any) -> bool:
    if not isinstance(part, dict) or part.get("type") not in _SPOKEN or any(key in part for key in _NOTES):
        return False
    return isinstance(part.get("text" if part["type"] == "output_text" else "refusal"), str)


# -- rendering


def _said(message: Message) -> Iterator[Row]:
    """A message of the user's, or instructions; items of the host's own stand by themselves."""
    held = writing.own(message.extra, NAME) or {}
    beside = {key: value for key, value in held.items() if key not in _OURS}
    if held.get("type") == "message":
        beside["type"] = "message"
    parts: list[Part] = []
    for part in as_parts(message.content):
        row = writing.own(part, NAME) if isinstance(part, Opaque) and part.kind == "item" else None
        if row is not None and message.role == "user" and row.get("type") in _TOLD:
            yield row
        else:
            parts.append(part)
    if len(parts) < len(as_parts(message.content)) and not parts:
        return
    content = outputs.content(parts, images=message.role == "user")
    if message.role == "system":
        role = "developer" if held.get("role") == "developer" else "system"
        if content:
            yield {**beside, "role": role, "content": content}
        return
    yield {**beside, "role": "user", "content": content or writing.NO_CONTENT}


def _spoken(message: Message, asked: dict[str, str]) -> list[Row]:
    """The items of one turn of the model's, in their order."""
    rows: list[Row] = []
    parts, reached = as_parts(message.content), 0
    thought = any(
        isinstance(part, Opaque) and part.kind == "reasoning" and writing.own(part, NAME) for part in parts
    )
    for call in (*message.tool_calls, None):
        at = len(parts) if call is None or call.at is None else min(max(call.at, reached), len(parts))
        _speak(parts[reached:at], rows, thought=thought)
        reached = at
        if call is not None:
            row = _call_row(call, thought=thought)
            asked[call.id] = row["type"]
            rows.append(row)
    while rows and rows[-1].get("type") == "reasoning":
        rows.pop()  # refused without the item that it led to
    return rows or [{"role": "assistant", "content": writing.NO_CONTENT}]


def _speak(parts: Sequence[Part], rows: list[Row], *, thought: bool) -> None:
    """Parts as items: neighbours that came from one message, or from nowhere, are one message."""
    said: Row | None = None
    for part in parts:
        held = writing.own(part if isinstance(part, Opaque) else part.extra, NAME) or {}
        if isinstance(part, Opaque) and held and part.kind in ("reasoning", "item"):
            rows.append(held)
            said = None
            continue
        row = _spoken_row(part, held)
        if row is None:
            continue
        if said is None or _ITEM in held:
            said = _message_of(held, thought=thought)
            rows.append(said)
        if said["content"] is None and isinstance(part, Text) and _is_bare(part):
            said["content"] = row["text"]
        else:
            said["content"] = [*_listed(said["content"]), row]


def _is_bare(part: Text) -> bool:
    """Whether the text was a message's whole content, and no list."""
    return part.extra is None or part.extra.kind != "part"


def _listed(content: Any) -> list[Row]:
    if isinstance(content, str):
        return [{"type": "output_text", "text": content}]
    return content or []


def _message_of(held: Row, *, thought: bool) -> Row:
    about = held.get(_ITEM)
    about = dict(about) if isinstance(about, dict) else {}
    if held.get(_THOUGHT) and not thought:
        about.pop("id", None)
    return {**about, "role": "assistant", "content": None}


def _spoken_row(part: Part, held: Row) -> Row | None:
    beside = {key: value for key, value in held.items() if key not in _NOTES}
    match part:
        case Text(text=text):
            # A text of nothing is kept where it was an item of its own.
            return {**beside, "type": "output_text", "text": text} if text or held else None
        case Image():
            return {"type": "output_text", "text": writing.pictured(part)}
        case Opaque() if held:
            return beside
        case Opaque():
            text = writing.foreign_text(part)
            return {"type": "output_text", "text": text} if text else None


def _call_row(call: ToolCall, *, thought: bool) -> Row:
    held = writing.own(call.extra, NAME) or {}
    beside = {key: value for key, value in held.items() if key not in (*_NOTES, "call_id")}
    if held.get(_THOUGHT) and not thought:
        beside.pop("id", None)
    kind = beside.get("type") or "function_call"
    if kind not in ("function_call", "custom_tool_call") and kind in ANSWERS:
        return {**beside, "call_id": _wire_id(call.id)}
    said = {"name": wire_name(call.name, openai_responses_rules.MAX_NAME)}
    if kind == "custom_tool_call":
        return {**beside, "type": kind, "call_id": _wire_id(call.id), **said, "input": call.arguments}
    return {
        **beside,
        "type": "function_call",
        "call_id": _wire_id(call.id),
        **said,
        "arguments": call.arguments,
    }


def _wire_id(call_id: str) -> str:
    return outputs.wire(call_id, wire_id)
