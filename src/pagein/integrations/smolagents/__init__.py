"""smolagents: its AgentMemory over a pagein log, shown under a budget, edited without loss, resumed after a crash.

json_values    any value as JSON-safe values, pictures included
to_steps       a smolagents step as steps of pagein
from_steps     a step of pagein as smolagents had it
chat_messages  messages of a view as smolagents' messages
history        an agent's list of steps, recorded
memory         PageinMemory, and its live list
hooks          the methods replaced on an agent, and its tools
"""

from pagein.integrations._versions import require_release

require_release("smolagents")

from pagein.integrations.smolagents.memory import PageinMemory  # noqa: E402 - only a supported release is imported

__all__ = ["PageinMemory"]
