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

from pagein.checkpoints.automatic import Automatic
from pagein.loading import lazily

if TYPE_CHECKING:
    from pagein.checkpoints.making import checkpoints
    from pagein.checkpoints.state import Mark, State
    from pagein.checkpoints.verbs import Standing, checkpoint, look, resume

__all__ = ["Automatic", "Mark", "Standing", "State", "checkpoint", "checkpoints", "look", "resume"]

__getattr__ = lazily(
    __name__,
    dict.fromkeys(("Mark", "State"), "pagein.checkpoints.state")
    | dict.fromkeys(("Standing", "checkpoint", "look", "resume"), "pagein.checkpoints.verbs")
    | {"checkpoints": "pagein.checkpoints.making"},
)
