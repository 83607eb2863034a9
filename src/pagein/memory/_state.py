"""The state of one run between two calls of a memory. Except for settings it can be derived again from the log."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from pagein.context.compaction.base import Policy
from pagein.context.ledger.block import with_ledger
from pagein.context.page_in.block import PageIn
from pagein.context.page_in.named import VisibleContentCache
from pagein.context.tool_rules import NO_RULES, Tools
from pagein.context.view.fold import Fold
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.context.worth import extract_worth
from pagein.errors import OverBudget, PageinError
from pagein.events.callbacks import CallbackRegistry, NearLimit, PrefixBreak
from pagein.events.entries import BY_LIST, Body, Compaction, Observed
from pagein.events.protocol import body_fingerprints, erased_fingerprint, relisted_fingerprint
from pagein.events.steps import ActionStep, MemoryStep, Observation, Usage, as_text
from pagein.formats import Format
from pagein.log.base import Entry
from pagein.memory._facts_state import FactsBlockState, ShownFacts
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.budget import RequestRoom
from pagein.tokens.bytes import BYTES_A_UNIT
from pagein.tokens.calibration import MIN_LEARNED_GROWTH, Calibration
from pagein.tokens.prices import Prices

if TYPE_CHECKING:
    from pagein.log.snapshots import Snapshot
    from pagein.memory._runtime import MemoryRuntime
    from pagein.memory.requests import PageInRecord
    from pagein.models.writer_account import WriterAccounts
    from pagein.summaries.job import Summarizer, SummaryJob, SummaryRecord

KNOWN_WINDOW_SHARE = 0.98
"""Share of a provider's window, where its error named it, that the next request may have."""

RECENT_ROOMS = 3
"""Requests that are looked at: if one of them kept as much free as this one, a compaction for it is recorded. An application
may alternate between kinds of requests: an agent's with tools, and one without any."""

REFUSED_REQUEST_SHARE = 0.75
"""Share of the refused request that the next one may have, where the provider's window is not known."""

MAX_WRITTEN_SUMMARIES = 64
"""Summaries kept although they may not stand in a view yet."""

MAX_PROBLEMS = 16

AHEAD_OF_NEED_SHARE, AHEAD_OF_NEED_PER_TURN = 0.5, 32
"""Share of the limit from which texts are learnt from and entries indexed before anything leaves the view, and how many of
them in each turn: the first turn in need would else do it for all."""

SNAPSHOT_MIN_NEW_ENTRIES = 256
"""New entries after which a snapshot is due, in a short run."""

SNAPSHOT_NEW_ENTRIES_DIVISOR = 64
"""In a long run a snapshot is due after one new entry in so many. A snapshot is as long as the run, so all of them
together take at most so many times the bytes of the last one."""

PAST_SNAPSHOT_ENTRIES = 512
"""Entries between two snapshots that stay, at least: a request of the past is rendered from the last one before it. Folding
an entry of 170 tokens takes a millisecond; a past snapshot of a run of 20,000 entries takes 140 kB."""

SNAPSHOT_MIN_ENTRIES = 32
"""Entries of a run from which on snapshots are kept. One at close takes 0.03 s after 10,000 steps, and where the next
opening has nothing to count it loads no vocabulary, which takes 0.12 s and 40 MB."""


@dataclass(slots=True)
class FoldedLog:
    """The entries of a log, folded: the same for every memory that opens it."""

    fold: Fold
    fingerprints: list[bytes] = field(default_factory=list)
    """One for each item that an application handed over, in order; what the library wrote has none."""
    fingerprint_positions: list[int] = field(default_factory=list)
    summaries: list[SummaryRecord] = field(default_factory=list)
    """Summaries by a model that compactions of the log keep, oldest first."""
    last_digest: str = ""
    """The digest of the last folded entry: it covers all entries before."""
    unwritten: int = 0
    """Folded entries that are in no log: the compactions of a read-only memory."""

    def apply(self, entries: Iterable[Entry]) -> None:
        """Fold new entries in."""
        for entry in entries:
            self.fold.apply(entry)
            fingerprints = body_fingerprints(entry.body)
            if entry.erased is not None:  # a branch need not have the entry that says so
                fingerprints = tuple(map(erased_fingerprint, fingerprints))
            self.fingerprints.extend(fingerprints)
            self.fingerprint_positions.extend([entry.position] * len(fingerprints))
            if isinstance(entry.body, Compaction) and entry.position not in self.fold.skip:
                from pagein.summaries.records import iter_records  # noqa: PLC0415 - loads where something left

                self.summaries.extend(iter_records([entry.body]))
            if isinstance(entry.body, Compaction) and entry.body.policy in BY_LIST:
                for by in entry.body.replacements:
                    number = self.count_fingerprints(by.last - 1)
                    self.fingerprints[number] = relisted_fingerprint(self.fingerprints[number], by)
            self.last_digest = entry.digest or self.last_digest

    def count_fingerprints(self, head: int) -> int:
        """The number of items recorded before a position."""
        return bisect_left(self.fingerprint_positions, head)

    @property
    def list_start(self) -> int:
        """The number of items before those of an application's list: 0, or what was recorded before the view was cleared."""
        return self.count_fingerprints(self.fold.cleared)


Habit = Literal["unknown", "whole", "news"]
"""An application's habit: it hands over its whole list, or only what is new; "unknown" until a list shows it."""

MAX_KNOWN_LISTS = 4_096

RECENT_REQUESTS = 4
"""Requests that are known again after an application changed them: it may make others, as for a count, before it hands one back."""


@dataclass(frozen=True, slots=True)
class KnownList:
    """A list that was handed over, or a request that was given out.

    It ``covers`` the first so many fingerprints of the run. ``ending`` is the user's line that pagein adds to a
    request that would end with the model's. An ``is_loose`` list did not begin where the run begins.
    """

    covers: int
    is_request: bool = False
    is_loose: bool = False
    ending: Any = None


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request that was given out: its messages and their hashes, system prompts aside, and ``covers`` as in KnownList.

    ``has_ending`` is True if the last message is the line that pagein adds. ``form`` is its format: the next list may have another.
    """

    hashes: Sequence[bytes]
    rows: Sequence[Any]
    form: Format
    covers: int
    has_ending: bool = False


@dataclass(slots=True)
class TranscriptState:
    """The lists handed over and the requests given out in this process, by hash; the repairs made so far."""

    repairs: list[str] = field(default_factory=list)
    lists: dict[bytes, KnownList] = field(default_factory=dict)
    habit: Habit = "unknown"
    system_marks: dict[bytes, bytes] = field(default_factory=dict)
    """The fingerprints of system prompts, by the hash of their message."""
    unlisted: set[int] = field(default_factory=set)
    """Numbers of the fingerprints of what was recorded as steps, not in a list."""
    shortened: set[tuple[int, bytes]] = field(default_factory=set)
    """Numbers of the fingerprints of items that a client's list has shorter, each with the fingerprint that it has there."""
    sent: deque[SentRequest] = field(default_factory=lambda: deque(maxlen=RECENT_REQUESTS))
    """The last requests that were given out, newest last."""
    newest: int | None = None
    """The number of the first fingerprint that the newest list with words of the user brought; None before one did."""
    is_untouched: bool = True
    """True until something is recorded."""
    knows_requests: bool = False
    """True if ``lists`` has the requests that were given out before, and by other processes."""

    def remember(self, list_hash: bytes, known: KnownList) -> None:
        """Remember a list; the oldest one is forgotten where there are too many."""
        self.lists.pop(list_hash, None)
        self.lists[list_hash] = known
        if len(self.lists) > MAX_KNOWN_LISTS:
            del self.lists[next(iter(self.lists))]

    def forget_lists(self) -> None:
        """Forget every list and request, as after the run was erased."""
        self.lists.clear()
        self.unlisted.clear()
        self.shortened.clear()
        self.sent.clear()

    def for_fork(self, covers: int) -> TranscriptState:
        """The state of a branch that has the first ``covers`` fingerprints of this one."""
        return TranscriptState(
            self.repairs,
            {digest: known for digest, known in self.lists.items() if known.covers <= covers},
            self.habit,
            self.system_marks,
            {number for number in self.unlisted if number < covers},
            {known for known in self.shortened if known[0] < covers},
            is_untouched=False,
        )


@dataclass(slots=True)
class UsageState:
    """The budget, and the token counts of requests: counted here, and reported by the provider."""

    budget: Budget
    calibration: Calibration = field(default_factory=Calibration)
    is_named: bool = True
    """False where neither a model nor a counter was named: no count is exact for a model that may be any."""
    counted: int = 0
    """The count of the last view until its usage is reported; 0 after that."""
    last_report: tuple[int, int] | None = None
    """The last request that both counted: its count here, and the provider's."""
    last_view: View | None = None
    """The last view, with the page-in behind it."""
    counted_tools: int | None = None
    """The count of the last request's tools; None where the application did not hand them over."""
    own_tools: int = 0
    """The count of the library's tools, once the application was given them: each of its requests has them."""
    own_tool_bytes: int = 0
    byte_limit: int | None = None
    """The bytes that the messages of the last request may have; None for any number."""
    weighed: dict[int, tuple[ViewEntry, ViewEntry]] = field(default_factory=dict)
    """Entries by id, with the same ones counted in bytes."""
    recent_rooms: tuple[int, ...] = ()
    """Tokens that the last requests kept free, oldest first."""
    is_narrow: bool = False
    """True if more left the last view than was recorded, for that request alone."""
    answered_at: float = 0.0
    """The time of the last answer that was recorded in this process: its request came before."""
    reported: Usage | None = None
    """The last usage that was learned, until it is noted with its request."""

    def set_byte_limit(self, budget: Budget, room: RequestRoom) -> None:
        """Set the bytes that the messages of the next request may have. Raises OverBudget where none are left."""
        self.byte_limit = budget.bytes
        if budget.bytes is not None:
            self.byte_limit = budget.bytes - (self.own_tool_bytes if room.tool_bytes is None else room.tool_bytes)
            if self.byte_limit < BYTES_A_UNIT:
                raise OverBudget(BYTES_A_UNIT, self.byte_limit, (), unit="bytes")

    def limit(self) -> int:
        """The limit of the run's views, in tokens as they are counted here."""
        return self.limit_beside(self.room_beside(RequestRoom()))

    def limit_beside(self, tokens: int, budget: Budget | None = None) -> int:
        """The limit where a request keeps so many tokens free; of another budget if one is given."""
        return max(1, self.calibration.max_count((budget or self.budget).limit - tokens))

    def room_beside(self, room: RequestRoom) -> int:
        """The tokens that a request keeps free beyond what the budget reserves."""
        tools = self.own_tools if room.tools is None else room.tools
        return room.reserve + max(0, tools - self.budget.tools)

    def recorded_room(self, beside: int) -> int:
        """The tokens that recorded compactions keep free: as many as this request and one of the last ones keep free.

        What this request alone keeps free is free in its view alone: what leaves for it is back in the next view.
        """
        return min(beside, max(self.room_beside(RequestRoom()), *self.recent_rooms, 0))

    def note_request(self, view: View, room: RequestRoom, *, is_narrow: bool) -> None:
        """Note the view of a request, and the room beside it; it ``is_narrow`` where that was made for it alone."""
        self.is_narrow = is_narrow
        self.recent_rooms = (*self.recent_rooms, self.room_beside(room))[-RECENT_ROOMS:]
        self.counted, self.counted_tools, self.last_view = view.tokens, room.tools, view

    def learn(self, usage: Usage) -> None:
        """Compare a provider's count of the last request with the count made here.

        Where neither the request nor the budget says what tools cost, the growth since an earlier report is compared.
        """
        self.reported, reported = usage, usage.input_tokens
        counted, self.counted = self.counted, 0
        if not counted or reported <= 0:
            return
        tools = self.budget.tools if self.counted_tools is None else self.counted_tools
        if tools or self.counted_tools is not None:
            self.calibration = self.calibration.observe(counted + tools, reported)
        elif self.last_report is not None:
            growth = counted - self.last_report[0], reported - self.last_report[1]
            if abs(growth[0]) < MIN_LEARNED_GROWTH:
                return
            self.calibration = self.calibration.observe_growth(*growth, is_named=self.is_named)
        self.last_report = (counted, reported)

    def shrink(self, last_tokens: int, window: int | None, requested: int | None) -> None:
        """Lower the budget after an overflow, so that the next view fits the window and is smaller than the last.

        ``last_tokens`` is the last view's count here. ``window`` is the provider's, ``requested`` its count of the
        refused request; both in its tokens, None where the error names none.
        """
        budget, limit = self.budget, self.budget.limit
        if window is not None:
            room = window - min(budget.output, window // 2) - budget.tools
            limit = min(limit, int(room * KNOWN_WINDOW_SHARE))
        if window is not None and requested is not None and requested > window:
            limit = min(limit, int(last_tokens * window / requested * KNOWN_WINDOW_SHARE))
        elif limit >= last_tokens:
            limit = int(last_tokens * REFUSED_REQUEST_SHARE)
        smaller = budget.output + budget.tools + ceil(max(1, limit) / (1 - budget.margin))
        self.budget = replace(budget, window=min(smaller, budget.window))


@dataclass(frozen=True, slots=True)
class PageInOccasion:
    """The occasion of a page-in, by the positions of what came last; -1 for none.

    These are the last compaction, the newest user message, the newest action that names something out of view, and the newest
    one that reads or changes a file. Nothing is looked for until one of them is another.
    """

    compaction: int = -1
    user: int = -1
    fault: int = -1
    file: int = -1

    def is_of_new_file(self, last: PageInOccasion | None) -> bool:
        """True if an action works on a file since the last occasion, or a compaction came since."""
        return self.file >= 0 and (last is None or (self.compaction, self.file) != (last.compaction, last.file))

    def is_new_but_for_files(self, last: PageInOccasion | None) -> bool:
        """True if it differs from the last one in more than the file that an action works on."""
        return last is None or replace(self, file=last.file) != last


@dataclass(slots=True)
class PageInState:
    """The share of the limit that page-ins may have (0: none), and those that the view shows."""

    share: float = 0.0
    prices: Prices = field(default_factory=Prices)
    shown: tuple[PageIn, ...] = ()
    """The page-ins since the last compaction, where they were first shown."""
    in_last_view: tuple[PageIn, ...] = ()
    """Those of the last view: others than ``shown`` where that was narrow."""
    occasion: PageInOccasion | None = None
    """The last occasion on which the search was asked."""
    visible: VisibleContentCache = field(default_factory=VisibleContentCache)
    used: tuple[int, tuple[int, ...]] = (-1, ())
    """The position of the newest action, and of the page-ins that alone showed something which it names."""
    extract_worth: float | None = None
    """The worth of an extract's tokens that a stored request was made with; None: that of the prices."""

    @property
    def tokens(self) -> int:
        """The tokens of the page-ins that the view shows, but for those of files."""
        return sum(page_in.entry.tokens for page_in in self.shown if not page_in.is_of_files)

    @property
    def file_tokens(self) -> int:
        """The tokens of the page-ins of files that the view shows."""
        return sum(page_in.entry.tokens for page_in in self.shown if page_in.is_of_files)

    def is_due(self, view: View) -> bool:
        """True if something left the view, or it is full enough to index entries ahead of need."""
        is_filling = view.tokens > view.limit * AHEAD_OF_NEED_SHARE
        return self.share > 0 and (is_filling or view.has_replaced_entries)

    def entries_since(self, compaction: int) -> tuple[ViewEntry, ...]:
        """The page-ins that stand behind this last compaction, in order."""
        is_since = self.occasion is not None and self.occasion.compaction == compaction
        return tuple(page_in.entry for page_in in self.shown) if is_since else ()

    def end_with(self, compaction: int) -> None:
        """Drop the page-ins if this last compaction came after them."""
        if self.occasion is None or self.occasion.compaction != compaction:
            self.shown = ()

    def clear(self) -> None:
        """Drop everything found in the run."""
        self.shown, self.in_last_view, self.occasion, self.visible = (), (), None, VisibleContentCache()
        self.used = (-1, ())


@dataclass(slots=True)
class SummaryState:
    """The summaries that a model writes, where ``summarizer`` names one; at most one job runs at a time."""

    summarizer: Summarizer | None = None
    job: SummaryJob | None = None
    records: deque[SummaryRecord] = field(default_factory=lambda: deque(maxlen=MAX_WRITTEN_SUMMARIES))
    """Summaries written since the memory was opened, newest last."""
    requested: set[tuple[int, int]] = field(default_factory=set)
    """Ranges that were asked for: none is asked for twice."""
    rest_until: int = 0
    """Tokens of the view below which no job starts ahead of time, after one that gave nothing."""

    def clear(self) -> None:
        """Drop what was written since the memory was opened."""
        self.records.clear()
        self.requested.clear()
        self.rest_until = 0


@dataclass(slots=True)
class SnapshotState:
    """The position of the snapshot in the store, None where none may be kept."""

    position: int | None = None
    dropped: int = 0
    """Times that the run's snapshots were dropped before it was opened."""

    def is_due(self, head: int, *, closing: bool = False) -> bool:
        """True if a snapshot at ``head`` is worth its bytes; at close any new entry is."""
        if self.position is None or head < SNAPSHOT_MIN_ENTRIES:
            return False
        least = 1 if closing else max(SNAPSHOT_MIN_NEW_ENTRIES, head // SNAPSHOT_NEW_ENTRIES_DIVISOR)
        return head - self.position >= least

    def is_past_due(self, head: int) -> bool:
        """True if the snapshot at ``head`` is to stay beside the later ones."""
        return head // PAST_SNAPSHOT_ENTRIES > (self.position or 0) // PAST_SNAPSHOT_ENTRIES

    def outdate(self) -> None:
        """Note that the snapshot in the store is of another history, so that the next one replaces it."""
        if self.position is not None:
            self.position = 0


@dataclass(slots=True)
class PastRequests:
    """The work that was done for requests of the past, for the next one; dropped where something is erased."""

    states: dict[tuple[str, int], Snapshot] = field(default_factory=dict)
    """By branch and position, past snapshots that a store without them would have."""
    last: tuple[str, FoldedLog] | None = None
    """The branch and the fold of the request that was rendered last: a later one folds on."""
    page_ins: dict[tuple[str, PageInRecord], ViewEntry] = field(default_factory=dict)
    """By branch and record, the page-ins of that request."""
    counter: TokenCounter | None = None
    """The counter of the request that was rendered last; what another one counted is of no use."""

    def clear(self) -> None:
        """Drop everything."""
        self.states.clear()
        self.last = None
        self.page_ins.clear()


@dataclass(slots=True)
class Problems:
    """Failures beside the run: each kind is logged and kept once, newest last."""

    messages: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_PROBLEMS))
    reported: set[str] = field(default_factory=set)
    """Kinds that are not reported again."""

    @contextmanager
    def guard(self, effect: str) -> Iterator[None]:
        """Report an error of this library instead of raising it; ``effect`` says what it cost."""
        try:
            yield
        except PageinError as error:
            self.report(type(error).__name__, f"{effect}: {error}")

    def report(self, kind: str, message: str) -> None:
        """Log and keep a failure, unless one of its kind was reported already."""
        if kind in self.reported:
            return
        self.reported.add(kind)
        import logging  # noqa: PLC0415 - loads where something went wrong

        from pagein.models.environment import redact_keys  # noqa: PLC0415

        self.messages.append(redact_keys(message))
        logging.getLogger("pagein").warning("%s", self.messages[-1])


@dataclass(slots=True)
class RunState:
    """All that a memory keeps of a run between two calls, each concern in a value of its own."""

    policy: Policy
    counter: TokenCounter
    callbacks: CallbackRegistry | None
    log: FoldedLog
    usage: UsageState
    transcript: TranscriptState = field(default_factory=TranscriptState)
    page_in: PageInState = field(default_factory=PageInState)
    facts_block: FactsBlockState = field(default_factory=FactsBlockState)
    summaries: SummaryState = field(default_factory=SummaryState)
    snapshot: SnapshotState = field(default_factory=SnapshotState)
    problems: Problems = field(default_factory=Problems)
    events: list[Compaction | NearLimit | PrefixBreak] = field(default_factory=list)
    """What happened in this turn that callbacks are called for at its end."""
    has_warned: bool = False
    """True once it was logged that a view came near its limit."""
    was_near: bool = False
    """True from a NearLimit to the next compaction."""
    writers: WriterAccounts | None = None
    """The accounts of the models that write; None where none does."""
    past: PastRequests = field(default_factory=PastRequests)
    tools: Tools = NO_RULES
    """The rules for the results of tools."""
    runtime: MemoryRuntime = field(default=None, repr=False, compare=False)  # type: ignore[assignment]
    """It reads, writes and waits for this run, and sets itself here when it takes the state."""

    @property
    def fold(self) -> Fold:
        """The fold of the log."""
        return self.log.fold

    @property
    def last_compaction(self) -> int:
        """The position of the last compaction in effect; -1 for none."""
        return self.fold.compactions[-1] if self.fold.compactions else -1

    @property
    def system_prompt(self) -> str:
        """The text of the system prompts in view."""
        systems = self.fold.view(1).systems
        return "\n\n".join(as_text(message.content) for entry in systems for message in entry.messages)

    def current_view(self) -> View:
        """The view as it stands, counted against the limit but not compacted to it."""
        return self.view(self.usage.limit())

    def view(self, limit: int) -> View:
        """The view of the fold, within a limit its caller compacts it to, with the prices' worth of an extract's tokens.

        A low mark that the user gave is filled, whatever the tokens are worth.
        """
        worth = self.page_in.extract_worth
        if worth is None:
            # What a model writes stands for an extract, in its tokens: then the low mark says how many those are.
            is_priced = self.usage.budget.low is None and self.summaries.summarizer is None
            worth = extract_worth(self.page_in.prices, limit) if is_priced else 0.0
        return self.fold.view(limit, self.tools, worth)

    def view_with_ledger(self, view: View | None = None) -> View:
        """The view, as it stands unless one is given, with the ledger's block where something left it."""
        view = self.current_view() if view is None else view
        return (
            with_ledger(view, self.fold.learned.ledger, self.fold.learned.blocks) if view.has_replaced_entries else view
        )

    def apply_entries(self, entries: Sequence[Entry]) -> None:
        """Fold new entries in, and learn from the usage in them."""
        self.log.apply(entries)
        for entry in entries:
            body = entry.body
            if isinstance(body, ActionStep):
                self.usage.answered_at = entry.at
                if body.usage is not None:
                    self.usage.learn(body.usage)

    def append(self, *bodies: Body) -> tuple[Entry, ...]:
        """Append the bodies to the log behind what is folded, all or none, and fold them in. Raises Conflict."""
        entries = self.runtime.append(bodies, self.fold.head)
        self.apply_entries(entries)
        return entries

    def restart_from(self, log: FoldedLog) -> None:
        """Go on from a log that was folded anew."""
        self.log = log
        self.facts_block.current = ShownFacts()

    def run_callbacks(self, entries: Sequence[Entry]) -> None:
        """Call the registered callbacks for the steps and observations in these entries."""
        if self.callbacks is None:
            return
        for entry in entries:
            body = entry.body.observation if isinstance(entry.body, Observed) else entry.body
            if isinstance(body, MemoryStep | Observation):
                self.callbacks.callback(body, position=entry.position)

    def run_events(self) -> None:
        """Call the registered callbacks for the events of this turn."""
        events, self.events = self.events, []
        if self.callbacks is not None:
            for event in events:
                self.callbacks.callback(event)

    def for_branch(self) -> RunState:
        """An empty state with the same settings, for another branch of the run."""
        usage = UsageState(
            self.usage.budget, self.usage.calibration, self.usage.is_named, own_tools=self.usage.own_tools,
            own_tool_bytes=self.usage.own_tool_bytes, recent_rooms=self.usage.recent_rooms,
        )  # fmt: skip
        return RunState(
            self.policy, self.counter, self.callbacks, FoldedLog(Fold(self.counter)), usage,
            TranscriptState(repairs=self.transcript.repairs),
            PageInState(self.page_in.share, self.page_in.prices),
            replace(self.facts_block, current=ShownFacts()),
            SummaryState(self.summaries.summarizer),
            problems=self.problems, writers=self.writers, tools=self.tools, runtime=self.runtime,
        )  # fmt: skip
