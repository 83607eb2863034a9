"""How it is said to a provider: for each wire format one module that reads and writes it, and one with its rules.

``contract`` is the seam; ``reading`` and ``writing`` are what the formats share; ``openai_chat``, ``openai_responses`` and
``anthropic`` are the formats, ``langchain`` the one that stands before several; ``anthropic_turns`` puts that one's blocks
in order, ``openai_responses_outputs`` has what answers a call, ``langchain_images`` knows how images are spelled;
``openai_rules``, ``openai_responses_rules``, ``anthropic_rules`` and ``langchain_rules`` say what is refused, knowing
nothing of the rest.
"""

from __future__ import annotations

from typing import Any

from pagein.errors import ConfigurationError, Illegal
from pagein.formats.base import Format, Item
from pagein.formats.detection import guess_format

__all__ = ["Format", "Item", "format_named", "guess_format", "keywords", "validate"]


def format_named(name: str) -> Format:
    """The wire format of that name: ``openai``, ``openai-responses``, ``anthropic`` or ``langchain``.

    Raises ConfigurationError for any other.
    """
    match name:
        case "openai":
            from pagein.formats.openai_chat.wire import OpenAIChat  # noqa: PLC0415 - loaded when it is asked for

            return OpenAIChat()
        case "anthropic":
            from pagein.formats.anthropic.wire import Anthropic  # noqa: PLC0415 - loaded when it is asked for

            return Anthropic()
        case "langchain":
            from pagein.formats.langchain.wire import LangChain  # noqa: PLC0415 - loaded when it is asked for

            return LangChain()
        case "openai-responses":
            from pagein.formats.openai_responses.wire import OpenAIResponses  # noqa: PLC0415 - loaded when it is asked for

            return OpenAIResponses()
        case _:
            known = "'openai', 'anthropic', 'openai-responses' or 'langchain'"
            raise ConfigurationError(f"unknown format {name!r}: use {known}")


def validate(messages: Any, format: str = "openai") -> None:
    """Returns when the provider would take the request, a list of messages or the whole of it.

    Raises Illegal with every rule it breaks in ``problems``, ConfigurationError for an unknown format.
    """
    problems = format_named(format).problems(messages)
    if problems:
        raise Illegal(format, problems)


def keywords(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """A rendered request as the keyword arguments of its SDK: the Responses API calls its messages ``input``."""
    if name != "openai-responses":
        return request
    return {"input": request["messages"], **{key: each for key, each in request.items() if key != "messages"}}
