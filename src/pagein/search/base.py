"""Queries, hits, snippets, and the protocol of embedders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pagein._common.validation import is_number, is_whole_number
from pagein.errors import ConfigurationError

Role = Literal["system", "user", "assistant", "tool", "note"]
"""The author of a text. ``assistant`` covers answers, plans and tool calls; ``note`` is a pin."""

ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool", "note")


@dataclass(frozen=True, slots=True)
class Query:
    """A search: the text, and filters. Without ``sessions`` all of the tenant's sessions are searched.

    ``since`` and ``until`` bound the time of recording, in seconds since the epoch; ``role`` the author. ``exclude`` are
    positions of the index's own session that are left out, such as those in view; those in ``asking`` also raise nothing
    beside them, as the question that is asked would. ``now`` is the time that "yesterday" counts from; without it
    relative dates are ignored.

    Raises ConfigurationError for a limit below 1, a time that is no number or an unknown role.
    """

    text: str
    limit: int = 10
    since: float | None = None
    until: float | None = None
    role: Role | tuple[Role, ...] | None = None
    sessions: tuple[str, ...] = ()
    exclude: frozenset[int] = frozenset()
    asking: frozenset[int] = frozenset()
    now: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ConfigurationError(f"a query is text, not {type(self.text).__name__}")
        if not is_whole_number(self.limit) or self.limit < 1:
            raise ConfigurationError(f"limit is a number of hits, 1 or more, not {self.limit!r}")
        if isinstance(self.sessions, str):
            raise ConfigurationError(f"sessions is a tuple of names, not {self.sessions!r}")
        for name, bound in (("since", self.since), ("until", self.until)):
            if bound is not None and not is_number(bound):
                raise ConfigurationError(f"{name} is a time in seconds since the epoch, not {bound!r}")
        if not isinstance(self.role, str | tuple | None):
            raise ConfigurationError(f"role is one or a tuple of {', '.join(ROLES)}, not {self.role!r}")
        for role in self.roles:
            if role not in ROLES:
                raise ConfigurationError(f"no role is called {role!r}: use one of {', '.join(ROLES)}")

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles to search; empty for all."""
        if self.role is None:
            return ()
        return (self.role,) if isinstance(self.role, str) else self.role


@dataclass(frozen=True, slots=True)
class Hit:
    """A recalled passage. ``handle`` expands to the whole text it is from, in its ``session``.

    ``score`` is comparable within one search only. ``scores`` are its parts before they are combined: ``words`` and
    ``meaning``, each about 1 for the best, and the factors ``recency``, ``confidence`` and ``time``. ``why`` explains the
    match in a line. ``at`` is the time of recording. ``whole`` is False where ``text`` is a part of a longer text.
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
    scores: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Snippet:
    """The lines of a hit that are shown, and their tokens."""

    handle: str
    text: str
    tokens: int
    hit: Hit


class Embedder(Protocol):
    """Turns texts into vectors of one length. Vectors of another ``name`` or ``dimension`` are never compared."""

    @property
    def name(self) -> str:
        """The model's name; the same name means the same vectors."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | Any:
        """One vector for each text, as lists or a NumPy array. May raise anything; the search then uses words alone."""
        ...
