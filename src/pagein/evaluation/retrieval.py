"""Check that every recorded item can be retrieved: by position, and by each handle that is out of the view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pagein.errors import UnknownHandle
from pagein.evaluation.runs import Run
from pagein.events.handles import Handle, parse_handle
from pagein.events.steps import ActionStep, Observation, Step, as_text
from pagein.formats import Item, format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.operations.history import Expansion


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The number of items of a run, the number of handles tried, and the ones that came back different or not at all."""

    items: int = 0
    handles: int = 0
    lost: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when everything came back."""
        return not self.lost

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON-safe values."""
        return {"ok": self.ok, "said": self.items, "handles": self.handles, "lost": list(self.lost)}

    def __add__(self, other: Retrieval) -> Retrieval:
        return Retrieval(self.items + other.items, self.handles + other.handles, self.lost + other.lost)


def check_retrieval(memory: AgentMemory, run: Run, handles: Iterable[str]) -> Retrieval:
    """Expand every position and handle, and compare the results with the run.

    The run's messages are parsed again, so that the expected items never went through the log.
    """
    items = format_named(run.format).parse(run.request)
    expansions = _expand_positions(memory)
    lost = list(_find_missing(items, expansions.values()))
    tried = tuple(handles)
    lost.extend(handle for handle in tried if not _is_retrievable(memory, handle, expansions))
    return Retrieval(len(items), len(tried), tuple(lost))


def _expand_positions(memory: AgentMemory) -> dict[int, Expansion]:
    expansions: dict[int, Expansion] = {}
    for position in range(memory.verify().entries):
        try:
            expansions[position] = memory.expand(position)
        except UnknownHandle:  # a compaction or an undo: no item of the run
            continue
    return expansions


def _find_missing(items: Iterable[Item], expansions: Iterable[Expansion]) -> Iterator[str]:
    """Yield the items that did not come back. Results may have another order than their calls."""
    steps: list[Step] = []
    results: Counter[Observation | str] = Counter()
    for expansion in expansions:
        if not expansion.steps:  # a lone result: of an earlier step, or of no step
            results[str(expansion)] += 1
        for step in expansion.steps:
            answers = step.observations if isinstance(step, ActionStep) else ()
            steps.append(replace(step, observations=()) if isinstance(step, ActionStep) else step)
            recorded = (answer for answer in answers if answer is not None and answer.status != "unknown")
            results.update(replace(answer, index=None) for answer in recorded)
    originals = [item for item in items if not isinstance(item, Observation)]
    for number, (before, after) in enumerate(zip(originals, steps, strict=False)):
        if before != after:
            yield f"step {number}"
    yield from (f"step {number}" for number in range(len(steps), len(originals)))
    for item in items:
        if isinstance(item, Observation):
            answer = item if results[item] else as_text(item.content)
            if not results[answer]:
                yield f"the result of {item.call_id!r}"
            results[answer] -= 1


def _is_retrievable(memory: AgentMemory, handle: str, expansions: dict[int, Expansion]) -> bool:
    target = parse_handle(handle)
    if target is None:
        return False
    try:
        expansion = memory.expand(handle)
    except UnknownHandle:
        return False
    if target.observation is not None:
        return str(expansion) == _observation_text(target, expansions)
    return expansion.steps == tuple(
        step
        for position in range(target.first, target.last)
        if position in expansions
        for step in expansions[position].steps
    )


def _observation_text(target: Handle, expansions: dict[int, Expansion]) -> str | None:
    step = expansions[target.first].steps[0] if target.first in expansions and expansions[target.first].steps else None
    if not isinstance(step, ActionStep) or target.observation is None:
        return None
    observation = step.observations[target.observation] if target.observation < len(step.observations) else None
    return None if observation is None else as_text(observation.content)
