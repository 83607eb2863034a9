"""pagein before the model of a plain LangGraph: a node that leaves the state alone and sends the model the view."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from pagein.errors import ConfigurationError
from pagein.integrations._langchain_messages import as_messages
from pagein.integrations._langchain_threads import Source, ThreadHolder, Threads, memory_tools
from pagein.integrations._owners import OwnedConversation, OwnerOf
from pagein.integrations._tools import ToolChoice
from pagein.integrations._versions import require_release
from pagein.memory.options import Options

try:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
except ImportError as missing:
    raise ConfigurationError("LangGraph needs pip install 'pagein[langgraph]'") from missing


class PreModelHook(ThreadHolder, Runnable[Any, dict[str, Any]]):
    """A ``pre_model_hook``: takes the state, returns ``llm_input_messages``, the view of it. The state stays as it is.

    ``source`` and the options are those of ``PageinMiddleware``. ``reserve`` is what else goes with each request, in
    tokens: a prompt that the graph adds afterwards. Give the hook's ``tools``, those that ``tools`` names, to the agent
    too. A node of your own calls ``view(state["messages"])``. Raises in a run OverBudget, LogError, FormatError.
    """

    def __init__(
        self,
        source: Source,
        *,
        reserve: int = 0,
        tools: ToolChoice = True,
        tenant: str | OwnerOf = "",
        **options: Unpack[Options],
    ) -> None:
        require_release("langgraph")
        if reserve < 0:
            raise ConfigurationError(f"reserve is a number of tokens, not {reserve}")
        self._threads = Threads(source, options, tenant)
        self._reserve = reserve
        self.tools: Sequence[BaseTool] = memory_tools(self._threads, tools)

    def view(self, messages: Sequence[BaseMessage], thread: str | None = None) -> list[BaseMessage]:
        """Record the new messages of this state, and return those to send a model. ``thread``: by default the running one."""
        return self._view(messages, self._threads.running(thread))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_kwargs: Any) -> dict[str, list[BaseMessage]]:
        """The view of a state, which is a dict or an object with ``messages``."""
        return {"llm_input_messages": self._view(_state_messages(input), self._threads.running(None, config))}

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **_kwargs: Any
    ) -> dict[str, list[BaseMessage]]:
        """As ``invoke``; the store is used in a thread."""
        thread = self._threads.running(None, config)
        messages = await asyncio.to_thread(self._view, _state_messages(input), thread)
        return {"llm_input_messages": messages}

    def _view(self, messages: Sequence[BaseMessage], thread: OwnedConversation) -> list[BaseMessage]:
        with self._threads.using(thread):
            conversation = self._threads.record(thread, messages, None)
            return as_messages(conversation.view_rows(None, self._reserve))


def _state_messages(state: Any) -> Sequence[BaseMessage]:
    messages = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise ConfigurationError("the state has no list of messages under 'messages'")
    return messages
