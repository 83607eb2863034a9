"""What is held of one log between two calls. Everything in it can be derived again from the log."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING

from pagein.context.compaction.base import Policy
from pagein.context.page_in import LASTS, PageIn, Part, Sights
from pagein.context.view.fold import Fold
from pagein.context.view.view import Shown, View
from pagein.errors import PageinError
from pagein.events.callbacks import CallbackRegistry
from pagein.events.entries import Compaction, Observed
from pagein.events.steps import ActionStep, MemoryStep, Observation, TaskStep
from pagein.log.base import Entry
from pagein.memory.operations.ingest import Rendered, heard_in
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.calibration import Calibration

if TYPE_CHECKING:
    from pagein.facts.placement import Laid
    from pagein.facts.settings import Placement
    from pagein.summaries.job import Author, Job, Written

KEPT, SHRUNK = 0.98, 0.75
"""Shares of a window that is known, and of a request whose window is not, that the next request may have."""

RECORDS, PROBLEMS = 64, 16
"""How many records that may not have been shown yet, and how many problems, are kept."""


@dataclass(frozen=True, slots=True)
class Stood:
    """What came back as a view showed it, None where there was nothing: at which head, in how many tokens of room."""

    head: int
    room: int
    shown: Shown | None


@dataclass(frozen=True, slots=True)
class Tail:
    """What was looked up, at which head, and behind how many compactions."""

    head: int
    compactions: int
    paged: PageIn
    stood: Stood | None = None
    """How it stood in the view that was made last."""

    def is_old(self, view: View, compactions: int) -> bool:
        """True where something left since, the user spoke, or the run has gone on for a while."""
        if compactions != self.compactions:
            return True
        since = [each.item for each in view.run[-2 * LASTS :] if each.first >= self.head]
        acted = sum(isinstance(each, ActionStep) for each in since)
        return acted >= LASTS or any(isinstance(each, TaskStep) for each in since)


@dataclass(frozen=True, slots=True)
class Asides:
    """The blocks of what is known as they stand in the view, since so many compactions."""

    compactions: int = -1
    laid: tuple[Laid, ...] = ()
    shown: tuple[Shown, ...] = ()


@dataclass(slots=True)
class Held:
    """What a log alone says, folded so far: the same for every session that is opened on it."""

    fold: Fold
    heard: list[bytes] = field(default_factory=list)
    heard_at: list[int] = field(default_factory=list)
    recorded: list[Written] = field(default_factory=list)
    tip: str = ""
    """The digest of the last entry: it covers all before."""
    tail: Tail | None = None
    part: Part = field(default_factory=Part)
    """What came back last, and how much of that the archive found, where a snapshot tells."""

    def take(self, entries: Iterable[Entry]) -> None:
        """Fold new entries in."""
        for entry in entries:
            self.fold.apply(entry)
            said = heard_in(entry)
            self.heard.extend(said)
            self.heard_at.extend([entry.position] * len(said))
            if isinstance(entry.body, Compaction) and entry.position not in self.fold.skip:
                from pagein.summaries.records import known  # noqa: PLC0415 - loads where something left

                self.recorded.extend(known([entry.body]))
            self.tip = entry.digest or self.tip


@dataclass(slots=True)
class Session:
    """What is held of one log between two calls. Everything in it can be derived again from the log."""

    fold: Fold
    policy: Policy
    budget: Budget
    counter: TokenCounter
    calibration: Calibration = field(default_factory=Calibration)
    heard: list[bytes] = field(default_factory=list)
    heard_at: list[int] = field(default_factory=list)
    """The position of each that was heard."""
    rendered: dict[str, Rendered] = field(default_factory=dict)
    """By format, the request given out last."""
    repairs: list[str] = field(default_factory=list)
    asked: int = 0
    """The count of the request shown last, which the next reported usage is compared with."""
    last: View | None = None
    """The view shown last, with what stood behind it."""
    told: tuple[int, int] | None = None
    """What was counted here and by the provider for the last request that both counted."""
    callbacks: CallbackRegistry | None = None
    """What is called when something was recorded."""
    has_facts: bool = False
    """True where facts are read out of what is said, and shown."""
    placement: Placement | None = "tail"
    """Where what is known stands; None: nowhere."""
    asides: Asides = Asides()
    """What is known, as it was shown last."""
    share: float = 0.0
    """The share of the limit for what comes back by itself; 0 where nothing does."""
    tail: Tail | None = None
    """What was looked up last."""
    part: Part = field(default_factory=Part)
    """How much of what comes back the archive finds."""
    sights: Sights = field(default_factory=Sights)
    """What each thing in the view says."""
    author: Author | None = None
    """Who writes summaries, where a model does."""
    job: Job | None = None
    """What the author is at work on: never two at once."""
    recorded: list[Written] = field(default_factory=list)
    """What authors wrote that compactions keep, newest last."""
    written: deque[Written] = field(default_factory=lambda: deque(maxlen=RECORDS))
    """What the author wrote since the memory was opened."""
    tried: set[tuple[int, int]] = field(default_factory=set)
    """Ranges that were asked for: none is asked for twice."""
    rests_until: int = 0
    """Tokens of the view under which no job is begun ahead of time, after one that came to nothing."""
    failing: set[str] = field(default_factory=set)
    """Kinds of failure since the author last wrote something: each is told once."""
    problems: deque[str] = field(default_factory=lambda: deque(maxlen=PROBLEMS))
    """What went wrong in the background, each once, newest last."""

    tip: str = ""
    """The digest of the last entry that is folded in."""
    unwritten: int = 0
    """How many of the entries that are folded in are in no log: what a view made of one that may only be read."""
    kept: int | None = None
    """Up to which position a snapshot is kept in the store; None where none may be."""
    dropped: int = 0
    """How often the run's snapshots were dropped before it was opened."""

    def limit(self, budget: Budget) -> int:
        """The budget's limit in counted tokens, after what the provider's reports taught."""
        return max(1, self.calibration.room(budget.limit))

    def take(self, entries: Sequence[Entry]) -> None:
        """Fold new entries in, and learn from what a provider reported in them."""
        held = Held(self.fold, self.heard, self.heard_at, self.recorded, self.tip)
        for entry in entries:
            held.take((entry,))
            body = entry.body
            if isinstance(body, ActionStep) and body.usage is not None:
                self.learn(body.usage.input_tokens)
        self.tip = held.tip

    def call_back(self, entries: Sequence[Entry]) -> None:
        """Call what is registered for the steps and observations in these entries, each with its ``position``."""
        if self.callbacks is None:
            return
        for entry in entries:
            body = entry.body.observation if isinstance(entry.body, Observed) else entry.body
            if isinstance(body, MemoryStep | Observation):
                self.callbacks.callback(body, position=entry.position)

    def hold(self, held: Held) -> None:
        """Go on from here, whatever was held of the log before."""
        self.fold, self.recorded = held.fold, held.recorded
        self.heard, self.heard_at = held.heard, held.heard_at
        self.tip, self.unwritten = held.tip, 0
        self.asides = Asides()

    def since(self, position: int) -> list[bytes]:
        """What was heard from a position on."""
        return self.heard[bisect_left(self.heard_at, position) :]

    def learn(self, reported: int) -> None:
        """Compare what a provider counted with what was counted here for the request it answered.

        Where the budget reserves nothing for tools, nobody said what they cost: then growth is compared with growth,
        so that what is the same in both requests cancels out, and an exact counter has nothing to learn.
        """
        asked, self.asked = self.asked, 0
        if not asked or reported <= 0:
            return
        if self.budget.tools:
            self.calibration = self.calibration.observe(asked + self.budget.tools, reported)
        elif self.told is not None and not self.calibration.exact:
            grown, told = asked - self.told[0], reported - self.told[1]
            if grown * told > 0:
                self.calibration = self.calibration.observe(abs(grown), abs(told))
        self.told = (asked, reported)

    @contextmanager
    def telling(self, what: str) -> Iterator[None]:
        """An error of ours in here costs the turn nothing: it is told once."""
        try:
            yield
        except PageinError as error:
            self.tell(type(error).__name__, f"{what}: {error}")

    def tell(self, kind: str, what: str) -> None:
        """Keep what went wrong in the background, each kind once."""
        if kind in self.failing:
            return
        self.failing.add(kind)
        import logging  # noqa: PLC0415 - loads where something went wrong

        from pagein.models.secrets import scrubbed  # noqa: PLC0415

        self.problems.append(scrubbed(what))
        logging.getLogger("pagein").warning("%s", self.problems[-1])

    def shrink(self, window: int | None, asked: int | None) -> None:
        """Take the budget down so that the next view fits what a provider said it holds, and is smaller than the last.

        ``window`` is the provider's, ``asked`` what it counted in the request it refused; in its tokens.
        """
        budget, shown = self.budget, (self.last or self.fold.view(1)).tokens
        room = budget.limit
        if window is not None:
            room = min(room, int((window - min(budget.output, window // 2) - budget.tools) * KEPT))
        if window is not None and asked is not None and asked > window:
            room = min(room, int(shown * window / asked * KEPT))
        elif room >= shown:
            room = int(shown * SHRUNK)
        window = budget.output + budget.tools + ceil(max(1, room) / (1 - budget.margin))
        self.budget = replace(budget, window=min(window, budget.window))
