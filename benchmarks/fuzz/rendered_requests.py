"""Random legal and nearly legal histories, whose requests are checked against the SDKs' own types and a second tokenizer.

It needs the SDKs of the six formats and ``rs-bpe``: openai, anthropic, google-genai, botocore and langchain-core.
"""

from __future__ import annotations

import base64
import functools
import importlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pagein.errors import OverBudget, ProtocolError
from pagein.events.steps import (
    ActionStep,
    Content,
    FinalAnswerStep,
    Image,
    Observation,
    Opaque,
    Part,
    PlanningStep,
    Status,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
)
from pagein.formats import FORMATS, format_named, validate
from pagein.memory.agent_memory import AgentMemory
from pagein.testing.strategies import HAZARDS
from pagein.tokens import Budget
from pagein.tokens.bytes import json_bytes

_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
_NAMES = ("read", "", "a b", "läs", "mcp__server.tool", "x" * 90, "1st", "-", "read\nfile", "recall")
_ARGUMENTS = (
    "{}",
    "",
    "[1]",
    "null",
    '"text"',
    '{"path": "a',
    '{"a": {"b": [1, null]}}',
    '{"n": NaN}',
    '{"a": 1, "a": 2}',
)
_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/heic", "image/svg+xml", "", "application/pdf")
_STATUSES: tuple[Status, ...] = ("ok", "ok", "error", "unknown")
_ALPHABETS = (
    "etaoin shrdlu ",
    "привет как дела ",
    "天地玄黄宇宙洪荒",
    "😀👍🏽👨‍👩‍👧 ",
    "0123456789.,",
    "नमस्ते ",
    '{}[]"\\:,',
)


@dataclass(frozen=True, slots=True)
class RandomHistory:
    """A random history and the format of its requests, all of it derived from the seed."""

    seed: int
    way: str
    """The format."""

    @property
    def format(self) -> str:
        """The format."""
        return self.way

    @classmethod
    def from_seed(cls, seed: int, formats: tuple[str, ...] = tuple(FORMATS)) -> RandomHistory:
        """Make the history of a seed."""
        return cls(seed, formats[seed % len(formats)])


def play_random_history(history: RandomHistory) -> None:
    """Record a history, and check its request after each turn. Raises AssertionError."""
    draw = random.Random(history.seed)
    most_bytes = random.Random(-history.seed).choice((None, None, 2_000, 12_000))
    budget = Budget(draw.choice((400, 900, 2_500, 100_000)), bytes=most_bytes)
    with AgentMemory.open(":memory:", budget=budget, format=format_named(history.way).name) as memory:
        if draw.random() < 0.5:
            memory.record(SystemPromptStep(_content(draw)))
        for _ in range(draw.randrange(1, 5)):
            for step in _turn(draw):
                record_if_legal(memory, draw, step)
                if draw.random() < 0.3:
                    check_request(memory, history.way, budget)
        record_if_legal(memory, draw, TaskStep(_content(draw)))
        check_request(memory, history.way, budget)


def check_request(memory: AgentMemory, form: str, budget: Budget) -> None:
    """Raise AssertionError where the SDK's types refuse the request, or where it is over the budget."""
    try:
        request = memory.to_request()
    except OverBudget:
        return
    validate(request, form)
    json.dumps(request, ensure_ascii=False, allow_nan=False, default=bytes.hex).encode("utf-8")
    try:
        _CHECKS[form](request)
    except (ValueError, TypeError) as error:
        raise AssertionError(f"{form}'s types refuse the request: {' '.join(str(error).split())[:300]}") from error
    tokens = sum(map(_count(), _texts(request)))
    assert tokens <= budget.window, f"the texts of the request have {tokens} tokens, the budget is {budget.window}"
    size = json_bytes(request)
    assert budget.bytes is None or size <= budget.bytes, f"the request has {size} bytes, the budget is {budget.bytes}"


# The history


def record_if_legal(memory: AgentMemory, draw: random.Random, step: Any) -> None:
    """Record a step, and results for its calls, some late or never; what is refused with a ProtocolError is left out."""
    try:
        memory.record(step)
    except ProtocolError:
        return
    if not isinstance(step, ActionStep):
        return
    answers = [
        Observation(call.id, _content(draw), draw.choice(_STATUSES), index)
        for index, call in enumerate(step.tool_calls)
        if index >= len(step.observations)
    ]
    draw.shuffle(answers)
    for answer in answers:
        if draw.random() < 0.9:
            try:
                memory.record(answer)
            except ProtocolError:
                continue


def _turn(draw: random.Random) -> Iterator[Any]:
    yield TaskStep(_content(draw))
    for _ in range(draw.choice((0, 1, 1, 3))):
        calls = tuple(
            _call(draw, number) for number in range(draw.choice((0, 1, 1, 2, 5, 130 if draw.random() < 0.03 else 1)))
        )
        yield ActionStep(draw.choice((None, "", _content(draw))), calls)
    kind = draw.random()
    if kind < 0.2:
        yield PlanningStep(_content(draw))
    elif kind < 0.5:
        yield FinalAnswerStep(_content(draw))
    elif kind < 0.55:
        yield SystemPromptStep(_content(draw))


def _call(draw: random.Random, number: int) -> ToolCall:
    id = draw.choice((f"call_{number}", f"call_{draw.random()}", "", "same", "é" * 5, "c" * 70, "toolu_01/x", " "))
    return ToolCall(id, draw.choice(_NAMES), draw.choice((*_ARGUMENTS, json.dumps({"path": _text(draw)}))))


def _content(draw: random.Random) -> Content:
    if draw.random() < 0.6:
        return _text(draw)
    return tuple(_part(draw) for _ in range(draw.choice((0, 1, 2, 3, 4))))


def _part(draw: random.Random) -> Part:
    kind = draw.random()
    if kind < 0.5:
        return Text(_text(draw))
    if kind < 0.75:
        data = draw.choice((_PIXEL, b"not an image", b"\xff\xd8\xff\xe0" + bytes(40)))
        return Image(data, draw.choice(_TYPES), detail=draw.choice(("", "low", "high", "auto")))
    if kind < 0.85:
        return Image(
            url=draw.choice(("https://example.com/a.png", "data:image/png;base64,AAAA", "file:///a", "gs://a/b.png"))
        )
    provider = draw.choice(("anthropic", "somebody"))
    body = {"type": "thinking", "thinking": "hm", "signature": "c2ln"} if provider == "anthropic" else {"type": "kept"}
    return Opaque(provider, str(body["type"]), json.dumps(body), "hm")


def _text(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.2:
        return draw.choice(HAZARDS[:19])
    if kind < 0.25:
        return draw.choice(HAZARDS)
    alphabet = draw.choice(_ALPHABETS)
    return "".join(draw.choices(alphabet, k=draw.choice((1, 20, 20, 300, 6_000))))


# The checks


def _count() -> Callable[[str], int]:
    """The number of tokens of a text in o200k_base, counted by another implementation than the library's."""
    count: Callable[[str], int] = _tokenizer().count
    return lambda text: count(text.encode("utf-8", "replace").decode())


@functools.cache
def _tokenizer() -> Any:
    return importlib.import_module("rs_bpe.bpe").openai.o200k_base()


_UNREAD = ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "type", "role", "data", "bytes", "url", "signature",
           "media_type", "mime_type", "mimeType", "thoughtSignature", "thought_signature", "status", "detail", "image_url")  # fmt: skip
"""Fields that are no text to a model, or an image, which is counted by its size."""


def _texts(value: Any) -> Iterator[str]:
    """The texts that a model reads in a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name not in _UNREAD:
                yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _consume(value: Any) -> None:
    """Walk through what pydantic validates only when it is read."""
    if isinstance(value, Mapping):
        for item in value.values():
            _consume(item)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for item in value:
            _consume(item)


@functools.cache
def _adapter(module: str, name: str) -> Any:
    import pydantic  # noqa: PLC0415 - comes with the SDKs

    return pydantic.TypeAdapter(getattr(importlib.import_module(module), name))


def _check_types(module: str, name: str, rows: Iterable[Any]) -> None:
    for row in rows:
        _consume(_adapter(module, name).validate_python(row))


def _check_openai(words: Mapping[str, Any]) -> None:
    _check_types("openai.types.chat", "ChatCompletionMessageParam", words["messages"])


def _check_responses(words: Mapping[str, Any]) -> None:
    _check_types("openai.types.responses", "ResponseInputItemParam", map(_as_sdk_item, words["input"]))


def _as_sdk_item(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """An item with what the SDK's types ask for and the API does not: an output's id, an image's detail."""
    if not isinstance(row.get("content", row.get("output")), list):
        return row
    name = "content" if "content" in row else "output"
    parts = [{"detail": "auto", **part} if part.get("type") == "input_image" else part for part in row[name]]
    if row.get("role") == "assistant":
        parts = [{"annotations": [], **part} for part in parts]
        return {"type": "message", "id": "msg_0", "status": "completed", **row, name: parts}
    return {**row, name: parts}


def _check_anthropic(words: Mapping[str, Any]) -> None:
    _check_types("anthropic.types", "MessageParam", words["messages"])
    system = words.get("system", [])
    _check_types("anthropic.types", "TextBlockParam", [] if isinstance(system, str) else system)


def _check_gemini(words: Mapping[str, Any]) -> None:
    types = importlib.import_module("google.genai.types")
    for content in words["contents"]:
        types.Content.model_validate(content)
    types.GenerateContentConfig.model_validate(words.get("config", {}))


@functools.cache
def _converse_shape() -> Any:
    loader = importlib.import_module("botocore.loaders").Loader()
    model = importlib.import_module("botocore.model").ServiceModel(
        loader.load_service_model("bedrock-runtime", "service-2")
    )
    return model.operation_model("Converse").input_shape


def _check_bedrock(words: Mapping[str, Any]) -> None:
    validator = importlib.import_module("botocore.validate").ParamValidator()
    report = validator.validate({"modelId": "m", **words}, _converse_shape())
    if report.has_errors():
        raise ValueError(report.generate_report())


def _check_langchain(words: Mapping[str, Any]) -> None:
    importlib.import_module("langchain_core.messages").convert_to_messages(words["messages"])


_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "openai": _check_openai,
    "openai-responses": _check_responses,
    "anthropic": _check_anthropic,
    "gemini": _check_gemini,
    "bedrock": _check_bedrock,
    "langchain": _check_langchain,
}
