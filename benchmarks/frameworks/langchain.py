"""An agent of LangChain, bare and with PageinMiddleware."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from benchmarks.frameworks.meter import TASK, Meter, page
from pagein.integrations.langchain.middleware import PageinMiddleware


@tool
def look(number: int) -> str:
    """A page of the report."""
    return page(number)


class _Model(BaseChatModel):
    calls: int
    meter: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        with self.meter.request(lambda: _texts(messages)) as number:
            call = {"name": "look", "args": {"number": number}, "id": f"call_{number}"}
            said = AIMessage("", tool_calls=[call]) if number < self.calls else AIMessage("Read.")
            return ChatResult(generations=[ChatGeneration(message=said)])


def _texts(messages: list[BaseMessage]) -> Iterator[str]:
    for message in messages:
        yield str(message.content)
        yield from (f"{call['name']} {json.dumps(call['args'])}" for call in getattr(message, "tool_calls", ()))


def play(calls: int, budget: int | None, meter: Meter) -> None:
    """So many calls, and an answer."""
    pages = [] if budget is None else [PageinMiddleware(":memory:", budget=budget)]
    _run_agent(calls, meter, pages)
    for middleware in pages:
        middleware.close()


def run_trimmed(calls: int, budget: int | None, meter: Meter) -> None:
    """The same, kept within the budget by LangChain's ``trim_messages``, counting approximately as its pages advise."""

    class Trims(AgentMiddleware):
        def wrap_model_call(self, request: ModelRequest, handler: Any) -> Any:
            kept: list[Any] = trim_messages(
                request.messages,
                max_tokens=budget or 0,
                token_counter=count_tokens_approximately,
                strategy="last",
                start_on=("human", "ai"),
            )
            return handler(request.override(messages=kept))

    _run_agent(calls, meter, [Trims()])


def _run_agent(calls: int, meter: Meter, middleware: list[Any]) -> None:
    model = _Model(calls=calls, meter=meter)
    agent = create_agent(model, [look], middleware=middleware, system_prompt="You read pages.")
    agent.invoke({"messages": [HumanMessage(TASK)]}, {"recursion_limit": 10 * calls + 50})
