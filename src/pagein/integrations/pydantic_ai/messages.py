"""pydantic-ai's messages, as its own adapter dumps them, to steps and back.

Source: ``pydantic_ai.messages`` 2.x (``ModelRequest``, ``ModelResponse`` and their parts). A part that is neither text,
image, call nor result is kept unread and returned equal, and so are the fields beside what is understood. What no model
is sent (ids of runs, timestamps, metadata) is kept and costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
    Status,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    as_parts,
    as_text,
)
from pagein.formats import rendering as writing
from pagein.formats.base import Item
from pagein.formats.parsing import compact, exact_base64, kept, kind_of

NAME = "pydantic-ai"

Row = dict[str, Any]

_UNSENT = " "
"""The readable text of fields that no model is sent: they are kept, and count as next to nothing."""

_REQUEST = "_request"
"""Where the first part of a request notes the request's own fields."""

_OBJECT = "_object"
"""Where a call notes that its arguments came as an object, not as JSON text."""


_OUTCOMES: Mapping[str, Status] = {"success": "ok", "interrupted": "unknown"}
"""How a call ended; every other outcome is a failure that the model is told."""


def to_items(rows: Sequence[Any]) -> tuple[Item, ...]:
    """What the messages say, in order. Raises FormatError, with a path, for what is no message."""
    return tuple(item for at, row in enumerate(rows) for item in _items(row, f"messages[{at}]"))


def _items(row: Any, path: str) -> Iterator[Item]:
    if not isinstance(row, dict) or not isinstance(row.get("parts"), list):
        raise FormatError(f"expected a message with parts, not {kind_of(row)}", path=path)
    about = {key: value for key, value in row.items() if key not in ("parts", "kind") and value is not None}
    for at, part in enumerate(row["parts"]):
        if not isinstance(part, dict) or not isinstance(part.get("part_kind"), str):
            raise FormatError("expected a part with a part_kind", path=f"{path}.parts[{at}]")
    if row.get("kind") == "response":
        yield _response(row["parts"], about)
        return
    for at, part in enumerate(row["parts"]):
        yield _asked(part, {_REQUEST: about} if at == 0 and about else {}, f"{path}.parts[{at}]")


def _asked(part: Row, begun: Row, path: str) -> Item:
    """One part of a request: instructions, the user's words, a result, or what stays unread."""
    kind, content = part["part_kind"], part.get("content")
    if kind == "system-prompt" and isinstance(content, str):
        return SystemPromptStep(content, _beside(part, begun, "content"))
    if kind == "user-prompt" and isinstance(content, str):
        return TaskStep(content, _beside(part, begun, "content"))
    if kind == "user-prompt" and isinstance(content, list):
        return TaskStep(tuple(map(_user_part, content)), _beside(part, begun, "content"))
    call_id = part.get("tool_call_id")
    named = kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name"))
    if named and isinstance(call_id, str):
        status = (
            _OUTCOMES.get(str(part.get("outcome", "success")), "error") if kind == "tool-return" else "error"
        )
        said: Content = content if isinstance(content, str) else (_value(content),)
        return Observation(call_id, said, status, extra=_beside(part, begun, "content", "tool_call_id"))
    if kind in ("tool-return", "retry-prompt") and named:
        raise FormatError("a result without a tool_call_id", path=path)
    unread = Opaque(NAME, "part", compact(part), _readable(content))
    return TaskStep((unread,), Opaque(NAME, "message", compact(begun), _UNSENT) if begun else None)


def _value(content: Any) -> Opaque:
    return Opaque(NAME, "value", compact({"content": content}), _readable(content))


def _readable(content: Any) -> str:
    return (
        content
        if isinstance(content, str)
        else ""
        if content is None
        else json.dumps(content, ensure_ascii=False)
    )


def _beside(part: Row, begun: Row, *known: str) -> Opaque:
    held = {key: value for key, value in part.items() if key not in known and value is not None}
    return Opaque(NAME, "message", compact({**held, **begun}), _UNSENT)


def _user_part(value: Any) -> Part:
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        kind = value["kind"]
        beside = {key: each for key, each in value.items() if key not in ("data", "url", "content")}
        held = Opaque(NAME, kind, compact(beside), _UNSENT)
        if kind == "image-url" and isinstance(value.get("url"), str) and value["url"]:
            return Image(url=value["url"], extra=held)
        media, data = value.get("media_type"), value.get("data")
        if (
            kind == "binary"
            and isinstance(media, str)
            and media.startswith("image/")
            and isinstance(data, str)
        ):
            # The adapter writes base64 in the letters of URLs.
            plain = exact_base64(data.translate(_FROM_URL))
            if plain:
                return Image(plain, media, extra=held)
        if kind == "text-content" and isinstance(value.get("content"), str):
            return Text(value["content"], held)
        return kept(NAME, "content", value)
    return Opaque(NAME, "content", compact(value), _readable(value))


_FROM_URL, _TO_URL = str.maketrans("-_", "+/"), str.maketrans("+/", "-_")


def _response(parts: list[Row], about: Row) -> ActionStep:
    content: list[Part] = []
    calls: list[ToolCall] = []
    for part in parts:
        kind, said = part["part_kind"], part.get("content")
        if kind == "text" and isinstance(said, str):
            content.append(Text(said, _beside(part, {}, "content")))
        elif kind == "tool-call" and isinstance(part.get("tool_name"), str) and part.get("tool_call_id"):
            calls.append(_call(part, len(content)))
        elif kind == "thinking":
            content.append(Opaque(NAME, "thinking", compact(part), said if isinstance(said, str) else ""))
        else:
            content.append(kept(NAME, "part", part))
    beside = Opaque(NAME, "message", compact(about), _UNSENT) if about else None
    return ActionStep(
        tuple(content) or None, tuple(calls), model=str(about.get("model_name") or ""), extra=beside
    )


def _call(part: Row, at: int) -> ToolCall:
    args = part.get("args")
    text = args if isinstance(args, str) else compact({} if args is None else args)
    spelled = {} if isinstance(args, str) else {_OBJECT: args is not None}
    beside = _beside(part, spelled, "args", "tool_name", "tool_call_id")
    return ToolCall(part["tool_call_id"], part["tool_name"], text, at, beside)


# -- back to messages


def to_rows(messages: Sequence[Message]) -> list[Row]:
    """The messages as pydantic-ai's: neighbours that no model made are one request, as it sends them itself."""
    rows: list[Row] = []
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        held = writing.own(message.extra, NAME) or {}
        if message.role == "assistant":
            rows.append({**held, "parts": list(_spoken(message)), "kind": "response"})
            continue
        if not rows or rows[-1]["kind"] != "request":
            rows.append({"parts": [], "kind": "request"})
        begun = held.pop(_REQUEST, None)
        if isinstance(begun, dict):
            rows[-1] = {**rows[-1], **begun}
        rows[-1]["parts"] += _asked_parts(message, held, names)
    found: list[Row] = writing.encodable(rows)
    return found


def _asked_parts(message: Message, held: Row, names: dict[str, str]) -> Iterator[Row]:
    parts = as_parts(message.content)
    own = writing.own(parts[0], NAME) if len(parts) == 1 and isinstance(parts[0], Opaque) else None
    match message.role:
        case "system":
            yield {**held, "content": as_text(message.content), "part_kind": "system-prompt"}
        case "tool":
            said = own["content"] if own is not None and "content" in own else as_text(message.content)
            about = {"part_kind": "tool-return", "tool_name": names.get(message.call_id, "tool"), **held}
            if message.is_error and about["part_kind"] == "tool-return":
                about.setdefault("outcome", "failed")
            yield {**about, "content": said, "tool_call_id": message.call_id}
        case _:
            if own is not None and isinstance(own.get("part_kind"), str):
                yield own
                return
            content = message.content if isinstance(message.content, str) else [_told(part) for part in parts]
            yield {**held, "content": content or writing.NO_CONTENT, "part_kind": "user-prompt"}


def _told(part: Part) -> Any:
    match part:
        case Text():
            held = writing.own(part.extra, NAME)
            return part.text if held is None else {**held, "content": part.text}
        case Image():
            held = writing.own(part.extra, NAME) or {}
            if part.url:
                return {"kind": "image-url", **held, "url": part.url}
            data = writing.base64_of(part).translate(_TO_URL)
            media = part.media_type or "image/png"
            return {"kind": "binary", "media_type": media, **held, "data": data}
        case Opaque():
            own = writing.own(part, NAME)
            return part.text if own is None else own


def _spoken(message: Message) -> Iterator[Row]:
    parts, reached, said = as_parts(message.content), 0, 0
    for call in (*message.tool_calls, None):
        at = len(parts) if call is None or call.at is None else min(max(call.at, reached), len(parts))
        for part in parts[reached:at]:
            row = _spoken_part(part)
            if row is not None:
                said += 1
                yield row
        reached = at
        if call is not None:
            said += 1
            yield _call_row(call)
    if not said:
        yield {"content": writing.NO_CONTENT, "part_kind": "text"}


def _spoken_part(part: Part) -> Row | None:
    match part:
        case Text():
            return {**(writing.own(part.extra, NAME) or {}), "content": part.text, "part_kind": "text"}
        case Image():
            return {"content": writing.pictured(part), "part_kind": "text"}
        case Opaque():
            own = writing.own(part, NAME)
            text = writing.foreign_text(part)
            return own if own is not None else {"content": text, "part_kind": "text"} if text else None


def _call_row(call: ToolCall) -> Row:
    held = writing.own(call.extra, NAME) or {}
    spelled = held.pop(_OBJECT, None)
    args: Any = call.arguments
    if spelled is not None:
        try:
            value = json.loads(args)
        except ValueError:
            value = args
        args = value if isinstance(value, dict) and (value or spelled) else None if not value else args
    return {**held, "tool_name": call.name, "args": args, "tool_call_id": call.id, "part_kind": "tool-call"}
