"""Anthropic's messages.

Source: the API reference and the request types of the official SDK (``anthropic.types``). Content is rendered as blocks,
never as a string: consecutive messages of one role become one message, and a list can be extended. Thinking goes back
unchanged with its turn, and only to Anthropic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pagein.errors import FormatError
from pagein.events import steps
from pagein.events.messages import Message
from pagein.events.tool_call_encoding import parse_arguments, wire_id, wire_name
from pagein.formats import parsing, rendering
from pagein.formats.anthropic import rules
from pagein.formats.base import Item, WireFormat

NAME: Final = "anthropic"
_CONTENT = "text or a list of blocks"

# Fields of a response that no request accepts. They are not kept, because they would be counted in every view.
_RESPONSE_KEYS = (
    "id",
    "type",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "container",
    "diagnostics",
    "context_management",
)

# Types that kept parts may not have, because the renderer alone pairs calls and results.
_PAIRED_TYPES = ("tool_use", "tool_result")

_SIGN_FIELDS = ("stop_reason", "stop_sequence")
_SIGN_BLOCKS = (
    "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "search_result", "server_tool_use",
    "mcp_tool_use", "container_upload", "compaction",
)  # fmt: skip

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Anthropic(WireFormat):
    """Anthropic messages. See ``Format`` for the methods.

    ``cache_markers`` is the number of ``cache_control`` markers a rendered request keeps: the last ones, which the next
    turn reads. Lower it where the tools are marked too, because the API accepts four in total.
    """

    cache_markers: int = rules.MAX_CACHE_MARKERS

    name = NAME
    problems = staticmethod(rules.problems)
    tools_frame_tokens = rendering.ANTHROPIC_TOOL_PROMPT_TOKENS

    def parse(self, request: Any) -> tuple[Item, ...]:
        """Parse system and messages, in order. Raises FormatError with the path of the fault."""
        fields = parsing.request_fields(request, ("system", "messages"))
        items: list[Item] = []
        if "system" in fields:
            items.append(steps.SystemPromptStep(_content(parsing.Fields({"system": fields["system"]}, ""), "system")))
        for index, row in enumerate(fields["messages"]):
            items += _items(parsing.Fields(row, f"messages[{index}]"))
        return tuple(items)

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Render ``system`` (if there is one) and alternating ``messages``; one more message only extends the end."""
        system: list[Block] = []
        turns: list[dict[str, Any]] = []
        used: set[str] = set()
        for message in rendering.with_wire_ids(messages, wire_id):
            blocks = list(_message_blocks(message, used))
            if message.role == "system":
                system += blocks
            else:
                _append_turn(turns, "assistant" if message.role == "assistant" else "user", blocks)
        _limit_images([turn["content"] for turn in turns])
        _limit_markers([*system, *(block for turn in turns for block in turn["content"])], self.cache_markers)
        return rendering.replace_surrogates({"system": system, "messages": turns} if system else {"messages": turns})

    def render_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool with its ``input_schema``."""
        named = {key: definition[key] for key in ("name", "description")}
        return {**named, "input_schema": definition["parameters"]}

    def count_signs(self, request: Any, rows: Iterable[Any]) -> float:
        """Count the fields and blocks of Anthropic's messages; a request's ``system`` is one more."""
        has_system = isinstance(request, Mapping) and request.get("system") is not None
        return has_system + WireFormat.count_signs(self, request, rows)

    @staticmethod
    def _count_row_signs(row: Block) -> int:
        return any(key in row for key in _SIGN_FIELDS) + sum(kind in _SIGN_BLOCKS for kind in parsing.part_types(row))


# -- parsing


def _items(message: parsing.Fields) -> Iterator[Item]:
    role = message.text("role")
    match role:
        case "user":
            yield from _user_items(message)
        case "assistant":
            yield _action(message)
        case "system":
            content = _content(message, "content")
            yield steps.SystemPromptStep(content, parsing.opaque_extra(NAME, "message", message.rest()))
        case _:
            raise message.error("role", f"unknown role {role!r}")


def _content(message: parsing.Fields, key: str) -> steps.Content:
    return message.text_or_parts(key, _CONTENT, _part)


def _user_items(message: parsing.Fields) -> Iterator[Item]:
    """Parse a user's message: each result is an item, then one item of the other blocks."""
    rows = message.text_or_rows("content", _CONTENT)
    beside = parsing.opaque_extra(NAME, "message", message.rest())
    if isinstance(rows, str):
        yield steps.TaskStep(rows, beside)
        return
    parts: list[steps.Part] = []
    results = 0
    for row, path in rows:
        if isinstance(row, dict) and row.get("type") == "tool_result":
            results += 1
            yield _observation(parsing.Fields(row, path))
        else:
            parts.append(_part(row, path))
    if parts or not results:
        yield steps.TaskStep(tuple(parts), beside)


def _observation(block: parsing.Fields) -> steps.Observation:
    block.take("type")
    call_id = block.text_or_empty("tool_use_id")
    failed = block.take("is_error")
    if failed is not None and not isinstance(failed, bool):
        raise block.error("is_error", f"expected true or false, not {parsing.type_name(failed)}")
    value = block.take("content")
    content = "" if value is None else _content(parsing.Fields({"content": value}, block.path), "content")
    return steps.Observation(
        call_id, content, "error" if failed else "ok", extra=parsing.opaque_extra(NAME, "tool_result", block.rest())
    )


def _action(message: parsing.Fields) -> steps.ActionStep:
    rows = message.text_or_rows("content", _CONTENT)
    usage, model = parsing.parse_usage(message.take("usage")), message.take("model")
    model = model if isinstance(model, str) else ""
    beside = parsing.opaque_extra(
        NAME, "message", {key: value for key, value in message.rest().items() if key not in _RESPONSE_KEYS}
    )
    if isinstance(rows, str):
        return steps.ActionStep(rows, model=model, usage=usage, extra=beside)
    _refuse_late_thinking(rows)
    return parsing.action_of_rows(rows, _call, _part, model=model, usage=usage, extra=beside)


def _refuse_late_thinking(rows: list[tuple[Any, str]]) -> None:
    """Raise FormatError if a thinking block that is returned stands where the API refuses it."""
    returned = [(row, path) for row, path in rows if isinstance(row, dict) and _is_returned(row)]
    late = rules.late_thinking([str(row.get("type")) for row, _ in returned])
    if late is not None:
        raise FormatError(
            "thinking behind text or a call, in a turn that calls a tool; give the blocks in the order they came in",
            path=returned[late][1],
        )


def _is_returned(row: Block) -> bool:
    """Return True if a block is returned to the API: no empty text, no thinking without a signature."""
    match row.get("type"):
        case "text":
            return bool(str(row.get("text")).strip())
        case "thinking":
            return bool(row.get("signature"))
    return True


def _call(row: Any, path: str) -> steps.ToolCall | None:
    if not isinstance(row, dict) or row.get("type") != "tool_use":
        return None
    block = parsing.Fields(row, path)
    block.take("type")
    return parsing.object_call(block, "id", NAME, "tool_use")


def _part(row: Any, path: str) -> steps.Part:
    block = parsing.Fields(row, path)
    kind = block.text("type")
    match kind:
        case "text":
            return steps.Text(block.text("text"), parsing.opaque_extra(NAME, kind, block.rest()))
        case "image":
            return _image(block) or _unread_image(row, path)
        case "thinking" | "redacted_thinking":
            if _is_returned(row):
                block.raise_first(rules.thinking_problems(row, kind), "give it back as it came, or leave it out")
            return parsing.opaque_part(NAME, kind, row)
        case _:
            return parsing.opaque_part(NAME, kind, row)


def _unread_image(row: Block, path: str) -> steps.Opaque:
    """Keep an image block unread. It goes back unchanged, so raise FormatError for one that the API refuses."""
    cure = "send the picture's bytes in base64 or its https URL, or leave the block out"
    parsing.Fields(row, path).raise_first((f".source{fault}" for fault in rules.image_problems(row["source"])), cure)
    return parsing.opaque_part(NAME, "image", row)


def _image(block: parsing.Fields) -> steps.Image | None:
    """Parse an image; None where rendering would not give back the same block."""
    source = block.fields("source")
    kind = source.text("type")
    beside = parsing.opaque_extra(NAME, "image", block.rest())
    if kind == "url":
        url = source.text_or_empty("url")
        return steps.Image(url=url, extra=beside) if url and not source.rest() else None
    if kind != "base64":
        return None
    media_type, data = source.text("media_type"), parsing.decode_exact_base64(source.text("data"))
    return steps.Image(data, media_type, extra=beside) if data and not source.rest() else None


# -- rendering


def _message_blocks(message: Message, used: set[str]) -> Iterator[Block]:
    """Render one message. ``used`` has the ids of earlier calls to server tools; those of this message are added."""
    match message.role:
        case "system":
            yield from _content_blocks(steps.as_parts(message.content), "system")
        case "user":
            blocks = list(_without_orphan_results(_content_blocks(steps.as_parts(message.content), "user"), used))
            yield from blocks or [_text_block(rendering.NO_CONTENT)]
        case "tool":
            yield _result_block(message)
        case "assistant":
            blocks = _without_late_thinking(list(_without_orphan_results(_assistant_blocks(message), used)))
            yield from blocks
            # The API refuses a message that is empty or ends with thinking.
            if not blocks or blocks[-1]["type"] in rules.THINKING_TYPES:
                yield _text_block(rendering.NO_CONTENT)


def _assistant_blocks(message: Message) -> Iterator[Block]:
    """Render the parts with each call at its place; calls keep their order."""
    for parts, call in rendering.parts_and_calls(message):
        yield from _content_blocks(parts, "assistant")
        if call is not None:
            yield _use_block(call)


def _content_blocks(parts: Sequence[steps.Part], place: str) -> Iterator[Block]:
    for part in parts:
        block = _part_block(part, place)
        if block is not None and (block["type"] != "text" or str(block.get("text", "")).strip()):
            yield block


def _part_block(part: steps.Part, place: str) -> Block | None:
    match part:
        case steps.Text():
            return {**(rendering.own_fields(part.extra, NAME) or {}), "type": "text", "text": part.text}
        case steps.Image():
            return _image_block(part, place)
    block = rendering.own_fields(part, NAME)
    if block is None:
        return _text_block(rendering.foreign_text(part))
    kind = block.get("type")
    if not isinstance(kind, str) or place == "system" or kind in (*rules.REFUSED_TYPES[place], *_PAIRED_TYPES):
        return None
    if kind in rules.THINKING_TYPES:
        block.pop("cache_control", None)  # refused on thinking, and not signed
        return None if any(rules.thinking_problems(block, kind)) else block
    if kind == "image" and any(rules.image_problems(block.get("source"))):
        return _text_block(rendering.image_placeholder(steps.Image(url=part.body)))
    return block


def _text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def _image_block(image: steps.Image, place: str) -> Block:
    beside = rendering.own_fields(image.extra, NAME) or {}
    source: dict[str, Any] | None = None
    if image.url.startswith("https://"):
        source = {"type": "url", "url": image.url}
    elif image.data and (media_type := rendering.sent_media_type(image)) in rules.IMAGE_TYPES:
        source = {"type": "base64", "media_type": media_type, "data": rendering.image_base64(image)}
    if source is None or place not in {"user", "result"}:
        return _text_block(rendering.image_placeholder(image))
    return {**beside, "type": "image", "source": source}


def _use_block(call: steps.ToolCall) -> Block:
    beside = rendering.own_fields(call.extra, NAME) or {}
    name = wire_name(call.name, rules.NAME_MAX_CHARS)
    ours = {"type": "tool_use", "id": call.id, "name": name, "input": parse_arguments(call.arguments)}
    return {**beside, **ours}


def _result_block(message: Message) -> Block:
    beside = rendering.own_fields(message.extra, NAME) or {}
    ours = {"type": "tool_result", "tool_use_id": message.call_id}
    if isinstance(message.content, str):
        text = message.content if message.content.strip() else rendering.NO_OUTPUT
        return {**beside, **ours, "content": text} | ({"is_error": True} if message.is_error else {})
    blocks = list(_content_blocks(steps.as_parts(message.content), "result"))
    if not message.is_error:
        return {**beside, **ours, "content": blocks or rendering.NO_OUTPUT}
    if any(block["type"] != "text" for block in blocks):
        # A failed result may contain only text, so the flag becomes a text and the image stays.
        return {**beside, **ours, "content": [_text_block(rendering.FAILED), *blocks]}
    return {**beside, **ours, "content": blocks or rendering.NO_OUTPUT, "is_error": True}


# -- order of blocks


def _append_turn(turns: list[dict[str, Any]], role: str, blocks: list[Block]) -> None:
    """Add the blocks to the last turn, or to a new one where the role or the place of thinking requires it."""
    is_models = role == "assistant" and turns and turns[-1]["role"] == role
    if is_models and _needs_new_turn(turns[-1]["content"], blocks):
        # Thinking must open its turn and may not be moved, so the last turn ends here.
        turns.append({"role": "user", "content": [{"type": "text", "text": rendering.CONTINUE}]})
    rendering.extend_turn(turns, role, "content", blocks)


def _needs_new_turn(before: list[Block], blocks: list[Block]) -> bool:
    late = rules.late_thinking([block["type"] for block in (*before, *blocks)])
    return late is not None or (_has_thinking(blocks) and not _has_thinking(before))


def _has_thinking(blocks: list[Block]) -> bool:
    return any(block["type"] in rules.THINKING_TYPES for block in blocks)


def _without_late_thinking(blocks: list[Block]) -> list[Block]:
    """Remove thinking from a turn that has it after text or a call: it may neither stay there nor move."""
    if rules.late_thinking([block["type"] for block in blocks]) is None:
        return blocks
    return [block for block in blocks if block["type"] not in rules.THINKING_TYPES]


def _without_orphan_results(blocks: Iterable[Block], used: set[str]) -> Iterator[Block]:
    """Replace each result of a server tool without its call by its readable text."""
    for block in blocks:
        kind = block["type"]
        if kind in rules.SERVER_USE_TYPES:
            used.add(str(block.get("id")))
        if not kind.endswith("_tool_result") or str(block.get("tool_use_id")) in used:
            yield block
        elif (text := parsing.opaque_part("anthropic", kind, block).text).strip():
            yield {"type": "text", "text": text}


# -- limits of a request


_BATCH = 20
"""Images that become text together, so that not every new image changes the beginning of the request."""

_LARGE_BATCH = 5
"""The same where large images limit a request to twenty."""


def _limit_images(contents: list[list[Block]]) -> None:
    """Replace images that are too large for the API, and the oldest where there are more than it takes."""
    images = rules.image_blocks(contents)
    for block in images:
        if any(rules.image_size_problems(block)):
            _replace_by_name(block)
    images = [block for block in images if block["type"] == "image"]
    batches = -(-max(0, len(images) - rules.MAX_IMAGES) // _BATCH)
    removed, images = images[: batches * _BATCH], images[batches * _BATCH :]
    sides = [rules.longest_side(block) for block in images]
    start = 0
    while len(images) - start > rules.MANY_IMAGES and max(sides[start:]) > rules.MANY_IMAGES_MAX_PIXELS:
        start += _LARGE_BATCH
    for block in (*removed, *images[:start]):
        _replace_by_name(block)


def _replace_by_name(block: Block) -> None:
    marker = {key: block[key] for key in ("cache_control",) if key in block}
    name = rendering.image_placeholder(_image_of(block.get("source")) or steps.Image(url=parsing.compact_json(block)))
    block.clear()
    block.update({"type": "text", "text": name}, **marker)


def _image_of(source: Any) -> steps.Image | None:
    match source:
        case {"type": "base64", "data": str(encoded)} if data := parsing.decode_exact_base64(encoded):
            return steps.Image(data)
        case {"type": "url", "url": str(url)} if url:
            return steps.Image(url=url)
        case _:
            return None


def _limit_markers(blocks: list[Block], limit: int) -> None:
    """Remove ``cache_control`` from all but the last ``limit`` blocks that have one."""
    marked = [block for block in rules.iterate_blocks(blocks) if block.get("cache_control") is not None]
    for block in marked[: max(0, len(marked) - limit)]:
        del block["cache_control"]
