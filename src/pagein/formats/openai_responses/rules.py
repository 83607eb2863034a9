"""Validation of items of the Responses API, independent of rendering.

Order and pairing are checked as strictly as for chat completions: the user begins, the user or a tool ends, each call is
answered once, directly after the items of its turn. Items of unknown types are not checked.

``ID_PREFIXES`` names the items that the SDK's request types require an id of (``response_input_item_param``); without it
the API answers "Missing required parameter: 'input[3].id'". An id that comes twice is "Duplicate item found with id"
(earendil-works/pi#5149).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pagein.formats.openai_chat.rules import TurnCalls, no_objects, order_problems
from pagein.formats.parsing import is_utf8, type_name

NAME: Final = "openai-responses"

Row = dict[str, Any]
"""An item or a part, as JSON has it."""

ITEM_KEY = "_item"
"""Note: the fields of the message that begins with this part."""

REASONED_KEY = "_thought"
"""Note: reasoning came before this message or call, and its id is invalid without it."""

NOTE_KEYS = (ITEM_KEY, REASONED_KEY)

TEXT_ANSWERS = ("function_call_output", "custom_tool_call_output")
"""The answers whose output is text or a list of parts."""


ROLES = ("system", "developer", "user", "assistant")
NAME_MAX_CHARS = 64
ID_MAX_CHARS = 64

NO_IDS = {"", "__fake_id__"}
"""What stands for no id: the Agents SDK writes the second for models of other APIs, and takes it out before it sends."""

ANSWER_TYPES: Mapping[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
}
"""The types of calls that the application answers, with the types of their answers."""

ID_PREFIXES: Mapping[str, str] = {
    "code_interpreter_call": "ci",
    "computer_call": "cu",
    "file_search_call": "fs",
    "image_generation_call": "ig",
    "local_shell_call": "lsh",
    "mcp_approval_request": "mcpr",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "program": "prog",
    "program_output": "progo",
    "reasoning": "rs",
    "web_search_call": "ws",
}
"""The types of items that need an id, with the prefix of theirs."""

APPLICATION_ITEMS = ("item_reference", "mcp_approval_response")
"""Items of the application that are messages of their own."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TEXTS = {"input_text": "text", "output_text": "text", "refusal": "refusal", "input_image": "image_url"}


def call_id_key(kind: str) -> str:
    """Return the key of the call's id in an answer."""
    return "id" if kind == "local_shell_call_output" else "call_id"


def problems(rows: list[Any]) -> tuple[str, ...]:
    """Return every rule the items break, in their order. Never raises."""
    if not rows:
        return ("input: there is none",)
    faults = no_objects("input", rows)
    if faults:
        return tuple(faults)
    makers = [maker_of(row) for row in rows]
    faults += order_problems("input", makers, "the ")
    faults += _pair_problems(rows, makers)
    faults += _id_problems(rows)
    for index, row in enumerate(rows):
        faults += (f"input[{index}]{fault}" for fault in _item_problems(row))
        if row.get("type") == "reasoning" and makers[index + 1 : index + 2] != ["model"]:
            faults.append(f"input[{index}]: reasoning without the item that it led to")
        if not is_utf8(row):
            faults.append(f"input[{index}]: contains a lone surrogate, which is not UTF-8")
    return tuple(faults)


def maker_of(row: dict[str, Any]) -> str:
    """Return the author of an item: ``system``, ``user``, ``model`` or ``tool``."""
    kind = row.get("type") or "message"
    if kind == "message":
        role = row.get("role")
        return "system" if role in ("system", "developer") else "model" if role == "assistant" else "user"
    if kind in APPLICATION_ITEMS:
        return "user"
    if row.get("role") in ("system", "developer"):
        return "system"  # an item of instructions, such as additional_tools
    is_answer = kind in ANSWER_TYPES.values() and isinstance(row.get(call_id_key(str(kind))), str)
    return "tool" if is_answer else "model"


def _pair_problems(rows: list[dict[str, Any]], makers: list[str]) -> Iterator[str]:
    calls = TurnCalls("input")
    for index, (row, maker) in enumerate(zip(rows, makers, strict=True)):
        kind = str(row.get("type") or "message")
        if maker == "tool":
            position, call_type = calls.open.get(row[call_id_key(kind)], (0, ""))
            yield from calls.add_answer(index, row[call_id_key(kind)])
            if ANSWER_TYPES.get(call_type, kind) != kind:
                yield f"input[{index}]: {kind} does not answer the {call_type} of input[{position}]"
            continue
        if maker != "model" or calls.answered:
            yield from calls.close()
        if kind in ANSWER_TYPES and isinstance(row.get("call_id"), str):
            yield from calls.add_call(index, ".call_id", row["call_id"], kind)
    yield from calls.close()


def item_id(row: dict[str, Any]) -> str:
    """Return the item's own id, or "" where it has none; a reference and a local shell's answer have another's."""
    value = row.get("id")
    is_own = row.get("type") not in ("item_reference", "local_shell_call_output") and isinstance(value, str)
    return str(value) if is_own else ""


def _id_problems(rows: list[dict[str, Any]]) -> Iterator[str]:
    used: set[str] = set()
    for index, row in enumerate(rows):
        own = item_id(row)
        if str(row.get("type")) in ID_PREFIXES and not own:
            yield f"input[{index}].id: missing, and a {row['type']} needs one"
        elif own in used:
            yield f"input[{index}].id: {own!r} is used twice"
        used |= {own} - NO_IDS


def _item_problems(row: dict[str, Any]) -> Iterator[str]:
    kind = row.get("type") or "message"
    if not isinstance(kind, str):
        yield f".type: expected text, not {type_name(kind)}"
    elif kind == "message":
        yield from _message_problems(row)
    elif kind in ("function_call", "custom_tool_call"):
        yield from _call_problems(row, "arguments" if kind == "function_call" else "input")
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = row.get("output")
        if isinstance(output, list):
            yield from _part_problems(output, ".output")
        elif not isinstance(output, str):
            yield f".output: expected text or a list, not {type_name(output)}"


def _message_problems(row: dict[str, Any]) -> Iterator[str]:
    if row.get("role") not in ROLES:
        yield f".role: {row.get('role')!r} is no role"
    content = row.get("content")
    if isinstance(content, list):
        # A message of the model may be empty, and the API accepts it back.
        if content or row.get("role") != "assistant":
            yield from _part_problems(content, ".content")
    elif not isinstance(content, str):
        yield f".content: expected text or a list, not {type_name(content)}"


def _part_problems(parts: list[Any], place: str) -> Iterator[str]:
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


def _call_problems(row: dict[str, Any], arguments_key: str) -> Iterator[str]:
    call_id, name = row.get("call_id"), row.get("name")
    if not isinstance(call_id, str) or not 1 <= len(call_id) <= ID_MAX_CHARS:
        yield f".call_id: expected 1 to {ID_MAX_CHARS} characters, not {call_id!r}"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f".name: {name!r} is not 1 to {NAME_MAX_CHARS} of a-z, A-Z, 0-9, _ and -"
    if not isinstance(row.get(arguments_key), str):
        yield f".{arguments_key}: expected text, not {type_name(row.get(arguments_key))}"
