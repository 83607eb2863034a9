"""LangGraph: the view before its model, its checkpoints, its long-term store. ``pip install 'pagein[langgraph]'``."""

from __future__ import annotations

from pagein.integrations._langchain_messages import to_langchain
from pagein.integrations.langgraph.hook import PreModelHook
from pagein.integrations.langgraph.saver import PageinSaver
from pagein.integrations.langgraph.store import PageinByteStore, PageinStore

__all__ = ["PageinByteStore", "PageinSaver", "PageinStore", "PreModelHook", "to_langchain"]
