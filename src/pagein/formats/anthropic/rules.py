"""Validation of requests to Anthropic's messages API, independent of rendering.

Each rule is a documented or reported error 400. Where the API is lenient and older models or gateways are not (two
messages of one role, a request that ends with the assistant), the strict rule applies. Undocumented block types are not
checked.

A request takes 100 images: the guide to vision says 100 for models with a window of 200,000 tokens and 600 for others.
Those in results and documents count too. No side is over 8000 pixels, and none over 2000 where there are more than 20
images: "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"
(anthropics/claude-code#24630). The base64 of an image has at most 5 MiB: "image exceeds 5 MB maximum: 6275800 bytes >
5242880 bytes" (lobehub/lobehub#14711). A system message in mid-conversation is no role of the API, so it is a notice.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from pagein._common.image_header import image_size
from pagein.errors import FormatError
from pagein.formats.parsing import is_utf8, request_fields, type_name

MAX_MESSAGES = 100_000
MAX_CACHE_MARKERS = 4
MAX_IMAGES = 100
IMAGE_MAX_PIXELS = 8_000
IMAGE_MAX_CHARS = 5 * 1024 * 1024
MANY_IMAGES, MANY_IMAGES_MAX_PIXELS = 20, 2_000
NAME_MAX_CHARS = 128
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
THINKING_TYPES = ("thinking", "redacted_thinking")

SERVER_USE_TYPES = ("server_tool_use", "mcp_tool_use")
REFUSED_TYPES: Mapping[str, tuple[str, ...]] = {
    "user": (*THINKING_TYPES, *SERVER_USE_TYPES, "tool_use"),
    "assistant": ("tool_result", "image"),
    "result": (*THINKING_TYPES, *SERVER_USE_TYPES, "tool_use", "tool_result"),
}
"""The block types that are refused in a message of each role, and in a tool result."""

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_BASE64 = re.compile(r"[a-zA-Z0-9+/=\s]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")

Block = dict[str, Any]


def problems(request: Any) -> tuple[str, ...]:
    """Return every rule the request breaks, in order of the messages. Never raises."""
    try:
        fields = request_fields(request, ("system", "messages", "tools", "cache_control"))
    except FormatError as error:
        return (str(error),)
    messages = fields["messages"]
    if not messages:
        return ("messages: there is none",)
    shapes = [f"messages[{index}]{fault}" for index, row in enumerate(messages) for fault in _shape_problems(row)]
    if shapes:
        return tuple(shapes)
    contents: list[list[Block]] = [
        [{"type": "text", "text": row["content"]}] if isinstance(row["content"], str) else row["content"]
        for row in messages
    ]
    faults = [*_system_problems(fields.get("system"))]
    if len(messages) > MAX_MESSAGES:
        faults.append(f"messages: {len(messages)} of them, the API takes {MAX_MESSAGES}")
    faults += [*order_problems(messages), *_pair_problems(messages, contents)]
    for index, (message, content) in enumerate(zip(messages, contents, strict=True)):
        faults += (f"messages[{index}]{fault}" for fault in _message_problems(message["role"], content))
    faults += (f"{name}: contains a lone surrogate, which is not UTF-8" for name in fields if not is_utf8(fields[name]))
    blocks = list(iterate_blocks(chain.from_iterable(contents)))
    faults += _marker_problems(fields, blocks)
    faults += _image_limit_problems([block for block in blocks if block.get("type") == "image"])
    faults += _server_pair_problems(contents)
    return tuple(faults)


def iterate_blocks(blocks: Iterable[Any]) -> Iterator[Block]:
    """Yield every block in the order of sending; inner blocks come before the result or document that contains them."""
    for block in blocks:
        if isinstance(block, dict):
            inner, source = block.get("content"), block.get("source")
            if isinstance(inner, list):
                yield from iterate_blocks(inner)
            if isinstance(source, dict) and isinstance(source.get("content"), list):
                yield from iterate_blocks(source["content"])
            yield block


def image_blocks(contents: Iterable[Iterable[Any]]) -> list[Block]:
    """Return every image block of the messages' contents, in order, with those in results and documents."""
    return [block for blocks in contents for block in iterate_blocks(blocks) if block.get("type") == "image"]


_HEADER_CHARS = 1 << 17
"""Base64 that is decoded to find an image's size; a header is near the front."""


def _encoded_image(block: Block) -> str:
    """Return the base64 of an image block; "" where it has none."""
    source = block.get("source")
    encoded = source.get("data") if isinstance(source, dict) else None
    return encoded if isinstance(encoded, str) else ""


def longest_side(block: Block) -> int:
    """Return the longer side of an image block in pixels; 0 where it is unknown."""
    try:
        size = image_size(binascii.a2b_base64(_encoded_image(block)[:_HEADER_CHARS].encode("ascii", "ignore")))
    except binascii.Error:
        return 0
    return 0 if size is None else max(size.width, size.height)


def image_size_problems(block: Block) -> Iterator[str]:
    """Yield the limit that an image block breaks by itself."""
    side = longest_side(block)
    if side > IMAGE_MAX_PIXELS:
        yield f"an image with a side of {side} pixels, the API takes {IMAGE_MAX_PIXELS}"
    length = len(_encoded_image(block))
    if length > IMAGE_MAX_CHARS:
        yield f"an image of {length:,} characters of base64, the API takes {IMAGE_MAX_CHARS:,}"


def _image_limit_problems(images: list[Block]) -> Iterator[str]:
    if len(images) > MAX_IMAGES:
        yield f"messages: {len(images)} images, the API takes {MAX_IMAGES}"
    yield from (f"messages: {fault}" for block in images for fault in image_size_problems(block))
    side = max(map(longest_side, images), default=0) if len(images) > MANY_IMAGES else 0
    if side > MANY_IMAGES_MAX_PIXELS:
        yield f"messages: {len(images)} images and a side of {side} pixels, the API takes {MANY_IMAGES_MAX_PIXELS}"


def _shape_problems(message: Any) -> Iterator[str]:
    if not isinstance(message, dict):
        yield f": expected an object, not {type_name(message)}"
        return
    if message.get("role") == "system":
        yield ".role: system is no role here; instructions go into the request's system"
    elif message.get("role") not in ("user", "assistant"):
        yield f".role: {message.get('role')!r} is no role"
    content = message.get("content")
    if not isinstance(content, (str, list)):
        yield f".content: expected text or a list of blocks, not {type_name(content)}"
        return
    for place, block in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            yield f".content[{place}]: not an object with a type"


def _system_problems(system: Any) -> Iterator[str]:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        yield f"system: expected text or a list of blocks, not {type_name(system)}"
        return
    for place, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            yield f"system[{place}]: only text blocks may stand here"
        else:
            yield from (f"system[{place}]{fault}" for fault in text_problems(block.get("text")))


def order_problems(rows: list[dict[str, Any]], key: str = "messages") -> Iterator[str]:
    """Yield where the roles do not alternate, or where the first or the last of the request's ``key`` is not the user's."""
    before = ""
    for index, row in enumerate(rows):
        if row["role"] == before:
            yield f"{key}[{index}]: two {before} {key} in a row"
        before = row["role"]
    if rows[0]["role"] != "user":
        yield f"{key}[0]: the conversation begins with {rows[0]['role']}, not user"
    if before != "user":
        yield f"{key}[{len(rows) - 1}]: the request ends with {before}, not user"


def _pair_problems(messages: list[dict[str, Any]], contents: list[list[Block]]) -> Iterator[str]:
    """Check that each call is answered once, at the head of the next message; ``order_problems`` checks there is one."""
    used_ids: set[str] = set()
    called: dict[str, None] = {}
    for index, (message, blocks) in enumerate(zip(messages, contents, strict=True)):
        if message["role"] == "user":
            answered: set[Any] = set()
            for place, result in _blocks_of_type(blocks, "tool_result"):
                call_id = result.get("tool_use_id")
                if not isinstance(call_id, str) or call_id not in called:
                    yield f"messages[{index}].content[{place}]: a result for {call_id!r}, no call of the message before"
                elif call_id in answered:
                    yield f"messages[{index}].content[{place}]: a second result for {call_id!r}"
                else:
                    answered.add(call_id)
                if place and blocks[place - 1]["type"] != "tool_result":
                    yield f"messages[{index}].content[{place}]: a result behind other content"
            yield from (f"messages[{index}]: call {call!r} has no result" for call in called if call not in answered)
            called = {}
            continue
        called = {}
        for place, use in _blocks_of_type(blocks, "tool_use"):
            call_id = use.get("id")
            if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
                yield f"messages[{index}].content[{place}].id: {call_id!r} is not one or more of a-z, A-Z, 0-9, _ and -"
            elif call_id in used_ids:
                yield f"messages[{index}].content[{place}].id: {call_id!r} is used twice"
            else:
                used_ids.add(call_id)
                called[call_id] = None


def _blocks_of_type(blocks: list[Block], kind: str) -> Iterator[tuple[int, Block]]:
    return ((place, block) for place, block in enumerate(blocks) if block["type"] == kind)


def _message_problems(role: str, blocks: list[Block]) -> Iterator[str]:
    if not blocks:
        yield ".content: there is none"
    for place, block in enumerate(blocks):
        kind = block["type"]
        if kind in REFUSED_TYPES[role]:
            yield f".content[{place}]: {kind} may not stand in a message of the {role}"
        else:
            yield from (f".content[{place}]{fault}" for fault in _block_problems(block))
    if role == "assistant":
        yield from _thinking_order_problems([block["type"] for block in blocks])


def late_thinking(kinds: list[str]) -> int | None:
    """Return the index of the first thinking block, if it follows text or a call in a turn with calls; else None."""
    first = next((place for place, kind in enumerate(kinds) if kind in THINKING_TYPES), 0)
    late = "tool_use" in kinds and any(kind in ("text", "tool_use") for kind in kinds[:first])
    return first if late else None


def _thinking_order_problems(kinds: list[str]) -> Iterator[str]:
    thoughts = [place for place, kind in enumerate(kinds) if kind in THINKING_TYPES]
    if not thoughts:
        return
    if late_thinking(kinds) is not None:
        yield ".content: thinking must come before the text and the calls of its turn"
    if thoughts[-1] == len(kinds) - 1:
        yield ".content: the last block may not be thinking"


def _block_problems(block: Block) -> Iterator[str]:
    match block["type"]:
        case "text":
            yield from text_problems(block.get("text"))
        case "image":
            yield from (f".source{fault}" for fault in image_problems(block.get("source")))
        case "tool_use":
            yield from _use_problems(block)
        case "tool_result":
            yield from _result_problems(block)
        case "thinking" | "redacted_thinking" as kind:
            yield from thinking_problems(block, kind)
            if "cache_control" in block:
                yield ".cache_control: thinking may not be marked"


def thinking_problems(block: Block, kind: str) -> Iterator[str]:
    """Yield the required fields that a thinking block lacks."""
    for key in ("signature", "thinking") if kind == "thinking" else ("data",):
        # Models that hide their thinking send an empty text.
        if not isinstance(block.get(key), str) or not (block[key] or key == "thinking"):
            yield f".{key}: missing or empty"


def text_problems(text: Any) -> Iterator[str]:
    """Yield what is wrong with a block's ``text``."""
    if not isinstance(text, str):
        yield f".text: expected text, not {type_name(text)}"
    elif not text.strip():
        yield ".text: empty, or nothing but white space"


def image_problems(source: Any) -> Iterator[str]:
    """Yield every rule an image's ``source`` breaks, with the place in it."""
    match source:
        case {"type": "base64"}:
            if source.get("media_type") not in IMAGE_TYPES:
                yield f".media_type: {source.get('media_type')!r} is none of {', '.join(IMAGE_TYPES)}"
            if not isinstance(source.get("data"), str) or not _BASE64.fullmatch(source["data"]):
                yield ".data: no base64"
        case {"type": "url"}:
            if not str(source.get("url")).startswith("https://"):
                yield ".url: only https is fetched"
        case {"type": str()}:
            return
        case _:
            yield ": not an object with a type"


def _use_problems(block: Block) -> Iterator[str]:
    if not isinstance(block.get("name"), str) or not _NAME.fullmatch(block["name"]):
        yield f".name: {block.get('name')!r} is not 1 to {NAME_MAX_CHARS} of a-z, A-Z, 0-9, _ and -"
    if not isinstance(block.get("input"), dict):
        yield f".input: expected an object, not {type_name(block.get('input'))}"


def _result_problems(block: Block) -> Iterator[str]:
    content = block.get("content")
    if content is not None and not isinstance(content, (str, list)):
        yield f".content: expected text or a list of blocks, not {type_name(content)}"
        return
    if block.get("is_error") is True and not content:
        yield ".content: empty, though the result is an error"
    for place, inner in enumerate(content if isinstance(content, list) else ()):
        kind = inner.get("type") if isinstance(inner, dict) else None
        if not isinstance(kind, str):
            yield f".content[{place}]: not an object with a type"
        elif kind in REFUSED_TYPES["result"]:
            yield f".content[{place}]: {kind} may not stand in a result"
        elif block.get("is_error") is True and kind != "text":
            yield f".content[{place}]: {kind} in a failed result, which takes only text"
        else:
            yield from (f".content[{place}]{fault}" for fault in _block_problems(inner))


def _marker_problems(request: Mapping[str, Any], blocks: Iterable[Block]) -> Iterator[str]:
    """Check the number of cache markers in tools, system, the blocks of the messages and the request itself."""
    beside = [rows for rows in (request.get("tools"), request.get("system")) if isinstance(rows, list)]
    marked = chain(iterate_blocks(chain.from_iterable(beside)), blocks, (request,))
    count = sum(block.get("cache_control") is not None for block in marked)
    if count > MAX_CACHE_MARKERS:
        yield f"messages: {count} cache_control markers, the API takes {MAX_CACHE_MARKERS}"


def _server_pair_problems(contents: list[list[Block]]) -> Iterator[str]:
    """Check that each result of a server tool follows its call."""
    called: set[Any] = set()
    for index, blocks in enumerate(contents):
        for place, block in enumerate(blocks):
            kind, call_id = block["type"], str(block.get("tool_use_id"))
            if kind in SERVER_USE_TYPES:
                called.add(str(block.get("id")))
            elif kind.endswith("_tool_result") and call_id not in called:
                yield f"messages[{index}].content[{place}]: {kind} for {call_id!r}, which nothing before it called"
