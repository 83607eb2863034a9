"""What answers a call of the Responses API, and the parts that it and a user's message are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import Content, Image, Observation, Opaque, Part, Text, as_parts, as_text
from pagein.formats import rendering as writing
from pagein.formats.parsing import Fields, compact, exact_base64, extra, is_utf8, kept, readable

NAME = "openai-responses"

Row = dict[str, Any]

ANSWERS: Mapping[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
}
"""The calls that a host answers, and what with."""

TEXTUAL = ("function_call_output", "custom_tool_call_output")
"""The answers whose output is text or a list of parts."""

MAX_ID = 64

_DATA_URL = re.compile(r"data:(image/[a-zA-Z0-9.+-]+);base64,(.*)", re.DOTALL)

_BLANK = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
"""One white pixel, for the place of a screenshot that left the view."""


def id_key(kind: str) -> str:
    """Where an answer says which call it answers."""
    return "id" if kind == "local_shell_call_output" else "call_id"


def wire(call_id: str, spelled: Callable[[str], str]) -> str:
    """The id as the API takes it: any text of 1 to 64 characters; another is spelled anew, equal ids alike."""
    if call_id and len(call_id) <= MAX_ID and is_utf8(call_id):
        return call_id
    return spelled(f"{call_id}.")


def observed(row: Row, kind: str, path: str) -> Observation | None:
    """The answer that an item is, or None where it is none."""
    key = id_key(kind)
    if kind not in ANSWERS.values() or not isinstance(row.get(key), str):
        return None
    beside = {name: value for name, value in row.items() if name not in (key, "output") and value is not None}
    if kind == "function_call_output":
        del beside["type"]
    output = row.get("output")
    if isinstance(output, str):
        content: Content = output
    elif kind in TEXTUAL:
        content = _parts(output, f"{path}.output")
    else:
        told = {} if output is None else {"output": output}
        content = (Opaque(NAME, "output", compact(told), readable(output)),)
    return Observation(row[key], content, extra=extra(NAME, "message", beside))


def part_of(row: Any, path: str) -> Part:
    """One part of a user's message or of a result. Raises FormatError."""
    part = Fields(row, path)
    kind = part.text("type")
    if kind == "input_text":
        return Text(part.text("text"), extra(NAME, "text", part.left()))
    url = row.get("image_url")
    if kind == "input_image" and isinstance(url, str) and url:
        part.take("image_url")
        detail = part.text_or_empty("detail")
        beside = extra(NAME, kind, part.left())
        if not url.startswith("data:"):
            return Image(url=url, detail=detail, extra=beside)
        found = _DATA_URL.fullmatch(url)
        data = exact_base64(found[2]) if found else None
        if found and data:
            return Image(data, found[1], detail=detail, extra=beside)
    return kept(NAME, kind, row)


def _parts(output: Any, path: str) -> Content:
    if not isinstance(output, list):
        raise FormatError("expected text or a list of parts", path=path)
    parts = tuple(part_of(row, f"{path}[{at}]") for at, row in enumerate(output))
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].extra is None:
        return (Text(parts[0].text, Opaque(NAME, "text", "{}")),)
    return parts


def answer(message: Message, asked: str, call_id: str) -> Row:
    """The item that answers a call of the kind ``asked``; what stands for an output has the shape of one."""
    beside = writing.own(message.extra, NAME) or {}
    kind = ANSWERS.get(asked, "function_call_output")
    held = {key: value for key, value in beside.items() if key not in ("type", "call_id", "output")}
    row = {**held, "type": kind, id_key(kind): call_id}
    if kind in TEXTUAL:
        return {**row, "output": content(as_parts(message.content), images=True) or writing.NO_OUTPUT}
    parts = as_parts(message.content)
    own = writing.own(parts[0], NAME) if len(parts) == 1 and isinstance(parts[0], Opaque) else None
    if own is not None:
        return {**row, **own}
    return {**row, **_stood_for(kind, as_text(message.content) or writing.NO_OUTPUT)}


def _stood_for(kind: str, text: str) -> Row:
    """What the API takes in the place of an output that is shown as text."""
    match kind:
        case "computer_call_output":
            return {"output": {"type": "computer_screenshot", "image_url": _BLANK}}
        case "shell_call_output":
            outcome = {"type": "exit", "exit_code": 0}
            return {"output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
        case "tool_search_output":
            return {"tools": []}
        case "program_output":
            return {"result": text}
        case _:
            return {"output": text}


def content(parts: Sequence[Part], *, images: bool) -> str | list[Row]:
    """Parts as the API takes them from a user or a tool; a lone text is a string."""
    rows: list[Row] = []
    lone = ""
    for part in parts:
        row = _part_row(part, images=images)
        if row is None:
            continue
        rows.append(row)
        lone = part.text if isinstance(part, Text) and writing.own(part.extra, NAME) is None else ""
    shown = [row for row in rows if row.get("type") != "input_text" or row["text"]]
    if len(shown) == 1 == len(rows) and lone:
        return lone
    return shown


def _part_row(part: Part, *, images: bool) -> Row | None:
    match part:
        case Text():
            return {**(writing.own(part.extra, NAME) or {}), "type": "input_text", "text": part.text}
        case Image():
            return _image(part) if images else {"type": "input_text", "text": writing.pictured(part)}
    own = writing.own(part, NAME)
    if own is not None and isinstance(own.get("type"), str) and images:
        return own
    text = part.text if own is not None else writing.foreign_text(part)
    return {"type": "input_text", "text": text} if text else None


def _image(image: Image) -> Row:
    url = image.url
    if not url:
        url = f"data:{image.media_type or 'image/png'};base64,{writing.base64_of(image)}"
    detail = {"detail": image.detail} if image.detail else {}
    return {**(writing.own(image.extra, NAME) or {}), "type": "input_image", "image_url": url, **detail}
