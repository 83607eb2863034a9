"""Checkpoints that nobody asks for: after so many steps, behind a compaction, at close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeVar

from pagein._common.lazy import is_of
from pagein.errors import ConfigurationError, Conflict, PageinError
from pagein.events.entries import Compaction, Observed
from pagein.events.steps import Step
from pagein.log.base import Log
from pagein.memory._effects import Flow, Read
from pagein.memory._state import Session
from pagein.memory.operations.load import heed, keep, load

T = TypeVar("T")

AT_CLOSE = 600
"""Entries that are read for a checkpoint nobody asked for: reading costs about a millisecond an entry, and closing is
not to take seconds."""


@dataclass(frozen=True, slots=True)
class Automatic:
    """When a checkpoint is made without being asked for: after so many steps, behind a compaction, at close.

    ``every`` is a number of steps; 0 is never. At close one is made only where something was recorded.
    """

    every: int = 0
    compaction: bool = False
    close: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 0:
            raise ConfigurationError(f"every is a number of steps, 0 or more, not {self.every!r}")


@dataclass(slots=True)
class Marks:
    """When the next checkpoint is due, of one memory. ``seen`` is the position up to which that was looked at."""

    automatic: Automatic = field(default_factory=Automatic)
    seen: int | None = None
    steps: int = 0
    """Steps since the last checkpoint."""
    happened: bool = False
    """True where something was recorded since the last checkpoint, or since the memory was opened."""
    resume: bool | Literal["fresh"] = False
    """What is to be done when the memory is opened."""

    @classmethod
    def of(cls, log: Log, options: Mapping[str, Any]) -> Self:
        """As a memory's options say; a log that nobody can open again, or that may not be written to, needs none at close."""
        automatic = options.get("checkpoints", Automatic())
        if is_of(log, "pagein.backends.memory", "InMemoryLog") or getattr(log, "readonly", False):
            automatic = replace(automatic, close=False)
        return cls(automatic, resume=options.get("resume", False))


def begun(marks: Marks, session: Session) -> Flow[None]:
    """Fold the log, and go on as the memory was told to."""
    yield from load(session)
    if marks.resume:
        from pagein.memory.operations.checkpoint import going_on  # noqa: PLC0415 - loads where a run is gone on with

        yield from going_on(session, fresh=marks.resume == "fresh")
    marks.seen = session.fold.head


def followed(marks: Marks, session: Session, flow: Flow[T]) -> Flow[T]:
    """The flow, and behind it the checkpoint that is due; one that cannot be written is told once, and fails nothing."""
    if marks.seen is not None:  # else the log is about to be folded
        yield from heed(session)
    given = yield from flow
    every, behind = marks.automatic.every, marks.automatic.compaction
    if (every or behind) and marks.seen not in (None, session.fold.head):
        compacted = yield from _look(marks, session)
        if (every and marks.steps >= every) or (behind and compacted):
            from pagein.memory.checkpoints.state import AUTOMATIC  # noqa: PLC0415 - loads where a checkpoint is due

            yield from _tried(marks, session, AUTOMATIC)
    yield from keep(session)
    return given


def closing(marks: Marks, session: Session) -> Flow[None]:
    """The checkpoint at close, where something was recorded since the last one, and a snapshot for the next opening.

    What fails here keeps nothing open.
    """
    if marks.automatic.close and marks.seen is not None:
        try:
            yield from _look(marks, session)
        except PageinError:
            return
        if marks.happened:
            from pagein.memory.checkpoints.state import CLOSED  # noqa: PLC0415 - loads where a checkpoint is due

            yield from _tried(marks, session, CLOSED)
    yield from keep(session, closing=True)


def _look(marks: Marks, session: Session) -> Flow[bool]:
    """Count what is new; True where a compaction is among it."""
    from pagein.memory.checkpoints.state import as_mark  # noqa: PLC0415 - loads where checkpoints are made unasked

    entries = yield from Read(marks.seen or 0, session.fold.head)
    marks.seen = session.fold.head
    for each in entries:
        if as_mark(each) is not None:
            marks.steps, marks.happened = 0, False
        elif isinstance(each.body, Step | Observed):
            marks.happened = True
            marks.steps += isinstance(each.body, Step)
    return any(isinstance(each.body, Compaction) for each in entries)


def _tried(marks: Marks, session: Session, name: str) -> Flow[None]:
    from pagein.memory.checkpoints.build import made  # noqa: PLC0415 - loads where a checkpoint is due

    marks.steps, marks.happened = 0, False
    try:
        yield from made(session, name, most=AT_CLOSE)
    except Conflict:
        pass  # another writer goes on, and makes its own
    except PageinError as error:
        kind = f"checkpoint {type(error).__name__}"
        if kind not in session.failing:
            session.failing.add(kind)
            session.problems.append(f"no checkpoint was made: {error}")
            import logging  # noqa: PLC0415 - loads where something went wrong

            logging.getLogger("pagein").warning("no checkpoint was made: %s", error)
    marks.seen = session.fold.head
