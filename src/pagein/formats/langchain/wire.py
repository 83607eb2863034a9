"""LangChain's messages, as ``model_dump`` gives them and any LangChain chat model accepts them.

Source: ``langchain_core.messages`` 1.x (``BaseMessage``, ``ToolCall``, the standard content blocks) and the
additions of its integrations: OpenAI's and Anthropic's blocks, ``additional_kwargs``. LangChain is not imported. A block
that repeats a call keeps its place and follows the call. Other blocks that are neither text nor an image are kept
unread, and so are messages of unknown types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pagein.errors import FormatError
from pagein.events import steps
from pagein.events.messages import Message
from pagein.events.tool_call_encoding import parse_arguments, wire_id, wire_name
from pagein.formats import parsing, rendering
from pagein.formats.base import Item, WireFormat
from pagein.formats.langchain import rules
from pagein.formats.openai_chat import rules as openai_rules

NAME: Final = "langchain"
NAME_MAX_CHARS = 64

_USER_TYPES, _MODEL_TYPES = ("human", "user"), ("ai", "assistant")
_SYSTEM_TYPES, _TOOL_TYPES = ("system", "developer"), ("tool", "function")

# Keys of additional_kwargs that are parsed as content: reasoning and refusals.
_REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
_REFUSAL_KEY = "refusal"

# Response metadata that an integration needs to read the blocks again. Other metadata is not sent.
_KEPT_METADATA = ("model_provider", "output_version")
_ENVELOPE_KEYS = ("id", "example", "usage_metadata", "tool_call_chunks", "chunk_position", "index")
_RENDERED_KEYS = ("type", "role", "content", "tool_calls", "invalid_tool_calls", "tool_call_id", "status")

_CALL_BLOCKS = {"tool_use": ("id", "input"), "tool_call": ("id", "args"), "function_call": ("call_id", "arguments")}
"""The blocks that repeat a call: the keys of its id and of its arguments."""

_UNSENT_BLOCKS = (*_CALL_BLOCKS, rules.REMOVE_TYPE)

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LangChain(WireFormat):
    """LangChain's messages. See ``Format`` for the methods."""

    name = NAME
    problems = staticmethod(rules.problems)

    def parse(self, request: Any) -> tuple[Item, ...]:
        """Parse LangChain's messages or their dicts, in order. Raises FormatError with the path of the fault."""
        rows = parsing.request_fields(request)["messages"]
        # A RemoveMessage is an order to LangGraph's state: nobody said it, and no model takes it.
        said = ((row, f"messages[{index}]") for index, row in enumerate(rows) if not _is_removal(row))
        return tuple(_item(row, path) for row, path in said)

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Render the messages; one more only appends. Empty system messages are omitted.

        Ids and the number of calls keep to the limits of OpenAI, the strictest. A notice stays a notice, because Anthropic
        and Gemini take no system message in mid-conversation.
        """
        limited = list(rendering.with_call_limit(messages, openai_rules.MAX_CALLS))
        rows = (_message_row(message) for message in rendering.with_wire_ids(limited, _wire_id))
        return {"messages": rendering.replace_surrogates([row for row in rows if row is not None])}

    def render_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool as OpenAI's chat completions take it."""
        return {"type": "function", "function": dict(definition)}

    def count_signs(self, request: Any, rows: Iterable[Any]) -> float:  # noqa: ARG002 - never guessed
        """Return 0: the format must be named, as its messages are shaped like OpenAI's."""
        return 0


# -- parsing


def _is_removal(row: Any) -> bool:
    return isinstance(row, dict) and row.get("type") == rules.REMOVE_TYPE


def _item(row: Any, path: str) -> Item:
    if isinstance(row, dict) and isinstance(row.get("data"), dict) and "content" not in row:
        row = {**row["data"], "type": row.get("type")}  # the shape of messages_to_dict
    message = parsing.Fields(row, path)
    type_or_role = row.get("type", row.get("role"))
    kind = type_or_role.removesuffix("MessageChunk").lower() if isinstance(type_or_role, str) else ""
    if kind in _MODEL_TYPES:
        return _action(message)
    if kind in _TOOL_TYPES:
        return _observation(message)
    if kind not in _USER_TYPES and kind not in _SYSTEM_TYPES:
        if not kind or "content" not in row:
            raise message.error("type", f"{type_or_role!r} is no kind of message")
        return steps.TaskStep((steps.Opaque(NAME, "message", parsing.compact_json(row), parsing.readable_text(row)),))
    for key in ("type", "role"):
        message.take(key)
    content = _content(message)
    beside = _message_extra(message, {"role": kind} if kind == "developer" else {})
    return steps.SystemPromptStep(content, beside) if kind in _SYSTEM_TYPES else steps.TaskStep(content, beside)


def _observation(message: parsing.Fields) -> steps.Observation:
    status = message.take("status")
    call_id = message.text_or_empty("tool_call_id")
    content = _content(message)
    return steps.Observation(call_id, content, "error" if status == "error" else "ok", extra=_message_extra(message))


def _message_extra(message: parsing.Fields, also: Block | None = None) -> steps.Opaque | None:
    """Keep the fields beside role and content. The part's ``text`` is what is sent to a model and therefore counted."""
    fields = {**message.rest(), **(also or {})}
    metadata = fields.pop("response_metadata", None)
    kept_fields = {key: value for key, value in fields.items() if value not in ({}, []) and key not in _ENVELOPE_KEYS}
    kept_fields = {key: value for key, value in kept_fields.items() if key not in _RENDERED_KEYS or key in (also or {})}
    metadata = metadata if isinstance(metadata, dict) else {}
    read_with = {key: metadata[key] for key in _KEPT_METADATA if metadata.get(key)}
    kwargs = kept_fields.get("additional_kwargs")
    if isinstance(kwargs, dict):
        kept_fields["additional_kwargs"] = {key: value for key, value in kwargs.items() if value is not None}
        if not kept_fields["additional_kwargs"]:
            del kept_fields["additional_kwargs"]
    sendable = {key: value for key, value in kept_fields.items() if key != "artifact"}
    whole = {**kept_fields, "response_metadata": read_with} if read_with else kept_fields
    if not whole:
        return None
    return steps.Opaque(
        NAME, "message", parsing.compact_json(whole), "" if whole == sendable else parsing.compact_json(sendable)
    )


def _content(message: parsing.Fields) -> steps.Content:
    value = message.take("content")
    if value is None or isinstance(value, str):
        return value or ""
    parts = tuple(_part(row, path) for row, path in _blocks(value, message))
    return parsing.mark_lone_text(parts, NAME)


def _blocks(value: Any, message: parsing.Fields) -> Iterator[tuple[Block, str]]:
    if not isinstance(value, list):
        raise message.error("content", f"expected text or a list of blocks, not {parsing.type_name(value)}")
    for index, row in enumerate(value):
        path = f"{message.path}.content[{index}]"
        if isinstance(row, str):
            yield {"type": "text", "text": row}, path
        elif isinstance(row, dict):
            yield row, path
        else:
            raise FormatError(f"expected text or a block, not {parsing.type_name(row)}", path=path)


def _part(row: Block, path: str) -> steps.Part:
    block = parsing.Fields(row, path)
    kind = block.text_or_empty("type")
    if kind == "text" and isinstance(row.get("text"), str):
        return steps.Text(block.text("text"), parsing.opaque_extra(NAME, kind, block.rest()))
    if kind in IMAGE_TYPES:
        image = _parse_image(row)
        return parsing.opaque_part(NAME, kind, row) if image is None else image
    return parsing.opaque_part(NAME, kind or "block", row)


def _action(message: parsing.Fields) -> steps.ActionStep:
    for key in ("type", "role"):
        message.take(key)
    usage = parsing.parse_usage(message.take("usage_metadata"))
    kwargs = message.take("additional_kwargs")
    kwargs = dict(kwargs) if isinstance(kwargs, dict) else {}
    before = [_kwargs_part(kwargs, key) for key in _REASONING_KEYS]
    after = _kwargs_part(kwargs, _REFUSAL_KEY)
    calls = [*_listed_calls(message, "tool_calls"), *_listed_calls(message, "invalid_tool_calls")]
    openai_calls = kwargs.pop("tool_calls", None)  # the same calls in OpenAI's shape
    if not calls and isinstance(openai_calls, list):
        calls = [
            _openai_call(parsing.Fields(row, f"{message.path}.additional_kwargs.tool_calls[{at}]"))
            for at, row in enumerate(openai_calls)
        ]
    value = message.take("content")
    content: steps.Content | None = value if isinstance(value, str) else None
    if value is not None and not isinstance(value, str):
        content, calls = _parts_and_calls(list(_blocks(value, message)), calls)
    if any(before) or after:
        content = tuple(part for part in (*before, *steps.as_parts(content or None), after) if part is not None)
        offset = sum(part is not None for part in before)
        calls = [call if call.at is None else replace(call, at=call.at + offset) for call in calls]
    beside = _message_extra(message, {"additional_kwargs": kwargs} if kwargs else None)
    if content == "" and calls:
        content = None
    return steps.ActionStep(content, tuple(calls), usage=usage, extra=beside)


def _kwargs_part(kwargs: Block, key: str) -> steps.Opaque | None:
    value = kwargs.pop(key, None)
    if not value:
        return None
    text = parsing.opaque_part(NAME, key, value).text
    return steps.Opaque(NAME, key, parsing.compact_json({"additional_kwargs": {key: value}}), text)


def _listed_calls(message: parsing.Fields, key: str) -> Iterator[steps.ToolCall]:
    for row, path in message.rows(key):
        call = parsing.Fields(row, path)
        call_id, name = call.text_or_empty("id"), call.text_or_empty("name")
        value = call.take("args")
        arguments = value if isinstance(value, str) else parsing.compact_json({} if value is None else value)
        call.take("type")
        call.take("error")
        rest = call.rest()
        extra = steps.Opaque(NAME, "call", parsing.compact_json({"call": rest})) if rest else None
        yield steps.ToolCall(call_id, name, arguments, extra=extra)


def _openai_call(call: parsing.Fields) -> steps.ToolCall:
    function = call.fields("function")
    value = function.take("arguments")
    return steps.ToolCall(
        call.text_or_empty("id"),
        function.text("name"),
        value if isinstance(value, str) else parsing.compact_json(value or {}),
    )


def _parts_and_calls(
    blocks: list[tuple[Block, str]], listed: list[steps.ToolCall]
) -> tuple[steps.Content | None, list[steps.ToolCall]]:
    """Return the parts and the calls, each once: first those that have a block, then the others."""
    parts: list[steps.Part] = []
    calls: list[steps.ToolCall] = []
    waiting = list(listed)
    for row, path in blocks:
        keys = _CALL_BLOCKS.get(str(row.get("type")))
        if keys is None or not isinstance(row.get(keys[0]), str) or not isinstance(row.get("name"), str):
            parts.append(_part(row, path))
            continue
        listed_call = next((call for call in waiting if call.id == row[keys[0]]), None)
        if listed_call is not None:
            waiting.remove(listed_call)
        value = row.get(keys[1])
        call = listed_call or steps.ToolCall(
            row[keys[0]], row["name"], value if isinstance(value, str) else parsing.compact_json(value or {})
        )
        block = {key: item for key, item in row.items() if key not in (*keys, "name")}
        also = rendering.own_fields(call.extra, NAME) or {}
        calls.append(
            replace(
                call, at=len(parts), extra=steps.Opaque(NAME, "call", parsing.compact_json({**also, "block": block}))
            )
        )
    if calls:
        return tuple(parts) or None, [*calls, *waiting]
    return parsing.mark_lone_text(tuple(parts), NAME), waiting


# -- rendering


def _wire_id(call_id: str) -> str:
    return wire_id(call_id, None if openai_rules.is_short_id(call_id) else openai_rules.ID_MAX_CHARS)


def _message_row(message: Message) -> Block | None:
    fields = rendering.own_fields(message.extra, NAME) or {}
    beside = {key: value for key, value in fields.items() if key not in _RENDERED_KEYS}
    parts = steps.as_parts(message.content)
    match message.role, parts:
        case "user", (steps.Opaque(kind="message") as part,):
            whole = rendering.own_fields(part, NAME)
            if whole is not None and "content" in whole and not _is_removal(whole):
                return whole  # a message of an unknown type
    if message.role == "assistant":
        return _assistant_row(message, beside)
    content = _flatten([block for part in parts for block in _part_blocks(part, message.role)])
    if message.role == "system":
        row = {**beside, "type": "system", "content": content}
        if fields.get("role") == "developer":
            row["additional_kwargs"] = {**fields.get("additional_kwargs", {}), "__openai_role__": "developer"}
        return row if content else None
    if message.role == "tool":
        status = "error" if message.is_error else "success"
        answer = {"tool_call_id": message.call_id, "status": status}
        return {**beside, "type": "tool", "content": content or rendering.NO_OUTPUT, **answer}
    return {**beside, "type": "human", "content": content or rendering.NO_CONTENT}


def _assistant_row(message: Message, beside: Block) -> Block:
    blocks: list[Block | str] = []
    kwargs = dict(beside["additional_kwargs"]) if isinstance(beside.get("additional_kwargs"), dict) else {}
    for parts, call in rendering.parts_and_calls(message):
        for part in parts:
            field = rendering.own_fields(part, NAME) if isinstance(part, steps.Opaque) else None
            if field is not None and "type" not in field and isinstance(field.get("additional_kwargs"), dict):
                kwargs.update(field["additional_kwargs"])
            else:
                blocks += _part_blocks(part, "assistant")
        if call is not None and (block := _call_block(call)) is not None:
            blocks.append(block)
    content = _flatten(blocks)
    if not content and not message.tool_calls and not kwargs.get(_REFUSAL_KEY):
        content = rendering.NO_CONTENT
    row = {
        **beside,
        "type": "ai",
        "content": content,
        "tool_calls": [_call_row(tool_call) for tool_call in message.tool_calls],
    }
    return {**row, "additional_kwargs": kwargs} if kwargs else row


def _call_row(call: steps.ToolCall) -> Block:
    also = (rendering.own_fields(call.extra, NAME) or {}).get("call")
    named = {
        "type": "tool_call",
        "id": call.id,
        "name": wire_name(call.name, NAME_MAX_CHARS),
        "args": parse_arguments(call.arguments),
    }
    return {**(also if isinstance(also, dict) else {}), **named}


def _call_block(call: steps.ToolCall) -> Block | None:
    """Return the block that repeats the call, if the call came with one."""
    block = (rendering.own_fields(call.extra, NAME) or {}).get("block")
    keys = _CALL_BLOCKS.get(str(block.get("type"))) if isinstance(block, dict) else None
    if not isinstance(block, dict) or keys is None:
        return None
    arguments: Any = parse_arguments(call.arguments)
    if block["type"] == "function_call":
        arguments = call.arguments
    return {**block, keys[0]: call.id, "name": wire_name(call.name, NAME_MAX_CHARS), keys[1]: arguments}


def _part_blocks(part: steps.Part, role: str) -> Iterator[Block | str]:
    """Render a part as a block. Plain text stays a string, so that a lone one can be the message's content."""
    match part:
        case steps.Text(text=text, extra=extra):
            beside = rendering.own_fields(extra, NAME)
            if text:
                yield text if beside is None else {**beside, "type": "text", "text": text}
        case steps.Image():
            takes_images = role in ("user", "tool")
            yield _render_image(part) if takes_images else rendering.image_placeholder(part)
        case steps.Opaque():
            block = rendering.own_fields(part, NAME)
            foreign = rendering.foreign_text(part) if block is None else ""
            if block is not None and isinstance(block.get("type"), str) and block["type"] not in _UNSENT_BLOCKS:
                yield block
            elif foreign:
                yield foreign


def _flatten(blocks: list[Block | str]) -> str | list[Block]:
    if not blocks:
        return ""
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return blocks[0]
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]


# -- images: the standard block, its predecessor, OpenAI's and Anthropic's

IMAGE_TYPES = ("image", "image_url")
_SPELLING_KEY = "spelling"


def _parse_image(row: Block) -> steps.Image | None:
    """Parse an image block and keep its shape; None where rendering would not give back the same block."""
    images = {
        "openai": _openai(row),
        "standard": _image_from(row.get("base64"), row.get("mime_type"), row.get("url")),
        "v0": _image_from(row.get("data"), row.get("mime_type"), row.get("url")),
        "anthropic": _anthropic(row),
    }
    for spelling, image in images.items():
        if image is None:
            continue
        rest = {key: value for key, value in row.items() if key not in _KEYS_OF_SPELLING[spelling]}
        fields = rest if spelling == "openai" else {_SPELLING_KEY: spelling, **rest}
        extra = (
            steps.Opaque("langchain", "image", parsing.compact_json(fields), parsing.compact_json(rest))
            if fields
            else None
        )
        parsed_image = replace(image, extra=extra)
        if _image_block(parsed_image, image.media_type) == row:
            return parsed_image
    return None


def _render_image(image: steps.Image) -> Block:
    """Render an image in the shape it came in; others in OpenAI's, which every integration accepts."""
    return _image_block(image, rendering.sent_media_type(image))


def _image_block(image: steps.Image, media_type: str) -> Block:
    fields = rendering.own_fields(image.extra, "langchain") or {}
    beside = {key: value for key, value in fields.items() if key != _SPELLING_KEY}
    data = rendering.image_base64(image) if image.data else ""
    match fields.get(_SPELLING_KEY):
        case "standard":
            source = {"base64": data, "mime_type": media_type} if data else {"url": image.url}
            return {**beside, "type": "image", **source}
        case "v0":
            inline = {"source_type": "base64", "data": data, "mime_type": media_type}
            source = inline if data else {"source_type": "url", "url": image.url}
            return {**beside, "type": "image", **source}
        case "anthropic":
            inline = {"type": "base64", "media_type": media_type, "data": data}
            source = inline if data else {"type": "url", "url": image.url}
            return {**beside, "type": "image", "source": source}
    media_type = media_type if media_type.startswith("image/") else "image/png"  # as in OpenAI's format
    url = image.url or f"data:{media_type};base64,{data}"
    detail = {"detail": image.detail} if image.detail else {}
    return {**beside, "type": "image_url", "image_url": {"url": url, **detail}}


_KEYS_OF_SPELLING = {
    "openai": ("type", "image_url"),
    "standard": ("type", "base64", "mime_type", "url"),
    "v0": ("type", "source_type", "data", "mime_type", "url"),
    "anthropic": ("type", "source"),
}


def _openai(row: Block) -> steps.Image | None:
    source = row.get("image_url")
    if not isinstance(source, dict) or not isinstance(source.get("url"), str):
        return None
    detail = source.get("detail", "")
    inline = parsing.IMAGE_DATA_URL.fullmatch(source["url"])
    data = parsing.decode_exact_base64(inline[2]) if inline else None
    if inline and data:
        return steps.Image(data, inline[1], detail=detail)
    return steps.Image(url=source["url"], detail=detail) if source["url"] and not inline else None


def _anthropic(row: Block) -> steps.Image | None:
    source = row.get("source")
    if not isinstance(source, dict):
        return None
    return _image_from(source.get("data"), source.get("media_type"), source.get("url"))


def _image_from(encoded: Any, media_type: Any, url: Any) -> steps.Image | None:
    data = parsing.decode_exact_base64(encoded) if isinstance(encoded, str) else None
    if data and isinstance(media_type, str):
        return steps.Image(data, media_type)
    return steps.Image(url=url) if isinstance(url, str) and url else None
