"""What an archive asks of the database that its index lies in. How it ranks, and what it keeps, is the same in each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from pagein.search.base import Role

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Indexed:
    """A session as the index knows it: what leads the ids of its passages, and how far it is indexed.

    ``digest`` is that of the last entry taken in, ``next`` the ordinal of the next passage.
    """

    name: str
    key: int
    position: int
    digest: str
    next: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Where is looked: ranges of ids, the sessions by what leads their ids, and the roles that may be found.

    ``sessions`` None is all of the tenant's. The ranges may be narrower: no more than what was recorded in time.
    """

    ranges: tuple[tuple[int, int], ...]
    sessions: tuple[int, ...] | None
    roles: tuple[Role, ...] = ()


class Row(NamedTuple):
    """A passage without its text. ``same`` is equal for passages that say the same. Made by the hundred for a search."""

    id: int
    position: int
    part: int
    role: Role
    at: float
    said: float | None
    same: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A passage as it is kept: ``size`` its terms, ``terms`` all of them in order, parted by spaces."""

    row: Row
    start: int
    whole: bool
    size: int
    terms: str
    text: str


class Reading(Protocol):
    """What a search reads of one tenant's index, within one state of it."""

    def every(self) -> Sequence[Indexed]:
        """The tenant's sessions."""
        ...

    def indexed(self, session: str) -> Indexed | None:
        """What the index knows of a session, or None."""
        ...

    def range_of_all(self) -> tuple[int, int]:
        """The first and the last id that any passage of the tenant may have."""
        ...

    def within(self, sessions: Collection[int], early: float, late: float) -> Sequence[tuple[int, int]]:
        """The ids of what was recorded from ``early`` to ``late``: a range for each of the sessions that has any."""
        ...

    def places(self, known: Indexed, positions: Collection[int]) -> Sequence[int]:
        """The ids of the passages that stand at these positions of a session."""
        ...

    def totals(self, scope: Scope) -> tuple[int, int]:
        """How many passages, and terms in them, the scope's sessions hold in its roles."""
        ...

    def sizes(self, scope: Scope) -> Mapping[int, int]:
        """How many terms each session of the scope holds in its roles, by what leads its ids."""
        ...

    def holders(self, groups: Sequence[Sequence[str]], scope: Scope, most: int) -> Sequence[set[int]]:
        """For each group of terms the passages of the scope that hold all of them: the newest, at most ``most``."""
        ...

    def counts(self, terms: Sequence[str], scope: Scope) -> Sequence[int]:
        """How many passages of the scope hold each of the terms."""
        ...

    def rows(self, ids: Collection[int]) -> Iterable[Row]:
        """These passages, those that are there, in no order."""
        ...

    def terms(self, ids: Collection[int]) -> Iterable[tuple[int, int, str]]:
        """The id, the size and the terms of these."""
        ...

    def texts(self, ids: Collection[int]) -> Iterable[tuple[int, str, bool, str]]:
        """The id, the text, whether it is a whole one, and the terms of these."""
        ...


class Writing(Reading, Protocol):
    """What is written to one tenant's index, all of it or nothing."""

    def begun(self, session: str) -> Indexed:
        """What the index knows of a session, made where it is new; nobody else writes to it until the end of this."""
        ...

    def note_own(self, known: Indexed, calls: Collection[tuple[int, int]]) -> None:
        """Keep in mind that these calls, (position, index), are to tools of our own."""
        ...

    def own(self, known: Indexed, action: int) -> Collection[tuple[int, int]]:
        """Those of an action."""
        ...

    def keep(self, known: Indexed, found: Sequence[Kept]) -> None:
        """Take in passages of a session."""
        ...

    def move(self, known: Indexed, position: int, digest: str, following: int) -> None:
        """Say how far a session is indexed."""
        ...

    def remove(self, known: Indexed, ids: Sequence[int]) -> int:
        """Take passages of a session out of everything; how many there were."""
        ...

    def remove_session(self, known: Indexed) -> None:
        """Take a whole session out, and how far it was indexed."""
        ...


class Meanings(Protocol):
    """The similarities of passages to one query."""

    def look(self, reading: Any, scope: Scope) -> None:
        """Take in what is there now within the scope."""
        ...

    def nearest(self, most: int) -> Sequence[int]:
        """The ids of the passages nearest to it."""
        ...

    def of(self, ids: Collection[int]) -> Mapping[int, float]:
        """How near these are, those that have a vector."""
        ...


class VectorStore(Protocol):
    """Where vectors of one embedder lie. What is read and written goes through the caller's reading or writing."""

    def pending(self, reading: Any, limit: int) -> tuple[Sequence[tuple[int, str]], int]:
        """At most ``limit`` passages without a vector, as (id, text), newest first; and how many there are."""
        ...

    def made(self, texts: Sequence[str]) -> Any:
        """The texts' vectors, each of length 1."""
        ...

    def keep(self, writing: Any, ids: Sequence[int], made: Any) -> None:
        """Store vectors, those of passages that are gone not."""
        ...

    def query(self, text: str) -> Meanings | None:
        """What is near to this text; None where the embedder fails."""
        ...


class Store(Protocol):
    """A database that holds the index of one tenant. Its errors are ours."""

    @property
    def path(self) -> str:
        """Where it is, without a password."""
        ...

    @property
    def vectors(self) -> VectorStore | None:
        """Where vectors go; None without an embedder, or where the database holds none."""
        ...

    def read(self, work: Callable[[Any], T]) -> T:
        """What the work reads, within one state of the database; it may be done twice."""
        ...

    def write(self, work: Callable[[Any], T]) -> T:
        """What the work writes, all or nothing; it may be done twice, the first time for nothing."""
        ...

    def is_damage(self, error: Exception) -> bool:
        """Whether an error of ``read`` or ``write`` says that the tables are not what they should be."""
        ...

    def empty(self) -> None:
        """Take everything out that a rebuild of this tenant's index begins with."""
        ...

    def make_anew(self) -> None:
        """Drop the index, of every tenant, and make it empty."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What the database cannot do that was asked of it, each in a line."""
        ...

    def close(self) -> None:
        """Release it; a second call does nothing."""
        ...


def grown(found: Iterable[tuple[Role, int]]) -> Mapping[Role, tuple[int, int]]:
    """How many passages of each role there are, and terms in them; each is given by its role and size."""
    sums: dict[Role, tuple[int, int]] = {}
    for role, size in found:
        count, before = sums.get(role, (0, 0))
        sums[role] = (count + 1, before + size)
    return sums
