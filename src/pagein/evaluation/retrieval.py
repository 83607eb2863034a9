"""Whether everything recorded comes back: by position, and by every handle under which something left the view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pagein.errors import UnknownHandle
from pagein.evaluation.runs import Run
from pagein.events.handles import Handle, parse_handle
from pagein.events.steps import ActionStep, Observation, Step, as_text
from pagein.formats import Item, format_named
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.operations.expand import Expansion


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How many things a run said, how many handles were tried, and which of either did not come back equal."""

    said: int = 0
    handles: int = 0
    lost: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when everything came back."""
        return not self.lost

    def __add__(self, other: Retrieval) -> Retrieval:
        return Retrieval(self.said + other.said, self.handles + other.handles, self.lost + other.lost)


def check_retrieval(memory: AgentMemory, run: Run, handles: Iterable[str]) -> Retrieval:
    """Expand every position and every handle, and compare with what the run said.

    What it said is parsed again from its own messages, so that what is compared never went through the log.
    """
    said = format_named(run.format).parse(run.request)
    found = _by_position(memory)
    lost = list(_missing(said, found.values()))
    wanted = tuple(handles)
    lost.extend(handle for handle in wanted if not _comes_back(memory, handle, found))
    return Retrieval(len(said), len(wanted), tuple(lost))


def _by_position(memory: AgentMemory) -> dict[int, Expansion]:
    found: dict[int, Expansion] = {}
    for position in range(memory.verify().entries):
        try:
            found[position] = memory.expand(position)
        except UnknownHandle:  # a compaction, an undo: nothing that was said
            continue
    return found


def _missing(said: Iterable[Item], found: Iterable[Expansion]) -> Iterator[str]:
    """What was said and did not come back; answers may have come in another order than they were asked for."""
    steps: list[Step] = []
    answers: Counter[Observation | str] = Counter()
    for each in found:
        if not each.steps:  # an answer by itself: that of a step before it, or one that answers nothing
            answers[str(each)] += 1
        for step in each.steps:
            steps.append(_alone(step))
            answers.update(_answers(step))
    spoken = [item for item in said if not isinstance(item, Observation)]
    for number, (before, after) in enumerate(zip(spoken, steps, strict=False)):
        if before != after:
            yield f"step {number}"
    yield from (f"step {number}" for number in range(len(steps), len(spoken)))
    for item in said:
        if isinstance(item, Observation):
            kept = item if answers[item] else as_text(item.content)
            if not answers[kept]:
                yield f"the result of {item.call_id!r}"
            answers[kept] -= 1


def _alone(step: Step) -> Step:
    """The step as it was said, before any call of it was answered."""
    return replace(step, observations=()) if isinstance(step, ActionStep) else step


def _answers(step: Step) -> Iterator[Observation]:
    for seen in step.observations if isinstance(step, ActionStep) else ():
        if seen is not None and seen.status != "unknown":
            yield replace(seen, index=None)


def _comes_back(memory: AgentMemory, handle: str, found: dict[int, Expansion]) -> bool:
    named = parse_handle(handle)
    if named is None:
        return False
    try:
        expansion = memory.expand(handle)
    except UnknownHandle:
        return False
    if named.observation is not None:
        return str(expansion) == _observation_text(named, found)
    return expansion.steps == tuple(
        step
        for position in range(named.first, named.last)
        if position in found
        for step in found[position].steps
    )


def _observation_text(named: Handle, found: dict[int, Expansion]) -> str | None:
    step = found[named.first].steps[0] if named.first in found and found[named.first].steps else None
    if not isinstance(step, ActionStep) or named.observation is None:
        return None
    seen = step.observations[named.observation] if named.observation < len(step.observations) else None
    return None if seen is None else as_text(seen.content)
