"""What may follow what: one table, and how an answer finds its call.

A run is idle or it waits for the answers of its last action. Whatever comes while calls are open closes them first,
each with an ``unknown`` observation: the run stopped before their results were recorded, and they may have run. They
are never run again by us, and a result that arrives after all is kept as a note where it arrives, so that nothing the
model has already read changes.

    IDLE     --system, task, plan, said, answer, note-->  IDLE
    IDLE     --called-->       CALLING
    CALLING  --result-->       CALLING
    CALLING  --last result-->  IDLE
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import assert_never

from pagein.errors import ProtocolError
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Observation,
    PlanningStep,
    Step,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
)


class State(Enum):
    """Where a run stands."""

    IDLE = "idle"
    CALLING = "calling"


class Kind(Enum):
    """What happens next, as the table knows it."""

    SYSTEM = "system"
    TASK = "task"
    PLAN = "plan"
    SAID = "said"
    CALLED = "called"
    RESULT = "result"
    LAST_RESULT = "last result"
    NOTE = "note"
    ANSWER = "answer"


_SPOKEN = (Kind.SYSTEM, Kind.TASK, Kind.PLAN, Kind.SAID, Kind.ANSWER, Kind.NOTE)

NEXT: Mapping[State, Mapping[Kind, State]] = MappingProxyType(
    {
        State.IDLE: MappingProxyType(dict.fromkeys(_SPOKEN, State.IDLE) | {Kind.CALLED: State.CALLING}),
        State.CALLING: MappingProxyType(
            {Kind.RESULT: State.CALLING, Kind.LAST_RESULT: State.IDLE, Kind.NOTE: State.CALLING}
        ),
    }
)


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without its answer: call ``index`` of the action at ``action``, as the model named it."""

    action: int
    index: int
    id: str


def advance(state: State, kind: Kind) -> State:
    """The state after ``kind``. Raises ProtocolError, which says what may follow instead."""
    allowed = NEXT[state]
    if kind not in allowed:
        names = ", ".join(each.value for each in allowed)
        raise ProtocolError(f"{kind.value} may not follow while {state.value}; allowed: {names}")
    return allowed[kind]


def check_item(item: object) -> None:
    """What may be recorded is a step or an observation. Raises ProtocolError, which says what to pass instead."""
    if isinstance(item, Step | Observation):
        return
    if isinstance(item, str):
        cure = f"pass TaskStep({item[:20]!r}) for what the user said, ActionStep for what the model said"
    elif isinstance(item, dict | list | tuple):
        cure = "pass messages to record_messages(), and several steps as arguments of their own"
    else:
        cure = "pass steps such as TaskStep('hi'), or a provider's messages to record_messages()"
    raise ProtocolError(f"record() takes steps and observations, not {type(item).__name__}: {cure}")


def kind_of(step: Step) -> Kind:
    """The row of the table for a step. Raises ProtocolError for a summary, which only a compaction may write."""
    match step:
        case SystemPromptStep():
            return Kind.SYSTEM
        case TaskStep():
            return Kind.TASK
        case PlanningStep():
            return Kind.PLAN
        case ActionStep():
            return Kind.CALLED if open_calls(step, 0) else Kind.SAID
        case FinalAnswerStep():
            return Kind.ANSWER
        case SummaryStep():
            # A summary handed in from outside could hide the trusted past behind a text of its own.
            raise ProtocolError(
                "a SummaryStep is written by a compaction, not recorded; use pin() or a TaskStep"
            )
        case _:
            assert_never(step)


def open_calls(step: Step, position: int) -> tuple[OpenCall, ...]:
    """The calls of an action that have no observation yet; none for other steps."""
    if not isinstance(step, ActionStep):
        return ()
    answered = {i for i, each in enumerate(step.observations) if each is not None}
    return tuple(
        OpenCall(position, i, call.id) for i, call in enumerate(step.tool_calls) if i not in answered
    )


def check_action(step: ActionStep) -> None:
    """Each observation an action brings along answers the call beside it. Raises ProtocolError where it does not."""
    for index, (call, seen) in enumerate(zip(step.tool_calls, step.observations, strict=False)):
        if seen is not None and seen.call_id != call.id:
            raise ProtocolError(
                f"observation {index} answers call {seen.call_id!r}, but call {index} is {call.id!r}"
            )


def find_call(observation: Observation, calls: Iterable[OpenCall]) -> OpenCall | None:
    """The call an observation answers: the one its ``index`` names, else the first open one of its id, else none.

    Empty and repeated ids are answered in the order of their calls, so that none swallows another's result.
    """
    for call in calls:
        if call.id == observation.call_id and observation.index in (None, call.index):
            return call
    return None


def unknown(call: OpenCall) -> Observation:
    """The observation that closes a call whose result was never recorded."""
    return Observation(call.id, "", "unknown", call.index)


def with_observations(step: ActionStep, answers: Mapping[int, Observation]) -> ActionStep:
    """The action with the calls of these numbers answered."""
    seen = list(step.observations) + [None] * (len(step.tool_calls) - len(step.observations))
    for index, observation in answers.items():
        seen[index] = observation
    return replace(step, observations=tuple(seen))
