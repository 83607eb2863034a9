"""Anthropic messages.

Source: the API reference and the request types of the official SDK (``anthropic.types``). The canonical spelling is
blocks, never the string shorthand: consecutive messages of one role are one message on this wire, and a list can grow
where a string cannot. Thinking goes back unchanged, with its turn, and only here.
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
from pagein.formats.anthropic import rules as anthropic_rules
from pagein.formats.anthropic import turns as anthropic_turns
from pagein.formats.base import Item
from pagein.formats.parsing import Fields, compact, exact_base64, extra, kept, kind_of, request_fields

NAME = "anthropic"

# What a response says of itself. No request takes it back, and kept it would count in every view.
_ENVELOPE = (
    "id",
    "type",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "container",
    "diagnostics",
    "context_management",
)

# A kept part neither calls nor answers: pairing is ours alone.
_PAIRED = ("tool_use", "tool_result")

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Anthropic:
    """Anthropic messages. See ``Format`` for what each verb promises.

    ``cache_markers`` is how many ``cache_control`` markers a rendered request keeps, the last ones: they are what the
    next turn reads from. Lower it where the host marks its tools too, because the API counts those among its four.
    """

    cache_markers: int = anthropic_rules.MAX_CACHE_MARKERS

    @property
    def name(self) -> str:
        """The public name."""
        return NAME

    def parse(self, request: Any) -> tuple[Item, ...]:
        """What system and messages say, in order. Raises FormatError with the path of what is not of the shape."""
        given = request_fields(request, ("system", "messages"))
        items: list[Item] = []
        if "system" in given:
            items.append(SystemPromptStep(_content(Fields({"system": given["system"]}, ""), "system")))
        for index, row in enumerate(given["messages"]):
            items += _items(Fields(row, f"messages[{index}]"))
        return tuple(items)

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """``system`` (where there is one) and alternating ``messages``; one more message only lengthens their end."""
        system: list[Block] = []
        turns: list[dict[str, Any]] = []
        used: set[str] = set()
        for message in messages:
            blocks = writing.encodable(list(_blocks(message, used)))
            if message.role == "system":
                system += blocks
            else:
                anthropic_turns.append(turns, "assistant" if message.role == "assistant" else "user", blocks)
        anthropic_turns.limit_markers(
            [*system, *(block for turn in turns for block in turn["content"])], self.cache_markers
        )
        return {"system": system, "messages": turns} if system else {"messages": turns}

    def problems(self, request: Any) -> tuple[str, ...]:
        """Every rule of the messages API that the request breaks. Raises nothing, whatever it is given."""
        return anthropic_rules.problems(request)


# -- parsing


def _items(message: Fields) -> Iterator[Item]:
    role = message.text("role")
    match role:
        case "user":
            yield from _user(message)
        case "assistant":
            yield _action(message)
        case "system":
            content = _content(message, "content")
            yield SystemPromptStep(content, extra(NAME, "message", message.left()))
        case _:
            raise message.fault("role", f"unknown role {role!r}")


def _content(message: Fields, key: str) -> Content:
    given = _rows(message, key)
    return given if isinstance(given, str) else tuple(_part(row, path) for row, path in given)


def _rows(message: Fields, key: str) -> str | list[tuple[Any, str]]:
    value = message.take(key)
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise message.fault(key, f"expected text or a list of blocks, not {kind_of(value)}")
    return [(row, f"{message.at(key)}[{index}]") for index, row in enumerate(value)]


def _user(message: Fields) -> Iterator[Item]:
    """The results, each its own item, and then what the user said beside them."""
    given = _rows(message, "content")
    beside = extra(NAME, "message", message.left())
    if isinstance(given, str):
        yield TaskStep(given, beside)
        return
    parts: list[Part] = []
    results = 0
    for row, path in given:
        if isinstance(row, dict) and row.get("type") == "tool_result":
            results += 1
            yield _observation(Fields(row, path))
        else:
            parts.append(_part(row, path))
    if parts or not results:
        yield TaskStep(tuple(parts), beside)


def _observation(block: Fields) -> Observation:
    block.take("type")
    call_id = block.text_or_empty("tool_use_id")
    failed = block.take("is_error")
    if failed is not None and not isinstance(failed, bool):
        raise block.fault("is_error", f"expected true or false, not {kind_of(failed)}")
    value = block.take("content")
    content = "" if value is None else _content(Fields({"content": value}, block.path), "content")
    return Observation(
        call_id, content, "error" if failed else "ok", extra=extra(NAME, "tool_result", block.left())
    )


def _action(message: Fields) -> ActionStep:
    given = _rows(message, "content")
    usage, model = _usage(message.take("usage")), message.take("model")
    model = model if isinstance(model, str) else ""
    beside = extra(
        NAME, "message", {key: value for key, value in message.left().items() if key not in _ENVELOPE}
    )
    if isinstance(given, str):
        return ActionStep(given, model=model, usage=usage, extra=beside)
    parts: list[Part] = []
    calls: list[ToolCall] = []
    _refuse_late_thought(given)
    for row, path in given:
        if isinstance(row, dict) and row.get("type") == "tool_use":
            calls.append(_call(Fields(row, path), len(parts)))
        else:
            parts.append(_part(row, path))
    placed = tuple(replace(call, at=None) if call.at == len(parts) else call for call in calls)
    return ActionStep(
        tuple(parts) if parts or not calls else None, placed, model=model, usage=usage, extra=beside
    )


def _refuse_late_thought(given: list[tuple[Any, str]]) -> None:
    """Returns when no thinking that goes back stands where the API refuses it. Raises FormatError."""
    sent = [(row, path) for row, path in given if isinstance(row, dict) and _is_sent(row)]
    late = anthropic_rules.late_thought([str(row.get("type")) for row, _ in sent])
    if late is not None:
        raise FormatError(
            "thinking behind text or a call, in a turn that calls a tool; give the blocks in the order they came in",
            path=sent[late][1],
        )


def _is_sent(row: Block) -> bool:
    """Whether a block is one that is given back: neither empty text nor thinking without its signature."""
    match row.get("type"):
        case "text":
            return bool(str(row.get("text")).strip())
        case "thinking":
            return bool(row.get("signature"))
    return True


def _usage(value: Any) -> Usage | None:
    """What a response says it cost; its ``input_tokens`` leaves out what the cache served and what it stored."""
    if not isinstance(value, dict):
        return None

    def tokens(key: str) -> int:
        count = value.get(key)
        return count if type(count) is int and count > 0 else 0  # true is an int, and no count

    cached = tokens("cache_read_input_tokens")
    read = tokens("input_tokens") + tokens("cache_creation_input_tokens") + cached
    return Usage(read, tokens("output_tokens"), cached)


def _call(block: Fields, at: int) -> ToolCall:
    block.take("type")
    call_id, name = block.text_or_empty("id"), block.text("name")
    given = block.take("input")
    if not isinstance(given, dict):
        raise block.fault("input", f"expected an object, not {kind_of(given)}")
    return ToolCall(call_id, name, compact(given), at, extra(NAME, "tool_use", block.left()))


def _part(row: Any, path: str) -> Part:
    block = Fields(row, path)
    kind = block.text("type")
    match kind:
        case "text":
            return Text(block.text("text"), extra(NAME, kind, block.left()))
        case "image":
            return _image(block) or _kept_image(row, path)
        case "thinking" | "redacted_thinking":
            if _is_sent(row):
                block.refuse(anthropic_rules.thought(row, kind), "give it back as it came, or leave it out")
            return kept(NAME, kind, row)
        case _:
            return kept(NAME, kind, row)


def _kept_image(row: Block, path: str) -> Opaque:
    """An image only the block itself can say. It goes back as it came, so one the API refuses is refused here."""
    cure = "send the picture's bytes in base64 or its https URL, or leave the block out"
    Fields(row, path).refuse((f".source{fault}" for fault in anthropic_rules.image(row["source"])), cure)
    return kept(NAME, "image", row)


def _image(block: Fields) -> Image | None:
    """The image, or None where only the block itself would come back byte for byte."""
    source = block.fields("source")
    kind = source.text("type")
    beside = extra(NAME, "image", block.left())
    if kind == "url":
        url = source.text_or_empty("url")
        return Image(url=url, extra=beside) if url and not source.left() else None
    if kind != "base64":
        return None
    media_type, data = source.text("media_type"), exact_base64(source.text("data"))
    return Image(data, media_type, extra=beside) if data and not source.left() else None


# -- rendering


def _blocks(message: Message, used: set[str]) -> Iterator[Block]:
    """What one message becomes. ``used`` has the ids of the provider's own calls so far, and gets those made here."""
    match message.role:
        case "system":
            yield from _shown(as_parts(message.content), "system")
        case "user":
            blocks = list(anthropic_turns.with_calls(_shown(as_parts(message.content), "user"), used))
            yield from blocks or [_text(writing.NO_CONTENT)]
        case "tool":
            yield _result(message)
        case "assistant":
            blocks = anthropic_turns.in_order(list(anthropic_turns.with_calls(_spoken(message), used)))
            yield from blocks
            # The API wants an answer behind thinking, and something in every message.
            if not blocks or blocks[-1]["type"] in anthropic_rules.THINKING:
                yield _text(writing.NO_CONTENT)


def _spoken(message: Message) -> Iterator[Block]:
    """The parts with each call where it stood; a call never overtakes the one before it."""
    parts = as_parts(message.content)
    reached = 0
    for call in message.tool_calls:
        at = len(parts) if call.at is None else min(max(call.at, reached), len(parts))
        yield from _shown(parts[reached:at], "assistant")
        reached = at
        yield _use(call)
    yield from _shown(parts[reached:], "assistant")


def _shown(parts: Sequence[Part], place: str) -> Iterator[Block]:
    for part in parts:
        block = _block(part, place)
        if block is not None and (block["type"] != "text" or str(block.get("text", "")).strip()):
            yield block


def _block(part: Part, place: str) -> Block | None:
    match part:
        case Text():
            return {**(writing.own(part.extra, NAME) or {}), "type": "text", "text": part.text}
        case Image():
            return _image_block(part, place)
    block = writing.own(part, NAME)
    if block is None:
        return _text(writing.foreign_text(part))
    kind = block.get("type")
    if (
        not isinstance(kind, str)
        or place == "system"
        or kind in (*anthropic_rules.MISPLACED[place], *_PAIRED)
    ):
        return None
    if kind in anthropic_rules.THINKING:
        block.pop("cache_control", None)  # refused there, and no part of what is signed
        return None if any(anthropic_rules.thought(block, kind)) else block
    if kind == "image" and any(anthropic_rules.image(block.get("source"))):
        return _text(writing.pictured(Image(url=part.body)))
    return block


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _image_block(image: Image, place: str) -> Block:
    beside = writing.own(image.extra, NAME) or {}
    source: dict[str, Any] | None = None
    if image.url.startswith("https://"):
        source = {"type": "url", "url": image.url}
    elif image.data and image.media_type in anthropic_rules.IMAGE_TYPES:
        source = {"type": "base64", "media_type": image.media_type, "data": writing.base64_of(image)}
    if source is None or place not in {"user", "result"}:
        return _text(writing.pictured(image))
    return {**beside, "type": "image", "source": source}


def _use(call: ToolCall) -> Block:
    beside = writing.own(call.extra, NAME) or {}
    name = wire_name(call.name, anthropic_rules.MAX_NAME)
    ours = {
        "type": "tool_use",
        "id": wire_id(call.id),
        "name": name,
        "input": parsed(call.arguments),
    }
    return {**beside, **ours}


def _result(message: Message) -> Block:
    beside = writing.own(message.extra, NAME) or {}
    ours = {"type": "tool_result", "tool_use_id": wire_id(message.call_id)}
    if isinstance(message.content, str):
        text = message.content if message.content.strip() else writing.NO_OUTPUT
        return {**beside, **ours, "content": text} | ({"is_error": True} if message.is_error else {})
    blocks = list(_shown(as_parts(message.content), "result"))
    if not message.is_error:
        return {**beside, **ours, "content": blocks or writing.NO_OUTPUT}
    if any(block["type"] != "text" for block in blocks):
        # A failed result may hold only text: the picture says more than the flag, so the flag becomes a word.
        return {**beside, **ours, "content": [_text(writing.FAILED), *blocks]}
    return {**beside, **ours, "content": blocks or writing.NO_OUTPUT, "is_error": True}
