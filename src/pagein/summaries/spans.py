"""The steps that leave, as texts with handles: what a summary is made from, quoted from and held against."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from pagein.context.view.layout import Item
from pagein.events.entries import Observed, Pin
from pagein.events.handles import observation_handle, range_handle, step_handle
from pagein.events.identifiers import argument_text
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Observation,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
    as_text,
)

Voice = Literal["system", "user", "plan", "model", "call", "result", "answer", "summary"]
"""Who speaks: the host, the user, the model (plan, words, calls, answer), a tool, or an earlier summary."""

LEAD = 160
"""Characters of a call's first line."""


@dataclass(frozen=True, slots=True)
class Said:
    """One text of the span: who says it, and the handle that gives it back.

    ``about`` is what a call did or a result answers: the tool and the first line of its arguments. ``offset`` is where
    in the whole text this piece begins.
    """

    handle: str
    voice: Voice
    text: str
    about: str = ""
    failed: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """The steps at positions ``[first, last)``, text by text in order."""

    first: int
    last: int
    said: tuple[Said, ...] = ()

    @property
    def handle(self) -> str:
        """The handle that gives the steps back."""
        return range_handle(self.first, max(self.last, self.first + 1))


def span_of(items: Iterable[tuple[int, Item]], first: int, last: int) -> Span:
    """The span of these steps, each with its position; ``[first, last)`` is what leaves. Empty texts are left out.

    Give it the steps as they were recorded, not as a view shows them: a summary is made from the source.
    """
    said = [each for position, item in items for each in _said(position, item)]
    return Span(first, last, tuple(each for each in said if each.text.strip()))


def _said(position: int, item: Item) -> Iterator[Said]:
    handle = step_handle(position)
    match item:
        case SystemPromptStep(content=content):
            yield Said(handle, "system", as_text(content))
        case TaskStep(content=content):
            yield Said(handle, "user", as_text(content))
        case Pin(text=text):
            yield Said(handle, "user", text)
        case PlanningStep(content=content):
            yield Said(handle, "plan", as_text(content))
        case FinalAnswerStep(content=content):
            yield Said(handle, "answer", as_text(content))
        case SummaryStep(content=text):
            yield Said(handle, "summary", text)
        case ActionStep():
            yield from _action(position, item)
        case Observed(action=action, observation=seen):
            yield Said(handle, "result", as_text(seen.content), f"late, {step_handle(action)}", _failed(seen))


def _action(position: int, step: ActionStep) -> Iterator[Said]:
    handle = step_handle(position)
    if step.content is not None:
        yield Said(handle, "model", as_text(step.content))
    for call in step.tool_calls:
        yield Said(handle, "call", call.arguments, lead(call))
    for index, (call, seen) in enumerate(zip(step.tool_calls, step.observations, strict=False)):
        if seen is not None:
            where = observation_handle(position, index)
            yield Said(where, "result", as_text(seen.content), lead(call), _failed(seen))


def _failed(seen: Observation) -> bool:
    return seen.status == "error" or _EXIT.search(as_text(seen.content)[:200]) is not None


_EXIT = re.compile(r"<returncode>\s*[1-9]|\bexit(?:ed)?[ _-](?:code|status)\W{1,3}[1-9]", re.IGNORECASE)


def lead(call: ToolCall) -> str:
    r"""What a call did, in one line: the tool and the first line of its arguments.

    >>> lead(ToolCall("1", "bash", '{"command": "ls -l\\ncat a"}'))
    'bash: ls -l'
    """
    lines = (line.strip() for line in argument_text(call.arguments).splitlines())
    first = next((line for line in lines if line), "")
    return f"{call.name}: {first}"[:LEAD] if first and first != "{}" else call.name[:LEAD]
