"""Expansion: what left, given back whole; and steps as JSON-safe values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from pagein.errors import UnknownHandle
from pagein.events.entries import FactsShown, Observed, Pin
from pagein.events.handles import Handle, parse_handle
from pagein.events.steps import ActionStep, Observation, Step, as_text, kind_name, plain_step
from pagein.log.base import Entry
from pagein.memory._effects import Flow, Read
from pagein.memory._state import Session
from pagein.memory.operations.history import told

SUCCINCT = 400
"""Characters of a text that a succinct step keeps."""


class Expansion(str):
    """The original behind a handle, as text; ``steps`` and ``notes`` are the values themselves, whole.

    ``notes`` are the observations that came too late to stand behind their calls.
    """

    __slots__ = ("handle", "notes", "steps")
    handle: str
    steps: tuple[Step, ...]
    notes: tuple[Observation, ...]

    @classmethod
    def of(
        cls, handle: str, text: str, steps: tuple[Step, ...] = (), notes: tuple[Observation, ...] = ()
    ) -> Self:
        """An expansion of ``handle``."""
        made = cls(text)
        made.handle, made.steps, made.notes = handle, steps, notes
        return made


def expand(session: Session, handle: str | int) -> Flow[Expansion]:
    """The original behind a handle, or at a position. Raises UnknownHandle."""
    named = _named(handle)
    head = session.fold.head
    if named is None or not 0 <= named.first < head:
        raise UnknownHandle(str(handle), head)
    found, notes = yield from told(session, named.first, named.last)
    if named.observation is not None:
        seen = _observation(found.get(named.first), named.observation)
        if seen is None:
            raise UnknownHandle(str(handle), head)
        return Expansion.of(str(named), as_text(seen.content), tuple(found.values()), (seen,))
    if not found and not notes:
        entries = yield from Read(named.first, named.last)
        if not entries:
            raise UnknownHandle(str(handle), head)
        return Expansion.of(str(named), "\n".join(_aside(entry, head) for entry in entries))
    texts = [
        "\n".join(_lines(found[at])) if at in found else as_text(notes[at].content)
        for at in sorted((*found, *notes))
    ]
    return Expansion.of(str(named), "\n\n".join(texts), tuple(found.values()), tuple(notes.values()))


def _named(handle: object) -> Handle | None:
    if isinstance(handle, str):
        return parse_handle(handle)
    if isinstance(handle, int) and not isinstance(handle, bool):
        return Handle(handle, handle + 1)
    return None


def _observation(step: Step | None, index: int) -> Observation | None:
    if isinstance(step, ActionStep) and index < len(step.observations):
        return step.observations[index]
    return None


def _aside(entry: Entry, head: int) -> str:
    match entry.body:
        case Pin(text=text) | FactsShown(text=text):
            return text
        case Observed(observation=seen):
            return as_text(seen.content)
        case _:
            raise UnknownHandle(str(entry.position), head)


def _lines(step: Step) -> Iterator[str]:
    text = as_text(step.content)
    if text:
        yield text
    if isinstance(step, ActionStep):
        for index, call in enumerate(step.tool_calls):
            yield f"{call.name}({call.arguments})"
            seen = step.observations[index] if index < len(step.observations) else None
            if seen is not None:
                yield as_text(seen.content)


def full_step(position: int, step: Step) -> dict[str, Any]:
    """A step as JSON-safe values, nothing left out."""
    return {"position": position} | plain_step(step)


def succinct_step(position: int, step: Step) -> dict[str, Any]:
    """A step as JSON-safe values, long texts cut, images by their hash, provider content left out."""
    found: dict[str, Any] = {
        "position": position,
        "kind": kind_name(step),
        "text": _short(as_text(step.content)),
    }
    if isinstance(step, ActionStep):
        found["tool_calls"] = [
            {"name": call.name, "arguments": _short(call.arguments)} for call in step.tool_calls
        ]
        found["observations"] = [
            None if each is None else {"status": each.status, "text": _short(as_text(each.content))}
            for each in step.observations
        ]
    return found


def _short(text: str) -> str:
    return text if len(text) <= SUCCINCT else f"{text[:SUCCINCT]}… ({len(text):,} characters)"
