"""Token counters: their protocol, a counter with a cache, and the cost of a request.

The cost of a request is an upper bound of the rendered request in every format. The functions are pure and never
raise. The rules, in the counter's tokens:

* a request: its messages, and 3;
* a message: 4, its content, its calls, and its ``call_id``;
* a notice: at least as much as the system message that it stands for;
* a failed result whose text does not say so: the prefix that says it;
* a result with images: 4 and 33 for each image, since a format may send them in a message of their own, each behind its
  name;
* a message without calls: at least 4 for its content, since a format replaces empty content by ``(no output)``; 8 more
  for an assistant's opaque content, since a format may put a user's ``(continue)`` before thinking;
* content: text by its tokens; an image by ``counter.image``, and at least 16 for the name that may replace it; opaque
  content by the longer of its ``text`` and its ``body``, with each image in it as an image, and reasoning that can be
  read without its signature (see ``opaque``); one more for each part of a list;
* a tool call: name, arguments and id, and 8; what a name has beyond 8 a second time, as Gemini's results repeat it;
* an id, a name and arguments that some format rewrites: by the longest of their encodings;
* ``extra``, anywhere: by its ``text``, or by its ``body`` where it has no text, except ``cache_control`` and
  pagein's own notes, which models do not see.

OpenAI's published overhead is 3 a message and 3 a request. Anthropic's framing was measured at 6 to 8 for a request of
one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, assert_never

from pagein.events import tool_call_encoding
from pagein.events.messages import Message
from pagein.events.steps import Content, Image, Opaque, Part, Text, ToolCall, as_parts
from pagein.tokens.bytes import ByteCounter
from pagein.tokens.opaque import Countable, countable_json, countable_parts

CACHE_MAX_CHARS = 500_000
"""The approximate size of a generation of the cache. Two generations are kept."""

CACHED_TEXT_MAX_CHARS = 65_536
"""A longer text is not cached, because it would evict all others."""

ENTRY_OVERHEAD_CHARS = 100
"""The overhead of a cache entry, in characters."""


class TokenCounter(Protocol):
    """Token counts of text and images for one model.

    Never raises, uses no network, takes time linear in the text, and returns the same count each time.
    """

    @property
    def name(self) -> str:
        """The encoding or the rule, such as ``o200k_base`` or ``claude estimate``."""
        ...

    @property
    def margin(self) -> float:
        """0 for an exact counter; else the relative error of the estimate, such as 0.1."""
        ...

    def text(self, text: str) -> int:
        """Count the tokens of a text; special tokens count as text."""
        ...

    def image(self, image: Image) -> int:
        """Count the tokens of an image by its size in pixels and the provider's rule, never by its bytes."""
        ...


class CachingCounter:
    """A cache of another counter's counts. For one memory; threads may share it.

    A cached count of a line takes a tenth of the time, that of a summary a hundredth.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.name, self.margin = counter.name, counter.margin
        self._newer: dict[str, int] = {}
        self._older: dict[str, int] = {}
        self._free_chars = CACHE_MAX_CHARS

    def text(self, text: str) -> int:
        """Count the tokens of a text."""
        count = self._newer.get(text)
        if count is None:
            count = self._older.get(text)
            if count is None:
                count = self._counter.text(text)
            if len(text) <= CACHED_TEXT_MAX_CHARS:
                self._store(text, count)
        return count

    def image(self, image: Image) -> int:
        """Count the tokens of an image."""
        return self._counter.image(image)

    def cached_counts(self, texts: Iterable[str]) -> dict[str, int]:
        """Return the counts of those texts that are in the cache."""
        counts = {text: self._newer.get(text, self._older.get(text)) for text in texts}
        return {text: count for text, count in counts.items() if count is not None}

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add counts made earlier by the same counter."""
        for text, tokens in counts.items():
            self._store(text, tokens)

    def _store(self, text: str, tokens: int) -> None:
        self._free_chars -= len(text) + ENTRY_OVERHEAD_CHARS
        if self._free_chars < 0:
            self._newer, self._older, self._free_chars = {}, self._newer, CACHE_MAX_CHARS
        self._newer[text] = tokens


REQUEST_TOKENS = 3
MESSAGE_TOKENS = 4
MARKER_TOKENS = 4
CALL_TOKENS = 8
IMAGE_MIN_TOKENS = 16


def request_tokens(messages: Iterable[Message], counter: TokenCounter) -> int:
    """Count the tokens of the rendered messages without tools: an upper bound for every format."""
    return REQUEST_TOKENS + sum(message_tokens(message, counter) for message in messages)


def message_tokens(message: Message, counter: TokenCounter) -> int:
    """Count the tokens of one message with its calls and extras; with a ByteCounter its bytes."""
    if isinstance(counter, ByteCounter):
        return counter.message(message)
    content = content_tokens(message.content, counter)
    if not message.tool_calls:
        content = max(content, MARKER_TOKENS)
    if message.role == "assistant" and isinstance(message.content, tuple):
        content += (MESSAGE_TOKENS + MARKER_TOKENS) * any(isinstance(part, Opaque) for part in message.content)
    total = MESSAGE_TOKENS + content + _extra_tokens(message.extra, counter)
    total += sum(_call_tokens(call, counter) for call in message.tool_calls)
    total += _id_tokens(message.call_id, counter) if message.call_id else 0
    if message.role == "tool":
        total += _result_mark_tokens(message, counter)
    return total if message.as_system is None else max(total, message_tokens(message.as_system, counter))


def _result_mark_tokens(message: Message, counter: TokenCounter) -> int:
    """Count what a format may add to a result: the mark of a failure, and a message with its images."""
    parts = as_parts(message.content)
    images = sum(isinstance(part, Image) for part in parts)
    total = MESSAGE_TOKENS + images * (2 * IMAGE_MIN_TOKENS + 1) if images else 0
    text = next((part.text for part in parts if isinstance(part, Text) and part.text), "")
    if message.is_error and not tool_call_encoding.reports_failure(text):
        total += max(counter.text(tool_call_encoding.FAILURE_PREFIX), MARKER_TOKENS) + isinstance(
            message.content, tuple
        )
    return total


def content_tokens(content: Content | None, counter: TokenCounter) -> int:
    """Count the tokens of content; None costs 0."""
    if content is None:
        return 0
    if isinstance(content, str):
        return counter.text(content)
    return sum(1 + part_tokens(part, counter) for part in content)


def part_tokens(part: Part, counter: TokenCounter) -> int:
    """Count the tokens of one part."""
    match part:
        case Text(text=text, extra=extra):
            return counter.text(text) + _extra_tokens(extra, counter)
        case Image(extra=extra):
            return max(counter.image(part), IMAGE_MIN_TOKENS) + _extra_tokens(extra, counter)
        case Opaque():
            return _countable_tokens(countable_parts(part), counter)
        case _:
            assert_never(part)


def _call_tokens(call: ToolCall, counter: TokenCounter) -> int:
    name = max(counter.text(text) for text in (call.name, *tool_call_encoding.wire_names(call.name)))
    arguments = max(counter.text(text) for text in tool_call_encoding.argument_texts(call.arguments))
    name += max(0, name - CALL_TOKENS)
    return CALL_TOKENS + name + arguments + _id_tokens(call.id, counter) + _extra_tokens(call.extra, counter)


def _id_tokens(call_id: str, counter: TokenCounter) -> int:
    cost, wire = counter.text(call_id), tool_call_encoding.wire_id(call_id, tool_call_encoding.ID_MIN_LIMIT)
    return cost if wire == call_id else max(cost, counter.text(wire))


def _extra_tokens(extra: Opaque | None, counter: TokenCounter) -> int:
    if extra is None or extra.kind == "cache_control" or extra.provider == "pagein":
        return 0
    return _countable_tokens(countable_json(extra.text or extra.body), counter)


def _countable_tokens(countable: Countable, counter: TokenCounter) -> int:
    images = sum(max(counter.image(image), IMAGE_MIN_TOKENS) for image in countable.images)
    return max(map(counter.text, countable.texts)) + images + countable.file_tokens
