"""What a model in a graph is offered, and which thread it speaks in."""

from __future__ import annotations

from typing import Any

from pagein.errors import ConfigurationError
from pagein.integrations._tools import Chosen, Definition, offered
from pagein.integrations.langchain.threads import Threads

try:
    from langchain_core.tools import BaseTool, StructuredTool
    from langgraph.config import get_config
except ImportError as missing:
    raise ConfigurationError("LangGraph needs pip install 'pagein[langgraph]'") from missing


def running_thread() -> str:
    """The thread that the graph runs now; all runs without a checkpointer are of one, ``default``."""
    try:
        return str(get_config().get("configurable", {}).get("thread_id") or "default")
    except RuntimeError:
        return "default"


def tools_of(threads: Threads, chosen: Chosen) -> list[BaseTool]:
    """The tools a model is offered, over the conversation of whichever thread calls them."""
    return [_tool(threads, each) for each in offered(chosen, threads.options)]


def _tool(threads: Threads, definition: Definition) -> BaseTool:
    name = definition["name"]

    def run(**arguments: Any) -> str:
        found = threads.latest(running_thread())
        return "Nothing was recorded yet." if found is None else found.memory.call_tool(name, arguments)

    return StructuredTool(
        name=name, description=definition["description"], args_schema=definition["parameters"], func=run
    )
