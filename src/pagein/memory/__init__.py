"""AgentMemory and AsyncAgentMemory: the operations, the turn, background work, branches, checkpoints, erasure."""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes

if TYPE_CHECKING:
    from pagein.memory.agent_memory import AgentMemory
    from pagein.memory.async_memory import AsyncAgentMemory
    from pagein.memory.options import Options

__all__ = ["AgentMemory", "AsyncAgentMemory", "Options"]

_MODULES = {"AgentMemory": "agent_memory", "AsyncAgentMemory": "async_memory", "Options": "options"}

__getattr__ = lazy_attributes(__name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()})
