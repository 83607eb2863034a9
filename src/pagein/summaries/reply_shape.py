"""The shape of a model's summary, made that of ours where it means the same; what cannot be read is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, get_args

from pagein.summaries.summary import SECTIONS, TaskStatus

SINGLE = ("objective", "state")
"""The fields with one item."""

_STATUS: Mapping[str, str] = MappingProxyType(
    {
        **{status: status for status in get_args(TaskStatus)},
        **dict.fromkeys(("todo", "to do", "pending", "in progress", "ongoing", "not started", "started"), "open"),
        **dict.fromkeys(("complete", "completed", "finished", "closed", "resolved"), "done"),
        **dict.fromkeys(("waiting", "stuck"), "blocked"),
    }
)
"""Words for a task's status, in lower case."""

_GAPS = re.compile(r"[\s_-]+")


def tidy_shape(value: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields in the shape that ``summary_from_dict`` reads, and the paths of what was left out.

    Unknown keys are ignored. One item in place of a list is a list; a list in place of a text is joined.

    >>> tidy_shape({"State": ["red", "slow"], "done": "all", "mood": 1, "errors": [{}]})
    ({'state': {'text': 'red; slow'}, 'done': [{'text': 'all'}]}, ('errors[0]',))
    """
    fields: dict[str, Any] = {}
    dropped: list[str] = []
    for key, content in value.items():
        name = _GAPS.sub("_", key.strip().casefold())
        if content is None or name in fields or name not in (*SINGLE, *SECTIONS):
            continue
        if name in SINGLE:
            item = _tidy_item(content, name)
            if item is not None:
                fields[name] = item
            elif content:
                dropped.append(name)
            continue
        rows = content if isinstance(content, list) else [content]
        items = [_tidy_item(row, name) for row in rows]
        dropped += [f"{name}[{index}]" for index, item in enumerate(items) if item is None]
        if kept := [item for item in items if item is not None]:
            fields[name] = kept
    return fields, tuple(dropped)


def _tidy_item(value: object, section: str) -> dict[str, Any] | None:
    """An item's fields; None where there is no text in it, or a task's status is none."""
    if not isinstance(value, dict):
        text = _as_text(value)
        return None if text is None else {"text": text}
    text, note = _as_text(value.get("text")), _as_text(value.get("note"))
    id = _as_text(value.get("id")) if section == "tasks" else None
    if text is None and not id:
        return None
    item: dict[str, Any] = {"text": text or ""}
    if note:
        item["note"] = note
    if handles := list(_handles(value.get("handles"))):
        item["handles"] = handles
    if section == "tasks":
        status = _STATUS.get(_GAPS.sub(" ", str(value.get("status") or "open").strip().casefold()))
        if status is None:
            return None
        item |= {"id": id or "", "status": status}
    return item


def _as_text(value: object) -> str | None:
    """A text, a number, or a list of them as one text; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and value:
        texts = [text for item in value if (text := _as_text(item)) is not None]
        return "; ".join(texts) if len(texts) == len(value) else None
    return None


def _handles(value: object) -> Iterator[str]:
    for handle in value if isinstance(value, list) else [value]:
        if isinstance(handle, str):
            yield from re.split(r"[,\s]+", handle.strip("[] "))
