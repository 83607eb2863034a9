"""Shared parts of the renderers: markers for empty content, ids of calls, limits, images, provider content."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from pagein._common import surrogates
from pagein._common.image_header import image_type
from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import FILE_KINDS, Image, Opaque, Part, ToolCall, as_parts, part_text
from pagein.events.tool_call_encoding import FAILURE_PREFIX, reports_failure, wire_id
from pagein.formats.parsing import is_utf8, to_plain_json

T = TypeVar("T")

NO_CONTENT = "(no content)"
NO_OUTPUT = "(no output)"
CONTINUE = "(continue)"
FAILED = "(error)"
MARKERS = (NO_CONTENT, NO_OUTPUT, CONTINUE, FAILED)
"""Texts that pagein inserts where a provider refuses empty content or has no field for a flag."""


def with_wire_ids(messages: Iterable[Message], encode: Callable[[str], str]) -> Iterator[Message]:
    """Yield the messages with each call's id, and the ids of its result, as ``encode`` writes it for the provider.

    Two ids of one encoding are numbered in the order of the calls, so a longer request keeps the ids of a shorter one.
    """
    wire_ids: dict[str, str] = {}
    used: set[str] = set()
    for message in messages:
        if not message.tool_calls and message.role != "tool":
            yield message
            continue
        for call in message.tool_calls:
            if call.id not in wire_ids:
                wire_ids[call.id] = _unused_id(call.id, encode, used)
                used.add(wire_ids[call.id])
        calls = tuple(
            call if call.id == wire_ids[call.id] else replace(call, id=wire_ids[call.id]) for call in message.tool_calls
        )
        call_id = wire_ids.get(message.call_id) or encode(message.call_id) if message.role == "tool" else ""
        is_same = call_id == message.call_id and all(map(lambda new, old: new is old, calls, message.tool_calls))
        yield message if is_same else replace(message, tool_calls=calls, call_id=call_id)


def _unused_id(call_id: str, encode: Callable[[str], str], used: set[str]) -> str:
    wire, attempt = encode(call_id), 0
    while wire in used:
        attempt += 1
        wire = wire_id(f"\0{attempt}.{call_id}")  # always rewritten, as no provider takes NUL in an id
    return wire


def parts_and_calls(message: Message) -> Iterator[tuple[Sequence[Part], ToolCall | None]]:
    """Yield each call with the parts before it, in order; last the parts behind the calls, with None."""
    parts, reached = as_parts(message.content), 0
    for call in message.tool_calls:
        at = len(parts) if call.at is None else min(max(call.at, reached), len(parts))
        yield parts[reached:at], call
        reached = at
    yield parts[reached:], None


def extend_turn(turns: list[dict[str, Any]], role: str, key: str, parts: list[dict[str, Any]]) -> None:
    """Add the parts to the last turn, where it is of this role, else as a new turn; ``key`` holds a turn's parts."""
    if turns and turns[-1]["role"] == role:
        turns[-1][key] += parts
    else:
        turns.append({"role": role, key: parts})


def with_call_limit(messages: Sequence[Message], limit: int) -> Iterator[Message]:
    """Yield the messages with at most ``limit`` calls in each; a message with more is split, each part with its results.

    The later parts have no content. Results stay in their order within a part.
    """
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if len(message.tool_calls) <= limit:
            yield message
            continue
        end = next((i for i in range(at, len(messages)) if messages[i].role != "tool"), len(messages))
        yield from _split_calls(message, messages[at:end], limit)
        at = end


def _split_calls(message: Message, results: Sequence[Message], limit: int) -> Iterator[Message]:
    waiting = list(results)
    for start in range(0, len(message.tool_calls), limit):
        calls = message.tool_calls[start : start + limit]
        open_ids = {call.id for call in calls}
        if start:
            calls = tuple(replace(call, at=None) for call in calls)
        yield replace(message, tool_calls=calls) if not start else Message("assistant", None, calls)
        answers = [result for result in waiting if result.call_id in open_ids]
        waiting = [result for result in waiting if result.call_id not in open_ids]
        yield from answers
        if len(open_ids) > len(answers) and not waiting:
            return  # the end of a request that is not complete: more results come here
    yield from waiting


def mark_failure(content: Any, make_text: Callable[[str], dict[str, Any]]) -> Any:
    """Return a failed result's content, text or a list of parts, with the mark of a failure unless its text has one.

    ``make_text`` makes the text part that is put first where no part has text.
    """
    if isinstance(content, str):
        return content if reports_failure(content) else f"{FAILURE_PREFIX}{content}"
    texts = (part for part in content if isinstance(part.get("text"), str))
    first = next((part for part in texts if not IMAGE_PLACEHOLDER.fullmatch(part["text"])), None)
    if first is None:
        return [make_text(FAILED), *content]
    if reports_failure(first["text"]):
        return content
    return [{**part, "text": f"{FAILURE_PREFIX}{part['text']}"} if part is first else part for part in content]


def own_fields(part: Opaque | None, provider: str) -> dict[str, Any] | None:
    """Parse the JSON object in a part made by this provider; None for another's part, or for no object."""
    if part is None or part.provider != provider:
        return None
    return _parse_object(part.body)


ANTHROPIC_TOOL_PROMPT_TOKENS = 346
"""Tokens of the system prompt that Anthropic adds to a request with tools: the most of its current models
(docs.claude.com, tool use, pricing). Bedrock's models are Anthropic's too."""


def foreign_text(part: Opaque) -> str:
    """Return the text that other providers get for a part: that of a refusal and of a file, a file's name where it has none, else nothing."""
    is_readable = part.kind == "refusal" or part.kind in FILE_KINDS
    return part_text(part) if is_readable else ""


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = to_plain_json(json.loads(text))  # no NaN, and a limited depth
    except (ValueError, RecursionError, FormatError):
        return None
    return value if isinstance(value, dict) else None


def image_placeholder(image: Image) -> str:
    """Return a short text in place of an image that the provider does not accept."""
    return f"[image {image.digest[:12]}]"


IMAGE_PLACEHOLDER = re.compile(r"\[image [0-9a-f]{12}\]")
"""The text that ``image_placeholder`` returns."""


def sent_media_type(image: Image) -> str:
    """Return the media type to send: that of the bytes where they tell, else the declared one.

    Anthropic refuses an image whose declared type is not that of its bytes, and so every later request of the run
    (anthropics/claude-code#13131, BerriAI/litellm#24900). ``image/jpg`` is no media type.
    """
    declared = image.media_type.lower()
    return image_type(image.data) or ("image/jpeg" if declared == "image/jpg" else declared)


def image_base64(image: Image) -> str:
    """Encode the image's bytes as base64."""
    return base64.b64encode(image.data).decode("ascii")


def replace_surrogates(value: T) -> T:
    """Replace each lone surrogate by U+FFFD, so that the value's JSON is UTF-8; the same value where there is none."""
    return value if is_utf8(value) else cast(T, _replace_in(value))


def _replace_in(value: Any) -> Any:
    match value:
        case str():
            return surrogates.replace_surrogates(value)
        case list():
            return [_replace_in(item) for item in value]
        case dict():
            return {_replace_in(key): _replace_in(item) for key, item in value.items()}
        case _:
            return value


_URLSAFE = str.maketrans("-_", "+/")


def with_bytes(value: Any, byte_keys: Collection[str], plain_keys: Collection[str], *, urlsafe: bool = False) -> Any:
    """Return the value with bytes in place of base64 under ``byte_keys``; what is under ``plain_keys`` stays as it is.

    With ``urlsafe`` the other alphabet of base64 is read, too.
    """

    def convert(key: str, item: Any) -> Any:
        match item:
            case _ if key in plain_keys:
                return item
            case str() if key in byte_keys:
                try:
                    return base64.b64decode(item.translate(_URLSAFE) if urlsafe else item, validate=True)
                except ValueError:
                    return item.encode()
            case list():
                return [convert("", element) for element in item]
            case dict():
                return {name: convert(name, element) for name, element in item.items()}
            case _:
                return item

    return convert("", value)
