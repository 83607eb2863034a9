"""Open work of a run: calls without a result, and processes or agents that calls started and named by an id.

Found by deterministic rules. An id counts as started if a call or its result has it under a key such as ``pid``,
``agent_id`` or ``shellId``; as ended if a later call of an ending tool has it, or a result says that it is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pagein.events.handles import observation_handle
from pagein.events.identifiers import argument_text
from pagein.events.protocol import OpenCall
from pagein.events.steps import ActionStep, Observation, Step, ToolCall, as_text
from pagein.summaries.sanitize import one_line
from pagein.summaries.spans import describe_call

MAX_OPEN_WORK = 40
"""Maximum started things, and maximum calls without a result: the newest of each."""

SCANNED_RESULT_CHARS = 4_000
"""Characters at the beginning of a result that are searched for ids."""

_LABELLED_ID = re.compile(
    r"""["']?\b(pid|(?:sub_?agent|agent|process|proc|job|shell|bash|terminal|container|task|worker|thread)_?(?:id|pid))\b
        ["']?\s*(?:[:=]|\bis\b)\s*["']?([A-Za-z0-9][\w.:/-]{0,79})""",
    re.VERBOSE | re.IGNORECASE,
)
_ENDING_TOOL = re.compile(r"kill|stop|close|terminate|cancel|shut_?down|delete|remove", re.IGNORECASE)
_FINISHED = re.compile(r"\b(?:exited|completed|finished|terminated|killed|stopped|done|closed)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Work that may still be going on: a running ``call``, one whose outcome is ``unknown``, or a started thing.

    For a call, ``name`` describes it and ``id`` is the model's id. For a started thing, ``kind`` is the key of its id, as
    ``pid``, and ``name`` describes the call that named it.
    """

    kind: str
    name: str
    id: str
    handle: str

    @property
    def description(self) -> str:
        """One line for a person or a model."""
        if self.kind == "call":
            return f"Under way, its result is not recorded yet: {self.name} [{self.handle}]"
        if self.kind == "unknown":
            return f"Its result was never recorded, it may have run: {self.name} [{self.handle}]"
        return f"May still be going on: {self.kind} {self.id}, from {self.name} [{self.handle}]"

    def dict(self) -> dict[str, str]:
        """The fields as JSON values."""
        return {"kind": self.kind, "name": self.name, "id": self.id, "handle": self.handle}


def find_open_work(
    steps: Mapping[int, Step],
    open_calls: Mapping[tuple[int, int], OpenCall],
    abandoned: Mapping[str, Sequence[OpenCall]],
    before: Sequence[OpenWork] = (),
) -> tuple[OpenWork, ...]:
    """Find the open work after these steps; ``before`` is the open work before them."""
    named = {work.handle: work for work in before if work.kind in ("call", "unknown")}
    calls = [("call", call) for call in open_calls.values()]
    calls += [("unknown", call) for open_group in abandoned.values() for call in open_group]
    calls.sort(key=lambda pair: (pair[1].action, pair[1].index))
    waiting = [_describe_open_call(kind, call, steps, named) for kind, call in calls]
    things = {work.id: work for work in before if work.kind not in ("call", "unknown")}
    for position in sorted(steps):
        step = steps[position]
        if isinstance(step, ActionStep):
            _track_action(position, step, things)
    return (*waiting[-MAX_OPEN_WORK:], *list(things.values())[-MAX_OPEN_WORK:])


def _describe_open_call(
    kind: str, call: OpenCall, steps: Mapping[int, Step], named: Mapping[str, OpenWork]
) -> OpenWork:
    handle = observation_handle(call.action, call.index)
    step = steps.get(call.action)
    if isinstance(step, ActionStep):
        name = one_line(describe_call(step.tool_calls[call.index]), 200)
    else:
        name = named[handle].name if handle in named else "a call"
    return OpenWork(kind, name, one_line(call.id, 100), handle)


def _track_action(position: int, step: ActionStep, things: dict[str, OpenWork]) -> None:
    """Add the things that one action started, and remove those it ended."""
    for index, call in enumerate(step.tool_calls):
        observation = step.observations[index] if index < len(step.observations) else None
        succeeded = observation is not None and observation.status == "ok"
        arguments = argument_text(call.arguments)
        if _ENDING_TOOL.search(call.name) or re.match(r"\s*(?:p?kill)\b", arguments):
            if succeeded:
                for id in [known_id for known_id in things if _contains_id(call.arguments, known_id)]:
                    del things[id]
            continue
        for key, id, over in _find_ids(call, observation):
            if over:
                things.pop(id, None)
            elif id not in things:
                handle = observation_handle(position, index)
                things[id] = OpenWork(key.lower(), one_line(describe_call(call), 200), id, handle)


def _find_ids(call: ToolCall, observation: Observation | None) -> Iterator[tuple[str, str, bool]]:
    """Find the ids that a call and its result name: the key, the id, and True if it is over."""
    result = (
        as_text(observation.content)[:SCANNED_RESULT_CHARS]
        if observation is not None and observation.status == "ok"
        else ""
    )
    over = _FINISHED.search(result) is not None
    for text in (call.arguments[:SCANNED_RESULT_CHARS], result):
        for match in _LABELLED_ID.finditer(text):
            yield match[1], match[2], over


def _contains_id(text: str, id: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(id)}(?![\w-])", text) is not None
