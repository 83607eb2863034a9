"""What a model in a graph is offered, and which thread it speaks in."""

from __future__ import annotations

from pagein.errors import ConfigurationError, UnknownHandle
from pagein.integrations.langchain_threads import Threads

try:
    from langchain_core.tools import BaseTool, StructuredTool
    from langgraph.config import get_config
except ImportError as missing:
    raise ConfigurationError("LangGraph needs pip install 'pagein[langgraph]'") from missing

_EXPAND = "Gives back in full what an earlier part of this run says, by the handle that stands for it, as s12 or s3-18."


def running_thread() -> str:
    """The thread that the graph runs now; all runs without a checkpointer are of one, ``default``."""
    try:
        return str(get_config().get("configurable", {}).get("thread_id") or "default")
    except RuntimeError:
        return "default"


def expand_tool(threads: Threads) -> BaseTool:
    """The tool ``expand``, over the conversation of whichever thread calls it. A wrong handle is told to the model."""

    # The seam for memory.tools() and call_tool, which will bring recall, pins and notes.
    def expand(handle: str) -> str:
        found = threads.latest(running_thread())
        if found is None:
            return "Nothing was recorded yet."
        try:
            return str(found.memory.expand(handle))
        except UnknownHandle as error:
            return str(error)

    return StructuredTool.from_function(expand, name="expand", description=_EXPAND)
