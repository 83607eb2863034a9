"""What the model may call to have something back that left its view."""

from __future__ import annotations

from typing import Any, ClassVar

from smolagents import Tool

from pagein.errors import ConfigurationError


class Expand(Tool):  # type: ignore[misc] # smolagents has no types
    """Gives back, whole, what a handle in the conversation stands for."""

    name = "expand"
    description = (
        "Gives back, word for word, what was left out of this conversation to keep it short. What was left out is named "
        "by a handle such as s12, s12.0 or s3-18."
    )
    inputs: ClassVar[dict[str, Any]] = {
        "handle": {"type": "string", "description": "The handle, as it stands in the conversation."}
    }
    output_type = "string"

    def __init__(self, memory: Any) -> None:
        super().__init__()
        self._memory = memory

    def forward(self, handle: str) -> str:
        """The original behind the handle. Raises UnknownHandle, which the model is told."""
        return str(self._memory.expand(handle))

    def to_dict(self) -> dict[str, Any]:
        """Raises ConfigurationError: the tool is part of a memory, and is not saved without it."""
        raise ConfigurationError("expand belongs to a memory: memory.detach() before the agent is saved")
