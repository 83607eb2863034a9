"""Which format a transcript is in, by its shape alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pagein.formats.parsing import rows_of

_OPENAI_ROLES = ("tool", "function", "developer")
_OPENAI_KEYS = ("tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content")
_OPENAI_PARTS = ("image_url", "input_audio", "file", "refusal")
_ANTHROPIC_KEYS = ("stop_reason", "stop_sequence")
_ANTHROPIC_PARTS = (
    "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result", "server_tool_use",
    "mcp_tool_use", "container_upload", "compaction",
)  # fmt: skip
_RESPONSES_PARTS = ("input_text", "output_text", "input_image", "input_file")
_NAMES = ("openai", "anthropic", "openai-responses")


def guess_format(messages: Any) -> str:
    """``openai``, ``anthropic`` or ``openai-responses``, whichever more of the messages are shaped like.

    ``openai`` when all are plain. A request that has an ``input`` is one to the Responses API.

    Raises FormatError for what is no list of messages.

    >>> guess_format([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}])
    'anthropic'
    """
    rows = rows_of(messages)
    if isinstance(messages, Mapping) and "input" in messages and "messages" not in messages:
        return "openai-responses"
    signs = [sign for row in rows for sign in _signs(row)]
    if isinstance(messages, Mapping) and messages.get("system") is not None:
        signs.append("anthropic")
    return max(_NAMES, key=signs.count)  # the first of equals


def _signs(message: Any) -> Iterator[str]:
    if not isinstance(message, dict):
        return
    if message.get("role") in _OPENAI_ROLES or any(message.get(key) is not None for key in _OPENAI_KEYS):
        yield "openai"
    if any(key in message for key in _ANTHROPIC_KEYS):
        yield "anthropic"
    kind = message.get("type")
    if isinstance(kind, str) and "role" not in message and ("content" not in message or kind == "reasoning"):
        yield "openai-responses"  # an item that is no message: a call, its output
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in _OPENAI_PARTS:
            yield "openai"
        elif kind in _ANTHROPIC_PARTS:
            yield "anthropic"
        elif kind in _RESPONSES_PARTS:
            yield "openai-responses"
