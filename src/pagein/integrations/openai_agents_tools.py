"""What an agent of the OpenAI Agents SDK is offered to have back what left its view."""

from __future__ import annotations

import asyncio

from pagein.errors import ConfigurationError
from pagein.integrations.asking import EXPAND, RECALL, expanded, recalled
from pagein.integrations.openai_agents_view import Views

try:
    from agents import FunctionTool, function_tool
except ImportError as missing:
    raise ConfigurationError("the OpenAI Agents SDK needs pip install 'pagein[openai-agents]'") from missing


def expand_tool(views: Views) -> FunctionTool:
    """The tool ``expand``. A wrong handle is told to the model."""

    async def expand(handle: str) -> str:
        return await asyncio.to_thread(expanded, views.memory, handle)

    return function_tool(expand, name_override="expand", description_override=EXPAND)


def recall_tool(views: Views) -> FunctionTool:
    """The tool ``recall``: what was recorded and matches, with the handles of it."""

    async def recall(query: str) -> str:
        return await asyncio.to_thread(recalled, views.memory, query)

    return function_tool(recall, name_override="recall", description_override=RECALL)
