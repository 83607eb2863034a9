"""Open work of a run: calls without a result, and what the ledger knows to go on elsewhere under an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pagein.context.ledger.waiting import WaitingItem
from pagein.events.handles import observation_handle
from pagein.events.protocol import OpenCall
from pagein.events.steps import ActionStep, Step
from pagein.summaries.sanitize import one_line
from pagein.summaries.spans import describe_call

MAX_OPEN_WORK = 40
"""Maximum started things, and maximum calls without a result: the newest of each."""


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Work that may still be going on: a running ``call``, one whose outcome is ``unknown``, or a started thing.

    For a call, ``name`` describes it and ``id`` is the model's id. For a started thing, ``kind`` is the word before its id,
    as ``pid``, and ``name`` describes the call that named it.
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
    before: Sequence[OpenWork],
    things: Sequence[WaitingItem],
) -> tuple[OpenWork, ...]:
    """Find the open work after these steps; ``before`` is the open work before them, ``things`` what goes on elsewhere."""
    named = {work.handle: work for work in before if work.kind in ("call", "unknown")}
    calls = [("call", call) for call in open_calls.values()]
    calls += [("unknown", call) for open_group in abandoned.values() for call in open_group]
    calls.sort(key=lambda pair: (pair[1].action, pair[1].index))
    waiting = [_describe_open_call(kind, call, steps, named) for kind, call in calls]
    started = (
        OpenWork(item.kind, one_line(item.call), one_line(item.id, 100), observation_handle(*item.place))
        for item in things[-MAX_OPEN_WORK:]
    )
    return (*waiting[-MAX_OPEN_WORK:], *started)


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
