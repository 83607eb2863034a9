"""The seam every wire format fills in: what a transcript becomes, and what a request is made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pagein.events.messages import Message
from pagein.events.steps import Observation, Step

Item = Step | Observation
"""What one part of a transcript becomes: a step, or the answer to a call of an earlier one."""


class Format(Protocol):
    """One provider's wire format. Pure: equal input, equal output; nothing is read, kept or changed."""

    @property
    def name(self) -> str:
        """The public name, as ``openai``."""
        ...

    def parse(self, request: Any) -> tuple[Item, ...]:
        """What the request's messages say, in order. Raises FormatError, with a path, for what is not of the shape.

        ``request`` is a list of messages, or the whole request as a mapping with ``messages`` (and ``system``).
        """
        ...

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """The request's ``messages`` (and ``system``) as JSON-safe values, new at each call."""
        ...

    def problems(self, request: Any) -> tuple[str, ...]:
        """Every rule of the provider that the request breaks, each with the message's number; none when it is legal."""
        ...
