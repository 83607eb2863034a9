"""The bodies of log entries: compactions, pins, checkpoints, facts, erasures.

An entry's position in its session's log is its identity. Entries are only appended; an erasure is the one exception.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pagein.events.steps import Content, Observation, Part, Step

Tier = Literal["clip", "mask", "reasoning", "summary", "dropped", "floor"]
"""The tier of compaction that removed a text from the view."""

Slot = Literal["content", "thinking", "arguments", "observation"]

IN_TEXT = -1
"""Index of the content of a result that came as a message."""


@dataclass(frozen=True, slots=True)
class Observed:
    """An observation that came after its action was recorded; ``action`` is the action's position."""

    action: int
    index: int
    observation: Observation
    late: bool = False
    """True where the call was already closed as unknown. The observation then shows as a note at its own position."""


@dataclass(frozen=True, slots=True)
class Stub:
    """Replacement text for one slot of a step: its content, thinking, or the arguments or observation of call ``index``.

    ``parts`` are what an application's list has in the slot, where that is not text alone.
    """

    slot: Slot
    index: int
    text: str
    tier: Tier
    parts: tuple[Part, ...] = ()

    @property
    def content(self) -> Content:
        """The content of the slot."""
        return self.parts or self.text

    @property
    def is_of_result(self) -> bool:
        """True for a result in a list's words."""
        return self.slot == "observation" or self.index == IN_TEXT


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replacement of positions ``[first, last)``: a summary text for the whole range, or stubs within one step.

    ``record`` is the structured summary behind the text as JSON, where a model wrote one. Code merges later summaries
    with it.
    """

    first: int
    last: int
    stubs: tuple[Stub, ...] = ()
    summary: str | None = None
    author: str = "extractive"
    record: str = ""


@dataclass(frozen=True, slots=True)
class RetentionScore:
    """Counts of one ``kind`` of item in removed steps: all, those still in the view, those in the view or behind a handle."""

    kind: str
    total: int
    in_sight: int
    reachable: int

    @property
    def share(self) -> float:
        """The share still in the view; 1 where there were no items."""
        return self.in_sight / self.total if self.total else 1.0


EDIT, REMOVAL = "edit", "remove"
"""Policies of a compaction by which an application changed or removed a step by hand."""

RELISTED = "list"
"""Policy of a compaction by which an application's list shortened or took back what it had handed over before."""

REWRITTEN = "rewritten"
"""Policy of a compaction by which an application's list has other words in the place of a message or a result, as it had before.

The replacement of a result behind its action is from the action to the result.
"""

BY_LIST = frozenset((RELISTED, REWRITTEN))
"""Policies of what an application's list changes: the view says what the list does."""

BY_APPLICATION = BY_LIST | {EDIT, REMOVAL}
"""Policies of what an application changes, by hand or by its list."""

CLEARED = "clear"
"""Policy of a compaction that took everything said so far out of the view."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction of the view: the replacements, and the view's tokens before and after.

    ``fidelity`` has one retention score for each kind of item.
    """

    replacements: tuple[Replacement, ...]
    policy: str
    reason: str
    tokens_before: int
    tokens_after: int
    fidelity: tuple[RetentionScore, ...] = ()

    @property
    def first(self) -> int:
        """The first position covered."""
        return min(replacement.first for replacement in self.at_steps)

    @property
    def last(self) -> int:
        """One past the last position covered."""
        return max(replacement.last for replacement in self.at_steps)

    @property
    def at_steps(self) -> tuple[Replacement, ...]:
        """The replacements, each at the steps whose place it takes."""
        return tuple(map(at_step, self.replacements)) if self.policy == REWRITTEN else self.replacements


def at_step(by: Replacement) -> Replacement:
    """The replacement at the one step that it changes; that of a result is from its action to the result."""
    return replace(by, last=by.first + 1)


@dataclass(frozen=True, slots=True)
class Pin:
    """Text that stays verbatim in every view until it is unpinned. ``author`` is ``model`` where the model asked for it."""

    text: str
    author: Literal["", "model"] = ""


@dataclass(frozen=True, slots=True)
class Unpin:
    """Removal of the pin recorded at ``position``."""

    position: int


Importance = Literal["high", "normal", "low"]
"""Which steps leave the view last, as usual, and first."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The importance of the step recorded at ``position``, from here on; "normal" takes an earlier mark away."""

    position: int
    importance: Importance = "high"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A named position; ``state`` is JSON text."""

    name: str
    state: str = "{}"


@dataclass(frozen=True, slots=True)
class Undo:
    """Reversal of the compaction recorded at ``position``."""

    position: int


FactScope = Literal["task", "session", "project", "user", "tenant"]
"""The owners a fact applies to, narrowest first. Only a tenant's facts are shared between its users."""


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a fact: a step, by its handle in a session."""

    session: str
    handle: str


@dataclass(frozen=True, slots=True)
class FactStated:
    """A long-term fact; its position in its owner's log is its identity.

    ``supersedes`` and ``disputes`` are positions in the same log: facts it replaces, and facts it contradicts that stay
    valid. ``author`` is ``user``, ``host``, ``rules`` or the name of a model. Times are in seconds since the epoch;
    None is unlimited.
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
    """Tombstone of the fact stated at ``fact``, with the reason."""

    fact: int
    reason: str
    author: str = "host"


@dataclass(frozen=True, slots=True)
class FactConfirmed:
    """Repetition of the fact stated at ``fact``; ``confidence`` is the new value, or None for no change."""

    fact: int
    confidence: float | None = None
    sources: tuple[Source, ...] = ()
    author: str = "host"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FactsUsed:
    """One more use of each of the facts stated at these positions."""

    facts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FactsExtracted:
    """Facts were extracted from a session's entries before position ``upto``; extraction continues from there."""

    session: str
    upto: int
    author: str = "rules"


@dataclass(frozen=True, slots=True)
class FactsShown:
    """The block of facts at the head of the run's view from here on. The newest counts; "" is no block."""

    text: str


@dataclass(frozen=True, slots=True)
class Erased:
    """Record of an erasure: the positions ``spans``, each ``[first, last)``, were redacted.

    ``gone`` is the number of entries of an erased session; this entry replaces them all.
    """

    spans: tuple[tuple[int, int], ...] = ()
    reason: str = ""
    gone: int = 0

    def covers(self, position: int) -> bool:
        """Return True if the entry at a position was erased."""
        return any(first <= position < last for first, last in self.spans)


FactBody = FactStated | FactRemoved | FactConfirmed | FactsUsed | FactsExtracted | FactsShown | Erased
"""Bodies that are not part of a run: facts, and records of erasures."""

Body = Step | Observed | Compaction | Pin | Unpin | Mark | Checkpoint | Undo | FactBody
