"""What may still be going on where a run stands: calls without a result, and what calls started and named by an id.

Found by rules, the same each time. An id counts as started where a call or its result names it under a key that says
what it is (``pid``, ``agent_id``, ``shellId``), and as ended where a later call that ends things names it, or a result
says that it is over.
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
from pagein.summaries.spans import lead

MOST = 40
"""Things that were started and are kept, the newest; and the calls without a result."""

READ = 4_000
"""Characters of a result, at its beginning, that are read for ids."""

_KEY = re.compile(
    r"""["']?\b(pid|(?:sub_?agent|agent|process|proc|job|shell|bash|terminal|container|task|worker|thread)_?(?:id|pid))\b
        ["']?\s*(?:[:=]|\bis\b)\s*["']?([A-Za-z0-9][\w.:/-]{0,79})""",
    re.VERBOSE | re.IGNORECASE,
)
_ENDS = re.compile(r"kill|stop|close|terminate|cancel|shut_?down|delete|remove", re.IGNORECASE)
_OVER = re.compile(r"\b(?:exited|completed|finished|terminated|killed|stopped|done|closed)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Live:
    """One thing that may still be going on: a ``call`` under way, one whose outcome is ``unknown``, or a named thing.

    Of a call ``name`` is what it did, and ``id`` the model's id of it; of anything else ``kind`` is the key it was
    named under, as ``pid``, and ``name`` what the call did that named it.
    """

    kind: str
    name: str
    id: str
    handle: str

    @property
    def told(self) -> str:
        """In one line, for a person and a model."""
        if self.kind == "call":
            return f"Under way, its result is not recorded yet: {self.name} [{self.handle}]"
        if self.kind == "unknown":
            return f"Its result was never recorded, it may have run: {self.name} [{self.handle}]"
        return f"May still be going on: {self.kind} {self.id}, from {self.name} [{self.handle}]"

    def dict(self) -> dict[str, str]:
        """As JSON-safe values."""
        return {"kind": self.kind, "name": self.name, "id": self.id, "handle": self.handle}


def live_in(
    steps: Mapping[int, Step],
    open_calls: Mapping[tuple[int, int], OpenCall],
    abandoned: Mapping[str, Sequence[OpenCall]],
    before: Sequence[Live] = (),
) -> tuple[Live, ...]:
    """What may still be going on behind these steps; ``before`` is what was before them."""
    named = {each.handle: each for each in before if each.kind in ("call", "unknown")}
    calls = [("call", each) for each in open_calls.values()]
    calls += [("unknown", each) for waiting in abandoned.values() for each in waiting]
    calls.sort(key=lambda each: (each[1].action, each[1].index))
    waiting = [_waiting(kind, call, steps, named) for kind, call in calls]
    things = {each.id: each for each in before if each.kind not in ("call", "unknown")}
    for position in sorted(steps):
        step = steps[position]
        if isinstance(step, ActionStep):
            _follow(position, step, things)
    return (*waiting[-MOST:], *list(things.values())[-MOST:])


def _waiting(kind: str, call: OpenCall, steps: Mapping[int, Step], named: Mapping[str, Live]) -> Live:
    handle = observation_handle(call.action, call.index)
    step = steps.get(call.action)
    if isinstance(step, ActionStep):
        name = one_line(lead(step.tool_calls[call.index]), 200)
    else:
        name = named[handle].name if handle in named else "a call"
    return Live(kind, name, one_line(call.id, 100), handle)


def _follow(position: int, step: ActionStep, things: dict[str, Live]) -> None:
    """What one action started and ended."""
    for index, call in enumerate(step.tool_calls):
        seen = step.observations[index] if index < len(step.observations) else None
        worked = seen is not None and seen.status == "ok"
        said = argument_text(call.arguments)
        if _ENDS.search(call.name) or re.match(r"\s*(?:p?kill)\b", said):
            if worked:
                for id in [each for each in things if _names(call.arguments, each)]:
                    del things[id]
            continue
        for key, id, over in _found(call, seen):
            if over:
                things.pop(id, None)
            elif id not in things:
                handle = observation_handle(position, index)
                things[id] = Live(key.lower(), one_line(lead(call), 200), id, handle)


def _found(call: ToolCall, seen: Observation | None) -> Iterator[tuple[str, str, bool]]:
    """The things that a call and its result name: the key, the id, and whether it is over."""
    result = as_text(seen.content)[:READ] if seen is not None and seen.status == "ok" else ""
    over = _OVER.search(result) is not None
    for text in (call.arguments[:READ], result):
        for match in _KEY.finditer(text):
            yield match[1], match[2], over


def _names(text: str, id: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(id)}(?![\w-])", text) is not None
