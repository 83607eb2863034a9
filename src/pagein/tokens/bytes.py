"""The bytes of a request: providers limit them beside its tokens, and an image has many of one and few of the other.

The count is an upper bound of the request's JSON in every format, with everything escaped that is not ASCII, since some
SDKs send it so. It is made in units of four bytes, about those of a token, for which the sizes of extracts are made.
"""

from __future__ import annotations

import json
from typing import Any

from pagein.events.messages import Message
from pagein.events.steps import Content, Image, Opaque, Part, Text, ToolCall, as_parts
from pagein.events.tool_call_encoding import parse_arguments, wire_id, wire_names

BYTES_A_UNIT = 4

# What the JSON of each has beside its content, in the longest of the formats.
MESSAGE_BYTES, RESULT_BYTES, PART_BYTES, IMAGE_BYTES, CALL_BYTES = 64, 48, 48, 112, 88

MARKER_BYTES = 16
"""What may stand for content that is empty."""

ID_BYTES = 48
"""The longest id that a call gets where its own is none that a provider takes."""


class ByteCounter:
    """A counter of bytes, in units, in place of tokens."""

    name = "bytes"
    margin = 0.0

    def text(self, text: str) -> int:
        """Count a text, without the quotes around it."""
        return -(-(len(json.dumps(text)) - 2) // BYTES_A_UNIT)

    def image(self, image: Image) -> int:
        """Count an image, whose bytes are sent as base64."""
        return -(-_image_bytes(image) // BYTES_A_UNIT)

    def message(self, message: Message) -> int:
        """Count a message with its calls."""
        return -(-_message_bytes(message) // BYTES_A_UNIT)


def json_bytes(value: Any) -> int:
    """The bytes of a value's JSON; bytes in it are sent as base64."""
    return len(json.dumps(value, default=lambda data: "=" * (len(data) * 4 // 3 + 4)))


def _message_bytes(message: Message) -> int:
    total = MESSAGE_BYTES + _content_bytes(message.content) + _extra_bytes(message.extra)
    total += sum(map(_call_bytes, message.tool_calls)) + (_id_bytes(message.call_id) if message.call_id else 0)
    if message.role == "assistant" and not isinstance(message.content, str | None):
        total += MESSAGE_BYTES + MARKER_BYTES  # a user's line before thinking
    if message.role == "tool":  # its images may go out in a message of their own
        images = sum(isinstance(part, Image) for part in as_parts(message.content))
        total += RESULT_BYTES + (MESSAGE_BYTES + images * PART_BYTES if images else 0)
    return total if message.as_system is None else max(total, _message_bytes(message.as_system))


def _content_bytes(content: Content | None) -> int:
    parts = len(json.dumps(content or "")) if isinstance(content, str | None) else sum(map(_part_bytes, content))
    return max(parts, MARKER_BYTES)


def _part_bytes(part: Part) -> int:
    match part:
        case Text(text=text, extra=extra):
            return PART_BYTES + len(json.dumps(text)) + _extra_bytes(extra)
        case Image(extra=extra):
            return _image_bytes(part) + _extra_bytes(extra)
        case Opaque():
            return PART_BYTES + max(_body_bytes(part.body), len(json.dumps(part.text)))


def _image_bytes(image: Image) -> int:
    return IMAGE_BYTES + (len(image.data) * 4 // 3 + 4 if image.data else len(json.dumps(image.url)))


def _call_bytes(call: ToolCall) -> int:
    name = max(len(json.dumps(text)) for text in (call.name, *wire_names(call.name)))
    arguments = max(len(json.dumps(call.arguments)), json_bytes(parse_arguments(call.arguments)))
    # A result may have the name too.
    return CALL_BYTES + 2 * name + arguments + _id_bytes(call.id) + _extra_bytes(call.extra)


def _id_bytes(call_id: str) -> int:
    return max(len(json.dumps(call_id)) if wire_id(call_id) == call_id else 0, ID_BYTES)


def _extra_bytes(extra: Opaque | None) -> int:
    return 0 if extra is None or extra.provider == "pagein" else PART_BYTES + _body_bytes(extra.body)


def _body_bytes(body: str) -> int:
    try:
        return json_bytes(json.loads(body))
    except (ValueError, RecursionError):
        return len(json.dumps(body))
