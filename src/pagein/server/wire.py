"""The three wire protocols as the proxy needs them: where the messages are, what stands beside them, errors. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from pagein.formats.parsing import token_count

ProtocolName = Literal["messages", "chat", "responses"]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """A protocol: the format of its messages, the key they stand under, and the keys that limit an answer's tokens.

    ``beside`` are the keys whose content the model reads too: it has a share of the window.
    """

    name: ProtocolName
    format: str
    rows_key: str
    output_keys: tuple[str, ...]
    beside: tuple[str, ...]


MESSAGES = WireProtocol(
    "messages", "anthropic", "messages", ("max_tokens",), ("system", "tools", "tool_choice", "output_config")
)
CHAT = WireProtocol(
    "chat", "openai", "messages", ("max_completion_tokens", "max_tokens"), ("tools", "functions", "response_format")
)
RESPONSES = WireProtocol("responses", "openai-responses", "input", ("max_output_tokens",), ("instructions", "tools", "text", "prompt"))  # fmt: skip

PROTOCOLS: Mapping[str, WireProtocol] = MappingProxyType(
    {"/v1/messages": MESSAGES, "/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}
)
"""The protocols by the address of their requests."""

COUNTING: Mapping[str, WireProtocol] = MappingProxyType(
    {"/v1/messages/count_tokens": MESSAGES, "/v1/responses/input_tokens": RESPONSES}
)
"""The addresses that count the tokens of a request without sending it to a model."""


def find_rows(protocol: WireProtocol, body: Mapping[str, Any]) -> list[Any] | None:
    """The messages of a request, None where there is no list of them; a text alone is a message of the user."""
    rows = body.get(protocol.rows_key)
    if isinstance(rows, str) and protocol is RESPONSES:
        return [{"role": "user", "content": rows}]
    return rows if isinstance(rows, list) and rows else None


def output_tokens(protocol: WireProtocol, body: Mapping[str, Any]) -> int:
    """The most tokens that a request allows for its answer; 0 where it sets no limit."""
    return token_count(body, *protocol.output_keys)


def reason_to_observe(protocol: WireProtocol, body: Mapping[str, Any]) -> str:
    """The reason why a request's history may not be replaced by a view; "" for none.

    The provider has the history itself, or is to compact it.
    """
    edits = body.get("context_management")
    text = json.dumps(edits) if edits else ""
    if "compact" in text:
        return "the provider compacts"
    if protocol is RESPONSES and body.get("conversation"):
        return "the provider has the conversation"
    return ""


def error_body(protocol: WireProtocol, message: str, *, kind: str = "api_error", code: str | None = None) -> bytes:
    """An error in the shape of the protocol, for a client that reads its provider's errors."""
    if protocol is MESSAGES:
        value: Json = {"type": "error", "error": {"type": kind, "message": message}}
    else:
        value = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return json.dumps(value).encode()


def overflow_error(protocol: WireProtocol, message: str, needed: int, window: int) -> bytes:
    """The error with which the provider says that a request is too long, so that a client may act on it as ever."""
    if protocol is MESSAGES:
        text = f"prompt is too long: {needed} tokens > {window} maximum ({message})"
        return error_body(protocol, text, kind="invalid_request_error")
    text = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {needed} tokens. "
        f"({message})"
    )
    return error_body(protocol, text, kind="invalid_request_error", code="context_length_exceeded")
