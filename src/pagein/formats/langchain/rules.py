"""Validation of LangChain's messages by the rules of the providers behind it; LangChain itself accepts anything.

Order, pairing, roles and limits are checked as OpenAI's, the strictest rules. Instructions come first, as Anthropic's and
Gemini's integrations refuse them elsewhere. A ``RemoveMessage`` is an order to LangGraph's state, which no model takes.
Blocks that are neither text nor an image are not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pagein.errors import FormatError
from pagein.formats.openai_chat import rules as openai_rules
from pagein.formats.parsing import request_fields, type_name

_ROLES = {
    "human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system",
    "developer": "developer", "tool": "tool",
}  # fmt: skip

REMOVE_TYPE = "remove"
"""The type of LangGraph's ``RemoveMessage``."""

_IMAGE_TYPE = re.compile(r"^data:image/[a-zA-Z0-9.+-]+")

Block = dict[str, Any]


def problems(request: Any) -> tuple[str, ...]:
    """Return every rule the request breaks, in order of the messages. Never raises."""
    try:
        rows = request_fields(request)["messages"]
    except FormatError as error:
        return (str(error),)
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            return (f"messages[{index}]: expected an object, not {type_name(row)}",)
    messages = [_to_openai(row) for row in rows]
    return (*_kind_problems(rows, messages), *openai_rules.problems(messages))


def _kind_problems(rows: list[Block], messages: list[Block]) -> Iterator[str]:
    has_begun = False
    for index, (row, message) in enumerate(zip(rows, messages, strict=True)):
        is_system = message["role"] in openai_rules.SYSTEM_ROLES
        if row.get("type") == REMOVE_TYPE:
            yield f"messages[{index}]: a RemoveMessage is not for a model"
        elif is_system and has_begun:
            yield f"messages[{index}]: a {message['role']} message after the conversation began"
        has_begun = has_begun or not is_system


def _to_openai(row: Block) -> Block:
    """Convert a message to OpenAI's shape, faults included."""
    type_or_role = row.get("type", row.get("role"))
    kind = type_or_role.removesuffix("MessageChunk").lower() if isinstance(type_or_role, str) else ""
    role = _ROLES.get(kind, "user" if kind and "content" in row else kind)
    message: Block = {"role": role, "content": _content(row.get("content"), role)}
    if role == "tool":
        message["tool_call_id"] = row.get("tool_call_id")
    calls = row.get("tool_calls")
    if role != "assistant":
        return message
    if isinstance(calls, list) and calls:
        message["tool_calls"] = [_call(call) for call in calls]
    kwargs = row.get("additional_kwargs")
    if isinstance(kwargs, dict) and kwargs.get("refusal"):
        message["refusal"] = kwargs["refusal"]
    return message


def _content(content: Any, role: str) -> Any:
    if not isinstance(content, list):
        return content
    return [_block(block, role) for block in content] or ""


def _block(block: Any, role: str) -> Any:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, dict) or not isinstance(block.get("type"), str) or block["type"] == "text":
        return block
    source = block.get("image_url")
    if block["type"] == "image_url" and role == "user":
        if not isinstance(source, dict) or not isinstance(source.get("url"), str):
            return block
        # The types of images that are taken depend on the model behind LangChain.
        return {**block, "image_url": {**source, "url": _IMAGE_TYPE.sub("data:image/png", source["url"])}}
    return {"type": "text", "text": f"[{block['type']}]"}


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    arguments = call.get("args")
    text = json.dumps(arguments, default=repr) if isinstance(arguments, dict) else arguments
    return {"id": call.get("id"), "type": "function", "function": {"name": call.get("name"), "arguments": text}}
