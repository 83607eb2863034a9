"""The protocol of wire formats, and the methods that most of them share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from pagein.events.messages import Message
from pagein.events.steps import Observation, Step

Item = Step | Observation
"""One parsed part of a transcript: a step, or the answer to a call of an earlier one."""

FormatName = Literal["openai", "anthropic", "openai-responses", "gemini", "bedrock", "langchain"]
"""The names of the registered formats, for editors and type checkers; a test compares them with the registry."""


class Format(Protocol):
    """A provider's wire format. Pure: equal input gives equal output, and nothing is kept or changed."""

    @property
    def name(self) -> FormatName:
        """The public name, such as ``openai``."""
        ...

    def parse(self, request: Any) -> tuple[Item, ...]:
        """Parse a request's messages, in order. Raises FormatError with the path of what is not in the format's shape.

        ``request`` is a list of messages, or the whole request as a mapping with ``messages`` (and ``system``).
        """
        ...

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Render the request's ``messages`` (and ``system``) as JSON-safe values, new at each call."""
        ...

    def problems(self, request: Any) -> tuple[str, ...]:
        """Return every rule of the provider that the request breaks, each with the message's number. Never raises."""
        ...

    def keywords(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a rendered request as keyword arguments of the provider's SDK."""
        ...

    def render_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Render a tool's definition: its ``name``, ``description``, and ``parameters`` as a JSON schema."""
        ...

    def count_tools(self, tools: Sequence[Any], count: Callable[[str], int]) -> int:
        """Count the tokens of a request's tools, as this format writes them: an upper bound, what the provider adds included.

        ``tools`` are plain JSON; ``count`` counts a text.
        """
        ...

    def count_signs(self, request: Any, rows: Iterable[Any]) -> float:
        """Count what only this format has in a request, whose messages are ``rows`` as plain JSON."""
        ...

    def unify_row(self, row: Any) -> Any:
        """Return a message in one spelling, whichever of those that the provider's SDK takes it has. Raises FormatError."""
        ...


class WireFormat:
    """A format whose SDK takes the rendered request as it is, and whose tools cost their JSON. See ``Format``."""

    __slots__ = ()

    name: ClassVar[FormatName]
    tools_frame_tokens: ClassVar[int] = 16
    """Tokens that the provider adds to a request with tools; where it names no number, more than OpenAI's 12."""
    own_key: ClassVar[str] = ""
    """The key of the messages in a request that only this format has; "" where it has none."""

    def keywords(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request itself."""
        return request

    def unify_row(self, row: Any) -> Any:
        """Return the message itself."""
        return row

    def count_signs(self, request: Any, rows: Iterable[Any]) -> float:
        """Count what only this format has in each message; a request with a key of its own is certain."""
        is_certain = self.own_key and isinstance(request, Mapping) and self.own_key in request
        is_certain = is_certain and "messages" not in request
        return math.inf if is_certain else sum(self._count_row_signs(row) for row in rows if isinstance(row, dict))

    @staticmethod
    def _count_row_signs(row: dict[str, Any]) -> int:
        raise NotImplementedError

    def count_tools(self, tools: Sequence[Any], count: Callable[[str], int]) -> int:
        """Count the tools by their JSON, of which a provider shows the model at most all, and what it adds for them once.

        OpenAI writes a schema as types, which takes fewer tokens than its JSON.
        """
        return (
            self.tools_frame_tokens + sum(count(json.dumps(tool, ensure_ascii=False)) for tool in tools) if tools else 0
        )
