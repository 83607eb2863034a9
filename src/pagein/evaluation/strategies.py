"""What is measured: pagein, and the baselines that agents use today. Each is handed a run, and asked for requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Final, Protocol

from pagein.evaluation.requests import Said, Scale, Wire
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens.requests import REQUEST

KEPT_RESULTS: Final = 10
"""Tool results that observation masking leaves as they are."""

CLIPPED_TO: Final = 500
"""Tokens of a tool result that head-and-tail clipping leaves, half at each end."""

OMITTED: Final = "[old output omitted]"


class Strategy(Protocol):
    """Takes in what a run says, and makes the next request from it."""

    def take(self, messages: Sequence[Wire]) -> None:
        """Take in what is new."""
        ...

    def request(self) -> Sequence[Wire]:
        """The messages that would be sent now."""
        ...


class Paged:
    """pagein: what is new is recorded, and the view is rendered, as a host does it."""

    def __init__(self, memory: AgentMemory, *, speaks: str = "openai", renders: str = "openai") -> None:
        self.memory = memory
        self._speaks = speaks
        self._renders = renders

    def take(self, messages: Sequence[Wire]) -> None:
        """Record the messages."""
        self.memory.record_messages(list(messages), self._speaks, whole=False)

    def request(self) -> Sequence[Wire]:
        """The view; a system prompt that stands apart comes first."""
        request = self.memory.to_request(self._renders)
        system = request.get("system")
        return [{"system": system}, *request["messages"]] if system else request["messages"]


Shape = Callable[[Said, int, Scale], Said]
"""What a baseline makes of a message that has so many results behind it."""


class Baseline:
    """Head and recency: what comes before the first answer, and the newest turns that fit, each in the same shape.

    As plain it is what langchain's ``trim_messages`` does with ``strategy="last"`` and the head put back.
    """

    def __init__(self, budget: int, scale: Scale, shape: Shape) -> None:
        self._budget = budget
        self._scale = scale
        self._shape = shape
        self._head: list[Said] = []
        self._tail: list[Said] = []

    def take(self, messages: Sequence[Wire]) -> None:
        """Take in what is new."""
        said = self._scale.request(messages)
        if not self._tail:
            opening = tuple(takewhile(lambda each: each.role in ("system", "developer", "user"), said))
            self._head.extend(opening)
            said = said[len(opening) :]
        self._tail.extend(said)

    def request(self) -> Sequence[Wire]:
        """The head, and as much of the tail as fits behind it."""
        room = self._budget - REQUEST - sum(each.tokens for each in self._head)
        kept: list[Said] = []
        turn: list[Said] = []
        results = 0
        for each in reversed(self._tail):
            turn.append(self._shape(each, results, self._scale))
            results += len(each.answers)
            if not each.answers:
                room -= sum(said.tokens for said in turn)
                if room < 0:
                    break
                kept.extend(turn)
                turn = []
        return [each.wire for each in (*self._head, *reversed(kept))]


def recent(said: Sequence[Said], budget: int) -> int:
    """Where a plain recency window of the budget begins: the first message of the oldest turn that fits."""
    first, room = len(said), budget - REQUEST
    turn = 0
    for at in range(len(said) - 1, -1, -1):
        turn += said[at].tokens
        if not said[at].answers:
            if turn > room:
                break
            first, room, turn = at, room - turn, 0
    return first


def plain(said: Said, results: int, scale: Scale) -> Said:
    """The message as it is."""
    del results, scale
    return said


def masked(said: Said, results: int, scale: Scale) -> Said:
    """The message; of a result that is not among the last ten, that it was left out."""
    if not said.answers or results < KEPT_RESULTS:
        return said
    return scale.weigh({**said.wire, "content": OMITTED})


def clipped(said: Said, results: int, scale: Scale) -> Said:
    """The message; of a long result the head and the tail."""
    del results
    content = said.wire.get("content")
    if not said.answers or not isinstance(content, str) or said.tokens <= CLIPPED_TO:
        return said
    half = len(content) * CLIPPED_TO // said.tokens // 2
    return scale.weigh({**said.wire, "content": f"{content[:half]}\n[...]\n{content[-half:]}"})


BASELINES: Mapping[str, Shape] = MappingProxyType(
    {"head+recency": plain, "masking": masked, "clipping": clipped}
)
"""The baselines by the names under which they are reported."""
