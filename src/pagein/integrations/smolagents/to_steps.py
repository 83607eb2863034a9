"""A smolagents step as steps of ours: what the model is to see of it, for the log, the counts and the view.

What smolagents adds to the text of a message (``Observation:``, ``Call id:``) is kept in ``extra``, as a provider's
fields are: counted, and used by ``chat_messages`` alone.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from PIL import Image as Pillow
from smolagents import memory as smol

from pagein._common.json_values import png_bytes, to_json_value
from pagein.errors import ConfigurationError
from pagein.events import steps

PROVIDER = "smolagents"

TASK_PREFIX = "New task:\n"
OBSERVATION_PREFIX = "Observation:\n"
RETRY_ADVICE = (
    "\nNow let's retry: take care not to repeat previous errors! "
    "If you have retried several times, try a completely different approach.\n"
)

_EMPTY_CALL_ROW = '{"id":"","type":"function","function":{"name":"","arguments":""}}'
NO_CALL = "no_call"
"""Kind of a call that the model did not make: it has the observation, or the error, of a step without calls."""


def to_steps(step: Any, task_pictures: Sequence[Pillow.Image] = ()) -> tuple[steps.Step, ...]:
    """Convert a smolagents step to steps of ours; none where it has nothing for the model.

    ``task_pictures`` are not shown again by the task's actions. Raises ConfigurationError for what is no step.
    """
    match step:
        case smol.SystemPromptStep():
            return (steps.SystemPromptStep(step.system_prompt or ""),)
        case smol.TaskStep():
            return (steps.TaskStep(_with_pictures(f"{TASK_PREFIX}{step.task}", step.task_images or ())),)
        case smol.PlanningStep():
            return (steps.PlanningStep(step.plan.strip()),)
        case smol.ActionStep():
            return _convert_action(step, task_pictures)
        case smol.FinalAnswerStep():
            return (steps.FinalAnswerStep(str(step.output)),)
        case smol.MemoryStep():
            return tuple(_convert_unknown(step))
    raise ConfigurationError(
        f"agent.memory.steps takes the steps of smolagents.memory, not {type(step).__name__}. Nothing was recorded."
    )


def _convert_action(step: smol.ActionStep, task_pictures: Sequence[Pillow.Image]) -> tuple[steps.Step, ...]:
    calls, content = tool_calls(step.tool_calls or ()), model_content(step.model_output)
    first_id = str(step.tool_calls[0].id) if step.tool_calls else ""
    pictures = new_pictures(step, task_pictures)
    result = make_observation(step.observations, step.error, pictures, first_id)
    if not calls and result is not None:
        calls = (steps.ToolCall(NO_CALL, NO_CALL, extra=steps.Opaque(PROVIDER, NO_CALL, "{}")),)
        result = steps.Observation(NO_CALL, result.content, result.status, extra=result.extra)
    if not calls and content is None:
        return ()
    if result is None:
        observations = [steps.Observation(call.id, "", "unknown") for call in calls]
    else:
        observations = [steps.Observation(call.id, "", extra=observation_extra("", is_shown=False)) for call in calls]
        observations[0] = steps.Observation(calls[0].id, result.content, result.status, extra=result.extra)
    return (steps.ActionStep(content, calls, tuple(observations), usage=token_usage(step.token_usage)),)


def model_content(output: str | list[dict[str, Any]] | None) -> steps.Content | None:
    """The model's output as smolagents shows it; None where there is none."""
    if isinstance(output, list):
        parts = tuple(_convert_part(part) for part in output)
        return parts or None
    return (output or "").strip() or None


def _convert_part(part: Any) -> steps.Part:
    if isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("type", "text") == "text":
        return steps.Text(part["text"])
    kind = str(part.get("type", "part")) if isinstance(part, dict) else "part"
    return steps.Opaque(PROVIDER, kind, json.dumps(to_json_value(part)))


def tool_calls(calls: Sequence[Any]) -> tuple[steps.ToolCall, ...]:
    """Tool calls of a step as ours, in their order, with their arguments as JSON text."""
    return tuple(
        steps.ToolCall(
            str(call.id or ""),
            str(call.name),
            json.dumps(to_json_value(call.arguments), ensure_ascii=False),
            extra=steps.Opaque(PROVIDER, "call", _EMPTY_CALL_ROW),
        )
        for call in calls
    )


def token_usage(usage: Any) -> steps.Usage | None:
    """The usage that the provider reported, where it reported whole numbers."""
    counts = (getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None))
    if all(isinstance(count, int) and not isinstance(count, bool) for count in counts):
        return steps.Usage(*counts)  # type: ignore[arg-type]
    return None


def make_observation(
    text: str | None, error: BaseException | str | None, pictures: Sequence[Pillow.Image] = (), call_id: str = ""
) -> steps.Observation | None:
    """Make an observation of its text, its error and its pictures; None where there is none of them."""
    if text is None and error is None and not pictures:
        return None
    texts = [] if text is None else [text]
    if error is not None:
        texts.append((f"Call id: {call_id}\n" if call_id else "") + f"Error:\n{error}{RETRY_ADVICE}")
    prefix = OBSERVATION_PREFIX if text is not None else ""
    status: Literal["ok", "error"] = "ok" if error is None else "error"
    content = _with_pictures("\n".join(texts), pictures)
    return steps.Observation(call_id, content, status, extra=observation_extra(prefix))


def observation_extra(prefix: str, *, is_shown: bool = True) -> steps.Opaque:
    """The extra of an observation: the text before it in a message, or that it is not shown."""
    body = {"before": prefix} if is_shown else {"shown": False}
    return steps.Opaque(PROVIDER, "observation", json.dumps(body))


def new_pictures(step: smol.ActionStep, task_pictures: Sequence[Pillow.Image]) -> tuple[Pillow.Image, ...]:
    """The pictures of a step that are not the task's own, which smolagents sends again with each step."""
    task_ids = {id(picture) for picture in task_pictures}
    return tuple(picture for picture in step.observations_images or () if id(picture) not in task_ids)


def _with_pictures(text: str, pictures: Sequence[Pillow.Image]) -> steps.Content:
    if not pictures:
        return text
    return (*((steps.Text(text),) if text else ()), *map(_to_image, pictures))


def _convert_unknown(step: smol.MemoryStep) -> Iterator[steps.Step]:
    """Convert a step of an unknown class by its own messages."""
    try:
        messages = step.to_messages()
    except NotImplementedError:
        return
    for message in messages:
        content = _message_content(message.content)
        if message.role in ("assistant", "tool-call"):
            yield steps.ActionStep(content)
        elif content is not None:
            yield steps.TaskStep(content)


def _message_content(content: Any) -> steps.Content | None:
    if content is None or isinstance(content, str):
        return content or None
    parts: list[steps.Part] = []
    for part in content:
        picture = part.get("image") if isinstance(part, dict) else None
        parts.append(_to_image(picture) if isinstance(picture, Pillow.Image) else _convert_part(part))
    return tuple(parts) or None


def _to_image(picture: Pillow.Image) -> steps.Image:
    return steps.Image(png_bytes(picture), "image/png")


def to_picture(image: steps.Image) -> Pillow.Image:
    """Convert an image back to a picture. Raises OSError for bytes that are none."""
    return Pillow.open(io.BytesIO(image.data))


def has_picture_bytes(part: steps.Part) -> bool:
    """True for a picture whose bytes are recorded."""
    return isinstance(part, steps.Image) and bool(part.data)


def join_contents(first: steps.Content, second: steps.Content) -> steps.Content:
    """Join two contents: their texts as one text, then the other parts."""
    parts = (*steps.as_parts(first), *steps.as_parts(second))
    text = "\n".join(part.text for part in parts if isinstance(part, steps.Text) and part.text)
    others = tuple(part for part in parts if not isinstance(part, steps.Text))
    return (*((steps.Text(text),) if text else ()), *others) if others else text
