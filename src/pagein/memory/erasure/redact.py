"""What is left of a body when what was said is gone: its kind, its place, the ids that others refer to. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import assert_never

from pagein.events.entries import (
    Body,
    Checkpoint,
    Compaction,
    Erased,
    FactBody,
    FactConfirmed,
    FactRemoved,
    FactsExtracted,
    FactsShown,
    FactStated,
    FactsUsed,
    Observed,
    Pin,
    Replacement,
    Stub,
    Undo,
    Unpin,
)
from pagein.events.handles import range_handle
from pagein.events.steps import (
    ActionStep,
    Content,
    FinalAnswerStep,
    Observation,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)

ERASED = "[erased]"
"""What stands where something was said."""


def emptied(body: Body) -> Body:
    """The body without anything that was said in it; one that says nothing is the same.

    Stays: who spoke, the ids and names of calls and how they ended, the model's name and what was counted.
    """
    match body:
        case SystemPromptStep() | TaskStep() | PlanningStep() | FinalAnswerStep():
            return replace(body, content=_gone(body.content), extra=None)
        case SummaryStep():
            return replace(body, content=ERASED)
        case ActionStep():
            calls = tuple(ToolCall(call.id, call.name) for call in body.tool_calls)
            seen = tuple(None if each is None else _unseen(each) for each in body.observations)
            content = None if body.content is None else _gone(body.content)
            return replace(body, content=content, tool_calls=calls, observations=seen, extra=None)
        case Observed():
            return replace(body, observation=_unseen(body.observation))
        case Pin():
            return Pin(ERASED)
        case Checkpoint():
            return Checkpoint(ERASED)
        case Compaction():
            return replace(body, replacements=tuple(map(_blank, body.replacements)))
        case Unpin() | Undo():
            return body
        case _:
            return _beside(body)


def _beside(body: FactBody) -> Body:
    match body:
        case FactStated():
            return replace(body, content=ERASED, sources=(), reason="")
        case FactRemoved():
            return replace(body, reason="")
        case FactConfirmed():
            return replace(body, sources=(), reason="")
        case FactsUsed() | FactsExtracted() | Erased():
            return body
        case FactsShown():
            return FactsShown("")
        case _:
            assert_never(body)


def unobserved(step: ActionStep, indexes: Collection[int]) -> ActionStep:
    """The action without what these of its calls returned."""
    seen = (
        _unseen(each) if each is not None and at in indexes else each
        for at, each in enumerate(step.observations)
    )
    return replace(step, observations=tuple(seen))


def _unseen(seen: Observation) -> Observation:
    return Observation(seen.call_id, _gone(seen.content), seen.status, seen.index)


def _gone(content: Content) -> Content:
    return ERASED if content else content


def _blank(by: Replacement) -> Replacement:
    stubs = tuple(unsaid(each) for each in by.stubs)
    return replace(
        by, stubs=stubs, summary=None if by.summary is None else out_of_view(by.first, by.last), record=""
    )


def unsaid(stub: Stub) -> Stub:
    """The stub without its text; arguments stay JSON."""
    if not stub.text:
        return stub
    return replace(stub, text="{}" if stub.slot == "arguments" else ERASED)


def out_of_view(first: int, last: int) -> str:
    """What stands for steps of which nothing else may be said: their handle."""
    return f"Out of view: {range_handle(first, last)}."
