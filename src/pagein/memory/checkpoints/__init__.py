"""Checkpoints: named positions in a run, each with a structured state from which the run can go on.

A checkpoint is one entry. Code makes its state from the entries since the checkpoint before it and that one's state, with
the summaries that models wrote; so a checkpoint costs what is new, and nothing is summarized twice. To resume closes the
calls in flight as unknown: nothing is run again, and a result that comes after all is kept once. A fresh start is a
compaction: it can be undone, and its steps stay behind their handles.

state     a checkpoint as a value, and as JSON in its entry
build     the state of a run
schedule  automatic checkpoints
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazy_attributes
from pagein.memory.checkpoints.schedule import AutoCheckpoint

if TYPE_CHECKING:
    from pagein.memory.checkpoints.build import checkpoints
    from pagein.memory.checkpoints.state import CheckpointInfo, CheckpointState
    from pagein.memory.operations.checkpoint import RunStatus, checkpoint, resume, status

__all__ = [
    "AutoCheckpoint", "CheckpointInfo", "CheckpointState", "RunStatus", "checkpoint", "checkpoints", "resume",
    "status",
]  # fmt: skip

__getattr__ = lazy_attributes(
    __name__,
    dict.fromkeys(("CheckpointInfo", "CheckpointState"), "pagein.memory.checkpoints.state")
    | dict.fromkeys(("RunStatus", "checkpoint", "status", "resume"), "pagein.memory.operations.checkpoint")
    | {"checkpoints": "pagein.memory.checkpoints.build"},
)
