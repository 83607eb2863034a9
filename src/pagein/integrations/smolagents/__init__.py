"""smolagents: its AgentMemory over our log, shown under a budget, edited without loss, resumed after a crash.

supported   which versions; raises ConfigurationError for others, before anything else is imported
plain       anything as JSON-safe values, pictures whole
recording   a smolagents step as ours
restoring   a step of ours as smolagents had it
speaking    messages of a view as smolagents' messages
steps       the live list
memory      PageinMemory
hooks       what an agent does otherwise when it has one
tools       expand, for the model
"""

from pagein.integrations.smolagents.supported import check_version

check_version()

from pagein.integrations.smolagents.memory import PageinMemory  # noqa: E402 - only a version we know is touched

__all__ = ["PageinMemory"]
