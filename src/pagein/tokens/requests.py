"""What a request costs: an upper bound of the rendered request, whatever the format. Pure, and never raises.

The rule, in the counter's tokens:

* a request: its messages, and 3;
* a message: 4, its content, its calls, and its ``call_id``;
* a message without calls: at least 4 for its content, since a format marks what is empty as ``(no output)``; 8 more for
  an assistant's opaque content, since a format may put a ``(continue)`` of the user before thinking;
* content: text by its tokens; an image by ``counter.image``, and at least 16 for the name that may stand for it; opaque
  content by its ``text``, or by its ``body`` where it has no text; one more for each part of a list;
* a tool call: name, arguments and id, and 8;
* an id, a name and arguments that some format spells otherwise: by the longest of their spellings;
* ``extra``, wherever it is: by its ``text``, or by its ``body`` where it has no text, except ``cache_control``, which no
  model sees.

OpenAI's published overhead is 3 a message and 3 a request; what Anthropic's framing was measured to cost is 6 to 8 for
a request of one message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, assert_never

from pagein.events.messages import Message
from pagein.events.steps import Content, Image, Opaque, Part, Text, ToolCall
from pagein.events.tool_call_encoding import spellings, wire_id, wire_names
from pagein.tokens import TokenCounter

REQUEST = 3
MESSAGE = 4
MARKED = 4
CALL = 8
NAMED = 16
TOOL = 8
ANTHROPIC_TOOLS = 600
"""What Anthropic adds to a request that has tools: 159 to 530 tokens by its own tables, by the model."""


def request_tokens(messages: Iterable[Message], counter: TokenCounter) -> int:
    """Tokens of the rendered messages, tools aside: no less than any format needs."""
    return REQUEST + sum(message_tokens(message, counter) for message in messages)


def message_tokens(message: Message, counter: TokenCounter) -> int:
    """Tokens of one message with all that it carries."""
    content = content_tokens(message.content, counter)
    if not message.tool_calls:
        content = max(content, MARKED)
    if message.role == "assistant" and isinstance(message.content, tuple):
        content += (MESSAGE + MARKED) * any(isinstance(part, Opaque) for part in message.content)
    total = MESSAGE + content + _extra(message.extra, counter)
    total += sum(_call(call, counter) for call in message.tool_calls)
    return total + (_id(message.call_id, counter) if message.call_id else 0)


def content_tokens(content: Content | None, counter: TokenCounter) -> int:
    """Tokens of the content alone; nothing costs nothing."""
    if content is None:
        return 0
    if isinstance(content, str):
        return counter.text(content)
    return sum(1 + part_tokens(part, counter) for part in content)


def part_tokens(part: Part, counter: TokenCounter) -> int:
    """Tokens of one part."""
    match part:
        case Text(text=text, extra=extra):
            return counter.text(text) + _extra(extra, counter)
        case Image(extra=extra):
            return max(counter.image(part), NAMED) + _extra(extra, counter)
        case Opaque(text=text, body=body):
            return counter.text(text or body)
        case _:
            assert_never(part)


def _call(call: ToolCall, counter: TokenCounter) -> int:
    name = max(counter.text(each) for each in (call.name, *wire_names(call.name)))
    arguments = max(counter.text(each) for each in spellings(call.arguments))
    return CALL + name + arguments + _id(call.id, counter) + _extra(call.extra, counter)


def _id(call_id: str, counter: TokenCounter) -> int:
    cost, wire = counter.text(call_id), wire_id(call_id)
    return cost if wire == call_id else max(cost, counter.text(wire))


def _extra(extra: Opaque | None, counter: TokenCounter) -> int:
    return 0 if extra is None or extra.kind == "cache_control" else counter.text(extra.text or extra.body)


def schema_tokens(tools: Any, counter: TokenCounter) -> int:
    """Tokens of the tool definitions, in OpenAI's or Anthropic's shape or any other JSON; 0 for none.

    Each counts as its JSON text and 8. Anthropic's (known by ``input_schema``) bring the prompt that teaches them.
    """
    if not tools:
        return 0
    listed = tools if isinstance(tools, list | tuple) else (tools,)
    total = sum(TOOL + counter.text(_as_json(tool)) for tool in listed)
    taught = any(isinstance(tool, dict) and "input_schema" in tool for tool in listed)
    return total + (ANTHROPIC_TOOLS if taught else 0)


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except Exception:  # noqa: BLE001 - keys that are not text, a circle, a depth nobody sends, someone's __repr__
        try:
            return repr(value)
        except Exception:  # noqa: BLE001 - a count may not raise
            return type(value).__name__
