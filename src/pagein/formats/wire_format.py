"""The base of the wire formats: the methods that most of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pagein.formats import rendering
from pagein.formats.base import FormatName


class WireFormat:
    """A format whose SDK takes the rendered request as it is, and whose tools cost their JSON. See ``Format``."""

    __slots__ = ()

    name: ClassVar[FormatName]
    tools_frame_tokens: ClassVar[int] = rendering.TOOLS_FRAME_TOKENS
    """Tokens that the provider adds to a request with tools."""

    def keywords(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request itself."""
        return request

    def count_tools(self, tools: Sequence[Any], count: Callable[[str], int]) -> int:
        """Count the tools by their JSON, and what the provider adds for them."""
        return rendering.count_tools(tools, count, self.tools_frame_tokens)
