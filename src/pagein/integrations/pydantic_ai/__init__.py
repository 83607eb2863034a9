"""pagein in a pydantic-ai agent: one capability. ``pip install "pagein[pydantic-ai]"``."""

from pagein.integrations.pydantic_ai.capability import Pagein

__all__ = ["Pagein"]
