"""Text that stands in one slot of a step, whose original is in the log behind its handle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from pagein.context.view.layout import Aside, Item
from pagein.errors import LogUnreadable
from pagein.events.entries import Observed, Pin, Stub
from pagein.events.steps import (
    ActionStep,
    Content,
    FinalAnswerStep,
    Observation,
    Opaque,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    as_parts,
)

THINKING = frozenset({"thinking", "redacted_thinking", "reasoning_content", "reasoning", "reasoning_details"})
"""The kinds of opaque parts that hold a model's reasoning."""


def with_stubs(item: Item, stubs: Iterable[Stub]) -> Item:
    """The item with each stub in its slot. Raises LogUnreadable for a slot the item does not have."""
    for stub in stubs:
        item = _with_stub(item, stub)
    return item


def _with_stub(item: Item, stub: Stub) -> Item:
    match item:
        case ActionStep():
            return _in_action(item, stub)
        case TaskStep() | PlanningStep() | FinalAnswerStep():
            return replace(item, content=stub.text)
        case Observed(observation=seen):
            return replace(item, observation=replace(seen, content=stub.text))
        case SystemPromptStep() | SummaryStep() | Pin() | Aside():
            raise LogUnreadable(f"a {type(item).__name__} has no slot for a stub")
        case _:
            assert_never(item)


def _in_action(step: ActionStep, stub: Stub) -> ActionStep:
    match stub.slot:
        case "content":
            # Signed thinking goes out unchanged or not at all, so text that stands for the prose leaves it alone.
            kept = tuple(part for part in as_parts(step.content) if is_thinking(part))
            return replace(step, content=(*kept, *as_parts(stub.text)) if kept else stub.text)
        case "thinking":
            return replace(step, content=without_thinking(step.content), extra=None)
        case "arguments":
            calls = list(step.tool_calls)
            calls[stub.index] = replace(calls[stub.index], arguments=stub.text)
            return replace(step, tool_calls=tuple(calls))
        case "observation":
            seen = list(step.observations)
            old = seen[stub.index] or Observation(step.tool_calls[stub.index].id)
            seen[stub.index] = replace(old, content=stub.text)
            return replace(step, observations=tuple(seen))
        case _:
            assert_never(stub.slot)


def is_thinking(part: object) -> bool:
    """True for a model's reasoning, signed or not."""
    return isinstance(part, Opaque) and part.kind in THINKING


def without_thinking(content: Content | None) -> Content | None:
    """The content without the model's reasoning; the whole of it goes, never a part."""
    if content is None or isinstance(content, str):
        return content
    return tuple(part for part in content if not is_thinking(part)) or None
