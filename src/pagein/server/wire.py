"""The four wire protocols as the proxy needs them: addresses, where the messages are, what stands beside them, errors. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from pagein.formats.parsing import token_count

ProtocolName = Literal["messages", "chat", "responses", "gemini"]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """A protocol: the format of its messages, the key they stand under, and the keys that limit an answer's tokens.

    ``beside`` are the keys whose content the model reads too: it has a share of the window. The limit stands in one of the
    objects under ``options``, where there are any.
    """

    name: ProtocolName
    format: str
    rows_key: str
    output_keys: tuple[str, ...]
    beside: tuple[str, ...]
    options: tuple[str, ...] = ()


MESSAGES = WireProtocol(
    "messages", "anthropic", "messages", ("max_tokens",), ("system", "tools", "tool_choice", "output_config")
)
CHAT = WireProtocol(
    "chat", "openai", "messages", ("max_completion_tokens", "max_tokens"), ("tools", "functions", "response_format")
)
RESPONSES = WireProtocol("responses", "openai-responses", "input", ("max_output_tokens",), ("instructions", "tools", "text", "prompt"))  # fmt: skip

# Google reads both spellings of a key, that of its JSON and that of its definition.
_GEMINI_OPTIONS = ("generationConfig", "generation_config")
GEMINI = WireProtocol(
    "gemini", "gemini", "contents", ("maxOutputTokens", "max_output_tokens"),
    ("systemInstruction", "system_instruction", "tools", *_GEMINI_OPTIONS), _GEMINI_OPTIONS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What an address asks for: an answer, or the count of a request's tokens. ``model`` is "" where only the body names it.

    ``is_stream`` is True for an address whose every answer is a stream.
    """

    protocol: WireProtocol
    model: str = ""
    is_count: bool = False
    is_stream: bool = False


_ENDPOINTS: Mapping[str, Endpoint] = MappingProxyType({
    "messages": Endpoint(MESSAGES), "messages/count_tokens": Endpoint(MESSAGES, is_count=True),
    "responses": Endpoint(RESPONSES), "responses/input_tokens": Endpoint(RESPONSES, is_count=True),
})  # fmt: skip
# Providers have them behind words of their own. Other things have messages and responses, so these stand behind a version.
_PATH = re.compile(rf"/(?:(?:.+/)?(?:v\d+|openai)/)?({'|'.join(_ENDPOINTS)})")
_CHAT_PATH = re.compile(r"/(?:.*?/)?(?:deployments/([^/]+)/)?chat/completions")
_GEMINI_PATH = re.compile(
    r"/(?:.+/)?(?:models|tunedModels)/([^/:]+):(generateContent|streamGenerateContent|countTokens)"
)


def find_endpoint(path: str) -> Endpoint | None:
    """What an address asks for, with its version or without; None for one that the proxy does not know.

    >>> find_endpoint("/openai/deployments/gpt-5/chat/completions").model
    'gpt-5'
    >>> find_endpoint("/v1beta/models/gemini-2.5-pro:countTokens").model
    'gemini-2.5-pro'
    """
    if match := _GEMINI_PATH.fullmatch(path):
        model, action = match.groups()
        return Endpoint(GEMINI, model, is_count=action == "countTokens", is_stream=action.startswith("stream"))
    if match := _CHAT_PATH.fullmatch(path):
        return Endpoint(CHAT, match[1] or "")
    match = _PATH.fullmatch(path)
    return _ENDPOINTS[match[1]] if match else None


def find_rows(protocol: WireProtocol, body: Mapping[str, Any]) -> list[Any] | None:
    """The messages of a request, None where there is no list of them; a text alone is a message of the user."""
    rows = body.get(protocol.rows_key)
    if protocol is GEMINI:
        rows = [rows] if isinstance(rows, dict) else rows
        rows = _join_pieces(rows) if isinstance(rows, list) else rows
    if isinstance(rows, str) and protocol is RESPONSES:
        return [{"role": "user", "content": rows}]
    return rows if isinstance(rows, list) and rows else None


def _join_pieces(rows: list[Any]) -> list[Any]:
    """Join the contents of the model that follow one another: chats of Google's SDK keep each piece of a stream as one."""
    joined: list[Any] = []
    for row in rows:
        before: Any = joined[-1] if joined else None
        if not all(_is_piece(content) for content in (before, row)):
            joined.append(row)
            continue
        parts = [*before["parts"]]
        for part in row["parts"]:
            add_piece(parts, part)
        joined[-1] = {**before, "parts": parts}
    return joined


def _is_piece(content: Any) -> bool:
    return isinstance(content, dict) and content.get("role") == "model" and isinstance(content.get("parts"), list)


def add_piece(parts: list[Any], part: Any) -> None:
    """Put a part of a stream of Gemini's behind those before it: a text goes on with the text before it."""
    last: Any = parts[-1] if parts else None
    if part in ({}, {"text": ""}):
        return
    if (
        _is_text(part)
        and _is_text(last)
        and "thoughtSignature" not in last
        and part.get("thought") == last.get("thought")
    ):
        parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
    else:
        parts.append(part)


def _is_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and isinstance(part.get("text"), str)
        and part.keys() <= {"text", "thought", "thoughtSignature"}
    )


def output_tokens(protocol: WireProtocol, body: Mapping[str, Any]) -> int:
    """The most tokens that a request allows for its answer; 0 where it sets no limit."""
    holders = [body.get(key) for key in protocol.options] or [body]
    return next(filter(None, (token_count(holder, *protocol.output_keys) for holder in holders)), 0)


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
    if protocol is GEMINI and (body.get("cachedContent") or body.get("cached_content")):
        return "the provider has the beginning"
    return ""


def is_rest_asked(body: Mapping[str, Any]) -> bool:
    """True for a request that asks for the rest of an answer, after a first part: Gemini's have a token for it."""
    return bool(body.get("continuationToken") or body.get("continuation_token"))


_KINDS: Mapping[int, tuple[str, str]] = MappingProxyType({
    400: ("invalid_request_error", "INVALID_ARGUMENT"), 413: ("request_too_large", "INVALID_ARGUMENT"),
    503: ("overloaded_error", "UNAVAILABLE"), 504: ("api_error", "DEADLINE_EXCEEDED"),
})  # fmt: skip
"""What an error is called by its HTTP status: in most protocols, and in Google's."""


def error_body(protocol: WireProtocol, status: int, message: str, *, code: str | None = None) -> bytes:
    """An error in the shape of the protocol, for a client that reads its provider's errors."""
    kind, google_status = _KINDS.get(status, ("api_error", "INTERNAL"))
    if protocol is GEMINI:
        value: Json = {"error": {"code": status, "message": message, "status": google_status}}
    elif protocol is MESSAGES:
        value = {"type": "error", "error": {"type": kind, "message": message}}
    else:
        value = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return json.dumps(value).encode()


def overflow_error(protocol: WireProtocol, message: str, needed: int, window: int) -> bytes:
    """The error with which the provider says that a request is too long, so that a client may act on it as ever."""
    if protocol is MESSAGES:
        text = f"prompt is too long: {needed} tokens > {window} maximum ({message})"
        return error_body(protocol, 400, text)
    if protocol is GEMINI:
        text = f"The input token count ({needed}) exceeds the maximum number of tokens allowed ({window}). ({message})"
        return error_body(protocol, 400, text)
    text = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {needed} tokens. "
        f"({message})"
    )
    return error_body(protocol, 400, text, code="context_length_exceeded")
