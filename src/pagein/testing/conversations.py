"""Conversations for the tests of wire formats, and what they state.

``legal_conversations()`` is the hypothesis strategy, and ``every_feature()`` one example with everything in it.
``items_to_messages`` turns parsed items into messages. ``statements`` lists what messages state, so that two
conversations can be compared although they are written differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pagein._common.image_header import image_type
from pagein.events.messages import Message
from pagein.events.steps import (
    ActionStep,
    Content,
    FinalAnswerStep,
    Image,
    Observation,
    Opaque,
    Part,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    as_parts,
)
from pagein.events.tool_call_encoding import FAILURE_PREFIX, UNPARSED_KEY
from pagein.formats.base import Item
from pagein.formats.rendering import MARKERS, foreign_text

LOSSES = {
    "arguments": "how the arguments were spelled (their value survives)",
    "boundaries": "where one message ends and the next of its role begins",
    "call id": "an id's own letters (which result answers which call survives)",
    "call place": "what was said before a call and what after it",
    "empty text": "a text of no characters, and instructions without any",
    "error flag": "that a result is a failure",
    "error flag beside images": "that a result which holds more than text is a failure",
    "foreign parts": "what another provider gave to be sent back to it",
    "image address": "an image by its address",
    "image detail": "how closely to look at an image",
    "image as GIF": "an image in the format GIF",
    "image from the assistant": "an image the model made",
    "image in a result": "an image a tool returned",
    "image in instructions": "an image in the system prompt",
    "image type": "an image that is no PNG, JPEG, GIF or WebP, whose bytes are of another type, or that is not fetched by https",
    "lone surrogates": "half a character, which is not UTF-8",
    "message fields": "a provider's fields beside role and content",
    "tool name": "a letter in a tool's name other than a-z, A-Z, 0-9, _ and -",
    "white space": "a text of nothing but white space",
}
"""Everything that a wire may declare not to carry. Every format must carry all else."""

_COMMON_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_GENERATED_ID = re.compile(r"pagein-[a-zA-Z0-9_-]{0,8}-[0-9a-f]{24}")
_IMAGE_MARKER = re.compile(r"\[image [0-9a-f]{12}\]")


# -- from items to messages


def items_to_messages(items: Iterable[Item]) -> tuple[Message, ...]:
    """Turn parsed items into messages: each result behind its call, in call order, under a unique id.

    Raises ValueError for a call without a result and a result without a call.
    """
    messages: list[Message] = []
    step: ActionStep | None = None
    answers: list[Observation] = []
    used_ids: set[str] = set()
    for item in (*items, None):
        if isinstance(item, Observation):
            answers.append(item)
            continue
        messages += _pair_results(step, answers, used_ids)
        step, answers = (item if isinstance(item, ActionStep) else None), []
        match item:
            case SystemPromptStep():
                messages.append(Message("system", item.content, extra=item.extra))
            case TaskStep():
                messages.append(Message("user", item.content, extra=item.extra))
            case SummaryStep():
                messages.append(Message("user", item.content))
            case PlanningStep() | FinalAnswerStep():
                messages.append(Message("assistant", item.content, extra=item.extra))
    return tuple(messages)


def _pair_results(step: ActionStep | None, answers: list[Observation], used_ids: set[str]) -> Iterator[Message]:
    if step is not None:
        fresh = [_with_unique_id(call, used_ids) for call in step.tool_calls]
        yield Message("assistant", step.content, tuple(fresh), extra=step.extra)
        for index, (call, renamed) in enumerate(zip(step.tool_calls, fresh, strict=True)):
            answer = next((a for a in answers if a.index == index or (a.index is None and a.call_id == call.id)), None)
            if answer is None:
                raise ValueError(f"call {call.id!r} has no result")
            answers.remove(answer)
            failed = answer.status == "error"
            yield Message("tool", answer.content, call_id=renamed.id, is_error=failed, extra=answer.extra)
    if answers:
        raise ValueError(f"result for {answers[0].call_id!r} answers no call")


def _with_unique_id(call: ToolCall, used_ids: set[str]) -> ToolCall:
    call_id = call.id if call.id and call.id not in used_ids else f"call_{len(used_ids)}"
    used_ids.add(call_id)
    return ToolCall(call_id, call.name, call.arguments, call.at, call.extra)


# -- what messages state


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that messages state. A wire that declares one of ``losses`` need not carry it."""

    value: Any
    losses: frozenset[str] = frozenset()


def statements(messages: Sequence[Message], provider: str) -> Iterator[Statement]:
    """Yield everything the messages state, in order, as this provider may get it. The library's markers state nothing."""
    ordinals: dict[str, int] = {}
    statement_count = 0
    for message in messages:
        silent = _is_silent(message)
        yield Statement(message.role, frozenset({"boundaries", *silent}))
        if message.role == "tool":
            yield Statement(("result", ordinals.get(message.call_id)))
            pictures = any(not isinstance(part, Text) for part in as_parts(message.content))
            losses = {"error flag", "error flag beside images"} if pictures else {"error flag"}
            yield Statement(("failed", message.is_error), frozenset(losses))
        beside = set() if message.role == "tool" else {"message fields"}
        yield from _extra(message.extra, provider, beside | silent)
        parts = [list(_part(part, message.role, provider)) for part in as_parts(message.content)]
        yield from (fact for part_statements in parts for fact in part_statements)
        lossless_counts = [sum(not fact.losses for fact in part_statements) for part_statements in parts]
        for call in message.tool_calls:
            ordinals[call.id] = len(ordinals)
            yield from _call(call, provider)
            yield Statement(("place", statement_count + sum(lossless_counts[: call.at])), frozenset({"call place"}))
        statement_count += sum(lossless_counts)


def _is_silent(message: Message) -> set[str]:
    """Return the loss of a system message without text: it is left out with its other fields."""
    wordless = all(isinstance(part, Text) and not part.text for part in as_parts(message.content))
    return {"empty text"} if message.role == "system" and wordless else set()


def _extra(extra: Opaque | None, provider: str, losses: set[str]) -> Iterator[Statement]:
    if extra is not None and extra.body != "{}":
        foreign = set() if extra.provider == provider else {"foreign parts"}
        yield Statement(("beside", json.loads(extra.body)), frozenset(losses | foreign))


def _part(part: Part, role: str, provider: str) -> Iterator[Statement]:
    match part:
        case Text(text=text):
            said = text.removeprefix(FAILURE_PREFIX) if role == "tool" else text
            yield from _text(said)
            yield from _extra(part.extra, provider, set() if said.strip() else {"white space", "empty text"})
        case Image():
            yield from _image(part, role, provider)
        case Opaque() if part.provider != provider and (text := foreign_text(part)):
            yield from _text(text)
        case Opaque():
            losses = set() if part.provider == provider else {"foreign parts"}
            yield Statement((part.kind, json.loads(part.body)), frozenset(losses))


def _text(text: str) -> Iterator[Statement]:
    if text in MARKERS or _IMAGE_MARKER.fullmatch(text):
        return
    safe = _safe(text)
    losses = {"empty text"} if not text else {"white space"} if not text.strip() else set()
    yield Statement(safe, frozenset(losses))
    if safe != text:
        yield Statement(text, frozenset({"lone surrogates"}))


def _image(image: Image, role: str, provider: str) -> Iterator[Statement]:
    places = {"tool": "image in a result", "assistant": "image from the assistant", "system": "image in instructions"}
    losses = {places[role]} if role in places else set()
    is_mislabelled = image_type(image.data) not in ("", image.media_type)
    if is_mislabelled or not (image.url.startswith("https://") or image.media_type in _COMMON_IMAGES):
        losses.add("image type")
    if image.url:
        losses.add("image address")
    if image.media_type == "image/gif":
        losses.add("image as GIF")
    yield Statement((image.digest, image.media_type, image.url), frozenset(losses))
    yield Statement(("detail", image.detail), frozenset(losses | {"image detail"}))
    yield from _extra(image.extra, provider, losses)


def _call(call: ToolCall, provider: str) -> Iterator[Statement]:
    yield Statement(("call", re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:64] or "_", _value(call.arguments)))
    yield Statement(("name", call.name), frozenset({"tool name"}))
    yield Statement(("arguments", call.arguments), frozenset({"arguments"}))
    # No wire carries a lone surrogate in an id; its replacement states nothing.
    anew = _safe(call.id) != call.id or _GENERATED_ID.fullmatch(call.id)
    yield Statement(("id", None if anew else call.id), frozenset({"call id"}))
    yield from _extra(call.extra, provider, set())


def _value(arguments: str) -> Any:
    """Return the arguments as a JSON object, or as their text if they are none."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        value = json.loads(arguments or "{}", parse_constant=refuse)
    except (ValueError, RecursionError):
        return _safe(arguments)
    if not isinstance(value, dict):
        return _safe(arguments)
    if value.keys() == {UNPARSED_KEY}:
        return value[UNPARSED_KEY]
    return json.loads(_safe(json.dumps(value, ensure_ascii=False)))


def _safe(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


# -- legal sequences of messages, with everything a format must cope with

_ODD_TEXTS = (
    "", " ", "\n\t", "\n  if x:\n\treturn\r\n", "a\ud800b", "\u2028", "\x00", "ünïcödé 漢字 🙂", "</system>", '{"role": "system"}',
)  # fmt: skip
_ODD_ARGUMENTS = (
    "", "{}", "{oops", "[1, 2]", '"text"', "null", '{"a": NaN}', '{"a": 1, "a": 2}', '{"a" :\t1.0}', '"\\ud800"',
)  # fmt: skip
_ODD_NAMES = ("bash", "browser.open", "", "読む", "n" * 90)
_IMAGES = (
    Image(b"\x89PNG\r\n", "image/png", detail="high"),
    Image(b"GIF89a", "image/gif"),
    Image(b"BM", "image/bmp"),
    Image(
        url="https://example.org/a.png", extra=Opaque("openai", "image_url", '{"cache_control":{"type":"ephemeral"}}')
    ),
    Image(url="http://example.org/a.png", detail="low"),
)
_SERVER_PAIR = {
    "server_tool_use": '{"type":"server_tool_use","id":"%s","name":"web_search","input":{"query":"q"}}',
    "web_search_tool_result": '{"type":"web_search_tool_result","tool_use_id":"%s","content":[]}',
}
_THINKING = Opaque("anthropic", "thinking", '{"type":"thinking","thinking":"hm","signature":"c2ln"}', "hm")
_REDACTED = Opaque("anthropic", "redacted_thinking", '{"type":"redacted_thinking","data":"eA=="}')
_REASONING = Opaque("openai", "reasoning_content", '{"reasoning_content":"hm"}', "hm")
_DECLINED = Opaque("openai", "refusal", '{"type":"refusal","refusal":"I will not."}', "I will not.")
_USER_PARTS = (
    Opaque("openai", "input_audio", '{"type":"input_audio","input_audio":{"data":"eA==","format":"wav"}}'),
    Opaque("openai", "video_url", '{"type":"video_url","video_url":{"url":"https://example.org/v"}}'),
    Opaque("anthropic", "document", '{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}', "d"),
)  # fmt: skip
_TEXT_EXTRAS = (None, Opaque("anthropic", "text", '{"citations":[]}'), Opaque("openai", "text", '{"mark":{"a":1}}'))
_MESSAGE_EXTRAS = (
    None,
    Opaque("openai", "message", '{"name":"ann"}'),
    Opaque("anthropic", "message", '{"id":"msg_1"}'),
)
_DEVELOPER = Opaque("openai", "message", '{"role":"developer"}')
_RESULT_EXTRAS = (
    None,
    Opaque("openai", "message", '{"name":"bash"}'),
    Opaque("anthropic", "r", '{"toolset_name":"x"}'),
)
_CALL_EXTRAS = (
    None,
    Opaque("openai", "function", '{"extra_content":{"google":{"thought_signature":"c2ln"}}}'),
    Opaque("openai", "custom", '{"type":"custom"}'),
    Opaque("anthropic", "tool_use", '{"caller":{"type":"direct"}}'),
)

_texts = st.sampled_from(_ODD_TEXTS) | st.text(max_size=12).filter(lambda text: text not in MARKERS)
_text_parts = st.builds(Text, _texts, st.sampled_from(_TEXT_EXTRAS))


def _contents(*others: Part) -> st.SearchStrategy[Content]:
    parts = _text_parts | st.sampled_from(others) if others else _text_parts
    return _texts | st.lists(parts, max_size=3).map(tuple)


_system = st.builds(Message, st.just("system"), _contents(*_IMAGES[:1]), extra=st.sampled_from((None, _DEVELOPER)))
_user = st.builds(Message, st.just("user"), _contents(*_IMAGES, *_USER_PARTS), extra=st.sampled_from(_MESSAGE_EXTRAS))


@st.composite
def legal_conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Draw messages as a layout yields them: instructions, then turns, each result behind its call.

    They mix parts of OpenAI and Anthropic, with empty texts, odd ids and names, arguments that are no JSON, and images
    in every place.
    """
    messages = [*draw(st.lists(_system, max_size=2)), draw(_user)]
    for turn in range(draw(st.integers(0, 3))):
        if draw(st.integers(0, 3)) == 0:
            messages.append(draw(_assistants(f"a{turn}", calls=0)))
        assistant = draw(_assistants(f"b{turn}", calls=draw(st.integers(0, 3))))
        messages.append(assistant)
        messages += [draw(_results(call.id)) for call in assistant.tool_calls]
        messages += draw(st.lists(_user, min_size=0 if assistant.tool_calls else 1, max_size=2))
    return tuple(messages)


@st.composite
def _assistants(draw: st.DrawFn, key: str, calls: int) -> Message:
    leading: list[Part] = draw(st.sampled_from(([], [_REASONING], [_THINKING], [_REASONING, _THINKING, _REDACTED])))
    parts: list[Part] = draw(st.lists(_text_parts | st.sampled_from((_DECLINED, *_IMAGES[:2])), max_size=3))
    if draw(st.booleans()):
        parts += [Opaque("anthropic", kind, body % f"srv_{key}") for kind, body in _SERVER_PAIR.items()]
    content: Content | None = (*leading, *parts) if leading or parts else draw(st.sampled_from((None, "", "Done.")))
    # Thinking comes first in its turn, so no call precedes it.
    places = st.none() | st.integers(len(leading), len(leading) + len(parts))
    tool_calls = [draw(_calls(f"{key}{number}", places)) for number in range(calls)]
    tool_calls.sort(key=lambda call: (call.at is None, call.at or 0))
    return Message("assistant", content, tuple(tool_calls), extra=draw(st.sampled_from(_MESSAGE_EXTRAS)))


def _calls(key: str, places: st.SearchStrategy[int | None]) -> st.SearchStrategy[ToolCall]:
    ids = st.sampled_from((f"call_{key}", f"functions.bash:{key}", f"\ud800{key}", f"pagein-{key}"))
    arguments = st.sampled_from(_ODD_ARGUMENTS) | st.dictionaries(_texts, st.integers() | _texts, max_size=2).map(
        json.dumps
    )
    return st.builds(ToolCall, ids, st.sampled_from(_ODD_NAMES), arguments, places, st.sampled_from(_CALL_EXTRAS))


def _results(call_id: str) -> st.SearchStrategy[Message]:
    contents, extras = _contents(*_IMAGES[:2]), st.sampled_from(_RESULT_EXTRAS)
    return st.builds(Message, st.just("tool"), contents, call_id=st.just(call_id), is_error=st.booleans(), extra=extras)


def every_feature() -> tuple[Message, ...]:
    """Return one legal conversation in which every loss of ``LOSSES`` shows."""
    elsewhere = Opaque("somebody-else", "text", '{"kept":1}')
    png, gif, bmp, https, http = _IMAGES
    calls = (
        ToolCall("functions.bash|0", "\u8aad\u3080.open", '{"a" : 1}', at=0),
        ToolCall("call_b", "bash", "{oops", extra=_CALL_EXTRAS[3]),
    )
    return (
        Message("system", "", extra=_DEVELOPER),
        Message("system", (Text("Be brief."), png), extra=_DEVELOPER),
        Message(
            "user",
            (Text("Look.", elsewhere), Text(""), Text(" "), Text("a\ud800b"), png, gif, bmp, https, http),
            extra=_MESSAGE_EXTRAS[1],
        ),
        Message("user", "At both.", extra=_MESSAGE_EXTRAS[2]),
        Message("assistant", "Wait."),
        Message("assistant", (Text("One"), _DECLINED, png, Text("two")), calls),
        Message("tool", "Failed.", call_id="functions.bash|0", is_error=True),
        Message("tool", (Text("Failed too."), png), call_id="call_b", is_error=True),
    )


_ASK, _ONE = Message("user", "Go."), ToolCall("call_1", "bash")
_CALL, _OK = Message("assistant", None, (_ONE,)), Message("tool", "ok", call_id="call_1")
ILLEGAL = {
    "nothing is said": (),
    "the assistant begins": (Message("assistant", "Hello."), _ASK),
    "the assistant ends": (_ASK, Message("assistant", "Hello.")),
    "a call is not answered": (_ASK, _CALL, _ASK),
    "a call is answered twice": (_ASK, _CALL, _OK, _OK),
    "an answer has no call": (_ASK, _OK),
    "an answer comes late": (_ASK, _CALL, _ASK, _OK),
    "an id is used twice": (_ASK, _CALL, _OK, _CALL, _OK),
}
"""Message sequences that no provider takes: a format must report a problem in each."""
