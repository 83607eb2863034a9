"""The truth: an append-only record of everything that happened, in order, for ever.

A log is one session's. An entry's position is its identity; nothing is ever edited or removed, but where somebody
has a right to be forgotten (see ``erasing``). ``append`` is compare-and-swap on the head: two writers, one winner, the
loser told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pagein.events.steps import Observation, Step

Tier = Literal["clip", "mask", "reasoning", "summary", "dropped", "floor"]
"""By which tier of the ladder something left the view."""

Slot = Literal["content", "thinking", "arguments", "observation"]


@dataclass(frozen=True, slots=True)
class Observed:
    """An observation that came after its action was recorded; ``action`` is the action's position."""

    action: int
    index: int
    observation: Observation
    late: bool = False
    """True where the call had been closed as unknown already: shown as a note, where it arrived."""


@dataclass(frozen=True, slots=True)
class Stub:
    """Text that stands in one slot of a step: its content, its thinking, call ``index``'s arguments or observation."""

    slot: Slot
    index: int
    text: str
    tier: Tier


@dataclass(frozen=True, slots=True)
class Replacement:
    """What stands for positions ``[first, last)``: a summary text for the whole range, or stubs within one step.

    ``record`` is the structured summary behind the text as JSON, where a model wrote one: later summaries are merged
    with it by code.
    """

    first: int
    last: int
    stubs: tuple[Stub, ...] = ()
    summary: str | None = None
    author: str = "extractive"
    record: str = ""


@dataclass(frozen=True, slots=True)
class Survival:
    """Of one ``kind`` of thing named in what left: how many, how many in sight still, how many in sight or by handle."""

    kind: str
    total: int
    in_sight: int
    reachable: int

    @property
    def share(self) -> float:
        """The share in sight; 1 where there was nothing to lose."""
        return self.in_sight / self.total if self.total else 1.0


@dataclass(frozen=True, slots=True)
class Compaction:
    """A page-out that happened: what left the view, what stands for it, and what it cost before and after (tokens).

    ``fidelity`` says, kind by kind, what of the steps that left is still in sight.
    """

    replacements: tuple[Replacement, ...]
    policy: str
    reason: str
    tokens_before: int
    tokens_after: int
    fidelity: tuple[Survival, ...] = ()

    @property
    def first(self) -> int:
        """The first position covered."""
        return min(each.first for each in self.replacements)

    @property
    def last(self) -> int:
        """One past the last position covered."""
        return max(each.last for each in self.replacements)


@dataclass(frozen=True, slots=True)
class Pin:
    """Text that stays verbatim in every view until it is unpinned."""

    text: str


@dataclass(frozen=True, slots=True)
class Unpin:
    """The pin recorded at ``position`` no longer holds."""

    position: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A named position; ``state`` is JSON text."""

    name: str
    state: str = "{}"


@dataclass(frozen=True, slots=True)
class Undo:
    """The compaction recorded at ``position`` no longer holds."""

    position: int


FactScope = Literal["task", "session", "project", "user", "tenant"]
"""Whom a fact is for, each within the next; only a tenant's facts are shared between its users."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact comes from: a step, by its handle in a session."""

    session: str
    handle: str


@dataclass(frozen=True, slots=True)
class FactStated:
    """A lasting statement; its position in the log of its owner is its identity.

    ``supersedes`` and ``disputes`` are positions in the same log: of the facts whose place it takes, and of older ones
    it does not agree with, which stay. ``author`` is ``user``, ``host``, ``rules`` or the name of a model. Times in
    seconds since the epoch; None: from always, for ever.
    """

    content: str
    category: str
    confidence: float
    scope: FactScope
    owner: str
    valid_from: float | None = None
    valid_until: float | None = None
    sources: tuple[Source, ...] = ()
    supersedes: tuple[int, ...] = ()
    disputes: tuple[int, ...] = ()
    author: str = "host"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FactRemoved:
    """The fact stated at ``fact`` no longer holds: a tombstone, with the reason."""

    fact: int
    reason: str
    author: str = "host"


@dataclass(frozen=True, slots=True)
class FactConfirmed:
    """The fact stated at ``fact`` was said again; ``confidence`` is the new one, None: as before."""

    fact: int
    confidence: float | None = None
    sources: tuple[Source, ...] = ()
    author: str = "host"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FactsUsed:
    """The facts stated at these positions were looked up, each once more."""

    facts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FactsExtracted:
    """Facts were taken from a session's entries before position ``upto``; they are not read for facts again."""

    session: str
    upto: int
    author: str = "rules"


@dataclass(frozen=True, slots=True)
class FactsShown:
    """What is known, as it stands at the head of the run's view from here on; the newest counts, "" is nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Erased:
    """What stood at positions ``spans``, each ``[first, last)``, is gone, and why; something without it stands there.

    ``gone`` is the number of entries where a whole session was erased: this one stands in place of them all.
    """

    spans: tuple[tuple[int, int], ...] = ()
    reason: str = ""
    gone: int = 0

    def covers(self, position: int) -> bool:
        """Whether what stood at a position was erased."""
        return any(first <= position < last for first, last in self.spans)


FactBody = FactStated | FactRemoved | FactConfirmed | FactsUsed | FactsExtracted | FactsShown | Erased
"""What is beside a run and no part of it: facts, and the note that something was erased."""

Body = Step | Observed | Compaction | Pin | Unpin | Checkpoint | Undo | FactBody
