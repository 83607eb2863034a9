"""LangChain's messages."""
