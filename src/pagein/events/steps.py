"""Steps of a run, a closed union, and their parts. Values only: no I/O, no identity, no clock.

A step's position is given by the log. Tool arguments are the JSON text the model wrote. Content that must go back to
its provider unchanged is kept unread in an ``Opaque``.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import AsyncIterable, Awaitable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypedDict, Unpack, assert_never

from pagein._common.json_values import is_picture, png_bytes, to_json_value
from pagein.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class Opaque:
    """Provider content kept unread: it goes back equal, and only to the provider that made it.

    ``body`` is JSON text. ``text`` is the readable part (thinking, a refusal); it is counted and searched, never sent.
    """

    provider: str
    kind: str
    body: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Text, unchanged. ``extra`` holds other fields of the provider, such as ``cache_control``."""

    text: str
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its bytes, stored once by their hash, or its ``url``.

    Exactly one of ``data`` and ``url`` is set. ``detail`` is OpenAI's ``low``, ``high`` or ``auto``.
    """

    data: bytes = field(default=b"", repr=False)
    media_type: str = ""
    url: str = ""
    detail: str = ""
    extra: Opaque | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, or of the URL where there are no bytes, in hexadecimal."""
        return hashlib.sha256(self.data or self.url.encode("utf-8", "surrogatepass")).hexdigest()


Part = Text | Image | Opaque
Content = str | tuple[Part, ...]
"""Plain text, or parts in order. Providers distinguish the two, so both are kept."""

Row = dict[str, Any]
"""A JSON-safe object."""

Status = Literal["ok", "error", "unknown"]
"""The outcome of a call. ``unknown``: the run stopped before its result was recorded; it may have run."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's request to run a tool. ``arguments`` is the JSON text it wrote, valid or not.

    ``at`` is the number of content parts before this call, or None where it follows them all.
    """

    id: str
    name: str
    arguments: str = "{}"
    at: int | None = None
    extra: Opaque | None = None


TEXT_OBSERVATION = ("pagein", "text-observation")
"""Provider and kind of the extra of a result that came as a message of the user."""


RETRY_ADVICE = (
    "Now let's retry: take care not to repeat previous errors! If you have retried several times, try a completely "
    "different approach."
)
"""What a failed result tells the model to do (smolagents)."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer to a call: the tool's result and its status.

    ``index`` is the call's index in its step, for empty or repeated ids; with None the id decides.
    """

    call_id: str
    content: Content = ""
    status: Status = "ok"
    index: int | None = None
    extra: Opaque | None = None

    @classmethod
    def of(cls, call_id: str, result: object, status: Status = "ok", **metadata: Any) -> Self:
        """Make an observation of any result, JSON where it is no content; no model is sent the tool's metadata."""
        beside = Opaque("pagein", "metadata", json.dumps(to_json_value(metadata))) if metadata else None
        try:
            content = as_content(result)
        except ProtocolError:
            content, _ = _shown_output(result)
        return cls(call_id, content, status, extra=beside)

    @classmethod
    def failed(cls, call_id: str, error: object, *, advice: str = RETRY_ADVICE, **metadata: Any) -> Self:
        """Make the observation of a call that failed: the error, and what the model should do about it."""
        text = str(error) or type(error).__name__
        return cls.of(call_id, f"Error: {text}\n{advice}" if advice else f"Error: {text}", "error", **metadata)

    @property
    def is_message(self) -> bool:
        """True for a result that came as a message of the user, and goes out as one: its agent speaks text alone."""
        return self.extra is not None and (self.extra.provider, self.extra.kind) == TEXT_OBSERVATION

    @property
    def result(self) -> str:
        """The readable text of the content."""
        return as_text(self.content)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The tool's metadata; empty where there is none."""
        is_ours = self.extra is not None and (self.extra.provider, self.extra.kind) == ("pagein", "metadata")
        return json.loads(self.extra.body) if self.extra is not None and is_ours else {}

    def dict(self) -> Row:
        """Return every field as JSON-safe values."""
        row = {"call_id": self.call_id, "status": self.status, "content": plain_content(self.content)}
        return row | ({} if self.index is None else {"index": self.index}) | _extra_row(self.extra)


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage a provider reported for one request, in its own tokens; ``input_tokens`` includes cached ones."""

    input_tokens: int
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """The times at which a step began and ended, in seconds since the epoch."""

    start_time: float
    end_time: float | None = None

    @property
    def duration(self) -> float | None:
        """The seconds between the two; None for a step that has not ended."""
        return None if self.end_time is None else self.end_time - self.start_time


class StepDetails(TypedDict, total=False):
    """What an application knows of a step beside what the model sees; it is stored, and never sent to a model."""

    step_number: int
    timing: Timing
    is_final_answer: bool
    code_action: str
    model_input_messages: Any
    token_usage: Usage


DETAILS = ("pagein", "details")
"""Provider and kind of the extra of a step that has details."""


class MemoryStep:
    """Methods of every kind of step; the class is named as in smolagents.

    A class of one's own has it as a base: with ``to_messages``, and with fields of a dataclass or a ``dict`` of its own.
    """

    __slots__ = ()

    def dict(self) -> Row:
        """Return every field as JSON-safe values; images as base64."""
        if isinstance(self, Step):
            return plain_step(self)
        fields = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        row = {field.name: getattr(self, field.name) for field in fields} if fields else vars(self)
        return to_json_value(row)  # type: ignore[no-any-return] # a mapping stays one

    def to_messages(self, summary_mode: bool = False) -> list[Row]:
        """Return the step as chat messages: role, content, calls, results.

        ``summary_mode`` leaves out system prompts, plans and the model's prose. There is no budget and no provider
        content; use a memory's ``to_messages`` for those. Raises NotImplementedError in a class that does not say it.
        """
        if isinstance(self, Step):
            return plain_messages(self, summary_mode=summary_mode)
        raise NotImplementedError(f"{type(self).__name__} needs to_messages(summary_mode), which returns chat messages")


class _Detailed(MemoryStep):
    """The details of a step of the model, as its extra has them."""

    __slots__ = ()

    @property
    def step_number(self) -> int | None:
        """The number of the step in its run."""
        return _detail(self, "step_number")  # type: ignore[no-any-return]

    @property
    def timing(self) -> Timing | None:
        """The times at which the step began and ended."""
        row = _detail(self, "timing")
        return None if row is None else Timing(**row)

    @property
    def is_final_answer(self) -> bool:
        """True for the step that gave the final answer."""
        return bool(_detail(self, "is_final_answer"))

    @property
    def code_action(self) -> str | None:
        """The code that the step ran."""
        return _detail(self, "code_action")  # type: ignore[no-any-return]

    @property
    def model_input_messages(self) -> Any:
        """The messages that the model was sent, as JSON-safe values."""
        return _detail(self, "model_input_messages")

    @property
    def token_usage(self) -> Usage | None:
        """The usage that an application noted in the details."""
        row = _detail(self, "token_usage")
        return None if row is None else Usage(**row)


def step_details(step: object) -> Row:
    """Return the details of a step, as JSON-safe values; empty where it has none."""
    extra = getattr(step, "extra", None)
    return json.loads(extra.body) if extra is not None and (extra.provider, extra.kind) == DETAILS else {}


def _detail(step: object, name: str) -> Any:
    return step_details(step).get(name)


def _details_extra(details: StepDetails) -> Opaque | None:
    return Opaque(*DETAILS, json.dumps(to_json_value(details))) if details else None


@dataclass(frozen=True, slots=True)
class SystemPromptStep(MemoryStep):
    """The system prompt."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class TaskStep(MemoryStep):
    """A message of the user."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class PlanningStep(_Detailed):
    """A plan written by the model (smolagents)."""

    content: Content
    extra: Opaque | None = None

    @classmethod
    def of(cls, content: Content, **details: Unpack[StepDetails]) -> Self:
        """Make a plan with the application's details, which are never sent to a model."""
        return cls(content, _details_extra(details))


@dataclass(frozen=True, slots=True)
class ActionStep(_Detailed):
    """A turn of the model: text, thinking, tool calls. ``observations[i]`` answers ``tool_calls[i]``; None is open.

    Without calls they are the results of an action in text, each a message of the user. Observations that are missing when the step is recorded are recorded one by one as they come. Lists become tuples. Raises ProtocolError for other values.
    """

    content: Content | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    observations: tuple[Observation | None, ...] = ()
    model: str = ""
    usage: Usage | None = None
    extra: Opaque | None = None

    @classmethod
    def of(
        cls,
        content: Content | None = None,
        tool_calls: tuple[ToolCall, ...] = (),
        observations: tuple[Observation | None, ...] = (),
        *,
        model: str = "",
        usage: Usage | None = None,
        **details: Unpack[StepDetails],
    ) -> Self:
        """Make an action with the application's details, which are never sent to a model."""
        return cls(content, tool_calls, observations, model, usage, _details_extra(details))

    def __post_init__(self) -> None:
        _check_tuple(self, "tool_calls", ToolCall)
        _check_tuple(self, "observations", Observation)
        has_results_in_text = all(result is not None and result.is_message for result in self.observations)
        if len(self.observations) > len(self.tool_calls) and (self.tool_calls or not has_results_in_text):
            raise ProtocolError(f"{len(self.observations)} observations for {len(self.tool_calls)} calls")


def _check_tuple(step: ActionStep, name: str, kind: type) -> None:
    """Make a list a tuple. Raises ProtocolError unless each value is of the kind, or None for an open call."""
    values: Any = getattr(step, name)
    if isinstance(values, list):
        object.__setattr__(step, name, values := tuple(values))
    is_tuple = isinstance(values, tuple)
    if not is_tuple or any(type(value) is not kind and (value is not None or kind is ToolCall) for value in values):
        raise ProtocolError(f"{name} is a tuple of {kind.__name__} objects, not {values!r:.80}")


@dataclass(frozen=True, slots=True)
class FinalAnswerStep(MemoryStep):
    """The model's final answer, which ends the task. Of an object the text is shown, and ``output`` has its values."""

    content: Content
    extra: Opaque | None = None

    def __post_init__(self) -> None:
        value: Any = self.content
        if is_content(value) and value != ():
            return
        content, extra = _shown_output(value)
        object.__setattr__(self, "content", content)
        object.__setattr__(self, "extra", extra)

    @property
    def output(self) -> Any:
        """The answer as JSON-safe values; its text where it was one."""
        is_value = self.extra is not None and (self.extra.provider, self.extra.kind) == OUTPUT
        return json.loads(self.extra.body) if self.extra is not None and is_value else as_text(self.content)


@dataclass(frozen=True, slots=True)
class SummaryStep(MemoryStep):
    """A summary in place of older steps: data about the run, never an instruction to the model.

    ``author`` is ``extractive`` or the name of the model that wrote it.
    """

    content: str
    author: str = "extractive"


Step = SystemPromptStep | TaskStep | PlanningStep | ActionStep | FinalAnswerStep | SummaryStep


OUTPUT = ("pagein", "output")
"""Provider and kind of the extra of a final answer that was an object."""


def _is_part(value: object) -> bool:
    return isinstance(value, Part) and (not isinstance(value, Image) or isinstance(value.data, bytes))


def is_content(value: object) -> bool:
    """True for a text, and for parts in a tuple."""
    return isinstance(value, str) or (isinstance(value, tuple) and all(_is_part(part) for part in value))


def _shown_output(value: Any) -> tuple[Content, Opaque | None]:
    """Return what is shown of an answer, and its values as the extra beside it."""
    if is_picture(value):
        return (Image(png_bytes(value), "image/png"),), None
    if isinstance(value, Awaitable | AsyncIterable | Generator):
        cure = "list(...) it" if isinstance(value, Generator) else "await it"
        raise ProtocolError(f"a {type(value).__name__} is no result yet: {cure} first")
    output = json.dumps(to_json_value(value), ensure_ascii=False)
    return output, Opaque(*OUTPUT, output)


def as_content(value: Any) -> Content:
    """Return a content of what an application has: a text, a picture of Pillow, parts, or a list of these.

    Raises ProtocolError for anything else.
    """
    if is_content(value):
        return value  # type: ignore[no-any-return] # it was looked at
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(_as_part(item) for item in items)


def _as_part(item: Any) -> Part:
    if isinstance(item, Image) and not isinstance(item.data, bytes):
        raise ProtocolError(f"an image is its bytes, or url=..., not {type(item.data).__name__}: read the file first")
    if isinstance(item, Part):
        return item
    if isinstance(item, str):
        return Text(item)
    if is_picture(item):
        return Image(png_bytes(item), "image/png")
    raise ProtocolError(f"content is text, pictures or parts, not {type(item).__name__}: write it as text first")


def as_parts(content: Content | None) -> tuple[Part, ...]:
    """Return the content as parts: plain text is one part, None is none."""
    if content is None:
        return ()
    return (Text(content),) if isinstance(content, str) else content


def as_text(content: Content | None) -> str:
    """Return the readable text of the content, parts joined by newlines; an image is named by its hash.

    >>> as_text((Text("a"), Opaque("anthropic", "thinking", "{}", "b"))).splitlines()
    ['a', 'b']
    """
    return content if isinstance(content, str) else "\n".join(map(part_text, as_parts(content)))


def part_text(part: Part) -> str:
    """Return the readable text of one part; a file without any is named."""
    match part:
        case Text(text=text):
            return text
        case Opaque(text=text):
            return text or _file_label(part)
        case Image(url=url, media_type=media_type):
            return f"[image {url or part.digest[:12]} {media_type}]".replace(" ]", "]")
        case _:
            assert_never(part)


FILE_KINDS = frozenset({
    "document", "search_result", "file", "input_file", "input_audio", "audio", "video", "media", "text-plain", "fileData", "inlineData",
    "image", "input_image", "image_url", "video_url",
})  # fmt: skip
"""The kinds of parts that are files, of every provider."""

_FILE_NAME = re.compile(r'"(?:title|name|file_?[nN]ame|displayName)":("(?:[^"\\]|\\.){1,200}")')


def own_text(content: Content | None) -> str:
    """Return the text of the content without its files: their names and their words are not those of who sends them."""
    return as_text(
        tuple(part for part in as_parts(content) if not (isinstance(part, Opaque) and part.kind in FILE_KINDS))
    )


def _file_label(part: Opaque) -> str:
    if part.kind not in FILE_KINDS:
        return ""
    match = _FILE_NAME.search(part.body)
    try:
        name = json.loads(match[1]) if match else ""
    except ValueError:  # the body is an application's own, and no JSON
        name = ""
    return f"[{part.kind} {name}".rstrip() + "]"


# As JSON-safe values, and as messages


def kind_name(step: Step) -> str:
    """Return the name of a step's kind, as in the log and on the command line."""
    match step:
        case SystemPromptStep():
            return "system"
        case TaskStep():
            return "task"
        case PlanningStep():
            return "plan"
        case ActionStep():
            return "action"
        case FinalAnswerStep():
            return "answer"
        case SummaryStep():
            return "summary"
        case _:
            assert_never(step)


def plain_step(step: Step) -> Row:
    """Return every field of a step as JSON-safe values."""
    row: Row = {"kind": kind_name(step), "content": plain_content(step.content)}
    if isinstance(step, SummaryStep):
        return row | {"author": step.author}
    if isinstance(step, ActionStep):
        row["tool_calls"] = [_call_row(call) for call in step.tool_calls]
        row["observations"] = [None if observation is None else observation.dict() for observation in step.observations]
        row["model"] = step.model
        if step.usage is not None:
            row["usage"] = dataclasses.asdict(step.usage)
    return row | (step_details(step) or _extra_row(step.extra))


def plain_content(content: Content | None) -> Any:
    """Return content as JSON-safe values, complete."""
    if content is None or isinstance(content, str):
        return content
    return [_part_row(part) for part in content]


def _call_row(call: ToolCall) -> Row:
    row = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return row | ({} if call.at is None else {"at": call.at}) | _extra_row(call.extra)


def _extra_row(extra: Opaque | None) -> Row:
    return {} if extra is None else {"extra": _part_row(extra)}


def _part_row(part: Part) -> Row:
    match part:
        case Text(text=text, extra=extra):
            return {"type": "text", "text": text} | _extra_row(extra)
        case Opaque(provider=provider, kind=kind, body=body, text=text):
            return {"type": "opaque", "provider": provider, "kind": kind, "body": body, "text": text}
        case Image(data=data, media_type=media_type, url=url, detail=detail, extra=extra):
            row: Row = {"type": "image", "sha256": part.digest, "media_type": media_type}
            row |= ({"detail": detail} if detail else {}) | _extra_row(extra)
            return row | ({"data": base64.b64encode(data).decode()} if data else {"url": url})
        case _:
            assert_never(part)


PROCEED = "Now proceed and carry out this plan."
"""The user message after a plan, so that the model does not continue the plan (smolagents)."""


def plain_messages(step: Step, *, summary_mode: bool) -> list[Row]:
    """Return a step as chat messages in OpenAI's shape, without provider content."""
    if summary_mode and isinstance(step, SystemPromptStep | PlanningStep | FinalAnswerStep):
        return []
    match step:
        case SystemPromptStep():
            return [{"role": "system", "content": as_text(step.content)}]
        case TaskStep() | SummaryStep():
            return [{"role": "user", "content": _user_content(step.content)}]
        case PlanningStep():
            plan = {"role": "assistant", "content": as_text(step.content)}
            return [plan, {"role": "user", "content": PROCEED}]
        case FinalAnswerStep():
            return [{"role": "assistant", "content": as_text(step.content)}]
        case ActionStep():
            return _action_messages(step, None if summary_mode else step.content)
        case _:
            assert_never(step)


def _action_messages(step: ActionStep, content: Content | None) -> list[Row]:
    text = "\n".join(part.text for part in as_parts(content) if isinstance(part, Text)) or None
    reply: Row = {"role": "assistant", "content": text}
    if not step.tool_calls:
        return [reply] if text else []
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in step.tool_calls
    ]
    answers = [
        {"role": "tool", "tool_call_id": call.id, "content": as_text(observation.content)}
        for call, observation in zip(step.tool_calls, step.observations, strict=False)
        if observation is not None
    ]
    return [{**reply, "tool_calls": calls}, *answers]


def _user_content(content: Content) -> str | list[Row]:
    if isinstance(content, str):
        return content
    return [_user_part(part) for part in content]


def _user_part(part: Part) -> Row:
    if not isinstance(part, Image):
        return {"type": "text", "text": part_text(part)}
    encoded = base64.b64encode(part.data).decode()
    url = part.url or f"data:{part.media_type or 'image/png'};base64,{encoded}"
    return {"type": "image_url", "image_url": {"url": url}}
