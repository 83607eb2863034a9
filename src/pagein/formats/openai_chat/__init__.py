"""OpenAI's chat completions."""

from pagein.formats.openai_chat.wire import OpenAIChat

__all__ = ["OpenAIChat"]
