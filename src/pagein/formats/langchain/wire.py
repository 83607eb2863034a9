"""LangChain's messages, as their own ``model_dump`` spells them, and as any LangChain chat model takes them.

Source: ``langchain_core.messages`` 1.x (``BaseMessage``, ``ToolCall``, the standard content blocks) and what its
integrations put beside them: blocks in OpenAI's and Anthropic's spelling, ``additional_kwargs``. LangChain itself is
not imported. A block that repeats a call stays where it stood and follows the call; any other block that is neither
text nor an image is kept unread, and so is a message of a kind that is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import (
    ActionStep,
    Content,
    Image,
    Observation,
    Opaque,
    Part,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    Usage,
    as_parts,
)
from pagein.events.tool_call_encoding import parsed, wire_id, wire_name
from pagein.formats import rendering as writing
from pagein.formats.base import Item
from pagein.formats.langchain import images as langchain_images
from pagein.formats.langchain import rules as langchain_rules
from pagein.formats.parsing import Fields, compact, extra, kept, kind_of, readable, request_fields

NAME = "langchain"
MAX_NAME = 64

_USER, _MODEL = ("human", "user"), ("ai", "assistant")
_SYSTEM, _TOOL = ("system", "developer"), ("tool", "function")

# In additional_kwargs, and content to us: what servers think, and what they would not say.
_THOUGHT = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
_DECLINED = "refusal"

# What tells an integration how to read the blocks again. The rest of what a response says of itself goes to no model.
_READ_WITH = ("model_provider", "output_version")
_ENVELOPE = ("id", "example", "usage_metadata", "tool_call_chunks", "chunk_position", "index")
_OURS = ("type", "role", "content", "tool_calls", "invalid_tool_calls", "tool_call_id", "status")

_CALLS = {"tool_use": ("id", "input"), "tool_call": ("id", "args"), "function_call": ("call_id", "arguments")}
"""The blocks that repeat a call: the keys of its id and of its arguments."""

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LangChain:
    """LangChain's messages. See ``Format`` for what each verb promises."""

    @property
    def name(self) -> str:
        """The public name."""
        return NAME

    def parse(self, request: Any) -> tuple[Item, ...]:
        """What the messages say, in order; LangChain's objects, or their dicts. Raises FormatError, with a path."""
        rows = request_fields(request)["messages"]
        return tuple(_item(row, f"messages[{index}]") for index, row in enumerate(rows))

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """One message of LangChain's for each message; one more only appends. Empty instructions are left out."""
        rows = (_row(message) for message in messages)
        return {"messages": writing.encodable([row for row in rows if row is not None])}

    def problems(self, request: Any) -> tuple[str, ...]:
        """Every rule that some provider behind LangChain would refuse the request for. Raises nothing."""
        return langchain_rules.problems(request)


# -- parsing


def _item(row: Any, path: str) -> Item:
    if isinstance(row, dict) and isinstance(row.get("data"), dict) and "content" not in row:
        row = {**row["data"], "type": row.get("type")}  # as messages_to_dict spells it
    message = Fields(row, path)
    given = row.get("type", row.get("role"))
    kind = given.removesuffix("MessageChunk").lower() if isinstance(given, str) else ""
    if kind in _MODEL:
        return _action(message)
    if kind in _TOOL:
        return _observation(message)
    if kind not in _USER and kind not in _SYSTEM:
        if not kind or "content" not in row:
            raise message.fault("type", f"{given!r} is no kind of message")
        return TaskStep((Opaque(NAME, "message", compact(row), readable(row)),))
    for key in ("type", "role"):
        message.take(key)
    content = _content(message)
    beside = _beside(message, {"role": kind} if kind == "developer" else {})
    return SystemPromptStep(content, beside) if kind in _SYSTEM else TaskStep(content, beside)


def _observation(message: Fields) -> Observation:
    status = message.take("status")
    call_id = message.text_or_empty("tool_call_id")
    content = _content(message)
    return Observation(call_id, content, "error" if status == "error" else "ok", extra=_beside(message))


def _beside(message: Fields, also: Block | None = None) -> Opaque | None:
    """What stood beside role and content. ``text`` of it is what a model may be sent, and so what it counts as."""
    left = {**message.left(), **(also or {})}
    metadata = left.pop("response_metadata", None)
    held = {key: value for key, value in left.items() if value not in ({}, []) and key not in _ENVELOPE}
    held = {key: value for key, value in held.items() if key not in _OURS or key in (also or {})}
    read_with = (
        {key: metadata[key] for key in _READ_WITH if metadata.get(key)} if isinstance(metadata, dict) else {}
    )
    if isinstance(held.get("additional_kwargs"), dict):
        named = {key: value for key, value in held["additional_kwargs"].items() if value is not None}
        held = (
            {**held, "additional_kwargs": named}
            if named
            else {k: v for k, v in held.items() if k != "additional_kwargs"}
        )
    sent = {key: value for key, value in held.items() if key != "artifact"}
    whole = {**held, "response_metadata": read_with} if read_with else held
    if not whole:
        return None
    return Opaque(NAME, "message", compact(whole), "" if whole == sent else compact(sent))


def _content(message: Fields) -> Content:
    value = message.take("content")
    if value is None or isinstance(value, str):
        return value or ""
    parts = tuple(_part(row, path) for row, path in _blocks(value, message))
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].extra is None:
        # A lone text is written as a string; the empty extra remembers that this one came as a block.
        return (replace(parts[0], extra=Opaque(NAME, "text", "{}")),)
    return parts


def _blocks(value: Any, message: Fields) -> Iterator[tuple[Block, str]]:
    if not isinstance(value, list):
        raise message.fault("content", f"expected text or a list of blocks, not {kind_of(value)}")
    for index, row in enumerate(value):
        path = f"{message.path}.content[{index}]"
        if isinstance(row, str):
            yield {"type": "text", "text": row}, path
        elif isinstance(row, dict):
            yield row, path
        else:
            raise FormatError(f"expected text or a block, not {kind_of(row)}", path=path)


def _part(row: Block, path: str) -> Part:
    block = Fields(row, path)
    kind = block.text_or_empty("type")
    if kind == "text" and isinstance(row.get("text"), str):
        return Text(block.text("text"), extra(NAME, kind, block.left()))
    if kind in langchain_images.KINDS:
        image = langchain_images.read(row)
        return kept(NAME, kind, row) if image is None else image
    return kept(NAME, kind or "block", row)


def _action(message: Fields) -> ActionStep:
    for key in ("type", "role"):
        message.take(key)
    usage = _usage(message.take("usage_metadata"))
    kwargs = message.take("additional_kwargs")
    kwargs = dict(kwargs) if isinstance(kwargs, dict) else {}
    before = [_field(kwargs, key) for key in _THOUGHT]
    after = _field(kwargs, _DECLINED)
    calls = [*_listed(message, "tool_calls"), *_listed(message, "invalid_tool_calls")]
    spelled = kwargs.pop("tool_calls", None)  # the same once more, as OpenAI said it
    if not calls and isinstance(spelled, list):
        calls = [
            _openai_call(Fields(row, f"{message.path}.additional_kwargs.tool_calls[{at}]"))
            for at, row in enumerate(spelled)
        ]
    value = message.take("content")
    content: Content | None = value if isinstance(value, str) else None
    if value is not None and not isinstance(value, str):
        content, calls = _placed(list(_blocks(value, message)), calls)
    if any(before) or after:
        content = tuple(part for part in (*before, *as_parts(content or None), after) if part is not None)
        offset = sum(part is not None for part in before)
        calls = [each if each.at is None else replace(each, at=each.at + offset) for each in calls]
    beside = _beside(message, {"additional_kwargs": kwargs} if kwargs else None)
    if content == "" and calls:
        content = None
    return ActionStep(content, tuple(calls), usage=usage, extra=beside)


def _field(kwargs: Block, key: str) -> Opaque | None:
    value = kwargs.pop(key, None)
    if not value:
        return None
    return Opaque(NAME, key, compact({"additional_kwargs": {key: value}}), kept(NAME, key, value).text)


def _listed(message: Fields, key: str) -> Iterator[ToolCall]:
    for row, path in message.rows(key):
        call = Fields(row, path)
        call_id, name = call.text_or_empty("id"), call.text_or_empty("name")
        given = call.take("args")
        arguments = given if isinstance(given, str) else compact({} if given is None else given)
        for known in ("type", "error"):
            call.take(known)
        left = call.left()
        yield ToolCall(
            call_id, name, arguments, extra=Opaque(NAME, "call", compact({"call": left})) if left else None
        )


def _openai_call(call: Fields) -> ToolCall:
    function = call.fields("function")
    given = function.take("arguments")
    return ToolCall(
        call.text_or_empty("id"),
        function.text("name"),
        given if isinstance(given, str) else compact(given or {}),
    )


def _placed(blocks: list[tuple[Block, str]], listed: list[ToolCall]) -> tuple[Content | None, list[ToolCall]]:
    """The parts, and the calls: first those that stand among the parts, then the others, each once."""
    parts: list[Part] = []
    calls: list[ToolCall] = []
    waiting = list(listed)
    for row, path in blocks:
        keys = _CALLS.get(str(row.get("type")))
        if keys is None or not isinstance(row.get(keys[0]), str) or not isinstance(row.get("name"), str):
            parts.append(_part(row, path))
            continue
        named = next((each for each in waiting if each.id == row[keys[0]]), None)
        if named is not None:
            waiting.remove(named)
        value = row.get(keys[1])
        call = named or ToolCall(
            row[keys[0]], row["name"], value if isinstance(value, str) else compact(value or {})
        )
        block = {key: each for key, each in row.items() if key not in (*keys, "name")}
        also = writing.own(call.extra, NAME) or {}
        calls.append(
            replace(call, at=len(parts), extra=Opaque(NAME, "call", compact({**also, "block": block})))
        )
    if len(parts) == 1 and not calls and isinstance(parts[0], Text) and parts[0].extra is None:
        parts[0] = replace(parts[0], extra=Opaque(NAME, "text", "{}"))
    return (tuple(parts) if parts or not calls else None), [*calls, *waiting]


def _usage(value: Any) -> Usage | None:
    """What the provider reported; LangChain's ``input_tokens`` has what the cache served in it."""
    if not isinstance(value, dict):
        return None

    def tokens(held: Any, key: str) -> int:
        count = held.get(key) if isinstance(held, dict) else None
        return count if type(count) is int and count > 0 else 0

    read = tokens(value, "input_tokens")
    cached = tokens(value.get("input_token_details"), "cache_read")
    return Usage(read, tokens(value, "output_tokens"), cached) if read else None


# -- rendering


def _row(message: Message) -> Block | None:
    held = writing.own(message.extra, NAME) or {}
    beside = {key: value for key, value in held.items() if key not in _OURS}
    parts = as_parts(message.content)
    if (
        message.role == "user"
        and len(parts) == 1
        and isinstance(parts[0], Opaque)
        and parts[0].kind == "message"
    ):
        whole = writing.own(parts[0], NAME)
        if whole is not None and "content" in whole:
            return whole  # a message of a kind that is not known
    if message.role == "assistant":
        return _spoken(message, beside)
    content = _flat([each for part in parts for each in _shown(part, message.role)])
    if message.role == "system":
        return {**beside, "type": "system", "content": content, **_developer(held)} if content else None
    if message.role == "tool":
        status = "error" if message.is_error else "success"
        answer = {"tool_call_id": wire_id(message.call_id), "status": status}
        return {**beside, "type": "tool", "content": content or writing.NO_OUTPUT, **answer}
    return {**beside, "type": "human", "content": content or writing.NO_CONTENT}


def _developer(held: Block) -> Block:
    if held.get("role") != "developer":
        return {}
    return {"additional_kwargs": {**held.get("additional_kwargs", {}), "__openai_role__": "developer"}}


def _spoken(message: Message, beside: Block) -> Block:
    blocks: list[Block | str] = []
    kwargs = dict(beside["additional_kwargs"]) if isinstance(beside.get("additional_kwargs"), dict) else {}
    parts, reached = as_parts(message.content), 0
    for call in (*message.tool_calls, None):
        at = len(parts) if call is None or call.at is None else min(max(call.at, reached), len(parts))
        for part in parts[reached:at]:
            field = writing.own(part, NAME) if isinstance(part, Opaque) else None
            if field is not None and "type" not in field and isinstance(field.get("additional_kwargs"), dict):
                kwargs.update(field["additional_kwargs"])
            else:
                blocks += _shown(part, "assistant")
        reached = at
        if call is not None and (block := _call_block(call)) is not None:
            blocks.append(block)
    content = _flat(blocks)
    if not content and not message.tool_calls and not kwargs.get(_DECLINED):
        content = writing.NO_CONTENT
    row = {
        **beside,
        "type": "ai",
        "content": content,
        "tool_calls": [_call_row(each) for each in message.tool_calls],
    }
    return {**row, "additional_kwargs": kwargs} if kwargs else row


def _call_row(call: ToolCall) -> Block:
    also = (writing.own(call.extra, NAME) or {}).get("call")
    named = {
        "type": "tool_call",
        "id": wire_id(call.id),
        "name": wire_name(call.name, MAX_NAME),
        "args": parsed(call.arguments),
    }
    return {**(also if isinstance(also, dict) else {}), **named}


def _call_block(call: ToolCall) -> Block | None:
    """The block that repeats the call, where the call came with one."""
    block = (writing.own(call.extra, NAME) or {}).get("block")
    keys = _CALLS.get(str(block.get("type"))) if isinstance(block, dict) else None
    if not isinstance(block, dict) or keys is None:
        return None
    arguments: Any = parsed(call.arguments)
    if block["type"] == "function_call":
        arguments = call.arguments
    return {**block, keys[0]: wire_id(call.id), "name": wire_name(call.name, MAX_NAME), keys[1]: arguments}


def _shown(part: Part, role: str) -> Iterator[Block | str]:
    """The block a part becomes; plain text stays plain, so that a lone one can be the message's content."""
    match part:
        case Text(text=text, extra=extra):
            beside = writing.own(extra, NAME)
            if text:
                yield text if beside is None else {**beside, "type": "text", "text": text}
        case Image():
            held = role in ("user", "tool")
            yield langchain_images.block(part) if held else writing.pictured(part)
        case Opaque():
            block = writing.own(part, NAME)
            foreign = writing.foreign_text(part) if block is None else ""
            if block is not None and isinstance(block.get("type"), str) and block["type"] not in _CALLS:
                yield block
            elif foreign:
                yield foreign


def _flat(blocks: list[Block | str]) -> str | list[Block]:
    if not blocks:
        return ""
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return blocks[0]
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
