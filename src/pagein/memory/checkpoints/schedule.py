"""Automatic checkpoints: the option, and what one memory has counted since its last checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

from pagein._common.validation import COUNT, check_fields
from pagein.log.base import StoredLog


@dataclass(frozen=True, slots=True)
class AutoCheckpoint:
    """Automatic checkpoints: after so many steps, after each compaction, at close.

    ``every`` is a number of steps; 0 is never. At close one is made only if anything was recorded.
    """

    every: Annotated[int, COUNT, "Steps after which a checkpoint is made. 0: never."] = 0
    compaction: Annotated[bool, "Make one after each compaction."] = False
    close: Annotated[bool, "Make one at close, if anything was recorded."] = False

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(slots=True)
class CheckpointSchedule:
    """The automatic checkpoints of one memory, and its counts since the last checkpoint."""

    automatic: AutoCheckpoint = field(default_factory=AutoCheckpoint)
    counted_to: int | None = None
    """The position up to which steps were counted; None before the log is folded."""
    steps: int = 0
    """Steps since the last checkpoint."""
    has_news: bool = False
    """True if anything was recorded since the last checkpoint, or since the memory was opened."""
    resume: bool | Literal["fresh"] = False
    """True or "fresh" if the run is resumed when it is opened."""

    @classmethod
    def from_options(cls, log: StoredLog, options: Mapping[str, Any]) -> Self:
        """The schedule for a memory's options. A log that cannot be opened again, or written to, needs none at close."""
        automatic = options.get("checkpoints", AutoCheckpoint())
        if log.readonly or not log.store.is_durable:
            automatic = replace(automatic, close=False)
        return cls(automatic, resume=options.get("resume", False))

    def reset(self) -> None:
        """Start to count from a new checkpoint."""
        self.steps, self.has_news = 0, False
