"""Named positions with a structured state: where a run stands, written by code from the log, and where it goes on.

A checkpoint is one entry. Its state is made of the steps since the checkpoint before it and of that one's state, merged
by code, so that one costs what is new, and nothing is summarised twice; what models wrote of the run is merged in. To
resume closes the calls that were in flight as unknown: nothing is run again, and a result that comes after all is kept
once. Starting afresh is a compaction as any other: it can be undone, and what left is behind its handles.

state      a checkpoint as a value, and as JSON in its entry
making     the state of a run, made of the log
fresh      a view that starts from a checkpoint
verbs      checkpoint, resume
automatic  those that nobody asks for
"""

from typing import TYPE_CHECKING

from pagein._common.lazy import lazily
from pagein.memory.checkpoints.automatic import Automatic

if TYPE_CHECKING:
    from pagein.memory.checkpoints.build import checkpoints
    from pagein.memory.checkpoints.state import Mark, State
    from pagein.memory.operations.checkpoint import Standing, checkpoint, look, resume

__all__ = ["Automatic", "Mark", "Standing", "State", "checkpoint", "checkpoints", "look", "resume"]

__getattr__ = lazily(
    __name__,
    dict.fromkeys(("Mark", "State"), "pagein.memory.checkpoints.state")
    | dict.fromkeys(("Standing", "checkpoint", "look", "resume"), "pagein.memory.operations.checkpoint")
    | {"checkpoints": "pagein.memory.checkpoints.build"},
)
