"""The order of events in a run: one transition table, and the matching of observations to calls.

A run is idle, or it waits for the results of its last action. An event that comes while calls are open closes them
first, each with an ``unknown`` observation: the run stopped before their results were recorded, and they may have run.
pagein never runs them again. A result that arrives later is recorded as a note at its own position, so nothing that the
model has already read changes.

    IDLE     --system, task, plan, said, answer, note-->  IDLE
    IDLE     --called-->       CALLING
    CALLING  --result-->       CALLING
    CALLING  --last result-->  IDLE
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import assert_never

from pagein.errors import ProtocolError
from pagein.events.entries import Body, Checkpoint, Compaction, FactBody, Observed, Pin, Undo, Unpin
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Image,
    Observation,
    Part,
    PlanningStep,
    Step,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
    as_parts,
)


class RunPhase(Enum):
    """The phase of a run: idle, or waiting for results."""

    IDLE = "idle"
    CALLING = "calling"


class EventKind(Enum):
    """An event of the transition table."""

    SYSTEM = "system"
    TASK = "task"
    PLAN = "plan"
    SAID = "said"
    CALLED = "called"
    RESULT = "result"
    LAST_RESULT = "last result"
    NOTE = "note"
    ANSWER = "answer"


_CLOSED_EVENTS = (EventKind.SYSTEM, EventKind.TASK, EventKind.PLAN, EventKind.SAID, EventKind.ANSWER, EventKind.NOTE)

TRANSITIONS: Mapping[RunPhase, Mapping[EventKind, RunPhase]] = MappingProxyType(
    {
        RunPhase.IDLE: MappingProxyType(
            dict.fromkeys(_CLOSED_EVENTS, RunPhase.IDLE) | {EventKind.CALLED: RunPhase.CALLING}
        ),
        RunPhase.CALLING: MappingProxyType(
            {EventKind.RESULT: RunPhase.CALLING, EventKind.LAST_RESULT: RunPhase.IDLE, EventKind.NOTE: RunPhase.CALLING}
        ),
    }
)


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without an observation: call ``index`` of the action at position ``action``, with the model's id for it."""

    action: int
    index: int
    id: str


def advance(phase: RunPhase, kind: EventKind) -> RunPhase:
    """Return the phase after an event. Raises ProtocolError, which lists the allowed events."""
    allowed = TRANSITIONS[phase]
    if kind not in allowed:
        names = ", ".join(event.value for event in allowed)
        raise ProtocolError(f"{kind.value} may not follow while {phase.value}; allowed: {names}")
    return allowed[kind]


def check_item(item: object) -> None:
    """Raise ProtocolError if the item is neither a step nor an observation; the message says what to pass instead."""
    if isinstance(item, Step | Observation):
        return
    if isinstance(item, str):
        cure = f"pass TaskStep({item[:20]!r}) for what the user said, ActionStep for what the model said"
    elif isinstance(item, dict | list | tuple):
        cure = "pass messages to record_messages(), and several steps as arguments of their own"
    else:
        cure = "pass steps such as TaskStep('hi'), or a provider's messages to record_messages()"
    raise ProtocolError(f"record() takes steps and observations, not {type(item).__name__}: {cure}")


def event_kind(step: Step) -> EventKind:
    """Return the event of a step. Raises ProtocolError for a summary, which only a compaction may write."""
    match step:
        case SystemPromptStep():
            return EventKind.SYSTEM
        case TaskStep():
            return EventKind.TASK
        case PlanningStep():
            return EventKind.PLAN
        case ActionStep():
            return EventKind.CALLED if open_calls(step, 0) else EventKind.SAID
        case FinalAnswerStep():
            return EventKind.ANSWER
        case SummaryStep():
            # A summary from outside could replace the recorded past with any text.
            raise ProtocolError("a SummaryStep is written by a compaction, not recorded; use pin() or a TaskStep")
        case _:
            assert_never(step)


def open_calls(step: Step, position: int) -> tuple[OpenCall, ...]:
    """Return the calls of an action that have no observation yet; none for other steps."""
    if not isinstance(step, ActionStep):
        return ()
    answered = {i for i, observation in enumerate(step.observations) if observation is not None}
    return tuple(OpenCall(position, i, call.id) for i, call in enumerate(step.tool_calls) if i not in answered)


def check_action(step: ActionStep) -> None:
    """Raise ProtocolError if an observation of the action does not answer the call at the same index."""
    for index, (call, observation) in enumerate(zip(step.tool_calls, step.observations, strict=False)):
        if observation is not None and observation.call_id != call.id:
            raise ProtocolError(
                f"observation {index} answers call {observation.call_id!r}, but call {index} is {call.id!r}"
            )


def find_call(observation: Observation, calls: Iterable[OpenCall]) -> OpenCall | None:
    """Return the call an observation answers: the first open one with its id, and with its ``index`` if set.

    Calls with empty or repeated ids are answered in their order, so that each gets its own result.
    """
    for call in calls:
        if call.id == observation.call_id and observation.index in (None, call.index):
            return call
    return None


def unknown_observation(call: OpenCall) -> Observation:
    """Return the observation that closes a call whose result was never recorded."""
    return Observation(call.id, "", "unknown", call.index)


def with_observations(step: ActionStep, answers: Mapping[int, Observation]) -> ActionStep:
    """Return the action with these observations, by the index of their calls."""
    observations = list(step.observations) + [None] * (len(step.tool_calls) - len(step.observations))
    for index, observation in answers.items():
        observations[index] = observation
    return replace(step, observations=tuple(observations))


RESULT_PREFIX, SYSTEM_PREFIX, STEP_PREFIX = b"r", b"y", b"s"
"""First byte of the fingerprint of a result, of a system prompt, and of any other step."""


def fingerprint(item: Step | Observation) -> bytes:
    """Hash an item; observations of an action are hashed by themselves."""
    if isinstance(item, ActionStep):
        item = replace(item, observations=(), usage=None, model="")
    elif isinstance(item, Observation):
        item = replace(item, index=None)
    parts = as_parts(item.content)
    images = [part.digest for part in parts if isinstance(part, Image)]
    if not isinstance(item, SummaryStep):
        # Text and a list of one text are the same content, and a cache marker is none.
        item = replace(item, content=tuple(map(_without_cache_marker, parts)))
    text = (repr(item) + repr(images)).encode("utf-8", "surrogatepass")
    return _prefix(item) + hashlib.blake2b(text, digest_size=16).digest()


def body_fingerprints(body: Body) -> tuple[bytes, ...]:
    """The fingerprints of the items that a host handed over in one entry; none for what the library wrote."""
    if isinstance(body, Compaction | Pin | Unpin | Checkpoint | Undo | FactBody):
        return ()
    match body:
        case ActionStep(observations=observations) as step:
            results = (observation for observation in observations if observation is not None)
            return (fingerprint(step), *map(fingerprint, results))
        case Observed(observation=observation):
            return () if observation.status == "unknown" else (fingerprint(observation),)
        case (SystemPromptStep() | TaskStep() | PlanningStep() | FinalAnswerStep() | SummaryStep()) as step:
            return (fingerprint(step),)
        case _:
            assert_never(body)


def _prefix(item: Step | Observation) -> bytes:
    if isinstance(item, Observation):
        return RESULT_PREFIX
    return SYSTEM_PREFIX if isinstance(item, SystemPromptStep) else STEP_PREFIX


def _without_cache_marker(part: Part) -> Part:
    if isinstance(part, Text) and part.extra is not None:
        is_marker = part.extra.body == "{}" or part.extra.kind == "cache_control"
        return Text(part.text) if is_marker else part
    return part
