"""What an archive takes and gives: a query, hits, snippets; and who turns texts into vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pagein.errors import ConfigurationError
from pagein.log.base import Entry, Log

Role = Literal["system", "user", "assistant", "tool", "note"]
"""Who said it: ``assistant`` covers the model's words, plans, answers and the calls it made; ``note`` is a pin."""

ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool", "note")


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, and where: in ``sessions``, or in all of the tenant's where none is named.

    ``since`` and ``until`` bound when it was recorded, in seconds since the epoch; ``role`` who said it. ``exclude``
    are positions of the archive's own session that may not be found, as what is in sight already. ``now`` is what
    "yesterday" counts from; without it such words mean nothing.

    Raises ConfigurationError for a limit below 1 or a role that does not exist.
    """

    text: str
    limit: int = 10
    since: float | None = None
    until: float | None = None
    role: Role | tuple[Role, ...] | None = None
    sessions: tuple[str, ...] = ()
    exclude: frozenset[int] = frozenset()
    now: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ConfigurationError(f"a query is text, not {type(self.text).__name__}")
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < 1:
            raise ConfigurationError(f"limit is a number of hits, 1 or more, not {self.limit!r}")
        if isinstance(self.sessions, str):
            raise ConfigurationError(f"sessions is a tuple of names, not {self.sessions!r}")
        for role in self.roles:
            if role not in ROLES:
                raise ConfigurationError(f"no role is called {role!r}: use one of {', '.join(ROLES)}")

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that may be found; none is all."""
        if self.role is None:
            return ()
        return (self.role,) if isinstance(self.role, str) else self.role


@dataclass(frozen=True, slots=True)
class Hit:
    """One recalled span: ``handle`` brings back the whole of what ``text`` is from, in its ``session``.

    ``score`` is comparable within one search only. ``arms`` holds what each arm gave before fusion: ``words`` and
    ``meaning``, each about 1 for the best, and ``recency``, ``confidence``, ``time`` as factors. ``why`` says it in a
    line. ``at`` is when it was recorded. ``whole`` is False where ``text`` is a passage of something longer.
    """

    handle: str
    text: str
    score: float
    why: str
    session: str
    position: int
    at: float
    role: Role
    whole: bool = True
    arms: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Snippet:
    """What is shown of a hit: its lines nearest the query, and what they cost in tokens."""

    handle: str
    text: str
    tokens: int
    hit: Hit


class Embedder(Protocol):
    """Turns texts into vectors of one length. Vectors of another ``name`` or ``dimension`` are never compared."""

    @property
    def name(self) -> str:
        """Which model, for ever the same vectors."""
        ...

    @property
    def dimension(self) -> int:
        """How long a vector is."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | Any:
        """One vector for each text, as lists or as a NumPy array. May raise anything; a search goes on without."""
        ...


class Archive(Protocol):
    """The index over every step of a tenant's sessions. Derived: it can be thrown away and built again from the logs.

    Never another tenant's. Every method raises a ``LogError`` or ``ConfigurationError``, never a driver's error.
    """

    def catch_up(self, log: Log, *, session: str | None = None) -> int:
        """Take in what the session's log holds beyond the watermark; the number of entries that were new."""
        ...

    def index(self, entries: Iterable[Entry], *, session: str | None = None) -> int:
        """Take in entries in order, those below the watermark not again; the number that were new."""
        ...

    def watermark(self, session: str | None = None) -> int:
        """The position up to which the session is indexed."""
        ...

    def search(self, query: Query | str) -> tuple[Hit, ...]:
        """The best hits, best first, at most ``limit``. Any text is data: no operator, no quote means anything."""
        ...

    def sessions(self, query: Query | str) -> tuple[tuple[str, float], ...]:
        """The sessions in which it may have been, with their scores, best first, at most ``limit``."""
        ...

    def forget(self, positions: Iterable[int], *, session: str | None = None) -> int:
        """Take what stands at these positions out of the index; the number of passages that went."""
        ...

    def clear(self, session: str | None = None) -> None:
        """Drop the index of one session, so that the next ``catch_up`` builds it anew."""
        ...

    def embed_pending(self, limit: int = 64) -> int:
        """Embed at most ``limit`` passages that have no vector yet; how many there were still to do after."""
        ...

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        ...
