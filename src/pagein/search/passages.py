"""From an entry of the log to the passages that are indexed: one for each text, several where it is long."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pagein.events.entries import Observed, Pin
from pagein.events.handles import observation_handle, step_handle
from pagein.events.identifiers import argument_text
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    as_text,
)
from pagein.log.base import Entry
from pagein.search.base import Role

LONGEST = 1_200
"""Characters of a passage: about what a small embedder reads. Not tuned. A long tool output is found, and shown, by the
page that matches."""

CONTENT = -1
"""The part that is a step's own words; an observation's part is its index."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of one text: ``position`` and ``part`` say whose, ``start`` where in it, ``whole`` whether it is all."""

    position: int
    part: int
    role: Role
    at: float
    text: str
    start: int = 0
    whole: bool = True

    @property
    def handle(self) -> str:
        """What brings the whole text back."""
        return handle_of(self.position, self.part)


def handle_of(position: int, part: int) -> str:
    """The handle of one part of a step.

    >>> handle_of(12, CONTENT), handle_of(12, 0)
    ('s12', 's12.0')
    """
    return step_handle(position) if part == CONTENT else observation_handle(position, part)


def passages(entry: Entry, own: Collection[tuple[int, int]] = ()) -> Iterator[Passage]:
    """The passages of an entry, in order. ``own`` are the calls of our own tools, as (position, index).

    What recall brought back is not taken in again: it would be found instead of what it repeats.
    """
    for position, part, role, text in _texts(entry, own):
        for start, span in spans(text):
            yield Passage(position, part, role, entry.at, span, start, len(span) == len(text))


def own_calls(entry: Entry, tools: Collection[str]) -> Iterator[tuple[int, int]]:
    """Which calls of an action are to our own tools, as (position, index)."""
    if tools and isinstance(entry.body, ActionStep):
        for index, call in enumerate(entry.body.tool_calls):
            if call.name in tools:
                yield entry.position, index


def _texts(entry: Entry, own: Collection[tuple[int, int]]) -> Iterator[tuple[int, int, Role, str]]:
    """The texts of an entry with where they stand and who said them; of what is about the record itself, none."""
    at, body = entry.position, entry.body
    match body:
        case ActionStep():
            yield at, CONTENT, "assistant", _spoken(body)
            for index, seen in enumerate(body.observations):
                if seen is not None and (at, index) not in own:
                    yield at, index, "tool", as_text(seen.content)
        case Observed(late=True):
            yield at, CONTENT, "tool", as_text(body.observation.content)
        case Observed() if (body.action, body.index) not in own:
            yield body.action, body.index, "tool", as_text(body.observation.content)
        case Pin():
            yield at, CONTENT, "note", body.text
        case SystemPromptStep() | TaskStep() | PlanningStep() | FinalAnswerStep() | SummaryStep():
            yield at, CONTENT, _ROLES.get(type(body), "assistant"), as_text(body.content)


_ROLES: Mapping[type, Role] = {SystemPromptStep: "system", TaskStep: "user"}


def _spoken(step: ActionStep) -> str:
    calls = (f"{call.name}: {argument_text(call.arguments)}" for call in step.tool_calls)
    return "\n".join(each for each in (as_text(step.content), *calls) if each)


def spans(text: str, longest: int = LONGEST) -> Iterator[tuple[int, str]]:
    r"""The text in pieces of at most ``longest`` characters, each with where it starts; cut at paragraphs, lines, words.

    >>> list(spans("one\ntwo\nthree", 8))
    [(0, 'one\ntwo\n'), (8, 'three')]
    """
    start = 0
    while len(text) - start > longest:
        end = _cut(text, start, start + longest)
        yield start, text[start:end]
        start = end
    if text[start:].strip():
        yield start, text[start:]


def _cut(text: str, start: int, end: int) -> int:
    # The last third is searched, so that no passage is much shorter than it may be.
    least = start + (end - start) * 2 // 3
    for mark in ("\n\n", "\n", ". ", " "):
        found = text.rfind(mark, least, end)
        if found > 0:
            return found + len(mark)
    return end
