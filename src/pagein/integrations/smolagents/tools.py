"""What the model may call to do something with its memory."""

from __future__ import annotations

from typing import Any

from smolagents import Tool

from pagein.errors import ConfigurationError
from pagein.integrations._tools import Definition


class MemoryTool(Tool):  # type: ignore[misc] # smolagents has no types
    """One of the tools of ``pagein.memory.tools``, over the memory of an agent."""

    name = "memory"
    description = "A tool of the memory."
    inputs: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - as smolagents wants it
    output_type = "string"
    skip_forward_signature_validation = True  # its inputs are the definition's

    def __init__(self, memory: Any, definition: Definition) -> None:
        self._memory = memory
        self.name, self.description = definition["name"], definition["description"]
        schema = definition["parameters"]
        self.inputs = {
            name: {
                "description": name,
                **each,
                **({} if name in schema["required"] else {"nullable": True}),
            }
            for name, each in schema["properties"].items()
        }
        super().__init__()

    def forward(self, *given: Any, **named: Any) -> str:
        """What the tool says; what the model did wrong is told it."""
        arguments = {**dict(zip(self.inputs, given, strict=False)), **named}
        return str(self._memory.pages.call_tool(self.name, arguments))

    def to_dict(self) -> dict[str, Any]:
        """Raises ConfigurationError: the tool is part of a memory, and is not saved without it."""
        raise ConfigurationError(
            f"{self.name} belongs to a memory: memory.detach() before the agent is saved"
        )
