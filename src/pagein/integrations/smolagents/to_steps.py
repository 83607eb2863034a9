"""A smolagents step as ours: what the model is to see of it, so that the log, the counts and the view are of one piece.

How smolagents says a thing beside its words (``Observation:``, ``Call id:``) is kept in ``extra`` as a provider's
fields are: counted, and used by ``speaking`` alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from PIL import Image as Pillow
from smolagents import memory as theirs

from pagein.errors import ConfigurationError
from pagein.events.steps import (
    ActionStep,
    Content,
    FinalAnswerStep,
    Image,
    Observation,
    Opaque,
    Part,
    PlanningStep,
    Step,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    Usage,
    as_parts,
)
from pagein.integrations._json_values import as_image, plain

PROVIDER = "smolagents"

TASK = "New task:\n"
OBSERVED = "Observation:\n"
RETRY = (
    "\nNow let's retry: take care not to repeat previous errors! "
    "If you have retried several times, try a completely different approach.\n"
)

_CALL = '{"id":"","type":"function","function":{"name":"","arguments":""}}'
NO_CALL = "no_call"
"""The kind of a call that the model did not make: it holds what was observed, or what failed, without one."""


def recorded(step: Any, shown: Sequence[Pillow.Image] = ()) -> tuple[Step, ...]:
    """The steps of ours that say what this one says to the model; none where it says nothing.

    ``shown`` are the pictures of the task, which its actions do not show again. Raises ConfigurationError for what is no
    step.
    """
    match step:
        case theirs.SystemPromptStep():
            return (SystemPromptStep(step.system_prompt or ""),)
        case theirs.TaskStep():
            return (TaskStep(_with_pictures(f"{TASK}{step.task}", step.task_images or ())),)
        case theirs.PlanningStep():
            return (PlanningStep(step.plan.strip()),)
        case theirs.ActionStep():
            return _action(step, shown)
        case theirs.FinalAnswerStep():
            return (FinalAnswerStep(str(step.output)),)
        case theirs.MemoryStep():
            return tuple(_foreign(step))
    raise ConfigurationError(
        f"agent.memory.steps takes the steps of smolagents.memory, not {type(step).__name__}. Nothing was recorded."
    )


def _action(step: theirs.ActionStep, shown: Sequence[Pillow.Image]) -> tuple[Step, ...]:
    calls, content = calls_of(step.tool_calls or ()), content_of(step.model_output)
    seen = seen_of(step, shown)
    if not calls and seen is not None:
        calls = (ToolCall(NO_CALL, NO_CALL, extra=Opaque(PROVIDER, NO_CALL, "{}")),)
        seen = Observation(NO_CALL, seen.content, seen.status, extra=seen.extra)
    if not calls and content is None:
        return ()
    observations: list[Observation | None] = [
        Observation(call.id, "", extra=beside("", is_shown=False)) for call in calls
    ]
    if calls and seen is not None:
        observations[0] = Observation(calls[0].id, seen.content, seen.status, extra=seen.extra)
    elif calls:
        observations = [Observation(call.id, "", "unknown") for call in calls]
    return (ActionStep(content, calls, tuple(observations), usage=usage_of(step.token_usage)),)


def content_of(output: str | list[dict[str, Any]] | None) -> Content | None:
    """What the model said, as smolagents shows it; None for nothing."""
    if isinstance(output, list):
        parts = tuple(_part(each) for each in output)
        return parts or None
    return (output or "").strip() or None


def _part(part: Any) -> Part:
    if isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("type", "text") == "text":
        return Text(part["text"])
    kind = str(part.get("type", "part")) if isinstance(part, dict) else "part"
    return Opaque(PROVIDER, kind, json.dumps(plain(part)))


def calls_of(calls: Sequence[Any]) -> tuple[ToolCall, ...]:
    """Tool calls of a step as ours, in their order; the arguments are the JSON text of what they were."""
    return tuple(
        ToolCall(
            str(call.id or ""), str(call.name), spelled(call.arguments), extra=Opaque(PROVIDER, "call", _CALL)
        )
        for call in calls
    )


def spelled(arguments: Any) -> str:
    """Arguments as JSON text."""
    return json.dumps(plain(arguments), ensure_ascii=False)


def usage_of(usage: Any) -> Usage | None:
    """What the provider reported, where it reported whole numbers."""
    counts = (getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None))
    if all(isinstance(each, int) and not isinstance(each, bool) for each in counts):
        return Usage(*counts)  # type: ignore[arg-type]
    return None


def seen_of(step: theirs.ActionStep, shown: Sequence[Pillow.Image], call_id: str = "") -> Observation | None:
    """What was observed in a step and what failed in it, as one answer; None where there was nothing."""
    named = call_id or (str(step.tool_calls[0].id) if step.tool_calls else "")
    return seen(step.observations, step.error, new_pictures(step, shown), named)


def seen(
    text: str | None,
    error: BaseException | str | None,
    pictures: Sequence[Pillow.Image] = (),
    call_id: str = "",
) -> Observation | None:
    """An answer from its text, its error and its pictures; None where there is none of them."""
    if text is None and error is None and not pictures:
        return None
    said = [] if text is None else [text]
    if error is not None:
        said.append((f"Call id: {call_id}\n" if call_id else "") + f"Error:\n{error}{RETRY}")
    before = OBSERVED if text is not None else ""
    status: Literal["ok", "error"] = "ok" if error is None else "error"
    return Observation(call_id, _with_pictures("\n".join(said), pictures), status, extra=beside(before))


def beside(before: str, *, is_shown: bool = True) -> Opaque:
    """How an observation is said: what stands before it, and whether anything is."""
    body = {"before": before} if is_shown else {"shown": False}
    return Opaque(PROVIDER, "observation", json.dumps(body))


def new_pictures(step: theirs.ActionStep, shown: Sequence[Pillow.Image]) -> tuple[Pillow.Image, ...]:
    """The pictures of a step that are not the task's own, which smolagents sends again with each step."""
    known = {id(each) for each in shown}
    return tuple(each for each in step.observations_images or () if id(each) not in known)


def _with_pictures(text: str, pictures: Sequence[Pillow.Image]) -> Content:
    if not pictures:
        return text
    return (*((Text(text),) if text else ()), *map(as_image, pictures))


def _foreign(step: theirs.MemoryStep) -> Iterator[Step]:
    """A kind of step we do not know: what it says by itself, in the places it says it in."""
    try:
        messages = step.to_messages()
    except NotImplementedError:
        return
    for message in messages:
        content = _said(message.content)
        if message.role in ("assistant", "tool-call"):
            yield ActionStep(content)
        elif content is not None:
            yield TaskStep(content)


def _said(content: Any) -> Content | None:
    if content is None or isinstance(content, str):
        return content or None
    parts: list[Part] = []
    for each in content:
        held = each.get("image") if isinstance(each, dict) else None
        parts.append(as_image(held) if isinstance(held, Pillow.Image) else _part(each))
    return tuple(parts) or None


def is_picture_kept(part: Part) -> bool:
    """True for a picture whose bytes we hold."""
    return isinstance(part, Image) and bool(part.data)


def joined(first: Content, second: Content) -> Content:
    """Two contents as one: texts as one text, then the pictures."""
    parts = (*as_parts(first), *as_parts(second))
    text = "\n".join(part.text for part in parts if isinstance(part, Text) and part.text)
    rest = tuple(part for part in parts if not isinstance(part, Text))
    return (*((Text(text),) if text else ()), *rest) if rest else text
