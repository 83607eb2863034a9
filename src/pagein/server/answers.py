"""Assembling the model's answer from a stream or a whole body, so that it can be recorded. Pure.

An answer that has something unknown in it is left to its echo: the client's next request says what it was.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from pagein.server.events import StreamEvent
from pagein.server.wire import Json, ProtocolName, add_piece


@dataclass(slots=True)
class AnswerReader(ABC):
    """Reads the events of one answer.

    ``rows`` are the answer as messages once ``is_whole``, None where it cannot be assembled. ``is_begun`` says that the
    model said something: before that, a failed request may be sent again. ``is_ending`` says that only the end is to come.
    """

    is_whole: bool = False
    is_begun: bool = False
    is_ending: bool = False
    error: str = ""
    usage: Json | None = None
    response_id: str = ""
    is_unknown: bool = False
    """True once there was something in the answer that is not known, or of another shape."""

    @property
    def rows(self) -> list[Json] | None:
        """The answer as messages of its format."""
        try:
            return None if self.is_unknown else self._assemble()
        except TypeError:  # blocks or calls that have no order
            return None

    def add(self, event: StreamEvent) -> None:
        """Read one event. It never fails: an answer reaches the client whatever is in it."""
        try:
            self._read_event(event)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            self.is_unknown = self.is_begun = True

    @abstractmethod
    def _assemble(self) -> list[Json] | None:
        """The answer as far as it was read; None where it is not whole."""

    @abstractmethod
    def _read_event(self, event: StreamEvent) -> None: ...


def new_reader(protocol: ProtocolName) -> AnswerReader:
    """The reader of a protocol's stream."""
    match protocol:
        case "messages":
            return MessageReader()
        case "chat":
            return CompletionReader()
        case "responses":
            return ResponseReader()
        case "gemini":
            return ContentReader()
    assert_never(protocol)


def read_whole_answer(protocol: ProtocolName, body: Any) -> tuple[list[Json] | None, Json | None, str]:
    """Read an answer that was not streamed: its messages, its usage, and the id of a response; None for no answer."""
    if not isinstance(body, Mapping):
        return None, None, ""
    usage = body["usage"] if isinstance(body.get("usage"), dict) else None
    match protocol:
        case "messages":
            return _spoken_message(body.get("content")), usage, ""
        case "chat":
            choices = body.get("choices")
            only = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
            return _spoken_completion(only.get("message") if isinstance(only, dict) else None), usage, ""
        case "responses":
            return _spoken_items(body), usage, str(body.get("id") or "")
        case "gemini":
            reader = ContentReader()
            reader.add(StreamEvent(b"", dict(body)))
            return reader.rows, reader.usage, ""
    assert_never(protocol)


def _spoken_message(content: Any) -> list[Json] | None:
    if not isinstance(content, list) or not content:
        return None
    return [{"role": "assistant", "content": content}]


def _spoken_completion(message: Any) -> list[Json] | None:
    if not isinstance(message, dict) or not (message.get("content") or message.get("tool_calls")):
        return None
    return [{**message, "role": "assistant"}]


def _spoken_items(response: Mapping[str, Any]) -> list[Json] | None:
    output = response.get("output")
    is_over = response.get("status") in ("completed", "incomplete")
    return list(output) if is_over and isinstance(output, list) and output else None


@dataclass(slots=True)
class MessageReader(AnswerReader):
    """Reads a stream of Anthropic's messages."""

    _blocks: dict[int, Json] = field(default_factory=dict)
    _inputs: dict[int, list[str]] = field(default_factory=dict)

    def _assemble(self) -> list[Json] | None:
        if not self.is_whole:
            return None
        return _spoken_message([self._blocks[index] for index in sorted(self._blocks)])

    def _read_event(self, event: StreamEvent) -> None:
        data = event.data or {}
        match data.get("type"):
            case "message_start":
                usage = (data.get("message") or {}).get("usage")
                self.usage = dict(usage) if isinstance(usage, dict) else None
            case "content_block_start":
                self.is_begun = True
                self._blocks[data.get("index", 0)] = dict(data.get("content_block") or {})
            case "content_block_delta":
                self._add_delta(data.get("index", 0), data.get("delta") or {})
            case "content_block_stop":
                self._end_block(data.get("index", 0))
            case "message_delta":
                self.is_ending = True
                if isinstance(data.get("usage"), dict):
                    self.usage = {**(self.usage or {}), **data["usage"]}
            case "message_stop":
                self.is_whole = self.is_ending
            case "error":
                self.error = json.dumps(data.get("error"))

    def _add_delta(self, index: int, delta: Json) -> None:
        block = self._blocks.get(index)
        if block is None:
            self.is_unknown = True
            return
        match delta.get("type"):
            case "text_delta" | "thinking_delta" | "signature_delta" as kind:
                key = kind.removesuffix("_delta")
                block[key] = block.get(key, "") + str(delta.get(key, ""))
            case "input_json_delta":
                self._inputs.setdefault(index, []).append(str(delta.get("partial_json", "")))
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
            case _:
                self.is_unknown = True

    def _end_block(self, index: int) -> None:
        text = "".join(self._inputs.pop(index, []))
        if not text or index not in self._blocks:
            return
        try:
            self._blocks[index]["input"] = json.loads(text)
        except (ValueError, RecursionError):
            self.is_unknown = True


@dataclass(slots=True)
class CompletionReader(AnswerReader):
    """Reads a stream of chat completions."""

    _message: Json = field(default_factory=dict)
    _calls: dict[int, Json] = field(default_factory=dict)

    def _assemble(self) -> list[Json] | None:
        if not self.is_ending:
            return None
        calls = [self._calls[index] for index in sorted(self._calls)]
        return _spoken_completion({**self._message, "tool_calls": calls} if calls else self._message)

    def _read_event(self, event: StreamEvent) -> None:
        data = event.data or {}
        if event.is_done:
            self.is_whole = self.is_ending
            return
        if data.get("error"):
            self.error = json.dumps(data["error"])
        if isinstance(data.get("usage"), dict):
            self.usage = data["usage"]
        for choice in data.get("choices") or ():
            if not isinstance(choice, dict) or choice.get("index"):
                self.is_unknown = True
                continue
            self._add_delta(choice.get("delta") or {})
            if choice.get("finish_reason"):
                self.is_ending = True

    def _add_delta(self, delta: Json) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value or ():
                    self._add_call(call)
            elif isinstance(value, str) and key != "role":
                self.is_begun = self.is_begun or bool(value)
                self._message[key] = self._message.get(key, "") + value

    def _add_call(self, delta: Json) -> None:
        self.is_begun = True
        call = self._calls.setdefault(delta.get("index", 0), {"id": "", "type": "function", "function": {}})
        call["id"] = delta.get("id") or call["id"]
        call["type"] = delta.get("type") or call["type"]
        function, pieces = call["function"], delta.get("function") or {}
        function["name"] = function.get("name", "") + (pieces.get("name") or "")
        function["arguments"] = function.get("arguments", "") + (pieces.get("arguments") or "")


@dataclass(slots=True)
class ResponseReader(AnswerReader):
    """Reads a stream of the Responses API, whose last event has the whole answer."""

    _rows: list[Json] | None = None
    _items: list[Json] = field(default_factory=list)

    def _assemble(self) -> list[Json] | None:
        return self._rows

    def _read_event(self, event: StreamEvent) -> None:
        data = event.data or {}
        kind = str(data.get("type", ""))
        response = data.get("response")
        match kind:
            case "response.completed" | "response.incomplete":
                self.is_whole = self.is_ending = True
                whole = response if isinstance(response, dict) else {}
                # Some servers leave the output out of the last event.
                self._rows = _spoken_items(whole) or self._items or None
                self.usage = whole["usage"] if isinstance(whole.get("usage"), dict) else None
                self.response_id = str(whole.get("id") or "")
            case "response.failed":
                failed = response.get("error") if isinstance(response, dict) else None
                self.error = json.dumps(failed or "failed")
            case "error":
                self.error = json.dumps(data)
            case "response.output_item.done":
                if isinstance(data.get("item"), dict):
                    self._items.append(data["item"])
            case "response.created" | "response.in_progress" | "response.queued":
                pass
            case _:
                self.is_begun = self.is_begun or kind.startswith("response.")


@dataclass(slots=True)
class ContentReader(AnswerReader):
    """Reads a stream of Gemini's responses, each with a piece of the content. The end of the stream alone says that it is whole."""

    _parts: list[Json] = field(default_factory=list)

    def _assemble(self) -> list[Json] | None:
        if not self.is_ending or not self._parts:
            return None
        return [{"role": "model", "parts": self._parts}]

    def _read_event(self, event: StreamEvent) -> None:
        data = event.data or {}
        if data.get("error"):
            self.error = json.dumps(data["error"])
        if isinstance(data.get("usageMetadata"), dict):
            self.usage = data["usageMetadata"]
        if (data.get("promptFeedback") or {}).get("blockReason"):
            self.is_ending = True
        for candidate in data.get("candidates") or ():
            if not isinstance(candidate, dict) or candidate.get("index"):
                self.is_unknown = True
                continue
            for part in (candidate.get("content") or {}).get("parts") or ():
                self.is_begun = True
                add_piece(self._parts, part)
            reason = candidate.get("finishReason")
            self.is_ending = self.is_ending or bool(reason)
            self.is_unknown = self.is_unknown or reason == "CONTINUATION"  # the next answer has the rest
