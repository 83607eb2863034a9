"""What a provider behind LangChain would refuse: LangChain takes anything, and each integration respells it.

Order, pairing and roles are judged as OpenAI's, the strictest that all share; a block that is neither text nor an
image is the integration's own affair.
"""

from __future__ import annotations

import json
from typing import Any

from pagein.errors import FormatError
from pagein.formats.openai_chat import rules as openai_rules
from pagein.formats.parsing import kind_of, request_fields

_ROLES = {
    "human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "system": "system",
    "developer": "developer", "tool": "tool",
}  # fmt: skip

Block = dict[str, Any]


def problems(request: Any) -> tuple[str, ...]:
    """Every rule the request breaks, in order of the messages; none when it is legal. Raises nothing."""
    try:
        rows = request_fields(request)["messages"]
    except FormatError as error:
        return (str(error),)
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            return (f"messages[{index}]: expected an object, not {kind_of(row)}",)
    return openai_rules.problems([_respelled(row) for row in rows])


def _respelled(row: Block) -> Block:
    """The message as OpenAI would be sent it, with nothing mended."""
    given = row.get("type", row.get("role"))
    kind = given.removesuffix("MessageChunk").lower() if isinstance(given, str) else ""
    role = _ROLES.get(kind, "user" if kind and "content" in row else kind)
    said: Block = {"role": role, "content": _content(row.get("content"), role)}
    if role == "tool":
        said["tool_call_id"] = row.get("tool_call_id")
    calls = row.get("tool_calls")
    if role != "assistant":
        return said
    if isinstance(calls, list) and calls:
        said["tool_calls"] = [_call(each) for each in calls]
    kwargs = row.get("additional_kwargs")
    if isinstance(kwargs, dict) and kwargs.get("refusal"):
        said["refusal"] = kwargs["refusal"]
    return said


def _content(content: Any, role: str) -> Any:
    if not isinstance(content, list):
        return content
    return [_block(each, role) for each in content] or ""


def _block(block: Any, role: str) -> Any:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, dict) or not isinstance(block.get("type"), str) or block["type"] == "text":
        return block
    if block["type"] == "image_url" and role == "user":
        return block
    return {"type": "text", "text": f"[{block['type']}]"}


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    arguments = call.get("args")
    text = json.dumps(arguments, default=repr) if isinstance(arguments, dict) else arguments
    return {
        "id": call.get("id"),
        "type": "function",
        "function": {"name": call.get("name"), "arguments": text},
    }
