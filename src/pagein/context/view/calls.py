"""The calls of a folded log, and the observations that answer them."""

from __future__ import annotations

from pagein.errors import LogUnreadable
from pagein.events import entries, steps
from pagein.events.protocol import OpenCall, open_calls


class RunCalls:
    """The calls that wait for a result, by action and index, and the observations by their action."""

    def __init__(self) -> None:
        self.open: dict[tuple[int, int], OpenCall] = {}
        """The calls without a result."""
        self.abandoned: dict[str, list[OpenCall]] = {}
        """By id, the calls that were closed without a result: one may still come."""
        self.waiting: dict[tuple[int, int], steps.ToolCall] = {}
        """The open and the abandoned calls as they were recorded: their action may be clipped, or have left the view."""
        self.answers: dict[int, list[int]] = {}
        """By action, the positions of the observations that came after it."""
        self.unshown: dict[int, dict[int, steps.Observation]] = {}
        """By action and index, the observations since the last view: an action is rendered once for all of them."""

    def open_step(self, position: int, step: steps.ActionStep) -> None:
        """Open the calls of a step that have no result."""
        for call in open_calls(step, position):
            self._open(call, step)

    def close(self, position: int, observed: entries.Observed) -> steps.ToolCall:
        """Close the call that an observation answers, and return it; one whose result is unknown is abandoned."""
        self.answers.setdefault(observed.action, []).append(position)
        place = observed.action, observed.index
        open_call = self.open.pop(place, None)
        if open_call is None:
            raise LogUnreadable(f"the observation at {position} answers no open call")
        self.unshown.setdefault(observed.action, {})[observed.index] = observed.observation
        if observed.observation.status != "unknown":
            return self.waiting.pop(place)
        self.abandoned.setdefault(open_call.id, []).append(open_call)
        return self.waiting[place]

    def close_late(self, position: int, late: entries.Observed) -> steps.ToolCall | None:
        """Close the abandoned call that a late result answers, and return it; None where none waits for it.

        A call that is still open stays so: only a log that another program wrote has a late result of it.
        """
        self.answers.setdefault(late.action, []).append(position)
        place, id = (late.action, late.index), late.observation.call_id
        others = [call for call in self.abandoned.pop(id, []) if (call.action, call.index) != place]
        if others:
            self.abandoned[id] = others
        return self.waiting.get(place) if place in self.open else self.waiting.pop(place, None)

    def restore(self, call: OpenCall, step: steps.ActionStep, *, is_abandoned: bool) -> None:
        """Restore an open or an abandoned call of a recorded step."""
        self._open(call, step)
        if is_abandoned:
            self.abandoned.setdefault(call.id, []).append(self.open.pop((call.action, call.index)))

    def _open(self, call: OpenCall, step: steps.ActionStep) -> None:
        self.open[call.action, call.index] = call
        self.waiting[call.action, call.index] = step.tool_calls[call.index]
