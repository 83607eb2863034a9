"""Validation of requests to Bedrock's Converse API, independent of rendering.

Sources: the API reference (``Message``, ``ContentBlock``, ``ToolUseBlock``, ``ToolResultBlock``, ``ImageBlock``,
``DocumentBlock``), botocore's service model, and the API's own errors:

* "The text field in the ContentBlock object at messages.0.content.0 is blank" (earendil-works/pi#4975), "text content blocks
  must contain non-whitespace text" (NousResearch/hermes-agent#61318);
* "A text block must be included when using documents", "The content field in the Message object at messages.N is empty"
  (archestra-ai/archestra#4220);
* "The content field at messages.<n>.content.0.toolResult cannot be empty when status value is error"
  (aws-samples/sample-multi-agent-orchestration-chat-on-agentcore#15);
* an id of 1 to 64 of a-z, A-Z, 0-9, _, ., : and - (run-llama/llama_index#22775), a name of 1 to 64 of a-z, A-Z, 0-9, _ and -;
* up to 20 images a message of 3.75 MB each, five documents with names of their own, both only from the user.

Where models differ (roles that alternate, a request that ends with the assistant), the strict rule applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pagein._common.json_values import objects_in
from pagein.errors import FormatError
from pagein.formats.anthropic.rules import order_problems, text_problems
from pagein.formats.parsing import is_utf8, to_plain_json, type_name

NAME_MAX_CHARS = ID_MAX_CHARS = 64
MAX_CACHE_POINTS = 4
MAX_IMAGES = 20
MAX_DOCUMENTS = 5
IMAGE_MAX_BYTES = 3_932_160
"""3.75 MB."""

IMAGE_FORMATS = ("png", "jpeg", "gif", "webp")
DOCUMENT_FORMATS = ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")

ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DOCUMENT_NAME = re.compile(r"(?!.*\s\s)[a-zA-Z0-9\s()\[\]-]{1,200}")
_BASE64 = re.compile(r"[a-zA-Z0-9+/=]+")

REFUSED_KEYS: Mapping[str, tuple[str, ...]] = {
    "user": ("toolUse", "reasoningContent", "citationsContent"),
    "assistant": ("toolResult", "image", "document", "video", "audio"),
    "result": ("toolUse", "toolResult", "reasoningContent", "cachePoint"),
}
"""The blocks that are refused in a message of each role, and in a result."""

BLOCK_KEYS = (
    "text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent", "cachePoint",
    "reasoningContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval", "json",
)  # fmt: skip

Block = dict[str, Any]


def block_key(block: Block) -> str:
    """Return the name of what a block is; "" for an unknown one."""
    return next((key for key in BLOCK_KEYS if key in block), "")


def is_server_tool(block: Block) -> bool:
    """Return True for a call or a result of a tool that the server runs: both stand in the assistant's message."""
    value = block.get("toolUse", block.get("toolResult"))
    return isinstance(value, dict) and value.get("type") is not None


def read_request(request: Any) -> tuple[Any, list[Any]]:
    """Return the ``system`` and the messages of boto3's keyword arguments, a list, one message or a whole response.

    ``system`` is None where there is none. Raises FormatError.
    """
    system: Any = None
    if isinstance(request, Mapping):
        if "messages" in request:
            system = to_plain_json(request.get("system"), "system", encode_bytes=True)
            request = request["messages"]
        elif {"role", "output"} & request.keys():
            request = [request]
        else:
            raise FormatError("the request has no messages", path="messages")
    if not isinstance(request, (list, tuple)):
        raise FormatError(f"expected a list of messages, not {type_name(request)}", path="messages")
    rows: list[Any] = to_plain_json(request, "messages", encode_bytes=True)
    return system, [_response_message(row) for row in rows]


def _response_message(row: Any) -> Any:
    """Return the message where the row is a whole response, with the usage that it reports."""
    match row:
        case {"output": {"message": dict(message)}}:
            return {**message, **({"usage": row["usage"]} if "usage" in row else {})}
        case _:
            return row


def problems(request: Any) -> tuple[str, ...]:
    """Return every rule the request breaks, in order of the messages. Never raises."""
    try:
        system, rows = read_request(request)
    except FormatError as error:
        return (str(error),)
    if not rows:
        return ("messages: there is none",)
    shapes = [f"messages[{index}]{fault}" for index, row in enumerate(rows) for fault in _shape_problems(row)]
    if shapes:
        return tuple(shapes)
    faults = [*_system_problems(system), *order_problems(rows), *_pair_problems(rows), *_limit_problems(rows, system)]
    for index, row in enumerate(rows):
        faults += (f"messages[{index}]{fault}" for fault in _message_problems(row))
        if not is_utf8(row):
            faults.append(f"messages[{index}]: contains a lone surrogate, which is not UTF-8")
    if not is_utf8(system):
        faults.append("system: contains a lone surrogate, which is not UTF-8")
    return tuple(faults)


def iterate_blocks(rows: list[Block]) -> Iterator[Block]:
    """Yield every block of the messages in the order of sending; those of a result before it."""
    for row in rows:
        for block in row["content"]:
            yield from _result_blocks(block)
            yield block


def _result_blocks(block: Block) -> list[Block]:
    result = block.get("toolResult")
    return objects_in(result.get("content")) if isinstance(result, dict) else []


def _shape_problems(row: Any) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f": expected an object, not {type_name(row)}"
        return
    if row.get("role") not in ("user", "assistant"):
        yield f".role: {row.get('role')!r} is none of user, assistant"
    content = row.get("content")
    if not isinstance(content, list) or not content:
        yield ".content: must be a list with at least one block"
        return
    for place, block in enumerate(content):
        if not isinstance(block, dict) or not block:
            yield f".content[{place}]: not an object with a field"


def _system_problems(system: Any) -> Iterator[str]:
    if system is None:
        return
    if not isinstance(system, list):
        yield f"system: expected a list of blocks, not {type_name(system)}"
        return
    for place, block in enumerate(system):
        if not isinstance(block, dict) or block_key(block) not in ("text", "cachePoint", "guardContent"):
            yield f"system[{place}]: only texts, cache points and guarded content may stand here"
        elif "text" in block:
            yield from (f"system[{place}]{fault}" for fault in text_problems(block["text"]))


def _pair_problems(rows: list[Block]) -> Iterator[str]:
    """Check that each call is answered once, at the head of the next message."""
    used: set[str] = set()
    called: dict[str, None] = {}
    for index, row in enumerate(rows):
        blocks = row["content"]
        if row["role"] == "user":
            answers = [block["toolResult"].get("toolUseId") for block in blocks if _is_object(block, "toolResult")]
            if sorted(map(str, answers)) != sorted(called):
                yield f"messages[{index}]: results for {answers}, the calls before are {list(called)}"
            kinds = ["toolResult" in block for block in blocks]
            if kinds != sorted(kinds, reverse=True):
                yield f"messages[{index}]: a result behind other content"
        called = {}
        for block in blocks if row["role"] == "assistant" else ():
            if _is_object(block, "toolUse") and not is_server_tool(block):
                call_id = str(block["toolUse"].get("toolUseId"))
                if call_id in used:
                    yield f"messages[{index}]: the id {call_id!r} of a call is used twice"
                used.add(call_id)
                called[call_id] = None
    if called:
        yield f"messages[{len(rows) - 1}]: calls {list(called)} have no result"


def _is_object(block: Block, key: str) -> bool:
    return isinstance(block.get(key), dict)


def _limit_problems(rows: list[Block], system: Any) -> Iterator[str]:
    for index, row in enumerate(rows):
        images = sum("image" in block for block in iterate_blocks([row]))
        if images > MAX_IMAGES:
            yield f"messages[{index}]: {images} images, the API takes {MAX_IMAGES}"
    documents = [block["document"] for block in iterate_blocks(rows) if _is_object(block, "document")]
    names = [document.get("name") for document in documents]
    if len(names) > MAX_DOCUMENTS:
        yield f"messages: {len(names)} documents, the API takes {MAX_DOCUMENTS}"
    yield from (f"messages: two documents are called {name!r}" for name in {*map(str, names)} if names.count(name) > 1)
    blocks = [*(system if isinstance(system, list) else ()), *iterate_blocks(rows)]
    points = sum(isinstance(block, dict) and "cachePoint" in block for block in blocks)
    if points > MAX_CACHE_POINTS:
        yield f"messages: {points} cache points, the API takes {MAX_CACHE_POINTS}"


def _message_problems(row: Block) -> Iterator[str]:
    blocks = row["content"]
    for place, block in enumerate(blocks):
        key = block_key(block)
        if key in REFUSED_KEYS[row["role"]] and not (key == "toolResult" and is_server_tool(block)):
            yield f".content[{place}]: {key} may not stand in a message of the {row['role']}"
        else:
            yield from (f".content[{place}]{fault}" for fault in _block_problems(block))
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        yield ".content: a document without a text beside it"
    if "cachePoint" in blocks[0]:
        yield ".content[0]: a cache point with nothing before it"
    if row["role"] == "assistant" and "reasoningContent" in blocks[-1]:
        yield ".content: the last block may not be reasoning"


def _block_problems(block: Block) -> Iterator[str]:
    if len(block) != 1:
        yield f": {len(block)} fields, a block has one"
        return
    ((key, value),) = block.items()
    match key:
        case "text":
            yield from text_problems(value)
        case "image":
            yield from (f".image{fault}" for fault in image_problems(value))
        case "document":
            yield from (f".document{fault}" for fault in document_problems(value))
        case "toolUse":
            yield from (f".toolUse{fault}" for fault in _call_problems(value))
        case "toolResult":
            yield from (f".toolResult{fault}" for fault in _result_problems(value))
        case "json":
            if not isinstance(value, dict):
                yield f".json: expected an object, not {type_name(value)}"


def _source_problems(value: Any, formats: tuple[str, ...], kinds: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f": expected an object, not {type_name(value)}"
        return
    if value.get("format", formats[0]) not in formats:
        yield f".format: {value['format']!r} is none of {', '.join(formats)}"
    source = value.get("source")
    if not isinstance(source, dict) or len(source) != 1 or not {*source} <= {*kinds}:
        yield f".source: must have one of {', '.join(kinds)}"
    elif "bytes" in source and not (isinstance(source["bytes"], str) and _BASE64.fullmatch(source["bytes"])):
        yield ".source.bytes: no base64"


def image_problems(image: Any) -> Iterator[str]:
    """Yield every rule that an image breaks, with the place in it."""
    yield from _source_problems(image, IMAGE_FORMATS, ("bytes", "s3Location"))
    if isinstance(image, dict) and isinstance(image.get("source"), dict):
        if "format" not in image:
            yield ".format: missing"
        data = image["source"].get("bytes")
        if isinstance(data, str) and len(data) * 3 // 4 > IMAGE_MAX_BYTES + 2:
            yield f".source.bytes: more than {IMAGE_MAX_BYTES} bytes"


def document_problems(document: Any) -> Iterator[str]:
    """Yield every rule that a document breaks, with the place in it."""
    yield from _source_problems(document, DOCUMENT_FORMATS, ("bytes", "s3Location", "text", "content"))
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str) or not DOCUMENT_NAME.fullmatch(name):
        yield f".name: {name!r} is not 1 to 200 letters, digits, single spaces, hyphens, parentheses and brackets"


def _call_problems(call: Any) -> Iterator[str]:
    if not isinstance(call, dict):
        yield f": expected an object, not {type_name(call)}"
        return
    yield from _id_problems(call)
    if not isinstance(call.get("name"), str) or not NAME.fullmatch(call["name"]):
        yield f".name: {call.get('name')!r} is not 1 to {NAME_MAX_CHARS} of a-z, A-Z, 0-9, _ and -"
    if not isinstance(call.get("input"), dict):
        yield f".input: expected an object, not {type_name(call.get('input'))}"


def _id_problems(value: Block) -> Iterator[str]:
    call_id = value.get("toolUseId")
    if not isinstance(call_id, str) or not ID.fullmatch(call_id):
        yield f".toolUseId: {call_id!r} is not 1 to {ID_MAX_CHARS} of a-z, A-Z, 0-9, _, ., : and -"


def _result_problems(result: Any) -> Iterator[str]:
    if not isinstance(result, dict):
        yield f": expected an object, not {type_name(result)}"
        return
    yield from _id_problems(result)
    content = result.get("content")
    if not isinstance(content, list):
        yield f".content: expected a list, not {type_name(content)}"
        return
    if result.get("status") not in (None, "success", "error"):
        yield f".status: {result['status']!r} is none of success, error"
    if result.get("status") == "error" and not content:
        yield ".content: empty, though the result is an error"
    for place, block in enumerate(content):
        if not isinstance(block, dict):
            yield f".content[{place}]: expected an object, not {type_name(block)}"
        elif block_key(block) in REFUSED_KEYS["result"]:
            yield f".content[{place}]: {block_key(block)} may not stand in a result"
        else:
            yield from (f".content[{place}]{fault}" for fault in _block_problems(block))
