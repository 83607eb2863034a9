"""Messages of a view as smolagents' messages: its roles, its lists of parts, its text for a call and a result.

Calls and results are text for smolagents' models (roles ``tool-call`` and ``tool-response``, which they turn into the
assistant and the user). Pictures stand in a message of the user.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from smolagents.models import ChatMessage, MessageRole

from pagein._common.json_values import parse_json
from pagein.events.messages import Message
from pagein.events.steps import Content, Image, Opaque, Text, ToolCall, as_parts, part_text
from pagein.integrations.smolagents.to_steps import NO_CALL, OBSERVATION_PREFIX, PROVIDER, has_picture_bytes, to_picture
from pagein.tokens import TokenCounter
from pagein.tokens.bytes import BYTES_A_UNIT, MESSAGE_BYTES, PART_BYTES, ByteCounter, json_bytes

REQUEST_TOKENS, MESSAGE_TOKENS = 3, 4
"""Tokens that every request, and every message, costs beside its text."""


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """A message of a view, the smolagents messages made of it, and their cost in tokens."""

    source: Message
    messages: tuple[ChatMessage, ...]
    tokens: int


@dataclass(slots=True)
class ChatMessageRenderer:
    """Renders messages as smolagents' own. A message of the last request is not rendered again: it is the same object."""

    counter: TokenCounter
    _last: dict[int, RenderedMessage] = field(default_factory=dict)

    def to_chat_messages(self, messages: Iterable[Message]) -> tuple[list[ChatMessage], int]:
        """Render the messages of a request in order, and count its tokens."""
        rendered = [self._render_once(message) for message in messages]
        self._last = {id(message.source): message for message in rendered}
        tokens = REQUEST_TOKENS + sum(message.tokens for message in rendered)
        return [chat_message for message in rendered for chat_message in message.messages], tokens

    def count_tokens(self, messages: Iterable[ChatMessage]) -> int:
        """Count the tokens of smolagents messages, pictures not included."""
        contents = [_parts(message.content) for message in messages]
        texts = (part["text"] for parts in contents for part in parts if "text" in part)
        return len(contents) * MESSAGE_TOKENS + sum(map(self.counter.text, texts))

    def count_bytes(self) -> int:
        """Count the bytes of the last request as JSON, its pictures as base64."""
        total = 0
        for rendered in self._last.values():
            for message in rendered.messages:
                total += json_bytes(
                    [str(message.role.value), *(part.get("text", "") for part in _parts(message.content))]
                )
                total += MESSAGE_BYTES + PART_BYTES * len(message.content)
            images = (part for part in as_parts(rendered.source.content) if isinstance(part, Image))
            total += BYTES_A_UNIT * sum(map(ByteCounter().image, images))
        return total

    def _render_once(self, message: Message) -> RenderedMessage:
        rendered = self._last.get(id(message))
        if rendered is not None and rendered.source is message:
            return rendered
        chat_messages = tuple(self._render(message))
        images = sum(self.counter.image(part) for part in as_parts(message.content) if isinstance(part, Image))
        return RenderedMessage(message, chat_messages, self.count_tokens(chat_messages) + images)

    def _render(self, message: Message) -> Iterable[ChatMessage]:
        match message.role:
            case "system":
                yield _text_message(MessageRole.SYSTEM, _text(message.content))
            case "user":
                yield ChatMessage(role=MessageRole.USER, content=self._content_rows(message.content))
            case "assistant":
                yield from _assistant_messages(message)
            case "tool":
                yield from self._tool_response(message)

    def _tool_response(self, message: Message) -> Iterable[ChatMessage]:
        fields = _extra_fields(message.extra)
        if fields.get("shown", True) is False and not message.content:
            return
        rows = self._content_rows(message.content)
        pictures = [row for row in rows if row["type"] == "image"]
        if pictures:
            yield ChatMessage(role=MessageRole.USER, content=pictures)
        text = _text(message.content)
        if text or not pictures:
            prefix = fields.get("before", OBSERVATION_PREFIX)
            yield _text_message(MessageRole.TOOL_RESPONSE, f"{prefix}{text}")

    def _content_rows(self, content: Content | None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for part in as_parts(content):
            if isinstance(part, Image) and part.data:
                rows.append({"type": "image", "image": to_picture(part)})
            elif text := _part_as_text(part):
                rows.append({"type": "text", "text": text})
        return rows or [{"type": "text", "text": "(no content)"}]


def _assistant_messages(message: Message) -> Iterable[ChatMessage]:
    calls = [call for call in message.tool_calls if call.extra is None or call.extra.kind != NO_CALL]
    text = _text(message.content)
    if text or not message.tool_calls:
        yield _text_message(MessageRole.ASSISTANT, text or "(no content)")
    if calls:
        rows = str([_call_row(call) for call in calls])
        yield _text_message(MessageRole.TOOL_CALL, "Calling tools:\n" + rows)


def _call_row(call: ToolCall) -> dict[str, Any]:
    arguments = parse_json(call.arguments, call.arguments)  # a stub, which is no JSON, stays as it is
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _extra_fields(extra: Opaque | None) -> dict[str, Any]:
    if extra is None or extra.provider != PROVIDER:
        return {}
    fields: dict[str, Any] = json.loads(extra.body)
    return fields


def _text_message(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=[{"type": "text", "text": text}])


def _text(content: Content | None) -> str:
    texts = (_part_as_text(part) for part in as_parts(content) if not has_picture_bytes(part))
    return "\n".join(text for text in texts if text)


def _part_as_text(part: Any) -> str:
    """A part as text; "" for another provider's private content."""
    match part:
        case Text(text=text):
            return text
        case Opaque(provider=provider, body=body):
            return body if provider == PROVIDER else ""
        case _:
            return part_text(part)


def _parts(content: Any) -> list[Any]:
    if content is None:
        return []
    return [{"text": content}] if isinstance(content, str) else list(content)
