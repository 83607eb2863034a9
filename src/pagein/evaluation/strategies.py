"""The strategies to compare: pagein, and the baselines that agents use today."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Final, Protocol

from pagein.evaluation.requests import MeasuredMessage, Scale, Wire
from pagein.formats import FormatName
from pagein.memory.agent_memory import AgentMemory
from pagein.tokens.counter import REQUEST_TOKENS

KEPT_RESULTS: Final = 10
"""Newest tool results that observation masking keeps."""

CLIPPED_TOKENS: Final = 500
"""Tokens of a tool result that clipping keeps, half at each end."""

OMITTED: Final = "[old output omitted]"


class Strategy(Protocol):
    """Records the messages of a run, and makes the next request."""

    def take(self, messages: Sequence[Wire]) -> None:
        """Record new messages."""
        ...

    def request(self) -> Sequence[Wire]:
        """The messages to send now."""
        ...


class PageinStrategy(Strategy):
    """pagein: record new messages, and render the view."""

    def __init__(self, memory: AgentMemory, *, speaks: FormatName = "openai", renders: FormatName = "openai") -> None:
        self.memory = memory
        self._speaks = speaks
        self._renders = renders

    def take(self, messages: Sequence[Wire]) -> None:
        self.memory.record_messages(list(messages), self._speaks, whole=False)

    def request(self) -> Sequence[Wire]:
        """The view; a separate system prompt comes first."""
        request = self.memory.to_request(self._renders)
        system = request.get("system")
        return [{"system": system}, *request["messages"]] if system else request["messages"]


Shape = Callable[[MeasuredMessage, int, Scale], MeasuredMessage]
"""Shapes a message that has so many results after it."""


class Baseline(Strategy):
    """Head and recency: the messages before the first answer, and the newest turns that fit.

    With unshaped messages, this is langchain's ``trim_messages`` with ``strategy="last"`` and the head kept.
    """

    def __init__(self, budget: int, scale: Scale, shape: Shape) -> None:
        self._budget = budget
        self._scale = scale
        self._shape = shape
        self._head: list[MeasuredMessage] = []
        self._tail: list[MeasuredMessage] = []

    def take(self, messages: Sequence[Wire]) -> None:
        measured = self._scale.measure_request(messages)
        if not self._tail:
            opening = tuple(takewhile(lambda message: message.role in ("system", "developer", "user"), measured))
            self._head.extend(opening)
            measured = measured[len(opening) :]
        self._tail.extend(measured)

    def request(self) -> Sequence[Wire]:
        """The head, and the newest turns that fit after it."""
        room = self._budget - REQUEST_TOKENS - sum(message.tokens for message in self._head)
        newest: list[MeasuredMessage] = []
        turn: list[MeasuredMessage] = []
        results = 0
        for message in reversed(self._tail):
            turn.append(self._shape(message, results, self._scale))
            results += len(message.answers)
            if not message.answers:
                room -= sum(other.tokens for other in turn)
                if room < 0:
                    break
                newest.extend(turn)
                turn = []
        return [message.wire for message in (*self._head, *reversed(newest))]


def recency_start(messages: Sequence[MeasuredMessage], budget: int) -> int:
    """The start of a recency window of the budget: the first message of the oldest turn that fits."""
    first, room = len(messages), budget - REQUEST_TOKENS
    turn = 0
    for at in range(len(messages) - 1, -1, -1):
        turn += messages[at].tokens
        if not messages[at].answers:
            if turn > room:
                break
            first, room, turn = at, room - turn, 0
    return first


def keep_whole(message: MeasuredMessage, *_: object) -> MeasuredMessage:
    """Keep the message as it is."""
    return message


def mask_result(message: MeasuredMessage, results: int, scale: Scale) -> MeasuredMessage:
    """Replace a result that is not among the last ten by a note."""
    if not message.answers or results < KEPT_RESULTS:
        return message
    return scale.measure({**message.wire, "content": OMITTED})


def clip_result(message: MeasuredMessage, results: int, scale: Scale) -> MeasuredMessage:
    """Clip a long result to its head and tail."""
    del results
    content = message.wire.get("content")
    if not message.answers or not isinstance(content, str) or message.tokens <= CLIPPED_TOKENS:
        return message
    half = len(content) * CLIPPED_TOKENS // message.tokens // 2
    return scale.measure({**message.wire, "content": f"{content[:half]}\n[...]\n{content[-half:]}"})


BASELINES: Mapping[str, Shape] = MappingProxyType(
    {"head+recency": keep_whole, "masking": mask_result, "clipping": clip_result}
)
"""The baselines by name."""
