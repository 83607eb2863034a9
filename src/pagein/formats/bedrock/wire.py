"""Amazon Bedrock's Converse API.

Source: the API reference and botocore's service model of ``bedrock-runtime``. Messages of one role in a row become one
message, results first. Reasoning goes back unchanged with its turn, and only to Bedrock. JSON has bytes as base64, as
the HTTP API does; ``keywords`` gives boto3 the bytes that it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pagein._common.json_values import objects_in
from pagein.events import steps
from pagein.events.messages import Message
from pagein.events.normal_form import CACHE_MARKERS
from pagein.events.tool_call_encoding import parse_arguments, wire_id, wire_name
from pagein.formats import parsing, rendering
from pagein.formats.base import Item, WireFormat
from pagein.formats.bedrock import rules

NAME: Final = "bedrock"
_CONTENT = "a list of blocks"

_JSON = steps.Opaque(NAME, "json", "{}")
"""The mark of a text that came as JSON."""

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bedrock(WireFormat):
    """Messages of the Converse API. See ``Format`` for the methods."""

    name = NAME
    problems = staticmethod(rules.problems)
    tools_frame_tokens = rendering.ANTHROPIC_TOOL_PROMPT_TOKENS

    def parse(self, request: Any) -> tuple[Item, ...]:
        """Parse system and messages, in order. Raises FormatError with the path of the fault."""
        system, rows = rules.read_request(request)
        items: list[Item] = []
        if system:
            items.append(steps.SystemPromptStep(_content(parsing.Fields({"system": system}, ""), "system")))
        for index, row in enumerate(rows):
            message = parsing.Fields(row, f"messages[{index}]")
            role = message.text("role")
            match role:
                case "user":
                    items += _user_items(message)
                case "assistant":
                    items.append(_action(message))
                case "system":
                    items.append(steps.SystemPromptStep(_content(message, "content")))
                case _:
                    raise message.error("role", f"unknown role {role!r}")
        return tuple(items)

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Render ``system`` (if there is one) and alternating ``messages``; one more message only extends the end."""
        system: list[Block] = []
        rows: list[Block] = []
        for message in rendering.with_wire_ids(messages, _wire_id):
            if message.role == "system":
                system += _blocks(steps.as_parts(message.content), "system")
            else:
                _append_message(rows, message)
        _keep_to_limits(system, rows)
        request = {"system": system, "messages": rows} if system else {"messages": rows}
        return rendering.replace_surrogates(request)

    def keywords(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request for boto3's ``converse``, with bytes in place of base64."""
        return dict(rendering.with_bytes(request, ("bytes", "redactedContent"), ("input", "json")))

    def render_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool as a ``toolSpec``; a request has them as ``toolConfig={"tools": [...]}``."""
        named = {key: definition[key] for key in ("name", "description")}
        return {"toolSpec": {**named, "inputSchema": {"json": definition["parameters"]}}}

    @staticmethod
    def _count_row_signs(row: Block) -> int:
        """Count the blocks without a ``type``, as only Converse has them."""
        has_types = any(kind is not None for kind in parsing.part_types(row))
        return 0 if has_types else sum(bool(rules.block_key(block)) for block in objects_in(row.get("content")))


# -- parsing


def _content(message: parsing.Fields, key: str) -> steps.Content:
    return message.text_or_parts(key, _CONTENT, _part)


def _user_items(message: parsing.Fields) -> Iterator[Item]:
    """Parse a user's message: each result is an item, then one item of the other blocks; a cache marker alone is none."""
    rows = message.text_or_rows("content", _CONTENT)
    if isinstance(rows, str):
        yield steps.TaskStep(rows)
        return
    parts: list[steps.Part] = []
    results = 0
    for row, path in rows:
        if isinstance(row, dict) and isinstance(row.get("toolResult"), dict):
            results += 1
            yield _observation(parsing.Fields(row, path).fields("toolResult"))
        else:
            parts.append(_part(row, path))
    is_said = any(not (isinstance(part, steps.Opaque) and part.kind in CACHE_MARKERS) for part in parts)
    if is_said or not results:
        yield steps.TaskStep(tuple(parts))


def _observation(result: parsing.Fields) -> steps.Observation:
    call_id = result.text_or_empty("toolUseId")
    content = _content(result, "content")
    status = result.take("status")
    beside = {**({"status": status} if status == "success" else {}), **result.rest()}
    extra = parsing.opaque_extra(NAME, "toolResult", beside)
    return steps.Observation(call_id, content, "error" if status == "error" else "ok", extra=extra)


def _action(message: parsing.Fields) -> steps.ActionStep:
    rows = message.text_or_rows("content", _CONTENT)
    usage = parsing.parse_usage(message.take("usage"))
    if isinstance(rows, str):
        return steps.ActionStep(rows, usage=usage)
    return parsing.action_of_rows(rows, _call, _part, usage=usage)


def _call(row: Any, path: str) -> steps.ToolCall | None:
    if not isinstance(row, dict) or not isinstance(row.get("toolUse"), dict) or rules.is_server_tool(row):
        return None
    return parsing.object_call(parsing.Fields(row, path).fields("toolUse"), "toolUseId", NAME, "toolUse")


def _part(row: Any, path: str) -> steps.Part:
    block = parsing.Fields(row, path)
    key = rules.block_key(row)
    match key:
        case "text":
            return steps.Text(block.text("text"), parsing.opaque_extra(NAME, "text", block.rest()))
        case "json" if row.keys() == {"json"}:
            return steps.Text(parsing.compact_json(row["json"]), _JSON)
        case "image":
            if image := _image(row):
                return image
            cure = "send a PNG, JPEG, GIF or WebP of at most 3.75 MB, or leave the block out"
            block.raise_first((f".image{fault}" for fault in rules.image_problems(row["image"])), cure)
        case "citationsContent":
            if text := parsing.readable_text(
                {"content": row[key].get("content")} if isinstance(row[key], dict) else ""
            ):
                return steps.Text(text, steps.Opaque(NAME, key, parsing.compact_json(row)))
        case "reasoningContent":
            return steps.Opaque(NAME, key, parsing.compact_json(row), _reasoning_text(row[key]))
        case "":
            key, value = next(iter(row.items()), ("", None))
            if len(row) != 1 or not isinstance(value, dict):  # as a kind that came later would be
                raise block.error("", f"none of the blocks that are known: {', '.join(rules.BLOCK_KEYS)}")
    return parsing.opaque_part(NAME, key, row)


def _reasoning_text(value: Any) -> str:
    match value:
        case {"reasoningText": {"text": str(text)}}:
            return text
        case _:
            return ""


def _image(row: Block) -> steps.Image | None:
    """Parse an image; None where rendering would not give back the same block."""
    match row:
        case {"image": {"format": str(kind), "source": {"bytes": str(encoded), **more}, **rest}}:
            data = None if more or rest else parsing.decode_exact_base64(encoded)
            return steps.Image(data, f"image/{kind}") if data else None
        case {"image": {"format": str(kind), "source": {"s3Location": {"uri": str(url), **owner}, **more}, **rest}}:
            is_plain = url.startswith("s3://") and kind in rules.IMAGE_FORMATS and not (owner or more or rest)
            return steps.Image(media_type=f"image/{kind}", url=url) if is_plain else None
    return None


# -- rendering


def _append_message(rows: list[Block], message: Message) -> None:
    """Add a message to the last one of its role, or as a new one."""
    if message.role == "assistant":
        blocks = _assistant_blocks(message)
        if rows and rows[-1]["role"] == "assistant" and "reasoningContent" in blocks[0]:
            # Reasoning opens its turn, so the last turn ends here.
            rows.append({"role": "user", "content": [{"text": rendering.CONTINUE}]})
        role = "assistant"
    else:
        role = "user"
        is_result = message.role == "tool"
        blocks = [_result_block(message)] if is_result else _blocks(steps.as_parts(message.content), "user")
        blocks = blocks or [{"text": rendering.NO_CONTENT}]
    rendering.extend_turn(rows, role, "content", blocks)


def _assistant_blocks(message: Message) -> list[Block]:
    """Render the parts with each call at its place; calls keep their order."""
    blocks: list[Block] = []
    for parts, call in rendering.parts_and_calls(message):
        blocks += _blocks(parts, "assistant")
        if call is not None:
            blocks.append(_use_block(call))
    # The API refuses a message that is empty or ends with reasoning.
    if not blocks or "reasoningContent" in blocks[-1]:
        blocks.append({"text": rendering.NO_CONTENT})
    return blocks


def _blocks(parts: Sequence[steps.Part], place: str) -> list[Block]:
    rows = (_part_block(part, place) for part in parts)
    return [row for row in rows if row is not None and ("text" not in row or str(row["text"]).strip())]


def _part_block(part: steps.Part, place: str) -> Block | None:
    match part:
        case steps.Text():
            return _text_block(part, place)
        case steps.Image():
            block = _image_block(part) if place in ("user", "result") else None
            return block or {"text": rendering.image_placeholder(part)}
    block = rendering.own_fields(part, NAME)
    if block is None:
        text = rendering.foreign_text(part)
        return {"text": text} if text else None
    key = rules.block_key(block)
    if place == "system":
        return block if key in ("cachePoint", "guardContent") else None
    is_servers = place == "assistant" and rules.is_server_tool(block)
    if (key in rules.REFUSED_KEYS[place] or key in ("toolUse", "toolResult")) and not is_servers:
        return None
    if key == "image" and any(rules.image_problems(block[key])):
        return {"text": rendering.image_placeholder(steps.Image(url=part.body))}
    return block


def _text_block(part: steps.Text, place: str) -> Block:
    own = rendering.own_fields(part.extra, NAME) or {}
    if part.extra == _JSON and place == "result":
        value = parse_arguments(part.text)
        if parsing.compact_json(value) == part.text:
            return {"json": value}
    if "citationsContent" in own:
        return own if place == "assistant" else {"text": part.text}
    return {**own, "text": part.text}


def _image_block(image: steps.Image) -> Block | None:
    kind = rendering.sent_media_type(image).removeprefix("image/")
    if kind not in rules.IMAGE_FORMATS or len(image.data) > rules.IMAGE_MAX_BYTES:
        return None
    if image.data:
        return {"image": {"format": kind, "source": {"bytes": rendering.image_base64(image)}}}
    if image.url.startswith("s3://"):
        return {"image": {"format": kind, "source": {"s3Location": {"uri": image.url}}}}
    return None


def _use_block(call: steps.ToolCall) -> Block:
    own = rendering.own_fields(call.extra, NAME) or {}
    name = wire_name(call.name, rules.NAME_MAX_CHARS)
    return {"toolUse": {**own, "toolUseId": call.id, "name": name, "input": parse_arguments(call.arguments)}}


def _result_block(message: Message) -> Block:
    own = rendering.own_fields(message.extra, NAME) or {}
    status = own.pop("status", None)
    blocks = _blocks(steps.as_parts(message.content), "result")
    if not blocks and (message.is_error or message.content != ()):
        blocks = [{"text": rendering.NO_OUTPUT}]
    result = {**own, "toolUseId": message.call_id, "content": blocks}
    if message.is_error or status == "success":
        result["status"] = "error" if message.is_error else "success"
    return {"toolResult": result}


def _wire_id(call_id: str) -> str:
    """Return the id if the API takes it, else a rewritten one."""
    return call_id if rules.ID.fullmatch(call_id) else wire_id(call_id, rules.ID_MAX_CHARS)


# -- limits of a request


def _keep_to_limits(system: list[Block], rows: list[Block]) -> None:
    """Change the blocks of a rendered request so that it keeps to the limits."""
    _limit_cache_points(system, rows)
    for row in rows:
        images = [block for block in rules.iterate_blocks([row]) if "image" in block]
        for block in images[: max(0, len(images) - rules.MAX_IMAGES)]:
            _replace_by_text(block, rendering.image_placeholder(steps.Image(url=parsing.compact_json(block["image"]))))
    documents = [block for block in rules.iterate_blocks(rows) if isinstance(block.get("document"), dict)]
    too_old = documents[: max(0, len(documents) - rules.MAX_DOCUMENTS)]
    for block in too_old:
        _replace_by_text(block, f"[document {block['document'].get('name', '')}]")
    _name_documents([block["document"] for block in documents[len(too_old) :]])
    for row in rows:
        if any("document" in block for block in row["content"]) and not any(
            "text" in block for block in row["content"]
        ):
            row["content"].append({"text": rendering.NO_CONTENT})


def _limit_cache_points(system: list[Block], rows: list[Block]) -> None:
    """Remove all but the last cache points, and those with nothing before them."""
    lists = [system, *(row["content"] for row in rows)]
    points = [block for blocks in lists for block in blocks if "cachePoint" in block]
    refused = points[: max(0, len(points) - rules.MAX_CACHE_POINTS)]
    for blocks in lists:
        blocks[:] = [block for block in blocks if not any(block is point for point in refused)]
        while blocks and "cachePoint" in blocks[0]:
            del blocks[0]
    for row in rows:
        if not row["content"]:
            row["content"].append({"text": rendering.NO_CONTENT})


def _replace_by_text(block: Block, text: str) -> None:
    block.clear()
    block["text"] = text


def _name_documents(documents: list[Block]) -> None:
    """Give each document a name that the API takes and that no other has; a valid one stays."""
    used: set[str] = set()
    for document in documents:
        name = document.get("name")
        if not isinstance(name, str) or not rules.DOCUMENT_NAME.fullmatch(name):
            words = re.sub(r"[^a-zA-Z0-9()\[\]-]+", " ", name if isinstance(name, str) else "")
            name = words.strip()[:180] or "Document"
        number, unused = 1, name
        while unused in used:
            number += 1
            unused = f"{name[:180]} {number}"
        used.add(unused)
        document["name"] = unused
