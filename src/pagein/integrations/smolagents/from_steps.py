"""A step of ours as smolagents had it: what the model sees is in the step, all else in the note beside it.

A run that smolagents never held can be restored too, without its notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image as Pillow
from smolagents import memory as theirs
from smolagents import utils
from smolagents.models import ChatMessage, MessageRole
from smolagents.monitoring import Timing, TokenUsage

from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    PlanningStep,
    Step,
    SystemPromptStep,
    TaskStep,
    as_parts,
    as_text,
)
from pagein.integrations._json_values import as_picture, plain
from pagein.integrations.smolagents.chat_messages import spoken_arguments
from pagein.integrations.smolagents.to_steps import NO_CALL, TASK, is_picture_kept

SAME = True
"""In a note: it is what the step of ours says, and is not written twice."""


@dataclass
class KeptStep(theirs.MemoryStep):  # type: ignore[misc] # smolagents has no types
    """A step whose class is not known here: what it said is kept, and said again unchanged."""

    kind: str
    messages: list[ChatMessage] = field(default_factory=list)

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:  # noqa: ARG002 - it had one way to say it
        """What it said."""
        return list(self.messages)


def noted(step: Any, ours: Sequence[Step], first: int) -> dict[str, Any]:
    """What of a smolagents step the steps of ours do not say, as JSON-safe values."""
    note: dict[str, Any] = {"at": first, "count": len(ours), "kind": type(step).__name__}
    match step:
        case theirs.ActionStep():
            return note | _action_note(step, ours[0] if ours else None)
        case theirs.PlanningStep():
            return note | {
                "plan": step.plan if step.plan != step.plan.strip() else SAME,
                "timing": _times(step.timing),
                "usage": _usage_note(step.token_usage),
            }
        case _:
            return note


def _action_note(step: theirs.ActionStep, ours: Step | None) -> dict[str, Any]:
    said = ours.content if isinstance(ours, ActionStep) else None
    is_same = isinstance(step.model_output, str) and step.model_output == said
    only = step.tool_calls[0].arguments if step.tool_calls else None
    note: dict[str, Any] = {
        "number": step.step_number,
        "timing": _times(step.timing),
        "usage": _usage_note(step.token_usage),
        "output": SAME if is_same else plain(step.model_output),
        "code": _unless_same(step.code_action, only),
        "observations": _unless_same(step.observations, _observed(ours)),
        "calls": len(step.tool_calls) if step.tool_calls is not None else None,
        "final": bool(step.is_final_answer),
        "action_output": plain(step.action_output),
    }
    if step.error is not None:
        note["error"] = {"type": type(step.error).__name__, "message": str(step.error)}
    return {key: value for key, value in note.items() if value is not None and value is not False}


def _unless_same(value: Any, known: Any) -> Any:
    return SAME if value is not None and value == known else value


def _times(timing: Any) -> list[float | None]:
    return [getattr(timing, "start_time", None), getattr(timing, "end_time", None)]


def _usage_note(usage: Any) -> Any:
    return None if usage is None else plain([usage.input_tokens, usage.output_tokens])


def _observed(ours: Step | None) -> str | None:
    """What a note need not repeat: the one answer that was shown, where nothing else is in it."""
    if not isinstance(ours, ActionStep):
        return None
    shown = [each for each in ours.observations if each is not None and each.extra is not None]
    if (
        len(shown) != 1
        or shown[0].status != "ok"
        or '"before": ""' in (shown[0].extra.body if shown[0].extra else "")
    ):
        return None
    texts = [part for part in as_parts(shown[0].content) if not is_picture_kept(part)]
    return as_text(tuple(texts))


def restored(steps: Sequence[Step], note: Mapping[str, Any]) -> Any:
    """The smolagents step that was recorded as these steps, with this note (empty where there is none)."""
    ours = steps[0] if steps else None
    kind = note.get("kind")
    match ours:
        case SystemPromptStep() if kind in (None, "SystemPromptStep"):
            return theirs.SystemPromptStep(as_text(ours.content))
        case TaskStep() if kind in (None, "TaskStep"):
            return theirs.TaskStep(_text(ours.content).removeprefix(TASK), _pictures(ours.content) or None)
        case PlanningStep() if kind in (None, "PlanningStep"):
            return _planning(ours, note)
        case FinalAnswerStep() if kind in (None, "FinalAnswerStep"):
            return theirs.FinalAnswerStep(as_text(ours.content))
        case ActionStep() | None if kind in (None, "ActionStep"):
            return _action(ours if isinstance(ours, ActionStep) else None, note)
    return KeptStep(str(kind), [_message(each) for each in steps])


def _planning(ours: PlanningStep, note: Mapping[str, Any]) -> theirs.PlanningStep:
    said = as_text(ours.content)
    plan = note.get("plan", SAME)
    return theirs.PlanningStep(
        model_input_messages=[],
        model_output_message=ChatMessage(role=MessageRole.ASSISTANT, content=said),
        plan=said if plan is SAME else plan,
        timing=_timing(note),
        token_usage=_usage(note),
    )


def _action(ours: ActionStep | None, note: Mapping[str, Any]) -> theirs.ActionStep:
    calls = [
        theirs.ToolCall(call.name, spoken_arguments(call.arguments), call.id)
        for call in (ours.tool_calls if ours else ())
        if call.extra is None or call.extra.kind != NO_CALL
    ]
    output = note.get("output")
    if output is SAME and ours is not None:
        output = ours.content
    elif output is None and ours is not None and "number" not in note:
        output = as_text(ours.content) or None
    code = note.get("code")
    seen = note.get("observations")
    return theirs.ActionStep(
        step_number=note.get("number", 0),
        timing=_timing(note),
        tool_calls=calls if calls or note.get("calls") == 0 else None,
        error=_error(note.get("error")),
        model_output_message=_spoken(output),
        model_output=output,
        code_action=calls[0].arguments if code is SAME and calls else code,
        observations=_all_observed(ours) if seen is SAME or "number" not in note else seen,
        observations_images=_seen_pictures(ours) or None,
        action_output=note.get("action_output"),
        token_usage=_usage(note),
        is_final_answer=bool(note.get("final")),
    )


def _all_observed(ours: ActionStep | None) -> str | None:
    texts = [_text(each.content) for each in (ours.observations if ours else ()) if each is not None]
    return "\n".join(text for text in texts if text) if texts else None


def _spoken(output: Any) -> ChatMessage | None:
    return None if output is None else ChatMessage(role=MessageRole.ASSISTANT, content=output)


def _seen_pictures(ours: ActionStep | None) -> list[Pillow.Image]:
    return [
        each
        for seen in (ours.observations if ours else ())
        if seen is not None
        for each in _pictures(seen.content)
    ]


def _pictures(content: Any) -> list[Pillow.Image]:
    return [as_picture(part) for part in as_parts(content) if is_picture_kept(part)]  # type: ignore[arg-type]


def _text(content: Any) -> str:
    return as_text(tuple(part for part in as_parts(content) if not is_picture_kept(part)))


def _timing(note: Mapping[str, Any]) -> Timing:
    start, end = note.get("timing") or (0.0, None)
    return Timing(start_time=start, end_time=end)


def _usage(note: Mapping[str, Any]) -> TokenUsage | None:
    usage = note.get("usage")
    return None if usage is None else TokenUsage(input_tokens=usage[0], output_tokens=usage[1])


def _error(error: Mapping[str, str] | None) -> Any:
    """The error again, of its own class where smolagents has it; made without its logger, which would print."""
    if error is None:
        return None
    found = getattr(utils, error["type"], None)
    known = found if isinstance(found, type) and issubclass(found, utils.AgentError) else utils.AgentError
    made: Any = known.__new__(known, error["message"])
    made.args = (error["message"],)
    made.message = error["message"]
    return made


def _message(step: Step) -> ChatMessage:
    role = MessageRole.ASSISTANT if isinstance(step, ActionStep) else MessageRole.USER
    content: list[dict[str, Any]] = [{"type": "text", "text": _text(step.content)}]
    content += [{"type": "image", "image": each} for each in _pictures(step.content)]
    return ChatMessage(role=role, content=content)
