"""Messages of a view as smolagents' messages: its roles, its lists of parts, its way to say a call and an answer.

Calls and answers are text to smolagents' models (roles ``tool-call`` and ``tool-response``, which they turn into the
assistant and the user). Pictures stand in a message of the user.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from smolagents.models import ChatMessage, MessageRole

from pagein.events.messages import Message
from pagein.events.steps import Content, Image, Opaque, Text, ToolCall, as_parts, part_text
from pagein.integrations._json_values import as_picture
from pagein.integrations.smolagents.to_steps import NO_CALL, OBSERVED, PROVIDER
from pagein.tokens import TokenCounter

REQUEST, MESSAGE = 3, 4
"""Tokens that every request, and every message, costs beside its words."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message of ours as smolagents says it, and what that costs in tokens."""

    source: Message
    messages: tuple[ChatMessage, ...]
    tokens: int


@dataclass(slots=True)
class Speaker:
    """Says messages the smolagents way. What was said in the last request is not said anew, and is the same object."""

    counter: TokenCounter
    _said: dict[int, Spoken] = field(default_factory=dict)

    def say(self, messages: Iterable[Message]) -> tuple[list[ChatMessage], int]:
        """The messages of a request in order, and its tokens."""
        said = [self._known(message) for message in messages]
        self._said = {id(each.source): each for each in said}
        tokens = REQUEST + sum(each.tokens for each in said)
        return [message for each in said for message in each.messages], tokens

    def cost(self, messages: Iterable[ChatMessage]) -> int:
        """Tokens of messages of smolagents."""
        return sum(MESSAGE + sum(self._part_cost(part) for part in _parts(each.content)) for each in messages)

    def _known(self, message: Message) -> Spoken:
        known = self._said.get(id(message))
        if known is not None and known.source is message:
            return known
        spoken = tuple(self._spoken(message))
        images = sum(
            self.counter.image(part) for part in as_parts(message.content) if isinstance(part, Image)
        )
        return Spoken(message, spoken, self.cost(spoken) + images)

    def _spoken(self, message: Message) -> Iterable[ChatMessage]:
        match message.role:
            case "system":
                yield _message(MessageRole.SYSTEM, _text(message.content))
            case "user":
                yield ChatMessage(role=MessageRole.USER, content=self._rows(message.content))
            case "assistant":
                yield from _assistant(message)
            case "tool":
                yield from self._answer(message)

    def _answer(self, message: Message) -> Iterable[ChatMessage]:
        beside = _beside(message.extra)
        if beside.get("shown", True) is False and not message.content:
            return
        rows = self._rows(message.content)
        pictures = [row for row in rows if row["type"] == "image"]
        if pictures:
            yield ChatMessage(role=MessageRole.USER, content=pictures)
        text = _text(message.content)
        if text or not pictures:
            yield _message(MessageRole.TOOL_RESPONSE, f"{beside.get('before', OBSERVED)}{text}")

    def _rows(self, content: Content | None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for part in as_parts(content):
            if isinstance(part, Image) and part.data:
                rows.append({"type": "image", "image": as_picture(part)})
            elif text := _part(part):
                rows.append({"type": "text", "text": text})
        return rows or [{"type": "text", "text": "(no content)"}]

    def _part_cost(self, part: Any) -> int:
        return self.counter.text(part["text"]) if "text" in part else 0


def _assistant(message: Message) -> Iterable[ChatMessage]:
    calls = [call for call in message.tool_calls if call.extra is None or call.extra.kind != NO_CALL]
    text = _text(message.content)
    if text or not message.tool_calls:
        yield _message(MessageRole.ASSISTANT, text or "(no content)")
    if calls:
        yield _message(MessageRole.TOOL_CALL, "Calling tools:\n" + str([_call(call) for call in calls]))


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": spoken_arguments(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def spoken_arguments(arguments: str) -> Any:
    """Arguments as the values they are the JSON text of; a stub, which is no JSON, as it is."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _beside(extra: Opaque | None) -> dict[str, Any]:
    if extra is None or extra.provider != PROVIDER:
        return {}
    found: dict[str, Any] = json.loads(extra.body)
    return found


def _message(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=[{"type": "text", "text": text}])


def _text(content: Content | None) -> str:
    return "\n".join(text for part in as_parts(content) if not _is_held(part) and (text := _part(part)))


def _is_held(part: object) -> bool:
    return isinstance(part, Image) and bool(part.data)


def _part(part: Any) -> str:
    """What of a part can be said as text; another provider's private content is not said."""
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
