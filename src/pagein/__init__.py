"""pagein: demand paging for an LLM agent's context."""

__version__ = "0.1.0"
