"""OpenAI's Responses API."""

from pagein.formats.openai_responses.wire import OpenAIResponses

__all__ = ["OpenAIResponses"]
