"""pagein: demand paging for an LLM agent's context.

A run is recorded whole, in order, for ever; what the model sees is a view of that record, kept under a token budget;
what left the view comes back by its handle. The house reads top to bottom as the data flows, and a module imports
only from those above it:

errors       every error of ours, drawn as a tree
loading      names of a room that load where they are used
steps        what happened: the closed union of steps and their parts
callbacks    what is called when a step is there
showing      a run for a person to read
driving      generators that say what they need done, run in either colour
lexing       what in a text names something
messages     what a request is made of, before any provider's spelling
spelling     what a call is spelled as where a provider does not take it as it is
protocol     what may follow what, and how an answer finds its call
tokens       what it costs
log          the truth: append-only, in memory, in SQLite or in PostgreSQL
view         what the model sees: fold, cuts, layout, report
formats      how it is said to a provider, and whether the provider would take it
compaction   what leaves: one policy a file, the ladder that composes them, the floor beneath
models       what writes summaries and facts: official SDKs behind one small protocol, and patience with them
summaries    what stands for what left: the structured summary, its text, its checks, its prompts
archive      what was recorded, found again by words and by meaning
facts        what outlives a run: whose it is, where it came from, what of it matters now, the block that shows it
recording    from what a host hands over to what the log takes
writing      summaries that a model writes while the run goes on
recalling    what left and comes back by itself
effects      what a flow may ask for
session      what is held of one log between two calls
snapshots    what is held of a log, written down so that opening it is quick
history      the steps as they were recorded, read back
knowing      what is known, where it stands in a view
paging       what shows and what leaves
flows        the other verbs, written once
checkpoints  named positions with a state: where a run stands, and how it goes on
branches     forks of a run: where it was forked, and on which it goes on
expansion    what left, given back whole
options      what a memory is told when it is opened
config       everything that can be set, in one file, and the environment over it
background   one job at a time, in a thread or a task
library      the archive of one memory
knowledge    the facts of one memory
erasing      who has a right to be forgotten: what goes, wherever it was repeated, and what stays in its place
tools        what a model can do with its memory
verbs        verbs of both colours that need nothing but a turn
memory       AgentMemory, and amemory its async twin
exporting    a session as one file, and back
worker       background work in a process of its own: each job claimed by one worker, and by another where that dies
integrations  other people's loops: one line in each
bench        the measurements a user can repeat
testing      conformance suites and the stateful machine, shipped
cli          pagein demo | replay | log | view | expand | verify | export | import | bench
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazily as _lazily
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
    LogErased,
    LogError,
    LogSealed,
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
)
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
    ToolCall,
    Usage,
)
from pagein.log.base import Entry, Log, Problem, Verification
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.branches import Branch, Comparison
from pagein.memory.checkpoints import Automatic
from pagein.memory.operations.expand import Expansion
from pagein.memory.operations.load import Recorded
from pagein.tokens import Budget, TokenCounter

if TYPE_CHECKING:
    from pagein.memory.async_memory import AsyncAgentMemory
    from pagein.memory.checkpoints import Mark, Standing
    from pagein.memory.erasure import Erasure

__all__ = [
    "ActionStep",
    "AgentMemory",
    "AsyncAgentMemory",
    "Automatic",
    "Branch",
    "Budget",
    "BudgetError",
    "CallbackRegistry",
    "Compaction",
    "Comparison",
    "ConfigurationError",
    "Conflict",
    "Entry",
    "Erasure",
    "Expansion",
    "FinalAnswerStep",
    "FormatError",
    "Illegal",
    "Image",
    "Log",
    "LogBusy",
    "LogClosed",
    "LogErased",
    "LogError",
    "LogSealed",
    "LogTooNew",
    "LogUncertain",
    "LogUnreachable",
    "LogUnreadable",
    "LogUnwritable",
    "Mark",
    "MemoryStep",
    "NothingToUndo",
    "Observation",
    "Opaque",
    "OverBudget",
    "PageinError",
    "Plan",
    "PlanningStep",
    "Policy",
    "Problem",
    "ProtocolError",
    "Recorded",
    "Report",
    "Standing",
    "Step",
    "SummaryStep",
    "SystemPromptStep",
    "TaskStep",
    "Text",
    "TokenCounter",
    "ToolCall",
    "UnknownBranch",
    "UnknownCheckpoint",
    "UnknownHandle",
    "Usage",
    "Verification",
    "View",
    "replay",
    "truncate_content",
]

# Importing asyncio alone takes as long as all the rest.
__getattr__ = _lazily(
    __name__,
    {"AsyncAgentMemory": "pagein.memory.async_memory", "Erasure": "pagein.memory.erasure"}
    | dict.fromkeys(("Mark", "Standing"), "pagein.memory.checkpoints"),
)
