"""The requests of a run: what was sent to the model, what it cost, and how it can be rendered again.

A record has numbers, positions and hashes, and no text of the run. What was shown is made again from the log at the
record's head; the digest tells whether it is what was sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from pagein.context.costs import RunCost
from pagein.context.page_in_sources import BlockSource
from pagein.context.view.layout import ContextBlock
from pagein.context.view.view import View, ViewEntry
from pagein.errors import LogError, PageinError
from pagein.events.callbacks import BreakCause
from pagein.events.entries import EDIT, REMOVAL
from pagein.events.handles import observation_handle, step_handle
from pagein.events.steps import Usage
from pagein.formats.sdk_objects import cache_written
from pagein.log.requests import REQUEST_MAX_BYTES, RequestRow, RequestTable
from pagein.memory.costs import CostAccount
from pagein.memory.options import check_usage
from pagein.tokens import Budget
from pagein.tokens.prices import Prices

if TYPE_CHECKING:
    from pagein.context.page_in import PageIn
    from pagein.memory._state import ShownFacts

NOTE_MAX_CHARACTERS = 80
"""Characters of an outcome, of a note, and of its name."""

MAX_UNWRITTEN = 64
"""Records that wait to be written while the store cannot be written to."""

_REASONS = {"search": "found for the newest step", "turn": "found for the user's words", "lines": "likely needed now"}


@dataclass(frozen=True, slots=True)
class PageInRecord:
    """The sources of a page-in as it was found at ``head``: the sources of its blocks, and numbers of names.

    ``is_complete`` is False where a part of it cannot be named by its place; then it cannot be made again.
    """

    head: int
    blocks: tuple[BlockSource, ...] = ()
    names: tuple[int, ...] = ()
    is_complete: bool = True

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """The handle of each block, and the reason why it came back."""
        return tuple(
            (step_handle(block.position) if block.part < 0 else observation_handle(block.position, block.part),
             _REASONS[block.kind])
            for block in self.blocks
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FactsRecord:
    """A block of facts before the steps from ``position`` on: the ids of its facts, each with the one that disputes it.

    ``is_later`` is False for the first block of a view.
    """

    position: int
    ids: tuple[tuple[str, str], ...]
    is_later: bool = False


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """The usage that the provider reported, in its tokens; ``input`` includes what was read from and written to its cache."""

    input: int
    output: int = 0
    cache_read: int = 0
    cache_written: int = 0


def read_request_usage(usage: Any) -> RequestUsage:
    """The usage of a request as its provider reported it. Raises ConfigurationError for what is no usage."""
    report = check_usage(usage)
    return RequestUsage(report.input_tokens, report.output_tokens, report.cached_tokens, cache_written(usage))


def recorded_usage(usage: Usage | None) -> RequestUsage | None:
    """The usage that was recorded with the answer to a request."""
    return None if usage is None else RequestUsage(usage.input_tokens, usage.output_tokens, usage.cached_tokens)


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """The filters of ``to_messages``, which record nothing."""

    summary_mode: bool = False
    keep_last_n: int | None = None
    max_tokens: int | None = None


NO_FILTER = RequestFilter()


@dataclass(frozen=True, slots=True)
class UnrecordedPlan:
    """The settings of a view that left out more than the log says: with a filter, or in room of its own.

    ``policy`` is a name, "" for a policy that has none; ``page_in`` the share of the limit for a page-in.
    """

    policy: str
    budget: Budget
    page_in: float
    is_narrow: bool


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of a run, as it was sent.

    ``number`` counts the run's requests from 1 on. ``head`` is the number of entries that the log of ``branch`` had, ``at``
    the time in seconds since the epoch. ``budget`` is the window and ``reserve`` what it leaves for output and tools;
    ``limit`` is what the messages may cost, ``tokens`` what they do, ``tiers`` for what. ``digest`` is the hash of the
    rendered request. ``prefix`` counts the tokens that it begins with as the request before did; ``broke`` is the handle or
    the tier of what differs there, ``broke_why`` the reason; "" where it only goes on. ``rewritten`` are the tokens
    behind the break that the request before had, too. ``recorded`` are the tokens of the run
    with everything in it, 0 where they are not known, and ``used`` the heads of the page-ins that alone showed something which
    the newest action names. ``usage`` is None until it is known.
    ``seconds`` has durations by name, such as ``first`` and ``whole``; ``outcome`` what became of it, "" while unknown.
    """

    number: int = 0
    head: int = 0
    at: float = 0.0
    branch: str = "main"
    model: str = ""
    format: str = ""
    counter: str = ""
    budget: int = 0
    reserve: int = 0
    limit: int = 0
    tokens: int = 0
    tiers: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""
    compactions: int = 0
    prefix: int = 0
    broke: str = ""
    broke_why: str = ""
    rewritten: int = 0
    recorded: int = 0
    used: tuple[int, ...] = ()
    filter: RequestFilter = NO_FILTER
    page_ins: tuple[PageInRecord, ...] = ()
    facts: tuple[FactsRecord, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    """The names of the owners of the facts: the user, the project, the task."""
    plan: UnrecordedPlan | None = None
    bytes: int | None = None
    """The bytes that the messages might have; None for any number."""
    usage: RequestUsage | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    outcome: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Short facts of who sent it, such as a proxy's request id. No text of the run belongs here."""


_ROW_FIELDS = ("number", "head", "at")
_FIELDS = frozenset(each.name for each in fields(RequestRecord))
_BODY_DEFAULTS = {name: getattr(RequestRecord(), name) for name in sorted(_FIELDS.difference(_ROW_FIELDS))}
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_AFTER_NUMBER = attrgetter(*(each.name for each in fields(RequestRecord)[1:]))  # a quarter of the time of replace()


def encode_record(record: RequestRecord) -> bytes:
    """Encode a record as the body of its row, at most ``REQUEST_MAX_BYTES``: the names of a long page-in give way first."""
    body = _encode(record)
    if len(body) > REQUEST_MAX_BYTES and record.page_ins:
        unnamed = (replace(page_in, names=(), is_complete=False) for page_in in record.page_ins)
        body = _encode(replace(record, page_ins=tuple(unnamed)))
        if len(body) > REQUEST_MAX_BYTES:
            body = _encode(replace(record, page_ins=(PageInRecord(record.page_ins[0].head, is_complete=False),)))
    if len(body) > REQUEST_MAX_BYTES:
        body = _encode(replace(record, facts=(), owners={}, page_ins=(), notes={}, digest=""))
    return body


def _encode(record: RequestRecord) -> bytes:
    values: dict[str, Any] = {
        name: value for name, default in _BODY_DEFAULTS.items() if (value := getattr(record, name)) != default
    }
    if record.filter != NO_FILTER:
        values["filter"] = asdict(record.filter)
    if record.page_ins:
        values["page_ins"] = [
            [page_in.head, page_in.blocks, page_in.names, page_in.is_complete] for page_in in record.page_ins
        ]
    if record.facts:
        values["facts"] = [[block.position, block.ids, block.is_later] for block in record.facts]
    if record.plan is not None:
        values["plan"] = asdict(record.plan)
        values["plan"]["budget"].pop("bytes")  # the record has those of the messages
    if record.usage is not None:
        values["usage"] = asdict(record.usage)
    return _ENCODER.encode(values).encode()


def decode_record(row: RequestRow) -> RequestRecord | None:
    """Decode a stored row; None for a damaged one, or one of a later release."""
    try:
        values: dict[str, Any] = json.loads(row.body)
        values = {name: value for name, value in values.items() if name in _FIELDS}
        if "filter" in values:
            values["filter"] = RequestFilter(**values["filter"])
        if "page_ins" in values:
            values["page_ins"] = tuple(_decode_page_in(*page_in) for page_in in values["page_ins"])
        if "facts" in values:
            values["facts"] = tuple(
                FactsRecord(position, tuple((id, disputed) for id, disputed in ids), later)
                for position, ids, later in values["facts"]
            )
        if "plan" in values:
            values["plan"] = UnrecordedPlan(**values["plan"] | {"budget": Budget(**values["plan"]["budget"])})
        if "used" in values:
            values["used"] = tuple(values["used"])
        if "usage" in values:
            values["usage"] = RequestUsage(**values["usage"])
        return RequestRecord(**values | {"number": row.number, "head": row.head, "at": row.at})
    except (ValueError, TypeError, KeyError, AttributeError, PageinError):
        return None


def _decode_page_in(head: int, blocks: list[list[Any]], names: list[int], is_complete: bool) -> PageInRecord:
    sources = tuple(
        BlockSource(kind, position, part, None if lines is None else tuple(lines), of)
        for kind, position, part, lines, of in blocks
    )
    return PageInRecord(head, sources, tuple(names), is_complete)


def with_outcome(
    record: RequestRecord,
    outcome: str,
    usage: RequestUsage | None,
    seconds: Mapping[str, float],
    notes: Mapping[str, str],
) -> RequestRecord:
    """The record with what became of its request; texts are cut to a length that a row has room for."""
    short = {name[:NOTE_MAX_CHARACTERS]: text[:NOTE_MAX_CHARACTERS] for name, text in notes.items()}
    return replace(
        record,
        usage=usage or record.usage,
        outcome=outcome[:NOTE_MAX_CHARACTERS] or record.outcome,
        seconds={**record.seconds, **{name: round(value, 6) for name, value in seconds.items()}},
        notes={**record.notes, **short},
    )


@dataclass(slots=True)
class RequestsState:
    """The requests of a memory: those that are not written yet, the last one, and what it showed."""

    table: RequestTable
    model: str = ""
    counter: str = ""
    policy: str = ""
    last: RequestRecord | None = None
    last_at: float = 0.0
    """The time at which the last request was rendered last."""
    last_entries: tuple[ViewEntry, ...] = ()
    is_changed: bool = False
    """True where the last record is to be written, or written again."""
    changed: list[RequestRecord] = field(default_factory=list)
    """Earlier records that are to be written again."""
    account: CostAccount | None = None
    """The account of all requests before the last; None until it is asked for."""

    def compare(self, entries: Sequence[ViewEntry], format: str, branch: str, compactions: int) -> SharedPrefix:
        """Compare a request's entries with those of the last one; ``compactions`` are in effect now."""
        last = self.last
        if last is None:
            return SharedPrefix()
        if last.format != format:
            return SharedPrefix(0, "format", "format", f"it was {last.format}")
        prefix = compare_prefix(self.last_entries, entries, last, compactions)
        if prefix.cause and last.branch != branch:
            return replace(prefix, cause="branch", why=f"the last request was of {last.branch}")
        return prefix

    def is_again(self, record: RequestRecord) -> bool:
        """True if the last request was rendered again before its outcome is known."""
        last = self.last
        return last is not None and not last.outcome and last.usage is None and _is_same(last, record)

    def note(self, record: RequestRecord, entries: tuple[ViewEntry, ...]) -> None:
        """Note a request that was rendered; the same one again is no other request until its outcome is known."""
        if not self.is_again(record):
            last = self.last
            if last is not None and self.is_changed:
                self.changed.append(last)
                del self.changed[:-MAX_UNWRITTEN]
            if last is not None and self.account is not None:
                self.account.add(last)
            self.last, self.is_changed = record, True
        self.last_entries, self.last_at = entries, record.at

    def change_last(self, record: RequestRecord) -> None:
        """Put a changed record in the place of the last one."""
        self.last, self.is_changed = record, True

    def learn_usage(self, usage: RequestUsage | None) -> None:
        """Note the usage of the last request, unless it is known; it is written with the next request."""
        if usage is not None and self.last is not None and self.last.usage is None:
            self.change_last(replace(self.last, usage=usage))

    def last_number(self) -> int:
        """The number of the last request; 0 where there is none. Raises LogError."""
        return self.last.number if self.last is not None and self.last.number else self.table.last()

    def last_time(self) -> float | None:
        """The time of the last request; None where there is none, or the table cannot be read."""
        if self.last is not None:
            return self.last_at
        with suppress(LogError):
            rows = self.table.rows(self.table.last() - 1, 1)
            return rows[0].at if rows else None
        return None

    def write(self) -> None:
        """Write what changed. Raises LogError."""
        while self.changed:
            self._write(self.changed[0])
            del self.changed[0]
        if self.last is not None and self.is_changed:
            self.last, self.is_changed = self._write(self.last), False

    def _write(self, record: RequestRecord) -> RequestRecord:
        if record.number:
            self.table.replace(record.number, encode_record(record))
            return record
        return RequestRecord(self.table.add(record.head, record.at, encode_record(record)), *_AFTER_NUMBER(record))

    def cost(self, prices: Prices) -> RunCost:
        """The cost of all requests at these prices. Raises LogError."""
        if self.account is None:
            account = CostAccount(prices)
            for record in self.read_records(0, None):
                if self.last is None or record.number != self.last.number:
                    account.add(record)
            self.account = account
        return self.account.cost_with(self.last)

    def read_records(self, after: int, limit: int | None) -> tuple[RequestRecord, ...]:
        """The records behind a number, oldest first; damaged ones are left out. Raises LogError."""
        records = (decode_record(row) for row in self.table.rows(after, limit))
        return tuple(record for record in records if record is not None)


def _is_same(last: RequestRecord, record: RequestRecord) -> bool:
    return (last.digest, last.head, last.branch, last.format, last.filter) == (
        record.digest, record.head, record.branch, record.format, record.filter
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The tokens that two requests begin with alike, what differs behind them, and the tokens of the run written again there.

    ``cause`` is "" where the later request only goes on.
    """

    tokens: int = 0
    cause: BreakCause | Literal[""] = ""
    broke: str = ""
    why: str = ""
    rewritten: int = 0


def compare_prefix(
    before: Sequence[ViewEntry], now: Sequence[ViewEntry], last: RequestRecord, compactions: int
) -> SharedPrefix:
    """Compare a request's entries with those of the one before; ``compactions`` are in effect now."""
    alike = 0
    for old, new in zip(before, now, strict=False):
        if old is not new and old.messages != new.messages:
            break
        alike += 1
    tokens = sum(entry.tokens for entry in now[:alike])
    if alike == len(before):
        return SharedPrefix(tokens)
    cause, handle, why = _difference(before[alike], now[alike] if alike < len(now) else None)
    if compactions > last.compactions and cause in ("compaction", "page-in", "ledger", "facts"):
        cause, why = "compaction", why if cause == "compaction" else f"{why}, with a compaction"
    elif compactions < last.compactions:
        cause, why = "undo", "a compaction was undone"
    # What is new behind the break would have been written without it.
    rewritten = sum(entry.tokens for entry in now[alike:] if entry.first < last.head)
    return SharedPrefix(tokens, cause, handle, why, rewritten)


def _difference(old: ViewEntry, new: ViewEntry | None) -> tuple[BreakCause, str, str]:
    """Name the cause and what stands first where two requests part, and say why."""
    if isinstance(old.item, ContextBlock):
        if old.tier == "recalled":
            return "page-in", old.tier, "a page-in left"
        return _block_cause(old), old.tier, f"{old.tier} changed"
    if new is None:
        return "other", old.handle, "the request is shorter"
    if old.tier == "system":
        return "system prompt", old.handle, "the system prompt changed"
    if isinstance(new.item, ContextBlock):
        return _block_cause(new), old.handle, f"{new.tier} came before it"
    if (new.first, new.last) != (old.first, old.last) or new.stubs != old.stubs:
        is_by_hand = new.why.startswith((f"{EDIT}:", f"{REMOVAL}:"))
        return "edit" if is_by_hand else "compaction", old.handle, new.why
    return "other", old.handle, "its content changed"


def _block_cause(entry: ViewEntry) -> BreakCause:
    return "facts" if entry.tier == "facts" else "ledger" if entry.tier == "ledger" else "page-in"


def tokens_by_tier(view: View) -> dict[str, int]:
    """The tokens of a view by tier; ``request`` is what every request costs beside its messages."""
    tiers: dict[str, int] = {}
    for entry in (*view.entries, *view.tail):
        tiers[entry.tier] = tiers.get(entry.tier, 0) + entry.tokens
    rest = view.tokens - sum(tiers.values())
    return tiers | ({"request": rest} if rest else {})


def page_in_records(view: View, shown: Sequence[PageIn]) -> tuple[PageInRecord, ...]:
    """The records of the page-ins that a view shows."""
    known = {id(page_in.entry): page_in for page_in in shown}
    records: list[PageInRecord] = []
    for entry in view.tail:
        if entry.tier != "recalled":
            continue
        page_in = known.get(id(entry))
        if page_in is None:
            records.append(PageInRecord(entry.first, is_complete=False))
        else:
            is_complete = all(source.lines is not None for source in page_in.sources)
            records.append(PageInRecord(entry.first, page_in.sources, page_in.names, is_complete))
    return tuple(records)


def facts_records(view: View, shown: ShownFacts) -> tuple[FactsRecord, ...]:
    """The records of the blocks of facts in a view's tail."""
    placed = {id(entry): block for entry, block in zip(shown.entries, shown.blocks, strict=True)}
    records: list[FactsRecord] = []
    for entry in view.tail:
        block = placed.get(id(entry))
        if block is not None:
            ids = tuple((id, line.rpartition("; newer: ")[2].rstrip(")") if "; newer: " in line[-60:] else "")
                        for id, line in block.lines)  # fmt: skip
            records.append(FactsRecord(entry.first, ids, is_later=bool(records)))
    return tuple(records)


def reserve_of(budget: Budget) -> int:
    """The tokens of a window that its messages may not have."""
    return budget.window - budget.limit
