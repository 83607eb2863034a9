"""pagein: demand paging for an LLM agent's context.

A run is recorded whole. The model sees a view of that record, kept under a token budget; steps that left the view come
back by their handles. ``docs/architecture.md`` names the packages and the ways through them.
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes as _lazy_attributes
from pagein._common.version import __version__ as __version__
from pagein.context.compaction.base import Plan, Policy
from pagein.context.view.view import Report, View
from pagein.errors import (
    BudgetError,
    ConfigurationError,
    Conflict,
    FormatError,
    Illegal,
    LogBusy,
    LogClosed,
    LogEncrypted,
    LogErased,
    LogError,
    LogTooNew,
    LogUncertain,
    LogUnreachable,
    LogUnreadable,
    LogUnwritable,
    NothingToUndo,
    OverBudget,
    PageinError,
    ProtocolError,
    UnknownBranch,
    UnknownCheckpoint,
    UnknownHandle,
)  # fmt: skip
from pagein.events.callbacks import CallbackRegistry
from pagein.events.entries import Compaction
from pagein.events.replay import replay, truncate_content
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Image,
    MemoryStep,
    Observation,
    Opaque,
    PlanningStep,
    Step,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
    Timing,
    ToolCall,
    Usage,
)  # fmt: skip
from pagein.log.base import Entry, Log, Problem, Verification
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.branches import Branch, Comparison
from pagein.memory.checkpoints import AutoCheckpoint
from pagein.memory.operations.history import Expansion
from pagein.memory.operations.record import RecordResult
from pagein.tokens import Budget, TokenCounter

if TYPE_CHECKING:
    from pagein.memory.async_memory import AsyncAgentMemory
    from pagein.memory.checkpoints import CheckpointInfo, RunStatus
    from pagein.memory.erasure import Erasure

__all__ = [
    "ActionStep", "AgentMemory", "AsyncAgentMemory", "AutoCheckpoint", "Branch", "Budget", "BudgetError",
    "CallbackRegistry", "CheckpointInfo", "Compaction", "Comparison", "ConfigurationError", "Conflict",
    "Entry", "Erasure", "Expansion", "FinalAnswerStep", "FormatError", "Illegal", "Image", "Log",
    "LogBusy", "LogClosed", "LogEncrypted", "LogErased", "LogError", "LogTooNew", "LogUncertain",
    "LogUnreachable", "LogUnreadable", "LogUnwritable", "MemoryStep", "NothingToUndo", "Observation",
    "Opaque", "OverBudget", "PageinError", "Plan", "PlanningStep", "Policy", "Problem", "ProtocolError",
    "RecordResult", "Report", "RunStatus", "Step", "SummaryStep", "SystemPromptStep", "TaskStep", "Text",
    "Timing", "TokenCounter", "ToolCall", "UnknownBranch", "UnknownCheckpoint", "UnknownHandle", "Usage",
    "Verification", "View", "replay", "truncate_content",
]  # fmt: skip

# Importing asyncio alone takes as long as all the rest.
__getattr__ = _lazy_attributes(
    __name__,
    {"AsyncAgentMemory": "pagein.memory.async_memory", "Erasure": "pagein.memory.erasure"}
    | dict.fromkeys(("CheckpointInfo", "RunStatus"), "pagein.memory.checkpoints"),
)
