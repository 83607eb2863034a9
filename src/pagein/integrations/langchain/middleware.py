"""pagein in a LangChain agent: one middleware. ``pip install 'pagein[langchain]'``.

agent = create_agent(model, tools, middleware=[PageinMiddleware("run.db", budget=80_000)])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, Unpack, cast

from pagein.errors import ConfigurationError
from pagein.integrations._tools import Chosen
from pagein.integrations._versions import checked_release
from pagein.integrations.langchain.messages import as_messages, to_langchain
from pagein.integrations.langchain.threads import Conversation, Source, Threads
from pagein.integrations.langchain.tools import running_thread, tools_of
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage, BaseMessage
    from langchain_core.tools import BaseTool
except ImportError as missing:
    raise ConfigurationError("LangChain agents need pip install 'pagein[langchain]'") from missing

__all__ = ["PageinMiddleware", "to_langchain"]

OVERFLOWS = 4
"""How often a request that the provider found too long is made again, smaller each time."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request to the model; ``conversation`` is None where it shows messages that are not the thread's own."""

    request: ModelRequest[Any]
    conversation: Conversation | None


class PageinMiddleware(AgentMiddleware):
    """Gives the model pagein's view of the state: within budget, legal, its prefix kept. The state stays as it is.

    ``source`` is a store, where every thread of the agent has a session of its own, or one AgentMemory for one
    conversation; the options are ``AgentMemory.open``'s. What the model and its tools say is recorded, each durable
    before the next begins. A request that a provider finds too long is made again, smaller. ``tools`` says which
    tools the model is offered, True or their names: recall, expand, pin, note, forget; remember and update with facts.
    ``expand=False`` offers none.

    Put it first among those that change the state, last among those that change the request. Raises
    ConfigurationError, BudgetError; in a run OverBudget, LogError, and FormatError where one memory is to hold two
    conversations.
    """

    def __init__(
        self, source: Source, *, expand: bool = True, tools: Chosen | None = None, **options: Unpack[Options]
    ) -> None:
        super().__init__()
        checked_release("langchain")
        self._threads = Threads(source, options)
        self.tools: Sequence[BaseTool] = tools_of(self._threads, expand if tools is None else tools)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask the model with the view, and record what it says before any tool runs."""
        thread = running_thread()
        asked = self._asked(thread, request)
        for attempt in range(OVERFLOWS + 1):
            try:
                response = handler(asked.request)
                break
            except Exception as error:
                if attempt == OVERFLOWS or not _is_lessened(asked, error):
                    raise
                asked = self._asked(thread, request)
        self._answered(thread, request, asked, response)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """As ``wrap_model_call``, awaited; the store is reached from a thread."""
        thread = running_thread()
        asked = await asyncio.to_thread(self._asked, thread, request)
        for attempt in range(OVERFLOWS + 1):
            try:
                response = await handler(asked.request)
                break
            except Exception as error:
                if attempt == OVERFLOWS or not _is_lessened(asked, error):
                    raise
                asked = await asyncio.to_thread(self._asked, thread, request)
        await asyncio.to_thread(self._answered, thread, request, asked, response)
        return response

    def memory(self, thread: str = "default") -> AgentMemory | None:
        """The memory of a thread that has spoken here, to look into; None for another."""
        found = self._threads.latest(str(thread))
        return None if found is None else found.memory

    def close(self) -> None:
        """Close what was opened; a memory that was handed in stays open. What is asked next opens it again."""
        self._threads.close()

    def _asked(self, thread: str, request: ModelRequest[Any]) -> _Asked:
        system = None if request.system_message is None else _system_text(request.system_message)
        said = request.state.get("messages", request.messages)
        if not _alike(said, request.messages):
            # Another middleware shows the model something else than the state, for this request only.
            rows = self._threads.apart(request.messages, system)
            return _Asked(request.override(messages=_shown(rows)), None)
        found = self._threads.at(thread, said, system)
        return _Asked(request.override(messages=_shown(found.rows(system))), found)

    def _answered(
        self, thread: str, request: ModelRequest[Any], asked: _Asked, response: ModelResponse[Any]
    ) -> None:
        if asked.conversation is not None and isinstance(response, ModelResponse):
            self._threads.answered(thread, asked.conversation, request.messages, response.result)


def _shown(rows: list[dict[str, Any]]) -> list[AnyMessage]:
    return cast(list[AnyMessage], as_messages(rows))


def _alike(said: Sequence[BaseMessage], shown: Sequence[BaseMessage]) -> bool:
    return len(said) == len(shown) and (all(map(is_, said, shown)) or list(said) == list(shown))


def _system_text(message: BaseMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    texts = (each if isinstance(each, str) else each.get("text", "") for each in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def _is_lessened(asked: _Asked, error: Exception) -> bool:
    """Whether the error says that the request was too long; the conversation's next one is smaller then."""
    found = asked.conversation
    return found is not None and found.memory.overflowed(error) is not None
