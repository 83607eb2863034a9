"""pagein in the OpenAI Agents SDK: one session. ``pip install "pagein[openai-agents]"``."""

from pagein.integrations.openai_agents.session import PageinSession

__all__ = ["PageinSession"]
