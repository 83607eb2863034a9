"""pagein in a pydantic-ai agent: one capability. ``pip install "pagein[pydantic-ai]"``.

agent = Agent(model, capabilities=[Pagein("run.db", budget=80_000)])
"""

from pagein.integrations.pydantic_ai.capability import Pagein

__all__ = ["Pagein"]
