"""What an agent of the OpenAI Agents SDK is offered to do with its memory."""

from __future__ import annotations

import asyncio
from typing import Any

from pagein.errors import ConfigurationError
from pagein.integrations._tools import Chosen, Definition, offered
from pagein.integrations.openai_agents.view import Views

try:
    from agents import FunctionTool
except ImportError as missing:
    raise ConfigurationError("the OpenAI Agents SDK needs pip install 'pagein[openai-agents]'") from missing


def tools_of(views: Views, chosen: Chosen) -> list[FunctionTool]:
    """The tools an agent is offered, over whatever its last request was a view of."""
    return [_tool(views, each) for each in offered(chosen, views.options)]


def _tool(views: Views, definition: Definition) -> FunctionTool:
    async def run(context: Any, arguments: str) -> str:
        del context
        return await asyncio.to_thread(views.memory.call_tool, definition["name"], arguments)

    return FunctionTool(
        name=definition["name"],
        description=definition["description"],
        params_json_schema=dict(definition["parameters"]),
        on_invoke_tool=run,
        strict_json_schema=False,  # it would have every argument given
    )
