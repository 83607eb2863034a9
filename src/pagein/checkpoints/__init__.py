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

from pagein.checkpoints.automatic import Automatic
from pagein.checkpoints.state import Mark, State
from pagein.checkpoints.verbs import Standing

__all__ = ["Automatic", "Mark", "Standing", "State"]
