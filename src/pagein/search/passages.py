"""Passages: the texts of log entries as they are indexed, long ones in several parts, and their ids."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pagein._common.surrogates import replace_surrogates
from pagein.events.entries import REWRITTEN, Compaction, Observed, Pin
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
from pagein.events.tool_call_encoding import ASKING_TOOLS, bare_tool_name
from pagein.log.base import Entry
from pagein.search.base import Role

MAX_PASSAGE_CHARS = 1_200
"""Characters of a passage: about what a small embedder reads. Not tuned. Of a long tool output the matching part is
found and shown."""

CONTENT_PART = -1
"""The part of a step's own content; the part of an observation is its index."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of one text: the text by ``position`` and ``part``, ``start`` within it, ``whole`` if it is all of it."""

    position: int
    part: int
    role: Role
    at: float
    text: str
    start: int = 0
    whole: bool = True

    @property
    def handle(self) -> str:
        """The handle that expands to the whole text."""
        return handle_of(self.position, self.part)


def handle_of(position: int, part: int) -> str:
    """The handle of one part of a step.

    >>> handle_of(12, CONTENT_PART), handle_of(12, 0)
    ('s12', 's12.0')
    """
    return step_handle(position) if part == CONTENT_PART else observation_handle(position, part)


def passages(entry: Entry, own: Collection[tuple[int, int]] = ()) -> Iterator[Passage]:
    """Split an entry into passages, in order. ``own`` are the calls of own tools, as (position, index).

    Their results are left out, as they repeat text that is indexed already, and so are questions to the memory.
    """
    for position, part, role, text in _texts(entry, own):
        storable = replace_surrogates(text)  # lone ones are in no store
        for start, span in spans(storable):
            yield Passage(position, part, role, entry.at, span, start, len(span) == len(storable))


def own_calls(entry: Entry, tools: Collection[str]) -> Iterator[tuple[int, int]]:
    """The calls of an action to own tools, as (position, index)."""
    if tools and isinstance(entry.body, ActionStep):
        for index, call in enumerate(entry.body.tool_calls):
            if bare_tool_name(call.name) in tools:
                yield entry.position, index


def _texts(entry: Entry, own: Collection[tuple[int, int]]) -> Iterator[tuple[int, int, Role, str]]:
    """The texts of an entry with position, part and role; none for entries about the record itself."""
    at, body = entry.position, entry.body
    match body:
        case ActionStep():
            yield at, CONTENT_PART, "assistant", _action_text(body, at, own)
            for index, observation in enumerate(body.observations):
                if observation is not None and (at, index) not in own:
                    yield at, index, "tool", as_text(observation.content)
        case Observed(late=True):
            yield at, CONTENT_PART, "tool", as_text(body.observation.content)
        case Observed() if (body.action, body.index) not in own:
            yield body.action, body.index, "tool", as_text(body.observation.content)
        case Pin():
            yield at, CONTENT_PART, "note", body.text
        case Compaction(replacements=replacements) if body.policy == REWRITTEN:
            for position, stub in ((by.first, stub) for by in replacements for stub in by.stubs):
                part = stub.index if stub.slot == "observation" else CONTENT_PART
                yield position, part, "tool" if stub.is_of_result else "user", stub.text
        case SystemPromptStep() | TaskStep() | PlanningStep() | FinalAnswerStep() | SummaryStep():
            yield at, CONTENT_PART, _ROLES.get(type(body), "assistant"), as_text(body.content)


_ROLES: Mapping[type, Role] = {SystemPromptStep: "system", TaskStep: "user"}


def _action_text(step: ActionStep, at: int, own: Collection[tuple[int, int]]) -> str:
    calls = (
        f"{call.name}: {argument_text(call.arguments)}"
        for index, call in enumerate(step.tool_calls)
        if (at, index) not in own or bare_tool_name(call.name) not in ASKING_TOOLS
    )
    return "\n".join(part for part in (as_text(step.content), *calls) if part)


def spans(text: str, longest: int = MAX_PASSAGE_CHARS) -> Iterator[tuple[int, str]]:
    r"""Split a text into pieces of at most ``longest`` characters, with their starts, at paragraphs, lines or words.

    >>> list(spans("one\ntwo\nthree", 8))
    [(0, 'one\ntwo\n'), (8, 'three')]
    """
    start = 0
    while len(text) - start > longest:
        end = _cut_position(text, start, start + longest)
        yield start, text[start:end]
        start = end
    if text[start:].strip():
        yield start, text[start:]


def _cut_position(text: str, start: int, end: int) -> int:
    # Only the last third is searched, so that passages are not much shorter than the limit.
    least = start + (end - start) * 2 // 3
    for mark in ("\n\n", "\n", ". ", " "):
        place = text.rfind(mark, least, end)
        if place > 0:
            return place + len(mark)
    return end


_ORDINAL_BITS = 24

MAX_PASSAGES = (1 << _ORDINAL_BITS) - 16
"""Passages of one session. The last ids stay free, so that no passage of another session is a neighbour."""


def passage_id(session: int, ordinal: int) -> int:
    """The id of a session's passage. Neighbours have adjacent ids, and a session is one range.

    >>> passage_id(3, 5) >> 24
    3
    """
    return session << _ORDINAL_BITS | ordinal


def session_of(passage: int) -> int:
    """The session key in a passage's id."""
    return passage >> _ORDINAL_BITS


def range_of_session(session: int) -> tuple[int, int]:
    """The first and the last possible id of a session's passages."""
    return passage_id(session, 0), passage_id(session + 1, 0) - 1
