"""Redacts bodies: the content goes; the kind, the place and the ids that others refer to stay. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import assert_never

from pagein.events import entries, steps
from pagein.events.handles import range_handle

ERASED = "[erased]"
"""What stands where something was said."""


def redact(body: entries.Body) -> entries.Body:
    """Remove all content from a body; a body without content is returned equal.

    The role, the ids and names of calls and their status, the model's name and the usage stay.
    """
    match body:
        case steps.SystemPromptStep() | steps.TaskStep() | steps.PlanningStep() | steps.FinalAnswerStep():
            return replace(body, content=_redact_content(body.content), extra=None)
        case steps.SummaryStep():
            return replace(body, content=ERASED)
        case steps.ActionStep():
            calls = tuple(steps.ToolCall(call.id, call.name) for call in body.tool_calls)
            observations = tuple(
                None if observation is None else _redact_observation(observation) for observation in body.observations
            )
            content = None if body.content is None else _redact_content(body.content)
            return replace(body, content=content, tool_calls=calls, observations=observations, extra=None)
        case entries.Observed():
            return replace(body, observation=_redact_observation(body.observation))
        case entries.Pin():
            return replace(body, text=ERASED)
        case entries.Checkpoint():
            return entries.Checkpoint(ERASED)
        case entries.Compaction():
            return replace(body, replacements=tuple(map(_redact_replacement, body.replacements)))
        case entries.Unpin() | entries.Mark() | entries.Undo():
            return body
        case _:
            return _redact_fact_body(body)


def _redact_fact_body(body: entries.FactBody) -> entries.Body:
    match body:
        case entries.FactStated():
            return replace(body, content=ERASED, sources=(), reason="")
        case entries.FactRemoved():
            return replace(body, reason="")
        case entries.FactConfirmed():
            return replace(body, sources=(), reason="")
        case entries.FactsUsed() | entries.FactsExtracted() | entries.Erased():
            return body
        case entries.FactsShown():
            return entries.FactsShown("")
        case _:
            assert_never(body)


def redact_observations(step: steps.ActionStep, indexes: Collection[int]) -> steps.ActionStep:
    """Remove the content of these observations from an action."""
    observations = (
        _redact_observation(observation) if observation is not None and at in indexes else observation
        for at, observation in enumerate(step.observations)
    )
    return replace(step, observations=tuple(observations))


def _redact_observation(observation: steps.Observation) -> steps.Observation:
    # A result that came as a message stays one: it answers no call.
    extra = steps.Opaque(*steps.TEXT_OBSERVATION, "{}") if observation.is_message else None
    return steps.Observation(
        observation.call_id, _redact_content(observation.content), observation.status, observation.index, extra
    )


def _redact_content(content: steps.Content) -> steps.Content:
    return ERASED if content else content


def _redact_replacement(by: entries.Replacement) -> entries.Replacement:
    stubs = tuple(redact_stub(stub) for stub in by.stubs)
    return replace(
        by, stubs=stubs, summary=None if by.summary is None else out_of_view_line(by.first, by.last), record=""
    )


def redact_stub(stub: entries.Stub) -> entries.Stub:
    """Remove the text of a stub; arguments stay JSON."""
    if not stub.text:
        return stub
    return replace(stub, text="{}" if stub.slot == "arguments" else ERASED)


def out_of_view_line(first: int, last: int) -> str:
    """The line that stands for erased steps: their handle alone."""
    return f"Out of view: {range_handle(first, last)}."
