"""Redacts bodies: the content goes; the kind, the place and the ids that others refer to stay. No I/O."""

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
    Mark,
    Observed,
    Pin,
    Replacement,
    Stub,
    Undo,
    Unpin,
)
from pagein.events.handles import range_handle
from pagein.events.steps import (
    TEXT_OBSERVATION,
    ActionStep,
    Content,
    FinalAnswerStep,
    Observation,
    Opaque,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    ToolCall,
)

ERASED = "[erased]"
"""What stands where something was said."""


def redact(body: Body) -> Body:
    """Remove all content from a body; a body without content is returned equal.

    The role, the ids and names of calls and their status, the model's name and the usage stay.
    """
    match body:
        case SystemPromptStep() | TaskStep() | PlanningStep() | FinalAnswerStep():
            return replace(body, content=_redact_content(body.content), extra=None)
        case SummaryStep():
            return replace(body, content=ERASED)
        case ActionStep():
            calls = tuple(ToolCall(call.id, call.name) for call in body.tool_calls)
            observations = tuple(
                None if observation is None else _redact_observation(observation) for observation in body.observations
            )
            content = None if body.content is None else _redact_content(body.content)
            return replace(body, content=content, tool_calls=calls, observations=observations, extra=None)
        case Observed():
            return replace(body, observation=_redact_observation(body.observation))
        case Pin():
            return replace(body, text=ERASED)
        case Checkpoint():
            return Checkpoint(ERASED)
        case Compaction():
            return replace(body, replacements=tuple(map(_redact_replacement, body.replacements)))
        case Unpin() | Mark() | Undo():
            return body
        case _:
            return _redact_fact_body(body)


def _redact_fact_body(body: FactBody) -> Body:
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


def redact_observations(step: ActionStep, indexes: Collection[int]) -> ActionStep:
    """Remove the content of these observations from an action."""
    observations = (
        _redact_observation(observation) if observation is not None and at in indexes else observation
        for at, observation in enumerate(step.observations)
    )
    return replace(step, observations=tuple(observations))


def _redact_observation(observation: Observation) -> Observation:
    # A result that came as a message stays one: it answers no call.
    extra = Opaque(*TEXT_OBSERVATION, "{}") if observation.is_message else None
    return Observation(
        observation.call_id, _redact_content(observation.content), observation.status, observation.index, extra
    )


def _redact_content(content: Content) -> Content:
    return ERASED if content else content


def _redact_replacement(by: Replacement) -> Replacement:
    stubs = tuple(redact_stub(stub) for stub in by.stubs)
    return replace(
        by, stubs=stubs, summary=None if by.summary is None else out_of_view_line(by.first, by.last), record=""
    )


def redact_stub(stub: Stub) -> Stub:
    """Remove the text of a stub; arguments stay JSON."""
    if not stub.text:
        return stub
    return replace(stub, text="{}" if stub.slot == "arguments" else ERASED)


def out_of_view_line(first: int, last: int) -> str:
    """The line that stands for erased steps: their handle alone."""
    return f"Out of view: {range_handle(first, last)}."
