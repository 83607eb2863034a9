"""LangChain's messages."""

from pagein.formats.langchain.wire import LangChain

__all__ = ["LangChain"]
