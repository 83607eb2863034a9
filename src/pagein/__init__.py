"""pagein: demand paging for an LLM agent's context.

A run is recorded whole. The model sees a view of that record, kept under a token budget; steps that left the view come
back by their handles. ``docs/architecture.md`` names the packages and the ways through them.
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes as _lazy_attributes
from pagein._common.version import __version__ as __version__

if TYPE_CHECKING:
    from pagein.context.compaction.base import Plan, Policy
    from pagein.context.tool_rules import Tools
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
        UnknownRequest,
    )
    from pagein.events.callbacks import CallbackRegistry, NearLimit, PrefixBreak
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
    )
    from pagein.log.base import Entry, Log, Problem, Verification
    from pagein.memory.agent_memory import AgentMemory
    from pagein.memory.async_memory import AsyncAgentMemory
    from pagein.memory.branches import Branch, Comparison
    from pagein.memory.checkpoints import AutoCheckpoint, CheckpointInfo, RunStatus
    from pagein.memory.erasure import Erasure
    from pagein.memory.operations.history import Expansion
    from pagein.memory.operations.record import RecordResult
    from pagein.tokens import Budget, TokenCounter

__all__ = [
    "ActionStep", "AgentMemory", "AsyncAgentMemory", "AutoCheckpoint", "Branch", "Budget", "BudgetError",
    "CallbackRegistry", "CheckpointInfo", "Compaction", "Comparison", "ConfigurationError", "Conflict",
    "Entry", "Erasure", "Expansion", "FinalAnswerStep", "FormatError", "Illegal", "Image", "Log",
    "LogBusy", "LogClosed", "LogEncrypted", "LogErased", "LogError", "LogTooNew", "LogUncertain",
    "LogUnreachable", "LogUnreadable", "LogUnwritable", "MemoryStep", "NearLimit", "NothingToUndo", "Observation",
    "Opaque", "OverBudget", "PageinError", "Plan", "PlanningStep", "Policy", "PrefixBreak", "Problem", "ProtocolError",
    "RecordResult", "Report", "RunStatus", "Step", "SummaryStep", "SystemPromptStep", "TaskStep", "Text",
    "Timing", "TokenCounter", "ToolCall", "Tools", "UnknownBranch", "UnknownCheckpoint", "UnknownHandle", "UnknownRequest",
    "Usage", "Verification", "View", "replay", "truncate_content",
]  # fmt: skip

# Names load when they are first used, so that ``pagein --version`` and a server's start wait for nothing.
_MODULES = {
    "pagein.context.compaction.base": ("Plan", "Policy"),
    "pagein.context.tool_rules": ("Tools",),
    "pagein.context.view.view": ("Report", "View"),
    "pagein.errors": ("BudgetError", "ConfigurationError", "Conflict", "FormatError", "Illegal", "LogBusy", "LogClosed", "LogEncrypted", "LogErased", "LogError", "LogTooNew", "LogUncertain", "LogUnreachable", "LogUnreadable", "LogUnwritable", "NothingToUndo", "OverBudget", "PageinError", "ProtocolError", "UnknownBranch", "UnknownCheckpoint", "UnknownHandle", "UnknownRequest"),
    "pagein.events.callbacks": ("CallbackRegistry", "NearLimit", "PrefixBreak"),
    "pagein.events.entries": ("Compaction",),
    "pagein.events.replay": ("replay", "truncate_content"),
    "pagein.events.steps": ("ActionStep", "FinalAnswerStep", "Image", "MemoryStep", "Observation", "Opaque", "PlanningStep", "Step", "SummaryStep", "SystemPromptStep", "TaskStep", "Text", "Timing", "ToolCall", "Usage"),
    "pagein.log.base": ("Entry", "Log", "Problem", "Verification"),
    "pagein.memory.agent_memory": ("AgentMemory",),
    "pagein.memory.async_memory": ("AsyncAgentMemory",),
    "pagein.memory.branches": ("Branch", "Comparison"),
    "pagein.memory.checkpoints": ("AutoCheckpoint", "CheckpointInfo", "RunStatus"),
    "pagein.memory.erasure": ("Erasure",),
    "pagein.memory.operations.history": ("Expansion",),
    "pagein.memory.operations.record": ("RecordResult",),
    "pagein.tokens": ("Budget", "TokenCounter"),
}  # fmt: skip
__getattr__ = _lazy_attributes(__name__, {name: module for module, names in _MODULES.items() for name in names})
