"""smolagents: its AgentMemory over a pagein log, shown under a budget, edited without loss, resumed after a crash."""

from pagein.integrations._versions import require_release

require_release("smolagents")

from pagein.integrations.smolagents.memory import PageinMemory  # noqa: E402 - only a supported release is imported

__all__ = ["PageinMemory"]
