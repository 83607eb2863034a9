"""Edits by hand: a step shown with other words, or not at all. Each is a compaction, which ``undo`` takes back.

The record keeps the original behind its handle. An edit keeps the step's kind and its calls, so no request becomes illegal.
"""

from __future__ import annotations

from collections.abc import Iterator

from pagein.context.compaction.base import newest_user_position
from pagein.context.view.body import is_permanent, preview
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.errors import ProtocolError, UnknownHandle
from pagein.events.entries import EDIT, REMOVAL, Compaction, Observed, Replacement, Slot, Stub
from pagein.events.handles import Handle, parse_handle
from pagein.events.protocol import open_calls
from pagein.events.steps import ActionStep, Content, Image, Observation, Step, SummaryStep, TaskStep, as_parts, as_text
from pagein.memory._state import RunState


def edit(run: RunState, handle: str, step: Step | Observation | str) -> Compaction:
    """Show other words for the step, or the result, behind a handle. Raises UnknownHandle, ProtocolError."""
    view = run.current_view()
    place, entry = _find_entry(run, view, handle)
    stubs = tuple(_changed_slots(entry, place, step))
    if not stubs:
        raise ProtocolError(f"{handle} says that already. Nothing was recorded.")
    return _commit(run, view, Replacement(entry.first, entry.last, stubs), EDIT, handle)


def remove(run: RunState, handle: str) -> Compaction:
    """Show the step behind a handle no more, a call only with its results. Raises UnknownHandle, ProtocolError."""
    view = run.current_view()
    place, entry = _find_entry(run, view, handle)
    if place.observation is not None:
        raise ProtocolError(f"{handle} is the result of a call, which needs one: edit it, or remove the step")
    if isinstance(entry.item, ActionStep) and open_calls(entry.item, entry.first):
        raise ProtocolError(f"{handle} has a call without its result: record the result first")
    if entry.first == newest_user_position(view):
        raise ProtocolError(f"{handle} is the user's newest message, which every view has: edit it")
    return _commit(run, view, Replacement(entry.first, entry.last, summary=""), REMOVAL, handle)


def _find_entry(run: RunState, view: View, text: str) -> tuple[Handle, ViewEntry]:
    handle = parse_handle(text) if isinstance(text, str) else None
    if handle is None or not 0 <= handle.first < handle.last <= run.fold.head:
        raise UnknownHandle(str(text), run.fold.head)
    entries = [entry for entry in view.run if entry.first <= handle.first < entry.last]
    if not entries or handle.last - handle.first != 1:
        raise ProtocolError(
            f"{text} is no one step of the run: a prompt is recorded anew, a pin is taken back by unpin()"
        )
    entry = entries[0]
    if isinstance(entry.item, SummaryStep):
        raise ProtocolError(f"{text} left the view, it is behind {entry.handle}: undo() that, or erase it for good")
    if is_permanent(entry):
        raise ProtocolError(f"{text} is no step: a prompt is recorded anew, a pin is taken back by unpin()")
    return handle, entry


def _changed_slots(entry: ViewEntry, place: Handle, new: Step | Observation | str) -> Iterator[Stub]:
    """Yield a stub for each slot that differs. Raises ProtocolError for a step of another shape."""
    old = entry.item
    if place.observation is not None or isinstance(old, Observed):
        yield from _changed_result(old, place, new)
    elif isinstance(old, ActionStep) and isinstance(new, ActionStep):
        yield from _changed_action(old, new)
    elif isinstance(new, str):
        yield from _stubs_where_changed(old.content if isinstance(old, Step) else None, new, "content")
    elif type(new) is type(old) and isinstance(old, Step):
        yield from _stubs_where_changed(old.content, new.content, "content")
    else:
        raise ProtocolError(
            f"a {type(old).__name__} stays one: a {type(new).__name__} is recorded as a step of its own"
        )


def _changed_result(old: object, place: Handle, new: Step | Observation | str) -> Iterator[Stub]:
    if not isinstance(new, Observation | str):
        raise ProtocolError(f"a result is edited with an Observation or a text, not a {type(new).__name__}")
    index, content = place.observation or 0, new if isinstance(new, str) else new.content
    if isinstance(old, Observed):
        yield from _stubs_where_changed(old.observation.content, content, "observation")
        return
    results = old.observations if isinstance(old, ActionStep) else ()
    result = results[index] if index < len(results) else None
    if result is None:
        raise ProtocolError(f"call {index} has no result yet: record it first")
    yield from _stubs_where_changed(result.content, content, "observation", index)


def _changed_action(old: ActionStep, new: ActionStep) -> Iterator[Stub]:
    if [(call.id, call.name) for call in old.tool_calls] != [(call.id, call.name) for call in new.tool_calls]:
        raise ProtocolError("an edit keeps the ids and names of the calls, as their results answer them")
    yield from _stubs_where_changed(old.content, new.content, "content")
    for index, (call, other) in enumerate(zip(old.tool_calls, new.tool_calls, strict=True)):
        yield from _stubs_where_changed(call.arguments, other.arguments, "arguments", index)
    for index, (result, changed) in enumerate(zip(old.observations, new.observations, strict=False)):
        if changed is not None and result is not None:
            yield from _stubs_where_changed(result.content, changed.content, "observation", index)


def _stubs_where_changed(old: Content | None, new: Content | None, slot: Slot, index: int = 0) -> Iterator[Stub]:
    if old == new or (old is None and not new):
        return
    if any(isinstance(part, Image) for part in as_parts(new)):
        raise ProtocolError("an edit is text: record a step of its own for a picture")
    yield Stub(slot, index, as_text(new), "clip")


def _commit(run: RunState, view: View, by: Replacement, name: str, handle: str) -> Compaction:
    after = preview(view, (by,))
    if not any(isinstance(entry.item, TaskStep) for entry in after.run) and any(
        isinstance(entry.item, TaskStep) for entry in view.run
    ):
        raise ProtocolError(f"{handle} is all that the user said: edit it")
    compaction = Compaction((by,), name, f"{handle} by hand", view.tokens, after.tokens, ())
    run.append(compaction)
    return compaction
