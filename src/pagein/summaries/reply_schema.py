"""The JSON schema of a model's record, in the form that providers enforce: every property required, no others allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pagein.summaries.summary import SECTIONS, TaskStatus


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_TEXT = {"type": "string"}
_FIELDS: Mapping[str, Any] = {"text": _TEXT, "note": _TEXT, "handles": {"type": "array", "items": _TEXT}}
_ENTRY = _object(**_FIELDS)
_TASK = _object(id=_TEXT, status={"type": "string", "enum": [*get_args(TaskStatus)]}, **_FIELDS)
_ENTRY_OR_NOTHING = {"anyOf": [_ENTRY, {"type": "null"}]}

REPLY_SCHEMA: Mapping[str, Any] = _object(
    objective=_ENTRY_OR_NOTHING,
    state=_ENTRY_OR_NOTHING,
    **{name: {"type": "array", "items": _TASK if name == "tasks" else _ENTRY} for name in SECTIONS},
)
"""The schema; ``summaries/prompts/shape.txt`` says the same in words."""
