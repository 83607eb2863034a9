"""The contract of a log: append-only entries of one session, each known by its position.

Nothing is ever edited or removed, except by erasure (see ``erasure``). ``append`` is compare-and-swap on the head: of two
writers one wins, and the other raises Conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pagein.events.entries import Body


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the log. ``at`` is seconds since the epoch, ``digest`` the hash of this body and all before it.

    ``erased`` is the position of the entry that says so, where ``body`` is what was left of another; the digest is
    still that one's.
    """

    position: int
    at: float
    body: Body
    digest: str
    erased: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing ``verify`` found wrong, and where (None: the whole log)."""

    position: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify`` found: ``ok`` when every hash was derived again and agrees.

    ``erased`` is how many of the entries were erased, wholly or in part, and are proven to stand where they stood.
    """

    entries: int
    problems: tuple[Problem, ...] = ()
    erased: int = 0

    @property
    def ok(self) -> bool:
        """True when nothing is wrong."""
        return not self.problems


class Log(Protocol):
    """The append-only record of one session. Every method raises a ``LogError``, never a driver's error."""

    def head(self) -> int:
        """The number of entries, which is the next position."""
        ...

    def append(self, bodies: Sequence[Body], *, after: int, at: float) -> tuple[Entry, ...]:
        """Write all bodies durably at positions ``after`` and on, or none of them.

        Raises Conflict when the head is no longer ``after``.
        """
        ...

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries ``[start, stop)`` in order, each as it was recorded, byte for byte."""
        ...

    def verify(self) -> Verification:
        """Derive every hash again, and say what is wrong and where. Never raises for damage it can name."""
        ...

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        ...
