"""The registry of wire formats. A new format is a folder and a line in ``FORMATS``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, cast

from pagein.errors import ConfigurationError, Illegal
from pagein.formats.base import Format, FormatName
from pagein.formats.parsing import request_rows

FORMATS: Mapping[FormatName, tuple[str, str]] = MappingProxyType({
    "openai": ("pagein.formats.openai_chat", "OpenAIChat"),
    "anthropic": ("pagein.formats.anthropic", "Anthropic"),
    "openai-responses": ("pagein.formats.openai_responses", "OpenAIResponses"),
    "gemini": ("pagein.formats.gemini", "Gemini"),
    "bedrock": ("pagein.formats.bedrock", "Bedrock"),
    "langchain": ("pagein.formats.langchain", "LangChain"),
})  # fmt: skip
"""The package and class of each format by its name. ``guess_format`` prefers the earlier of equals."""


def format_named(name: str) -> Format:
    """Return the wire format of that name, one of ``FORMATS``.

    Raises ConfigurationError for any other.
    """
    if not isinstance(name, str) or name not in FORMATS:
        *names, last = map(repr, FORMATS)
        raise ConfigurationError(f"unknown format {name!r}: use {', '.join(names)} or {last}")
    package, class_name = FORMATS[cast("FormatName", name)]
    form: Format = getattr(import_module(package), class_name)()
    return form


def validate(messages: Any, format: str = "openai") -> None:
    """Check that the provider would accept the request: a list of messages, or the whole request.

    Raises Illegal with every broken rule in ``problems``, ConfigurationError for an unknown format.
    """
    problems = format_named(format).problems(messages)
    if problems:
        raise Illegal(format, problems)


def keywords(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return a rendered request as keyword arguments of the SDK of the format ``name``."""
    return format_named(name).keywords(request)


def guess_format(messages: Any) -> FormatName:
    """Guess the format of a transcript by the shape of its messages: any but ``langchain``, which is shaped like OpenAI's.

    A transcript of plain messages is ``openai``; a request with an ``input`` is ``openai-responses``, one with
    ``contents`` is ``gemini``. Raises FormatError for what is no list of messages.

    >>> guess_format([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}])
    'anthropic'
    """
    rows = request_rows(messages)
    return max(FORMATS, key=lambda name: format_named(name).count_signs(messages, rows))
