"""smolagents: its AgentMemory over our log, shown under a budget, edited without loss, resumed after a crash.

plain       anything as JSON-safe values, pictures whole
recording   a smolagents step as ours
restoring   a step of ours as smolagents had it
speaking    messages of a view as smolagents' messages
steps       the live list
memory      PageinMemory
hooks       what an agent does otherwise when it has one
tools       what the model may do with its memory
"""

from pagein.integrations._versions import checked_release

checked_release("smolagents")

from pagein.integrations.smolagents.memory import PageinMemory  # noqa: E402 - only a version we know is touched

__all__ = ["PageinMemory"]
