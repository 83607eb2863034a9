"""What the Responses API refuses, rule by rule, with no knowledge of how its items are made.

Order and pairing are read as strictly as chat completions': the user begins, the user or a tool ends, each call is
answered once, directly behind the items of its turn. An item of a kind that is not known is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pagein.formats.openai_responses.outputs import ANSWERS, MAX_ID, id_key
from pagein.formats.parsing import is_utf8, kind_of

ROLES = ("system", "developer", "user", "assistant")
MAX_NAME = 64

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TOLD = ("item_reference", "mcp_approval_response")
_TEXTS = {"input_text": "text", "output_text": "text", "refusal": "refusal", "input_image": "image_url"}


def problems(rows: list[Any]) -> tuple[str, ...]:
    """Every rule the items break, in their order; none where they are legal. Raises nothing."""
    if not rows:
        return ("input: there is none",)
    found = [
        f"input[{index}]: expected an object, not {kind_of(row)}"
        for index, row in enumerate(rows)
        if not isinstance(row, dict)
    ]
    if found:
        return tuple(found)
    makers = [_maker(row) for row in rows]
    found += _order(makers)
    found += _pairs(rows, makers)
    for index, row in enumerate(rows):
        found += (f"input[{index}]{fault}" for fault in _item(row))
        if row.get("type") == "reasoning" and makers[index + 1 : index + 2] != ["model"]:
            found.append(f"input[{index}]: reasoning without the item that it led to")
        if not is_utf8(row):
            found.append(f"input[{index}]: contains a lone surrogate, which is not UTF-8")
    return tuple(found)


def _maker(row: dict[str, Any]) -> str:
    """Who made an item: the host's instructions, the user, the model, or a tool."""
    kind = row.get("type") or "message"
    if kind == "message":
        role = row.get("role")
        return "system" if role in ("system", "developer") else "model" if role == "assistant" else "user"
    if kind in _TOLD:
        return "user"
    is_answer = kind in ANSWERS.values() and isinstance(row.get(id_key(str(kind))), str)
    return "tool" if is_answer else "model"


def _order(makers: list[str]) -> Iterator[str]:
    spoken = [index for index, maker in enumerate(makers) if maker != "system"]
    if not spoken:
        yield "input: there is nothing but instructions"
        return
    first, last = spoken[0], len(makers) - 1
    for index, maker in enumerate(makers):
        if maker == "system" and index > first:
            yield f"input[{index}]: instructions after the conversation began"
    if makers[first] != "user":
        yield f"input[{first}]: the conversation begins with the {makers[first]}, not the user"
    if makers[last] not in ("user", "tool"):
        yield f"input[{last}]: the request ends with the {makers[last]}, not the user or a tool"


@dataclass(slots=True)
class _Calls:
    """The calls of the turn so far."""

    seen: set[str] = field(default_factory=set)
    open: dict[str, tuple[int, str]] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def end(self) -> Iterator[str]:
        for call_id, (asked, _) in self.open.items():
            yield f"input[{asked}]: call {call_id!r} is not answered"
        self.open, self.answered = {}, set()

    def ask(self, index: int, call_id: str, kind: str) -> Iterator[str]:
        if call_id in self.seen:
            yield f"input[{index}].call_id: {call_id!r} is used twice"
            return
        self.seen.add(call_id)
        self.open[call_id] = (index, kind)

    def answer(self, index: int, call_id: str, kind: str) -> Iterator[str]:
        if call_id in self.answered:
            yield f"input[{index}]: a second answer to call {call_id!r}"
        elif call_id not in self.open:
            yield f"input[{index}]: an answer to {call_id!r}, which is no call directly before it"
        else:
            asked, wanted = self.open.pop(call_id)
            self.answered.add(call_id)
            if ANSWERS[wanted] != kind:
                yield f"input[{index}]: {kind} does not answer the {wanted} of input[{asked}]"


def _pairs(rows: list[dict[str, Any]], makers: list[str]) -> Iterator[str]:
    calls = _Calls()
    for index, (row, maker) in enumerate(zip(rows, makers, strict=True)):
        kind = str(row.get("type") or "message")
        if maker == "tool":
            yield from calls.answer(index, row[id_key(kind)], kind)
            continue
        if maker != "model" or calls.answered:
            yield from calls.end()
        if kind in ANSWERS and isinstance(row.get("call_id"), str):
            yield from calls.ask(index, row["call_id"], kind)
    yield from calls.end()


def _item(row: dict[str, Any]) -> Iterator[str]:
    kind = row.get("type") or "message"
    if not isinstance(kind, str):
        yield f".type: expected text, not {kind_of(kind)}"
    elif kind == "message":
        yield from _message(row)
    elif kind in ("function_call", "custom_tool_call"):
        yield from _call(row, "arguments" if kind == "function_call" else "input")
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = row.get("output")
        if isinstance(output, list):
            yield from _parts(output, ".output")
        elif not isinstance(output, str):
            yield f".output: expected text or a list, not {kind_of(output)}"


def _message(row: dict[str, Any]) -> Iterator[str]:
    if row.get("role") not in ROLES:
        yield f".role: {row.get('role')!r} is no role"
    content = row.get("content")
    if isinstance(content, list):
        # The model may say nothing, and the API takes back what it gave.
        if content or row.get("role") != "assistant":
            yield from _parts(content, ".content")
    elif not isinstance(content, str):
        yield f".content: expected text or a list, not {kind_of(content)}"


def _parts(parts: list[Any], place: str) -> Iterator[str]:
    if not parts:
        yield f"{place}: an empty list"
    for at, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            yield f"{place}[{at}]: not an object with a type"
        elif kind in _TEXTS and kind != "input_image" and not isinstance(part.get(_TEXTS[kind]), str):
            yield f"{place}[{at}].{_TEXTS[kind]}: missing"
        elif kind == "input_image" and not (part.get("image_url") or part.get("file_id")):
            yield f"{place}[{at}]: an image with neither image_url nor file_id"


def _call(row: dict[str, Any], said: str) -> Iterator[str]:
    call_id, name = row.get("call_id"), row.get("name")
    if not isinstance(call_id, str) or not 1 <= len(call_id) <= MAX_ID:
        yield f".call_id: expected 1 to {MAX_ID} characters, not {call_id!r}"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f".name: {name!r} is not 1 to {MAX_NAME} of a-z, A-Z, 0-9, _ and -"
    if not isinstance(row.get(said), str):
        yield f".{said}: expected text, not {kind_of(row.get(said))}"
