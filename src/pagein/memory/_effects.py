"""The effects that the operations of a memory yield. ``MemoryRuntime.perform`` performs them all.

An operation decides, and its effects append, read and wait. An error is raised inside the operation, where it yielded
the effect, so an operation that fails leaves nothing half applied.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pagein._common.flows import Effect
from pagein.events.entries import Body
from pagein.log.base import Entry, Log

if TYPE_CHECKING:
    from pagein.memory._runtime import MemoryRuntime
    from pagein.search.base import Hit, Query  # noqa: F401 - results are named in quotes
    from pagein.summaries.job import JobOutcome, SummaryJob  # noqa: F401

T = TypeVar("T")


@dataclass(frozen=True)
class Append(Effect[tuple[Entry, ...]]):
    """Append the bodies durably at position ``after``, all or none. Raises Conflict."""

    bodies: tuple[Body, ...]
    after: int


@dataclass(frozen=True)
class Read(Effect[tuple[Entry, ...]]):
    """Read the entries ``[start, stop)`` of the run's log, or of another log."""

    start: int
    stop: int | None
    log: Log | None = None


@dataclass(frozen=True)
class BeginJob(Effect[None]):
    """Have the model write summaries while the run goes on."""

    job: SummaryJob


@dataclass(frozen=True)
class CollectJob(Effect["JobOutcome | None"]):
    """Wait at most ``timeout`` seconds (None: as long as it takes) for the job; None while it is at work."""

    timeout: float | None = 0.0


@dataclass(frozen=True)
class Recall(Effect["tuple[Hit, ...]"]):
    """Search what was recorded, in this session or ``across`` all sessions of the tenant."""

    query: Query
    across: bool = False


@dataclass(frozen=True)
class Call(Effect[T]):
    """Call a function with the runtime; for what one operation alone needs."""

    function: Callable[[MemoryRuntime], T]


AnyEffect: TypeAlias = Append | Read | BeginJob | CollectJob | Recall | Call[Any]

Flow: TypeAlias = Generator[AnyEffect, Any, T]
