"""Notes beside items that were recorded as a step of a user's own class: its kind and its data. Values only."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pagein.events.steps import TEXT_OBSERVATION, ActionStep, Observation, Opaque, Row, plain_step

OWN_STEP = ("pagein", "step")
"""Provider and kind of the extra of a step that was recorded as a step of a user's class."""

SUMMARY = "summary"
"""Key of a note: what the item says in summary mode; True for its own text, False for nothing."""


def own_note(item: Any) -> Row | None:
    """Return what is kept beside an item of a user's class; None for any other item."""
    extra = getattr(item, "extra", None)
    if extra is None or (extra.provider, extra.kind) not in (OWN_STEP, TEXT_OBSERVATION):
        return None
    return json.loads(extra.body) or None


def is_own_step(item: Any) -> bool:
    """True for the first item of a step of a user's class."""
    return "data" in (own_note(item) or {})


def own_extra(note: Row) -> Opaque:
    """Return the extra of a step with this note."""
    return Opaque(*OWN_STEP, json.dumps(note))


def as_own_step(note: Observation) -> ActionStep:
    """Return a step of a user's class that says nothing of the model's, as a step."""
    return ActionStep(observations=(note,), extra=own_extra(own_note(note) or {}))


def own_row(step: Any) -> Row | None:
    """Return the row of a step of a user's class: its kind, and its data; None for any other step."""
    note = own_note(step)
    if note is None or "data" not in note:
        return None
    row: Row = {}
    if "beside" in note:
        row = plain_step(replace(step, extra=Opaque(*note["beside"]) if note["beside"] else None))
    row |= {"kind": note["kind"]}
    row |= {name: value for name, value in note["data"].items() if name != "kind"}
    if isinstance(step, ActionStep) and step.tool_calls:
        row["observations"] = [None if result is None else result.dict() for result in step.observations]
    return row
