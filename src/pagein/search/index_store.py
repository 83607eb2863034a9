"""The protocols that a database implements to hold a search index. Ranking and passages are the same for every database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from pagein.search.base import Role

if TYPE_CHECKING:
    from pagein.search.vectors import VectorStore

T = TypeVar("T")

ALTERNATIVE = "|"
"""Parts the alternatives of a term that is looked for; no stored term has it."""


@dataclass(frozen=True, slots=True)
class IndexedSession:
    """A session in the index: the key that starts the ids of its passages, and its watermark.

    ``digest`` is the hash of the last indexed entry, ``next`` the ordinal of the next passage.
    """

    name: str
    key: int
    position: int
    digest: str
    next: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the index to search: ranges of ids, session keys, and roles.

    ``sessions`` None is all of the tenant's. ``ranges`` may be narrower, bounded by the time of recording.
    """

    ranges: tuple[tuple[int, int], ...]
    sessions: tuple[int, ...] | None
    roles: tuple[Role, ...] = ()


class PassageRow(NamedTuple):
    """A passage without its text. ``text_hash`` is equal for repetitions, ``mentioned_at`` a date in the text."""

    id: int
    position: int
    part: int
    role: Role
    at: float
    mentioned_at: float | None
    text_hash: int


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage with its text: ``terms`` in order, separated by spaces, and ``size``, their number."""

    row: PassageRow
    start: int
    whole: bool
    size: int
    terms: str
    text: str


class IndexReader(Protocol):
    """Reads one tenant's index within one transaction."""

    def sessions(self) -> Sequence[IndexedSession]:
        """The tenant's sessions."""
        ...

    def find_session(self, session: str) -> IndexedSession | None:
        """The indexed session of a name, or None."""
        ...

    def range_of_all(self) -> tuple[int, int]:
        """The first and the last possible id of the tenant's passages."""
        ...

    def ranges_between(self, sessions: Collection[int], early: float, late: float) -> Sequence[tuple[int, int]]:
        """Ids of passages recorded from ``early`` to ``late``: one range for each session that has any."""
        ...

    def ids_at(self, indexed: IndexedSession, positions: Collection[int]) -> Sequence[int]:
        """The ids of the passages at these positions of a session."""
        ...

    def totals(self, scope: Scope) -> tuple[int, int]:
        """The number of passages, and of their terms, in the scope's sessions and roles."""
        ...

    def sizes(self, scope: Scope) -> Mapping[int, int]:
        """The number of terms in each session of the scope, in its roles, by session key."""
        ...

    def holders(self, groups: Sequence[Sequence[str]], scope: Scope, limit: int) -> Sequence[set[int]]:
        """For each group of terms, the newest passages of the scope that contain all of them, at most ``limit``.

        Of a term with ``ALTERNATIVE`` one is enough.
        """
        ...

    def counts(self, terms: Sequence[str], scope: Scope) -> Sequence[int]:
        """The number of passages of the scope that contain each term."""
        ...

    def rows(self, ids: Collection[int]) -> Iterable[PassageRow]:
        """The rows of these ids that exist, in no order."""
        ...

    def terms(self, ids: Collection[int]) -> Iterable[tuple[int, int, str]]:
        """The id, the size and the terms of these passages."""
        ...

    def texts(self, ids: Collection[int]) -> Iterable[tuple[int, str, bool, str]]:
        """The id, the text, True for a whole text, and the terms of these passages."""
        ...


class IndexWriter(IndexReader, Protocol):
    """Writes one tenant's index within one transaction."""

    def open_session(self, session: str) -> IndexedSession:
        """The indexed session of a name, created if new and locked until the end of the transaction."""
        ...

    def note_own_calls(self, indexed: IndexedSession, calls: Collection[tuple[int, int]]) -> None:
        """Store that these calls, (position, index), are to own tools."""
        ...

    def own_calls(self, indexed: IndexedSession, action: int) -> Collection[tuple[int, int]]:
        """The stored own calls of an action."""
        ...

    def add_passages(self, indexed: IndexedSession, passages: Sequence[StoredPassage]) -> None:
        """Add passages to a session."""
        ...

    def set_watermark(self, indexed: IndexedSession, position: int, digest: str, following: int) -> None:
        """Set the watermark of a session."""
        ...

    def remove_passages(self, indexed: IndexedSession, ids: Sequence[int]) -> int:
        """Remove passages of a session from every table; return how many there were."""
        ...

    def remove_session(self, indexed: IndexedSession) -> None:
        """Remove a session with its watermark."""
        ...


class IndexStore(Protocol):
    """A database that holds the index of one tenant. It raises only errors of pagein."""

    path: str
    """The address of the database, without a password."""
    vectors: VectorStore | None
    """The vectors; None without an embedder, or where the database supports none."""
    problems: tuple[str, ...]
    """Unavailable features that were asked for, a line each."""

    def run_read(self, work: Callable[[Any], T]) -> T:
        """Run ``work`` on one consistent state of the index; it may run twice."""
        ...

    def run_write(self, work: Callable[[Any], T]) -> T:
        """Run ``work`` in a write transaction; it may run twice, of which one is committed."""
        ...

    def is_damage(self, error: Exception) -> bool:
        """True if an error of ``run_read`` or ``run_write`` means that the tables are damaged."""
        ...

    def empty(self) -> None:
        """Remove what a rebuild of this tenant's index replaces."""
        ...

    def recreate(self) -> None:
        """Drop the index of every tenant, and create it empty."""
        ...

    def close(self) -> None:
        """Release the database; a second call does nothing."""
        ...


def count_by_role(sizes: Iterable[tuple[Role, int]]) -> Mapping[Role, tuple[int, int]]:
    """The number of passages of each role, and of their terms, from pairs of role and size."""
    sums: dict[Role, tuple[int, int]] = {}
    for role, size in sizes:
        count, terms = sums.get(role, (0, 0))
        sums[role] = (count + 1, terms + size)
    return sums
