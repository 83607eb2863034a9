"""Objects of the providers' SDKs as the messages and the usage in them. No SDK is imported: objects are known by their method.

A whole response stands for the model's message in it: a chat completion for that of its one choice, a response of the
Responses API for its items. Anthropic's response is a message already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pagein.errors import ConfigurationError, FormatError
from pagein.events.steps import Usage
from pagein.formats.parsing import is_dumpable, parse_usage, to_plain_json, token_count

_EVENTS = ("response.", "content_block_", "message_start", "message_delta", "message_stop")
"""The beginnings of the types of a stream's events."""
_LAST_EVENTS = ("response.completed", "response.incomplete")
"""Those that have the whole response."""


def unwrap_request(messages: Any) -> Any:
    """The messages of what an application handed over: SDK objects as plain values, responses as the messages in them.

    A list of plain messages, and a request as a mapping, are returned as they are; any other collection or iterator as a list.
    Raises FormatError.
    """
    if isinstance(messages, Mapping) or is_dumpable(messages):
        return _unwrap_one(messages, "messages")
    if not isinstance(messages, Iterable) or isinstance(messages, str | bytes | bytearray):
        return messages  # the format says what is wrong with it
    messages = messages if isinstance(messages, list | tuple) else list(messages)
    if all(type(message) is dict and ("role" in message or not _is_response(message)) for message in messages):
        return messages
    rows: list[Any] = []
    for at, message in enumerate(messages):
        row = _unwrap_one(message, f"messages[{at}]")
        rows += row if isinstance(row, list) else [row]
    return rows


def _unwrap_one(message: Any, path: str) -> Any:
    """One message, or the list of those in a response."""
    row = to_plain_json(message, path, encode_bytes=True) if is_dumpable(message) else message
    if not isinstance(row, Mapping) or not _is_response(row):
        return row
    if row.get("type") in _LAST_EVENTS and isinstance(row.get("response"), Mapping):
        row = row["response"]
    if isinstance(row.get("output"), list | tuple):
        return [to_plain_json(item, f"{path}.output[{at}]") for at, item in enumerate(row["output"])]
    choices = row.get("choices")
    if choices is not None and len(choices) != 1:
        raise FormatError(
            f"a completion with {len(choices)} choices: hand over the message of the one that was taken", path=path
        )
    reply = _field(choices[0], "message") if choices else None
    if reply is None:
        raise FormatError("a piece of a stream: hand over the whole reply, which has its message", path=path)
    return to_plain_json(reply, f"{path}.choices[0].message")


def _field(value: Any, name: str) -> Any:
    plain = to_plain_json(value) if is_dumpable(value) else value
    return plain.get(name) if isinstance(plain, Mapping) else None


def _is_response(row: Mapping[str, Any]) -> bool:
    """True for a whole response, a chat completion or one of the Responses API, and for an event of its stream."""
    if "role" in row or "messages" in row or "input" in row:
        return False
    if isinstance(row.get("choices"), list | tuple) or str(row.get("type")).startswith(_EVENTS):
        return True
    return row.get("object") == "response" and isinstance(row.get("output"), list | tuple)


# Usage


def read_usage(usage: Any) -> Usage:
    """The usage of a request as its provider reported it: a Usage, an SDK's object, or its fields.

    What was read from or written to the cache is input. Raises ConfigurationError for what is no usage.
    """
    if isinstance(usage, Usage):
        return usage
    try:
        report = parse_usage(_usage_fields(usage))
    except FormatError:
        report = None
    if report is None:
        raise ConfigurationError(f"usage is a Usage, or the usage of an SDK's response, not {usage!r:.200}")
    return report


def _usage_fields(usage: Any) -> Any:
    return to_plain_json(usage) if is_dumpable(usage) or isinstance(usage, Mapping) else None


def cache_written(usage: Any) -> int:
    """The tokens that the provider wrote to its cache for a request; 0 where it does not say."""
    if isinstance(usage, Usage):
        return 0
    fields = _usage_fields(usage)
    return token_count(fields, "cache_creation_input_tokens", "cacheWriteInputTokens")
