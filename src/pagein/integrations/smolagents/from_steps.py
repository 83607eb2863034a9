"""A step of ours as smolagents had it: the step has what the model sees, the note beside it has all else.

A run that smolagents never held can be restored too, without notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image as Pillow
from smolagents import memory as smol
from smolagents import utils
from smolagents.models import ChatMessage, MessageRole
from smolagents.monitoring import Timing, TokenUsage

from pagein._common.json_values import parse_json, to_json_value
from pagein.events import steps
from pagein.integrations.smolagents.to_steps import NO_CALL, TASK_PREFIX, has_picture_bytes, to_picture

SAME = True
"""Value in a note of a field that equals the step's own, and is not written twice."""


@dataclass
class KeptStep(smol.MemoryStep):  # type: ignore[misc] # smolagents has no types
    """A step of an unknown class, with its messages as they were."""

    kind: str
    messages: list[ChatMessage] = field(default_factory=list)

    def to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:  # noqa: ARG002 - it has one rendering
        """Return its messages."""
        return list(self.messages)


def step_note(step: Any, own_steps: Sequence[steps.Step], first: int) -> dict[str, Any]:
    """The fields of a smolagents step that our steps lack, as JSON-safe values."""
    note: dict[str, Any] = {"at": first, "count": len(own_steps), "kind": type(step).__name__}
    match step:
        case smol.ActionStep():
            return note | _action_note(step, own_steps[0] if own_steps else None)
        case smol.PlanningStep():
            return note | {
                "plan": step.plan if step.plan != step.plan.strip() else SAME,
                "timing": _timing_note(step.timing),
                "usage": _usage_note(step.token_usage),
            }
        case _:
            return note


def _action_note(step: smol.ActionStep, own_step: steps.Step | None) -> dict[str, Any]:
    content = own_step.content if isinstance(own_step, steps.ActionStep) else None
    is_same = isinstance(step.model_output, str) and step.model_output == content
    first_arguments = step.tool_calls[0].arguments if step.tool_calls else None
    note: dict[str, Any] = {
        "number": step.step_number,
        "timing": _timing_note(step.timing),
        "usage": _usage_note(step.token_usage),
        "output": SAME if is_same else to_json_value(step.model_output),
        "code": _same_or_value(step.code_action, first_arguments),
        "observations": _same_or_value(step.observations, _only_observation(own_step)),
        "calls": len(step.tool_calls) if step.tool_calls is not None else None,
        "final": bool(step.is_final_answer),
        "action_output": to_json_value(step.action_output),
    }
    if step.error is not None:
        note["error"] = {"type": type(step.error).__name__, "message": str(step.error)}
    return {key: value for key, value in note.items() if value is not None and value is not False}


def _same_or_value(value: Any, own_value: Any) -> Any:
    return SAME if value is not None and value == own_value else value


def _timing_note(timing: Any) -> list[float | None]:
    return [getattr(timing, "start_time", None), getattr(timing, "end_time", None)]


def _usage_note(usage: Any) -> Any:
    return None if usage is None else to_json_value([usage.input_tokens, usage.output_tokens])


def _only_observation(own_step: steps.Step | None) -> str | None:
    """The text of the one successful observation that is shown, where nothing else is in it; else None."""
    if not isinstance(own_step, steps.ActionStep):
        return None
    shown = [(result, result.extra.body) for result in own_step.observations if result is not None and result.extra]
    if len(shown) != 1:
        return None
    result, fields = shown[0]
    return _text(result.content) if result.status == "ok" and '"before": ""' not in fields else None


def from_steps(own_steps: Sequence[steps.Step], note: Mapping[str, Any]) -> Any:
    """Restore the smolagents step that was recorded as these steps with this note, which may be empty."""
    own_step = own_steps[0] if own_steps else None
    kind = note.get("kind")
    match own_step:
        case steps.SystemPromptStep() if kind in (None, "SystemPromptStep"):
            return smol.SystemPromptStep(steps.as_text(own_step.content))
        case steps.TaskStep() if kind in (None, "TaskStep"):
            task = _text(own_step.content).removeprefix(TASK_PREFIX)
            return smol.TaskStep(task, _pictures(own_step.content) or None)
        case steps.PlanningStep() if kind in (None, "PlanningStep"):
            return _planning_step(own_step, note)
        case steps.FinalAnswerStep() if kind in (None, "FinalAnswerStep"):
            return smol.FinalAnswerStep(steps.as_text(own_step.content))
        case steps.ActionStep() | None if kind in (None, "ActionStep"):
            return _action_step(own_step if isinstance(own_step, steps.ActionStep) else None, note)
    return KeptStep(str(kind), [_chat_message(step) for step in own_steps])


def _planning_step(own_step: steps.PlanningStep, note: Mapping[str, Any]) -> smol.PlanningStep:
    content = steps.as_text(own_step.content)
    plan = note.get("plan", SAME)
    return smol.PlanningStep(
        model_input_messages=[],
        model_output_message=ChatMessage(role=MessageRole.ASSISTANT, content=content),
        plan=content if plan is SAME else plan,
        timing=_timing(note),
        token_usage=_usage(note),
    )


def _action_step(own_step: steps.ActionStep | None, note: Mapping[str, Any]) -> smol.ActionStep:
    calls = [
        smol.ToolCall(call.name, parse_json(call.arguments, call.arguments), call.id)
        for call in (own_step.tool_calls if own_step else ())
        if call.extra is None or call.extra.kind != NO_CALL
    ]
    output = note.get("output")
    if output is SAME and own_step is not None:
        output = own_step.content
    elif output is None and own_step is not None and "number" not in note:
        output = steps.as_text(own_step.content) or None
    code = note.get("code")
    observations = note.get("observations")
    is_same = observations is SAME or "number" not in note
    return smol.ActionStep(
        step_number=note.get("number", 0),
        timing=_timing(note),
        tool_calls=calls if calls or note.get("calls") == 0 else None,
        error=_error(note.get("error")),
        model_output_message=None if output is None else ChatMessage(role=MessageRole.ASSISTANT, content=output),
        model_output=output,
        code_action=calls[0].arguments if code is SAME and calls else code,
        observations=_observation_text(own_step) if is_same else observations,
        observations_images=_observation_pictures(own_step) or None,
        action_output=note.get("action_output"),
        token_usage=_usage(note),
        is_final_answer=bool(note.get("final")),
    )


def _observation_text(own_step: steps.ActionStep | None) -> str | None:
    results = own_step.observations if own_step else ()
    texts = [_text(result.content) for result in results if result is not None]
    return "\n".join(text for text in texts if text) if texts else None


def _observation_pictures(own_step: steps.ActionStep | None) -> list[Pillow.Image]:
    results = own_step.observations if own_step else ()
    return [picture for result in results if result is not None for picture in _pictures(result.content)]


def _pictures(content: Any) -> list[Pillow.Image]:
    return [to_picture(part) for part in steps.as_parts(content) if has_picture_bytes(part)]  # type: ignore[arg-type]


def _text(content: Any) -> str:
    return steps.as_text(tuple(part for part in steps.as_parts(content) if not has_picture_bytes(part)))


def _timing(note: Mapping[str, Any]) -> Timing:
    start, end = note.get("timing") or (0.0, None)
    return Timing(start_time=start, end_time=end)


def _usage(note: Mapping[str, Any]) -> TokenUsage | None:
    usage = note.get("usage")
    return None if usage is None else TokenUsage(input_tokens=usage[0], output_tokens=usage[1])


def _error(row: Mapping[str, str] | None) -> Any:
    """The error again, of its own class where smolagents has it; made without its logger, which would print."""
    if row is None:
        return None
    named = getattr(utils, row["type"], None)
    kind = named if isinstance(named, type) and issubclass(named, utils.AgentError) else utils.AgentError
    error: Any = kind.__new__(kind, row["message"])
    error.args = (row["message"],)
    error.message = row["message"]
    return error


def _chat_message(step: steps.Step) -> ChatMessage:
    role = MessageRole.ASSISTANT if isinstance(step, steps.ActionStep) else MessageRole.USER
    content: list[dict[str, Any]] = [{"type": "text", "text": _text(step.content)}]
    content += [{"type": "image", "image": picture} for picture in _pictures(step.content)]
    return ChatMessage(role=role, content=content)
