"""pagein in a LangChain agent: one middleware. ``pip install 'pagein[langchain]'``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, Unpack, cast

from pagein.errors import ConfigurationError
from pagein.integrations._langchain_messages import as_messages, to_langchain
from pagein.integrations._langchain_threads import Source, ThreadConversation, ThreadHolder, Threads, memory_tools
from pagein.integrations._owners import OwnedConversation, OwnerOf
from pagein.integrations._threads import MAX_OVERFLOW_RETRIES
from pagein.integrations._tools import ToolChoice
from pagein.integrations._versions import require_release
from pagein.memory.options import Options

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage, BaseMessage
    from langchain_core.tools import BaseTool
except ImportError as missing:
    raise ConfigurationError("LangChain agents need pip install 'pagein[langchain]'") from missing

__all__ = ["PageinMiddleware", "to_langchain"]


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request with the view in it; ``conversation`` is None where it shows messages that are not the thread's own."""

    request: ModelRequest[Any]
    conversation: ThreadConversation | None


class PageinMiddleware(ThreadHolder, AgentMiddleware):
    """Sends the model pagein's view of the state: within budget, legal, its prefix kept. The state stays as it is.

        agent = create_agent(model, tools, middleware=[PageinMiddleware("run.db", budget=80_000)])

    ``source`` is a store, where every thread of the agent has a session of its own, or one AgentMemory for one
    conversation; the options are ``AgentMemory.open``'s. Messages of the model and results of its tools are recorded,
    each durable before the next begins. A request that a provider finds too long is made again, smaller. ``tools`` are
    the tools the model is offered, True or their names: recall, expand, pin, note, forget; remember and update with
    facts. ``expand=False`` offers none. ``user``, ``project``, ``task`` and ``tenant`` are names, or functions of the run's
    config: ``user=lambda config: config["configurable"]["user_id"]``. Then each owner's threads are their own.

    Put it first among those that change the state, last among those that change the request. Raises
    ConfigurationError, BudgetError; in a run OverBudget, LogError, and FormatError where one memory is to hold two
    conversations.
    """

    def __init__(
        self,
        source: Source,
        *,
        expand: bool = True,
        tools: ToolChoice | None = None,
        tenant: str | OwnerOf = "",
        **options: Unpack[Options],
    ) -> None:
        super().__init__()
        require_release("langchain")
        self._threads = Threads(source, options, tenant)
        self.tools: Sequence[BaseTool] = memory_tools(self._threads, expand if tools is None else tools)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask the model with the view, and record its messages before any tool runs."""
        thread = self._threads.running()
        with self._threads.using(thread):
            prepared = self._prepare(thread, request)
            for attempt in range(MAX_OVERFLOW_RETRIES + 1):
                try:
                    response = handler(prepared.request)
                    break
                except Exception as error:
                    if attempt == MAX_OVERFLOW_RETRIES or not _reduce_budget(prepared, error):
                        raise
                    prepared = self._prepare(thread, request)
            self._record_response(thread, request, prepared, response)
            return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As ``wrap_model_call``, awaited; the store is used in a thread."""
        thread = self._threads.running()
        with self._threads.using(thread):
            prepared = await asyncio.to_thread(self._prepare, thread, request)
            for attempt in range(MAX_OVERFLOW_RETRIES + 1):
                try:
                    response = await handler(prepared.request)
                    break
                except Exception as error:
                    if attempt == MAX_OVERFLOW_RETRIES or not _reduce_budget(prepared, error):
                        raise
                    prepared = await asyncio.to_thread(self._prepare, thread, request)
            await asyncio.to_thread(self._record_response, thread, request, prepared, response)
            return response

    def _prepare(self, thread: OwnedConversation, request: ModelRequest[Any]) -> PreparedRequest:
        system = None if request.system_message is None else _system_text(request.system_message)
        state = request.state.get("messages", request.messages)
        others = request.messages
        if not (len(state) == len(others) and (all(map(is_, state, others)) or list(state) == list(others))):
            # Another middleware shows the model something else than the state, for this request only.
            rows = self._threads.view_unrecorded(request.messages, system)
            return PreparedRequest(request.override(messages=_view_messages(rows)), None)
        conversation = self._threads.record(thread, state, system)
        messages = _view_messages(conversation.view_rows(system))
        return PreparedRequest(request.override(messages=messages), conversation)

    def _record_response(
        self,
        thread: OwnedConversation,
        request: ModelRequest[Any],
        prepared: PreparedRequest,
        response: ModelResponse[Any],
    ) -> None:
        if prepared.conversation is not None and isinstance(response, ModelResponse):
            self._threads.record_answer(thread, prepared.conversation, request.messages, response.result)


def _view_messages(rows: list[dict[str, Any]]) -> list[AnyMessage]:
    return cast(list[AnyMessage], as_messages(rows))


def _system_text(message: BaseMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    texts = (part if isinstance(part, str) else part.get("text", "") for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def _reduce_budget(prepared: PreparedRequest, error: Exception) -> bool:
    """Make the conversation's next request smaller; True where the error says that this one was too long."""
    conversation = prepared.conversation
    return conversation is not None and conversation.memory.handle_overflow(error) is not None
