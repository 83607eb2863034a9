"""Steps of a user's own classes: recorded as steps of ours with their data beside them, and given back. Pure.

What such a step says is fixed when it is recorded: its messages become an action and notes. So the view needs no code of
the user's, and a step of a class that is not registered is shown and kept whole, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

from pagein._common.json_values import to_json_value
from pagein.errors import ConfigurationError, FormatError, ProtocolError
from pagein.events import steps
from pagein.events.own_steps import SUMMARY, own_extra, own_note
from pagein.events.protocol import as_text_observation
from pagein.formats import Item, format_named

StepTypes = Mapping[str, type[steps.MemoryStep]]
"""Classes of steps by the kind they are stored under."""

BUILT_IN: tuple[type[Any], ...] = get_args(steps.Step)


def step_kind(step: type) -> str:
    """Return the kind that a class of steps is stored under: its ``kind``, or its name."""
    kind = getattr(step, "kind", None)
    return kind if isinstance(kind, str) and kind else step.__name__


def check_step_types(types: Any) -> StepTypes:
    """Return the classes by kind. Raises ConfigurationError for what is no class of steps, and for a kind said twice."""
    registered: dict[str, type[steps.MemoryStep]] = {}
    for item in (types,) if isinstance(types, type) or not isinstance(types, Iterable) else types:
        if not isinstance(item, type) or not issubclass(item, steps.MemoryStep) or item in BUILT_IN:
            raise ConfigurationError(f"step_types are subclasses of MemoryStep, not {item!r}")
        kind = step_kind(item)
        if kind in registered:
            raise ConfigurationError(f"two step_types are stored as {kind!r}; give one of them another ``kind``")
        registered[kind] = item
    return registered


# In


def to_recorded_items(items: Sequence[Any]) -> list[Item]:
    """Return the items as steps and observations of ours. Raises ProtocolError for content that cannot be stored."""
    recorded: list[Item] = []
    for item in items:
        if isinstance(item, steps.MemoryStep) and type(item) not in BUILT_IN:
            recorded += _own_items(item)
        elif isinstance(item, steps.ActionStep):
            recorded.append(_plain_action(item))
        elif isinstance(item, steps.Step | steps.Observation):
            _check_status(item)
            recorded.append(replace(item, content=steps.as_content(item.content)))  # type: ignore[arg-type] # a summary is refused
        else:
            recorded.append(item)  # which the admission refuses
    return recorded


def _check_status(item: object) -> None:
    """Raise ProtocolError for a result with another status."""
    if isinstance(item, steps.Observation) and item.status not in get_args(steps.Status):
        raise ProtocolError(f'a status is "ok", "error" or "unknown", not {item.status!r}')


def _plain_action(step: steps.ActionStep) -> steps.ActionStep:
    for result in step.observations:
        _check_status(result)
    content = None if step.content is None else steps.as_content(step.content)
    observations = tuple(
        None if result is None else replace(result, content=steps.as_content(result.content))
        for result in step.observations
    )
    return replace(
        step, content=content, tool_calls=tuple(map(_plain_call, step.tool_calls)), observations=observations
    )


def _plain_call(call: steps.ToolCall) -> steps.ToolCall:
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        return call
    return replace(call, arguments=json.dumps(to_json_value(arguments), ensure_ascii=False))


def _own_items(step: steps.MemoryStep) -> list[Item]:
    """Return the items that a step of a user's class is recorded as; the first has its kind and data."""
    kind = step_kind(type(step))
    base = next((built_in for built_in in BUILT_IN if isinstance(step, built_in)), None)
    if base is not None and type(step).to_messages is steps.MemoryStep.to_messages:
        values = _base_values(base, step)
        own = {name: value for name, value in _own_fields(step).items() if name not in values}
        plain = to_recorded_items([base(**values)])[0]
        note = {"kind": kind, "data": to_json_value(own), "beside": _extra_row(getattr(plain, "extra", None))}
        return [replace(plain, extra=own_extra(note))]  # type: ignore[arg-type] # a summary is refused
    items = _parse_messages(step, summary_mode=False) or [as_text_observation(steps.TaskStep(""))]
    texts = _summary_texts(items, _parse_messages(step, summary_mode=True))
    first, *rest = (_with_note(item, {SUMMARY: text}) for item, text in zip(items, texts, strict=True))
    return [_with_note(first, {"kind": kind, "data": to_json_value(step.dict())}), *rest]


def _base_values(base: type, step: object) -> dict[str, Any]:
    """Return the fields that a step has of the class of ours it extends."""
    return {field.name: getattr(step, field.name) for field in fields(base)}


def _own_fields(step: Any) -> dict[str, Any]:
    names = [field.name for field in fields(step)] if is_dataclass(step) else []
    return {name: getattr(step, name) for name in names} | getattr(step, "__dict__", {})


def _summary_texts(items: Sequence[Item], shown: Sequence[Item]) -> list[str | bool]:
    """Return, by item, True where it stays in summary mode, False where it goes; texts of that mode alone stand first."""
    texts, left = [steps.as_text(item.content) for item in items], [steps.as_text(item.content) for item in shown]
    kept: list[str | bool] = [text in left for text in texts]
    other = [text for text in left if text not in texts]
    if other:
        kept[0] = "\n".join((*texts[:1], *other) if kept[0] else other)
    return kept


def _extra_row(extra: steps.Opaque | None) -> list[str] | None:
    return None if extra is None else [extra.provider, extra.kind, extra.body, extra.text]


def _with_note(item: Item, note: steps.Row) -> Item:
    if isinstance(item, steps.Observation) and not item.is_message:
        return item  # the result of a call stays in summary mode
    note = (own_note(item) or {}) | note
    if isinstance(item, steps.Observation):
        return replace(item, extra=steps.Opaque(*steps.TEXT_OBSERVATION, json.dumps(note)))
    return replace(item, extra=own_extra(note))  # type: ignore[arg-type] # the messages make no summary


def _parse_messages(step: steps.MemoryStep, *, summary_mode: bool) -> list[Item]:
    """Return a step's messages as actions, results and notes. Raises ProtocolError."""
    try:
        rows = step.to_messages(summary_mode)
        parsed = format_named("openai").parse([_plain_row(row) for row in rows])
    except (FormatError, NotImplementedError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"{type(step).__name__}.to_messages gives no chat messages: {error}") from error
    # A message of the user is a note: it is not the user who speaks.
    return [as_text_observation(item) if isinstance(item, steps.TaskStep) else item for item in parsed]


def _plain_row(row: Any) -> steps.Row:
    """Return one chat message: a mapping, or an object with a role and content as smolagents has them."""
    fields = dict(row) if isinstance(row, Mapping) else {"role": row.role, "content": row.content}
    role = getattr(fields["role"], "value", fields["role"])
    content = fields.get("content")
    if isinstance(content, list | tuple):
        content = [_plain_part(part) for part in content]
    return fields | {"role": "user" if role == "system" else role, "content": content}


def _plain_part(part: Any) -> Any:
    if isinstance(part, Mapping) and part.get("type") == "image" and "image" in part:
        picture = to_json_value(part["image"])
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture['data']}"}}
    return part


# Out


def revive(step: steps.Step, types: StepTypes) -> steps.Step:
    """Return the step of the user's registered class; the step as it is where it is of none.

    The class makes it of its data with ``from_dict``, or takes them as arguments. Raises ConfigurationError if it does not.
    """
    note = own_note(step)
    kind = None if note is None else types.get(note.get("kind", ""))
    if note is None or kind is None:
        return step
    make = getattr(kind, "from_dict", None)
    data = note["data"]
    if "beside" in note:
        beside = None if note["beside"] is None else steps.Opaque(*note["beside"])
        data = _base_values(type(step), replace(step, extra=beside)) | data  # type: ignore[arg-type] # no summary
    try:
        made = kind(**data) if make is None else make(data)
    except Exception as error:  # a user's own code
        raise ConfigurationError(
            f"{kind.__name__} does not take what its dict() gave: {error!r}; give it a classmethod from_dict(data)"
        ) from error
    return made  # type: ignore[return-value] # an object of the user's class stands for the step
