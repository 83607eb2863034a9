"""What happened: the closed union of steps and their parts. Values only: no I/O, no identity, no clock.

Two equal steps are equal; where a step stands in a run is a position, and the log gives it. Tool arguments are the
JSON text the model wrote. What a provider must get back unread stays unread, in an ``Opaque``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, assert_never

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


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider reported for one request, in its own tokens; ``input_tokens`` includes what its cache served."""

    input_tokens: int
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SystemPromptStep:
    """The host's standing instructions."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class TaskStep:
    """The user spoke."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class PlanningStep:
    """The model wrote down a plan (smolagents)."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class ActionStep:
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
class FinalAnswerStep:
    """The model's answer, which ends the task."""

    content: Content
    extra: Opaque | None = None


@dataclass(frozen=True, slots=True)
class SummaryStep:
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
