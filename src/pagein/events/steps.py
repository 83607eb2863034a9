"""What happened: the closed union of steps and their parts. Values only: no I/O, no identity, no clock.

Two equal steps are equal; where a step stands in a run is a position, and the log gives it. Tool arguments are the
JSON text the model wrote. What a provider must get back unread stays unread, in an ``Opaque``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, assert_never

from pagein.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class Opaque:
    """Provider content kept unread: goes back equal, and only to the provider that made it.

    ``body`` is JSON text. ``text`` is what a person could read in it (thinking, a refusal); it is counted and
    searched, never sent.
    """

    provider: str
    kind: str
    body: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Text, exactly as it came. ``extra`` holds provider fields beside it, as ``cache_control``."""

    text: str
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image, known by the hash of its bytes and stored once; or one that stays where its ``url`` points.

    Exactly one of ``data`` and ``url`` is set. ``detail`` is OpenAI's ``low``, ``high`` or ``auto``.
    """

    data: bytes = field(default=b"", repr=False)
    media_type: str = ""
    url: str = ""
    detail: str = ""
    extra: Opaque | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes (of the URL where there are none), hexadecimal."""
        return hashlib.sha256(self.data or self.url.encode("utf-8", "surrogatepass")).hexdigest()


Part = Text | Image | Opaque
Content = str | tuple[Part, ...]
"""Plain text, or parts in order. The two are kept apart because providers keep them apart."""

Row = dict[str, Any]
"""JSON-safe values by name."""

Status = Literal["ok", "error", "unknown"]
"""How a call ended. ``unknown``: the run stopped before its result was recorded; it may have run."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's request to run something. ``arguments`` is the JSON text it wrote, valid or not.

    ``at`` is the number of content parts that stood before this call, or None where it followed them all.
    """

    id: str
    name: str
    arguments: str = "{}"
    at: int | None = None
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """The one answer to a call: what the tool returned, and how it ended.

    ``index`` says which call of the step is meant where ids cannot (empty or repeated); None lets the id decide.
    """

    call_id: str
    content: Content = ""
    status: Status = "ok"
    index: int | None = None
    extra: Opaque | None = None

    @classmethod
    def of(cls, call_id: str, result: Content, status: Status = "ok", **metadata: Any) -> Self:
        """An observation with what its tool knows beside the result (JSON-safe), which no model is sent."""
        beside = Opaque("pagein", "metadata", json.dumps(metadata)) if metadata else None
        return cls(call_id, result, status, extra=beside)

    @property
    def result(self) -> str:
        """What can be read in the content."""
        return as_text(self.content)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the tool knew beside the result; empty where it said nothing."""
        is_ours = self.extra is not None and (self.extra.provider, self.extra.kind) == ("pagein", "metadata")
        return json.loads(self.extra.body) if self.extra is not None and is_ours else {}

    def dict(self) -> Row:
        """Status, result and metadata as JSON-safe values, nothing left out."""
        found = {"call_id": self.call_id, "status": self.status, "content": plain_content(self.content)}
        return found | ({} if self.index is None else {"index": self.index}) | _beside(self.extra)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider reported for one request, in its own tokens; ``input_tokens`` includes what its cache served."""

    input_tokens: int
    output_tokens: int = 0
    cached_tokens: int = 0


class MemoryStep:
    """What every kind of step can do (smolagents' name for it): a step says itself, to a person and to a model."""

    __slots__ = ()

    def dict(self: Step) -> Row:  # type: ignore[misc] # the union is closed: there is no other self
        """The step as JSON-safe values, nothing left out; images as base64."""
        return plain_step(self)

    def to_messages(self: Step, summary_mode: bool = False) -> list[Row]:  # type: ignore[misc]
        """The step as chat messages, by itself: role, content, calls, results.

        ``summary_mode`` leaves out system prompts, plans and the model's prose. Provider content is left out, and there
        is no budget: both are a memory's ``to_messages``.
        """
        return plain_messages(self, summary_mode=summary_mode)


@dataclass(frozen=True, slots=True)
class SystemPromptStep(MemoryStep):
    """The host's standing instructions."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class TaskStep(MemoryStep):
    """The user spoke."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class PlanningStep(MemoryStep):
    """The model wrote down a plan (smolagents)."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class ActionStep(MemoryStep):
    """The model spoke: text, thinking, tool calls. ``observations[i]`` answers ``tool_calls[i]``; None is still open.

    Recorded with fewer observations than calls, the rest are recorded one by one as they come.
    """

    content: Content | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    observations: tuple[Observation | None, ...] = ()
    model: str = ""
    usage: Usage | None = None
    extra: Opaque | None = None

    def __post_init__(self) -> None:
        if len(self.observations) > len(self.tool_calls):
            raise ProtocolError(f"{len(self.observations)} observations for {len(self.tool_calls)} calls")


@dataclass(frozen=True, slots=True)
class FinalAnswerStep(MemoryStep):
    """The model's answer, which ends the task."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class SummaryStep(MemoryStep):
    """Stands for older steps. Data about the run, never an order to the model.

    ``author`` is ``extractive`` or the name of the model that wrote it.
    """

    content: str
    author: str = "extractive"


Step = SystemPromptStep | TaskStep | PlanningStep | ActionStep | FinalAnswerStep | SummaryStep


def as_parts(content: Content | None) -> tuple[Part, ...]:
    """The content as parts; plain text is one part, and nothing is none."""
    if content is None:
        return ()
    return (Text(content),) if isinstance(content, str) else content


def as_text(content: Content | None) -> str:
    """What can be read in the content, parts joined by newlines; an image is named by its hash.

    >>> as_text((Text("a"), Opaque("anthropic", "thinking", "{}", "b"))).splitlines()
    ['a', 'b']
    """
    return "\n".join(part_text(part) for part in as_parts(content))


def part_text(part: Part) -> str:
    """What can be read in one part."""
    match part:
        case Text(text=text) | Opaque(text=text):
            return text
        case Image(url=url, media_type=media_type):
            return f"[image {url or part.digest[:12]} {media_type}]".replace(" ]", "]")
        case _:
            assert_never(part)


# As JSON-safe values, and as messages


def kind_name(step: Step) -> str:
    """The name of a step's kind, as the log and the command line say it."""
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
    """A step as JSON-safe values, nothing left out."""
    found: Row = {"kind": kind_name(step), "content": plain_content(step.content)}
    if isinstance(step, SummaryStep):
        return found | {"author": step.author}
    if isinstance(step, ActionStep):
        found["tool_calls"] = [_call(call) for call in step.tool_calls]
        found["observations"] = [None if each is None else each.dict() for each in step.observations]
        found["model"] = step.model
        if step.usage is not None:
            found["usage"] = {
                "input_tokens": step.usage.input_tokens,
                "output_tokens": step.usage.output_tokens,
                "cached_tokens": step.usage.cached_tokens,
            }
    return found | _beside(step.extra)


def plain_content(content: Content | None) -> Any:
    """Content as JSON-safe values, nothing left out."""
    if content is None or isinstance(content, str):
        return content
    return [_part(part) for part in content]


def _call(call: ToolCall) -> Row:
    found = {"id": call.id, "name": call.name, "arguments": call.arguments}
    return found | ({} if call.at is None else {"at": call.at}) | _beside(call.extra)


def _beside(extra: Opaque | None) -> Row:
    return {} if extra is None else {"extra": _part(extra)}


def _part(part: Part) -> Row:
    match part:
        case Text(text=text, extra=extra):
            return {"type": "text", "text": text} | _beside(extra)
        case Opaque(provider=provider, kind=kind, body=body, text=text):
            return {"type": "opaque", "provider": provider, "kind": kind, "body": body, "text": text}
        case Image(data=data, media_type=media_type, url=url, detail=detail, extra=extra):
            found: Row = {"type": "image", "sha256": part.digest, "media_type": media_type}
            found |= ({"detail": detail} if detail else {}) | _beside(extra)
            return found | ({"data": base64.b64encode(data).decode()} if data else {"url": url})
        case _:
            assert_never(part)


PROCEED = "Now proceed and carry out this plan."
"""What the user says behind a plan, so that the model does not go on writing it (smolagents)."""


def plain_messages(step: Step, *, summary_mode: bool) -> list[Row]:
    """A step as chat messages, by itself: OpenAI's shape, provider content left out."""
    if summary_mode and isinstance(step, SystemPromptStep | PlanningStep | FinalAnswerStep):
        return []
    match step:
        case SystemPromptStep():
            return [{"role": "system", "content": as_text(step.content)}]
        case TaskStep() | SummaryStep():
            return [{"role": "user", "content": _sent(step.content)}]
        case PlanningStep():
            plan = {"role": "assistant", "content": as_text(step.content)}
            return [plan, {"role": "user", "content": PROCEED}]
        case FinalAnswerStep():
            return [{"role": "assistant", "content": as_text(step.content)}]
        case ActionStep():
            return _acted(step, None if summary_mode else step.content)
        case _:
            assert_never(step)


def _acted(step: ActionStep, content: Content | None) -> list[Row]:
    spoken: Row = {"role": "assistant", "content": _said(content)}
    if not step.tool_calls:
        return [spoken] if spoken["content"] else []
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in step.tool_calls
    ]
    # A call still open has no answer yet; each that has one is named by its id.
    answers = [
        {"role": "tool", "tool_call_id": call.id, "content": as_text(seen.content)}
        for call, seen in zip(step.tool_calls, step.observations, strict=False)
        if seen is not None
    ]
    return [{**spoken, "tool_calls": calls}, *answers]


def _said(content: Content | None) -> str | None:
    return "\n".join(part.text for part in as_parts(content) if isinstance(part, Text)) or None


def _sent(content: Content) -> str | list[Row]:
    if isinstance(content, str):
        return content
    return [
        {"type": "image_url", "image_url": {"url": _url(part)}}
        if isinstance(part, Image)
        else {"type": "text", "text": part_text(part)}
        for part in content
    ]


def _url(image: Image) -> str:
    spelled = base64.b64encode(image.data).decode()
    return image.url or f"data:{image.media_type or 'image/png'};base64,{spelled}"
