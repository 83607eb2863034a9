"""pagein in a LangGraph: the view before its model, its checkpoints, its long-term store. ``pip install 'pagein[langgraph]'``."""

from __future__ import annotations

from pagein.integrations.langchain_messages import to_langchain
from pagein.integrations.langgraph_hook import PreModelHook
from pagein.integrations.langgraph_saver import PageinSaver

__all__ = ["PageinSaver", "PreModelHook", "to_langchain"]
