"""A ToolCallingAgent of smolagents, bare and with PageinMemory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smolagents import Tool, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model
from smolagents.monitoring import LogLevel

from benchmarks.frameworks.meter import TASK, Meter, page
from pagein.integrations.smolagents import PageinMemory


class _Look(Tool):  # type: ignore[misc] # smolagents has no types
    name = "look"
    description = "A page of the report."
    inputs: ClassVar[dict[str, Any]] = {"number": {"type": "integer", "description": "The page."}}
    output_type = "string"

    def forward(self, number: int) -> str:
        return page(number)


class _Model(Model):  # type: ignore[misc] # smolagents has no types
    def __init__(self, calls: int, meter: Meter) -> None:
        super().__init__(model_id="scripted")
        self._calls, self._meter = calls, meter

    def generate(self, messages: list[ChatMessage], **_: Any) -> ChatMessage:
        with self._meter.request(lambda: _texts(messages)) as number:
            name, arguments = ("look", {"number": number})
            if number >= self._calls:
                name, arguments = "final_answer", {"answer": "read"}  # type: ignore[dict-item]
            function = ChatMessageToolCallFunction(arguments, name)
            call = ChatMessageToolCall(function, f"call_{number}", "function")
            return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


def _texts(messages: list[ChatMessage]) -> Iterator[str]:
    for message in messages:
        parts = [{"text": message.content}] if isinstance(message.content, str) else message.content or []
        yield from (part["text"] for part in parts if part.get("text"))


def play(calls: int, budget: int | None, meter: Meter) -> None:
    """So many calls, and an answer."""
    agent = ToolCallingAgent([_Look()], _Model(calls, meter), max_steps=calls + 5, verbosity_level=LogLevel.OFF)
    if budget is None:
        agent.run(TASK)
        return
    with PageinMemory.attach(agent, budget=budget):
        agent.run(TASK)
