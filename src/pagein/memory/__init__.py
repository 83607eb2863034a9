"""AgentMemory and AsyncAgentMemory: the operations, the turn, background work, branches, checkpoints, erasure."""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes

if TYPE_CHECKING:
    from pagein.context.costs import CostLine, ProviderCost, RunCost
    from pagein.memory.agent_memory import AgentMemory
    from pagein.memory.async_memory import AsyncAgentMemory
    from pagein.memory.background.model_rater import ModelRater
    from pagein.memory.options import Options

__all__ = ["AgentMemory", "AsyncAgentMemory", "CostLine", "ModelRater", "Options", "ProviderCost", "RunCost"]

_MODULES = {
    "AgentMemory": "pagein.memory.agent_memory", "AsyncAgentMemory": "pagein.memory.async_memory",
    "ModelRater": "pagein.memory.background.model_rater", "Options": "pagein.memory.options", **dict.fromkeys(("CostLine", "ProviderCost", "RunCost"), "pagein.context.costs"),
}  # fmt: skip

__getattr__ = lazy_attributes(__name__, _MODULES)
