"""pagein before the model of a plain LangGraph: a node that leaves the state alone and gives the model our view."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from pagein.errors import ConfigurationError
from pagein.integrations._tools import Chosen
from pagein.integrations._versions import checked_release
from pagein.integrations.langchain.messages import as_messages
from pagein.integrations.langchain.threads import Source, Threads
from pagein.integrations.langchain.tools import running_thread, tools_of
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import Options

try:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
except ImportError as missing:
    raise ConfigurationError("LangGraph needs pip install 'pagein[langgraph]'") from missing


class PreModelHook(Runnable[Any, dict[str, Any]]):
    """What a ``pre_model_hook`` is: takes the state, gives ``llm_input_messages``, the view of it. The state stays.

    ``source`` and the options are those of ``PageinMiddleware``. ``reserve`` is what else goes with each request, in
    tokens: a prompt that the graph adds afterwards. The hook's ``tools``, those asked for by
    ``tools``, are to be given to the agent too. A node of one's own calls ``view(state["messages"])``. Raises in a run OverBudget, LogError, FormatError.
    """

    def __init__(
        self, source: Source, *, reserve: int = 0, tools: Chosen = True, **options: Unpack[Options]
    ) -> None:
        checked_release("langgraph")
        if reserve < 0:
            raise ConfigurationError(f"reserve is a number of tokens, not {reserve}")
        self._threads = Threads(source, options)
        self._reserve = reserve
        self.tools: Sequence[BaseTool] = tools_of(self._threads, tools)

    def view(self, messages: Sequence[BaseMessage], thread: str | None = None) -> list[BaseMessage]:
        """The messages a model may be sent for this state, what is new in it recorded. ``thread``: else the running one."""
        found = self._threads.at(running_thread() if thread is None else thread, messages, None)
        return as_messages(found.rows(None, self._reserve))

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **_kwargs: Any
    ) -> dict[str, list[BaseMessage]]:
        """The view of a state, as a dict or an object with ``messages``."""
        return {"llm_input_messages": self.view(_messages(input), _thread(config))}

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **_kwargs: Any
    ) -> dict[str, list[BaseMessage]]:
        """As ``invoke``; the store is reached from a thread."""
        return {"llm_input_messages": await asyncio.to_thread(self.view, _messages(input), _thread(config))}

    def memory(self, thread: str = "default") -> AgentMemory | None:
        """The memory of a thread that has spoken here, to look into; None for another."""
        found = self._threads.latest(str(thread))
        return None if found is None else found.memory

    def close(self) -> None:
        """Close what was opened; a memory that was handed in stays open. What is asked next opens it again."""
        self._threads.close()


def _thread(config: RunnableConfig | None) -> str | None:
    named = (config or {}).get("configurable", {}).get("thread_id")
    return None if named is None else str(named)


def _messages(state: Any) -> Sequence[BaseMessage]:
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise ConfigurationError("the state has no list of messages under 'messages'")
    return found
