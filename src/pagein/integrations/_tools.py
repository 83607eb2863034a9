"""The memory tools that a model in a framework's loop is offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pagein.memory.options import Options
from pagein.memory.tools import ASKED_FOR_TOOLS, TOOLS, choose_tools

ToolChoice = bool | Sequence[str]
"""Tools to offer: True for all that can do something, False for none, or their names."""

ToolDefinition = Mapping[str, Any]
"""A tool in ``pagein.memory.tools``: its name, its description, and its parameters as a JSON schema."""

_LASTING_FACT_TOOLS = ("remember", "update")
_FACT_TOOLS = ("note", *_LASTING_FACT_TOOLS)


def offered_tools(choice: ToolChoice, options: Options) -> tuple[ToolDefinition, ...]:
    """The tools to offer a model, in a fixed order, each to be run by ``memory.call_tool``.

    True leaves out ``compact``, ``remember`` and ``update`` where the options name no owner of facts, and ``note`` too
    with ``facts=False``. Raises ConfigurationError for an unknown name.
    """
    if not isinstance(choice, bool):
        return choose_tools(choice)
    without_use = (*_tools_without_use(options), *ASKED_FOR_TOOLS)
    return tuple(definition for definition in TOOLS if choice and definition["name"] not in without_use)


def _tools_without_use(options: Options) -> tuple[str, ...]:
    facts = options.get("facts")
    if facts is False:
        return _FACT_TOOLS
    has_owner = any(options.get(name) for name in ("user", "project", "task"))
    return () if facts or has_owner else _LASTING_FACT_TOOLS
