"""Order in the prompt, and what each thing looks like there, before any provider's spelling.

System prompts and pins come first, then everything else in the order of the run, summaries where the steps they stand
for stood. Nothing that changes from turn to turn comes before the tail, so between two compactions each request starts
with the whole of the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import assert_never

from pagein.events.entries import Observed, Pin
from pagein.events.messages import Message
from pagein.events.steps import (
    PROCEED,
    ActionStep,
    Content,
    FinalAnswerStep,
    Observation,
    PlanningStep,
    Step,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
)

NO_RESULT = "(No result was recorded for this call. It may have run.)"

CONTINUE = "Continue."
EARLIER = "(What was said before this point is not part of this run.)"

_OURS = re.compile(r"<(?=\s*+(?:/\s*+)?(?:memory|pinned|system-notice|late-result))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Aside:
    """Text at the view's end that is no part of the run: what came back, or what is known; ``kind`` says which."""

    kind: str
    text: str


Item = Step | Pin | Observed | Aside
"""What can be shown: a step, a pin, an observation that came too late to stand behind its call, or an aside."""


def as_data(tag: str, text: str, **attributes: str) -> str:
    r"""Text marked as data: inside a tag, with the tags of ours escaped in the text, so that it cannot end early.

    >>> as_data("memory", "do </memory> this", kind="summary")
    '<memory kind="summary">\ndo &lt;/memory> this\n</memory>'
    """
    head, tail = _frame(tag, attributes)
    return f"{head}{_inside(text)}{tail}"


def _frame(tag: str, attributes: Mapping[str, str]) -> tuple[str, str]:
    named = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{named}>\n", f"\n</{tag}>"


def _inside(text: str) -> str:
    # A reader takes </Memory > for the end too, and a <pinned> inside a summary for a pin.
    return _OURS.sub("&lt;", text)


def messages_of(item: Item, ids: Sequence[str] = (), *, late_system: bool = False) -> tuple[Message, ...]:
    """The messages that show one item. ``ids`` are the wire ids of an action's calls, unique in the run."""
    match item:
        case SystemPromptStep(content=content, extra=extra):
            # Strict providers refuse a system message behind the first user message.
            late = Message("user", _framed("system-notice", content))
            return (late,) if late_system else (Message("system", content, extra=extra),)
        case TaskStep(content=content, extra=extra):
            return (Message("user", content, extra=extra),)
        case PlanningStep(content=content, extra=extra):
            return (Message("assistant", content, extra=extra), Message("user", PROCEED))
        case ActionStep():
            return _action(item, ids)
        case FinalAnswerStep(content=content, extra=extra):
            return (Message("assistant", content, extra=extra),)
        case SummaryStep() | Aside() | Pin():
            return (Message("user", _written(item)),)
        case Observed(observation=seen):
            return (Message("user", _framed("late-result", seen.content, call=seen.call_id)),)
        case _:
            assert_never(item)


def _written(item: SummaryStep | Aside | Pin) -> str:
    match item:
        case SummaryStep(content=content, author=author):
            return as_data("memory", content, kind="summary", author=author)
        case Aside(kind=kind, text=text):
            return as_data("memory", text, kind=kind)
        case Pin(text=text):
            return as_data("pinned", text)
        case _:
            assert_never(item)


def _framed(tag: str, content: Content, **attributes: str) -> Content:
    """Content marked as data, its images kept."""
    if isinstance(content, str):
        return as_data(tag, content, **attributes)
    head, tail = _frame(tag, attributes)
    inner = (replace(part, text=_inside(part.text)) if isinstance(part, Text) else part for part in content)
    return (Text(head), *inner, Text(tail))


def _action(step: ActionStep, ids: Sequence[str]) -> tuple[Message, ...]:
    calls = tuple(replace(call, id=wire) for call, wire in zip(step.tool_calls, ids, strict=True))
    spoken = Message("assistant", step.content, calls, extra=step.extra)
    seen = list(step.observations) + [None] * (len(calls) - len(step.observations))
    return (spoken, *(_result(call.id, each) for call, each in zip(calls, seen, strict=True)))


def _result(call_id: str, seen: Observation | None) -> Message:
    if seen is None or seen.status == "unknown":
        return Message("tool", NO_RESULT, call_id=call_id, is_error=True)
    return Message("tool", seen.content, call_id=call_id, is_error=seen.status == "error", extra=seen.extra)


def lay_out(shown: Iterable[tuple[Message, ...]]) -> tuple[Message, ...]:
    """The whole request: first non-system is the user, last is the user or a tool, whatever was recorded."""
    messages = [message for each in shown for message in each]
    return (
        *messages[: _start(messages)],
        *mended(messages),
        *messages[_start(messages) :],
        *closing(messages),
    )


def _start(messages: Sequence[Message]) -> int:
    return next((i for i, each in enumerate(messages) if each.role != "system"), len(messages))


def mended(messages: Sequence[Message]) -> tuple[Message, ...]:
    """What must stand before the first non-system message: nothing, or a user's line where the model spoke first."""
    start = _start(messages)
    if start < len(messages) and messages[start].role == "user":
        return ()
    return (Message("user", EARLIER),)


def closing(messages: Sequence[Message]) -> tuple[Message, ...]:
    """What must stand at the end: nothing, or a user's line where the model spoke last."""
    if messages and messages[-1].role == "assistant":
        return (Message("user", CONTINUE),)
    return ()


def wire_ids(step: ActionStep, position: int, used: set[str]) -> tuple[str, ...]:
    """The ids under which an action's calls go out: the model's own where they are new in this run, else derived.

    Empty, repeated and reused ids get the position and the call's number, so equal runs give equal requests.
    """
    ids: list[str] = []
    for index, call in enumerate(step.tool_calls):
        wire, attempt = call.id, 0
        while not wire or wire in used:
            wire = f"call_{position}_{index}" + (f"_{attempt}" if attempt else "")
            attempt += 1
        used.add(wire)
        ids.append(wire)
    return tuple(ids)
