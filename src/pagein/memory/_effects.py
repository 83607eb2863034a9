"""What a flow may ask for: flows are generators that yield effects, driven in either colour.

A flow decides; whoever drives it appends, reads and asks. A failure is raised inside the flow, where the effect was
asked for, so nothing is half applied in either colour.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pagein.events.entries import Body
from pagein.log.base import Entry, Log

if TYPE_CHECKING:
    from pagein.facts.placement import Laid
    from pagein.log.snapshots import Shelf, Snapshot  # noqa: F401
    from pagein.search.base import Hit, Query  # noqa: F401 - what an effect gives is said in quotes
    from pagein.summaries.job import Job, Outcome  # noqa: F401

T = TypeVar("T")
Flow = Generator["Effect[Any]", Any, T]


class Effect(Generic[T]):
    """Something a flow needs done; ``yield from`` it gives what it gave."""

    def __iter__(self) -> Generator[Effect[T], T, T]:
        """Hand the effect to whoever drives the flow."""
        return (yield self)


@dataclass(frozen=True)
class Append(Effect[tuple[Entry, ...]]):
    """Write the bodies durably at ``after``, all or none."""

    bodies: tuple[Body, ...]
    after: int


@dataclass(frozen=True)
class Read(Effect[tuple[Entry, ...]]):
    """The entries ``[start, stop)`` of the run's log, or of another one."""

    start: int
    stop: int | None
    log: Log | None = None


@dataclass(frozen=True)
class Head(Effect[int]):
    """The number of entries of the run's log; -1 where a branch's beginning is not there any more."""


@dataclass(frozen=True)
class Anew(Effect[bool]):
    """Go on with what is left of a run that was erased whole; False, and nothing done, where nothing says that it was."""


@dataclass(frozen=True)
class Look(Effect["Shelf | None"]):
    """The snapshot of the run's log, or of another one; None where its store keeps none."""

    log: Log | None = None


@dataclass(frozen=True)
class Keep(Effect[None]):
    """Keep a snapshot, unless they were dropped since ``dropped``."""

    snapshot: Snapshot
    dropped: int


@dataclass(frozen=True)
class Begin(Effect[None]):
    """Have the author write this job while the run goes on."""

    job: Job


@dataclass(frozen=True)
class Collect(Effect["Outcome | None"]):
    """What came of the job begun last, waited for at most ``timeout`` seconds (None: for ever); None: not yet done."""

    timeout: float | None = 0.0


@dataclass(frozen=True)
class CallOff(Effect[None]):
    """Give up the job begun last, at once: what comes of it is thrown away."""


@dataclass(frozen=True)
class Recall(Effect["tuple[Hit, ...]"]):
    """What the archive finds for the query, in this session unless ``across``; what was recorded is found at once."""

    query: Query
    across: bool = False


@dataclass(frozen=True)
class Remember(Effect[Any]):
    """A verb of the facts, as ``add``, with what it takes; gives what it gives."""

    verb: str
    given: dict[str, Any]


@dataclass(frozen=True)
class Attend(Effect[None]):
    """Have what was recorded read for facts; ``now``: whether it is time or not."""

    now: bool = False


@dataclass(frozen=True)
class Known(Effect["tuple[Laid, ...]"]):
    """What is known and matters to the context, in blocks of at most ``tokens`` tokens together.

    ``held`` stay where they stand while they are true; a new one is for a view that has come to ``position``. ``head``:
    one block for the head, which says this so far.
    """

    context: str
    tokens: int
    position: int
    held: tuple[Laid, ...] = ()
    head: str | None = None


@dataclass(frozen=True)
class Index(Effect[None]):
    """Have at most ``limit`` more entries taken into the archive, so that a later recall has less to catch up with."""

    limit: int
