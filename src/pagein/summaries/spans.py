"""The steps that leave as texts with handles: the source of a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pagein.context.ledger.error_lines import has_failed
from pagein.context.view.layout import Item
from pagein.events import steps
from pagein.events.entries import Observed, Pin
from pagein.events.handles import observation_handle, range_handle, step_handle
from pagein.events.identifiers import argument_text

Speaker = Literal["system", "user", "plan", "model", "call", "result", "answer", "summary"]
"""Speaker of a text: the host, the user, the model (plan, text, calls, answer), a tool, or an earlier summary."""

CALL_LINE_MAX_CHARS = 160
"""Characters of a call's description."""


@dataclass(frozen=True, slots=True)
class QuotedText:
    """One text of the span, with its speaker and the handle that expands to it.

    ``about`` describes the call, or the call that a result answers: the tool and the first line of its arguments.
    ``offset`` is the position of this piece in the whole text.
    """

    handle: str
    speaker: Speaker
    text: str
    about: str = ""
    failed: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """The texts of the steps at positions ``[first, last)``, in order."""

    first: int
    last: int
    texts: tuple[QuotedText, ...] = ()

    @property
    def handle(self) -> str:
        """The handle that expands to the steps."""
        return range_handle(self.first, max(self.last, self.first + 1))


def build_span(items: Iterable[tuple[int, Item]], first: int, last: int) -> Span:
    """Build the span of positioned steps; ``[first, last)`` is the range that leaves. Empty texts are omitted.

    The steps are to be the recorded ones, not those of a view: a summary is made from the source.
    """
    texts = [text for position, item in items for text in _item_texts(position, item)]
    return Span(first, last, tuple(text for text in texts if text.text.strip()))


def _item_texts(position: int, item: Item) -> Iterator[QuotedText]:
    handle = step_handle(position)
    match item:
        case Pin(text=text):
            yield QuotedText(handle, "user", text)
        case steps.ActionStep():
            yield from _action_texts(position, item)
        case Observed(action=action, observation=observation):
            yield _result_text(handle, f"late, {step_handle(action)}", observation)
        case (
            steps.SystemPromptStep()
            | steps.TaskStep()
            | steps.PlanningStep()
            | steps.FinalAnswerStep()
            | steps.SummaryStep()
        ):
            yield QuotedText(handle, _SPEAKERS[type(item)], steps.as_text(item.content))


_SPEAKERS: Mapping[type[steps.Step], Speaker] = {
    steps.SystemPromptStep: "system", steps.TaskStep: "user", steps.PlanningStep: "plan",
    steps.FinalAnswerStep: "answer", steps.SummaryStep: "summary",
}  # fmt: skip


def _action_texts(position: int, step: steps.ActionStep) -> Iterator[QuotedText]:
    handle = step_handle(position)
    if step.content is not None:
        yield QuotedText(handle, "model", steps.as_text(step.content))
    for call in step.tool_calls:
        yield QuotedText(handle, "call", call.arguments, describe_call(call))
    for index, (call, observation) in enumerate(zip(step.tool_calls, step.observations, strict=False)):
        if observation is not None:
            yield _result_text(observation_handle(position, index), describe_call(call), observation)


def _result_text(handle: str, about: str, observation: steps.Observation) -> QuotedText:
    return QuotedText(handle, "result", steps.as_text(observation.content), about, has_failed(observation))


def describe_call(call: steps.ToolCall) -> str:
    r"""Describe a call in one line: the tool and the first line of its arguments.

    >>> describe_call(ToolCall("1", "bash", '{"command": "ls -l\\ncat a"}'))
    'bash: ls -l'
    """
    lines = (line.strip() for line in argument_text(call.arguments).splitlines())
    first = next((line for line in lines if line), "")
    return f"{call.name}: {first}"[:CALL_LINE_MAX_CHARS] if first and first != "{}" else call.name[:CALL_LINE_MAX_CHARS]
