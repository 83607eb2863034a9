"""The requests of a memory: each is noted when it is rendered, written to the table of requests, and found again there.

It is compared with the one before: how much both begin with alike, and what stood where they part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import groupby
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, Literal

from pagein.context.view.layout import ContextBlock
from pagein.errors import ConfigurationError, LogBusy, LogError, UnknownRequest
from pagein.events.callbacks import BreakCause, PrefixBreak
from pagein.events.entries import BY_APPLICATION
from pagein.log.requests import hash_request
from pagein.memory import requests
from pagein.memory.costs import CostAccount, add_spent
from pagein.memory.operations.changed_requests import remember_records
from pagein.memory.snapshots import counter_key
from pagein.tokens import Budget

if TYPE_CHECKING:
    from pagein.context.costs import RunCost
    from pagein.context.page_in.block import PageIn
    from pagein.context.view.layout import ViewEntry
    from pagein.context.view.view import View
    from pagein.formats.raw_messages import RawRequest
    from pagein.memory._facts_state import ShownFacts
    from pagein.memory._runtime import MemoryRuntime


RECENT_REQUESTS = 8
"""The last requests of the table: a list that is handed over after a restart may be one of them, and what followed it."""

MAX_UNWRITTEN = 64
"""Records that wait to be written while the store cannot be written to."""

_TIER, _TOKENS = attrgetter("tier"), attrgetter("tokens")
_AFTER_NUMBER = attrgetter(
    *(field.name for field in fields(requests.RequestRecord)[1:])
)  # a quarter of the time of replace()


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
    before: Sequence[ViewEntry], now: Sequence[ViewEntry], last: requests.RequestRecord, compactions: int
) -> SharedPrefix:
    """Compare a request's entries with those of the one before; ``compactions`` are in effect now."""
    is_same = [*map(is_, before, now), False]  # nearly all are the same objects
    alike = is_same.index(False)
    while alike < len(is_same) - 1 and before[alike].messages == now[alike].messages:
        alike += 1
    tokens = sum(map(_TOKENS, now[:alike]))
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
        is_by_hand = new.why.split(":")[0] in BY_APPLICATION
        return "edit" if is_by_hand else "compaction", old.handle, new.why
    return "other", old.handle, "its content changed"


def _block_cause(entry: ViewEntry) -> BreakCause:
    return "facts" if entry.tier == "facts" else "ledger" if entry.tier == "ledger" else "page-in"


class RunRequests:
    """The requests of a memory: the last one, what it showed, and the records that are not written yet."""

    def __init__(self, runtime: MemoryRuntime, model: str, policy: str) -> None:
        self._runtime = runtime
        root = runtime.branches.root
        self.table = root.store.request_table(root.session)
        self.model, self._policy, self._counter = model, policy, counter_key(runtime.state.counter)
        self.last: requests.RequestRecord | None = None
        self.written = 0
        """The tokens that the provider wrote to its cache, of the usage that is recorded and not noted yet."""
        self._last_at = 0.0  # the time at which it was rendered last
        self._last_entries: tuple[ViewEntry, ...] = ()
        self._is_changed = False  # the last record is to be written, or written again
        self._changed: list[requests.RequestRecord] = []  # earlier records that are to be written again
        self._account: CostAccount | None = None  # of all requests before the last; None until it is asked for

    # Noting

    def note(self, view: View, raw: RawRequest, request: dict[str, Any], filter: requests.RequestFilter) -> None:
        """Note a request that was rendered. The same one again is no other request until its outcome is known."""
        self.learn_recorded_usage()
        entries = view.request_entries
        prefix = self._compare(entries, raw.form.name)
        record = self._make_record(view, filter, prefix, raw, hash_request(request, raw.hashes()))
        if not self._is_again(record):
            if prefix.cause:
                event = PrefixBreak(
                    prefix.cause, prefix.broke, prefix.why, prefix.tokens, prefix.rewritten, view.tokens
                )
                self._runtime.note_break(event)
            self._begin(record)
        self._last_entries, self._last_at = entries, record.at

    def _compare(self, entries: Sequence[ViewEntry], format: str) -> SharedPrefix:
        """Compare a request's entries with those of the last one."""
        last, branch = self.last, self._runtime.branches.current
        if last is None:
            return SharedPrefix()
        if last.format != format:
            return SharedPrefix(0, "format", "format", f"it was {last.format}")
        prefix = compare_prefix(self._last_entries, entries, last, len(self._runtime.state.fold.compactions))
        if prefix.cause and last.branch != branch:
            return replace(prefix, cause="branch", why=f"the last request was of {last.branch}")
        return prefix

    def _make_record(
        self, view: View, filter: requests.RequestFilter, prefix: SharedPrefix, raw: RawRequest, digest: str
    ) -> requests.RequestRecord:
        runtime, state = self._runtime, self._runtime.state
        budget = state.usage.budget if filter.max_tokens is None else Budget(filter.max_tokens)
        facts, (action, used) = _facts_records(view, state.facts_block.current), state.page_in.used
        return requests.RequestRecord(
            head=view.head, at=runtime.clock(), branch=runtime.branches.current, model=self.model, format=raw.form.name,
            counter=self._counter, budget=budget.window, reserve=budget.window - budget.limit, limit=view.limit,
            tokens=view.tokens, tiers=_tokens_by_tier(view), digest=digest, compactions=len(state.fold.compactions),
            prefix=prefix.tokens, broke=prefix.broke, broke_why=prefix.why, rewritten=prefix.rewritten,
            recorded=state.fold.costs.total, used=used if self.last and action >= self.last.head else (), filter=filter,
            page_ins=_page_in_records(view, state.page_in.in_last_view), facts=facts,
            owners=runtime.facts.owner_names if facts else {}, plan=self._unrecorded_plan(view, budget, filter),
            roles=runtime.role_names, bytes=state.usage.byte_limit,
            lists=tuple(digest.hex() for digest in raw.request_hashes(has_ending=view.has_ending)),
        )  # fmt: skip

    def _unrecorded_plan(
        self, view: View, budget: Budget, filter: requests.RequestFilter
    ) -> requests.UnrecordedPlan | None:
        is_narrow = filter == requests.NO_FILTER and self._runtime.state.usage.is_narrow
        if filter == requests.NO_FILTER and not is_narrow:
            return None
        share = self._runtime.state.page_in.share
        return requests.UnrecordedPlan(self._policy, budget, share, is_narrow, view.extract_worth)

    def _is_again(self, record: requests.RequestRecord) -> bool:
        """True if the last request was rendered again before its outcome is known."""
        last = self.last
        if last is None or last.outcome or last.usage is not None:
            return False
        return (last.digest, last.head, last.branch, last.format, last.filter) == (
            record.digest, record.head, record.branch, record.format, record.filter
        )  # fmt: skip

    def _begin(self, record: requests.RequestRecord) -> None:
        """Put a new request in the place of the last one."""
        if self.last is not None and self._is_changed:
            self._changed.append(self.last)
            del self._changed[:-MAX_UNWRITTEN]
        if self.last is not None and self._account is not None:
            self._account.add(self.last)
        self._change_last(record)

    def _change_last(self, record: requests.RequestRecord) -> None:
        self.last, self._is_changed = record, True

    def learn_recorded_usage(self) -> None:
        """Note the usage that was recorded since the last request."""
        state = self._runtime.state.usage
        if state.reported is not None:  # else another task's turn comes before the one that records it
            usage, state.reported = state.reported, None
            written, self.written = self.written, 0  # which no step has
            self._learn_usage(
                requests.RequestUsage(usage.input_tokens, usage.output_tokens, usage.cached_tokens, written)
            )

    def note_written(self, usage: Any) -> None:
        """Note the tokens written to the cache of a usage that is about to be recorded."""
        self.written = requests.read_request_usage(usage).cache_written

    def observe_usage(self, usage: Any) -> None:
        """Note what the provider reported for the last request. Raises ConfigurationError."""
        self._learn_usage(requests.read_request_usage(usage))

    def _learn_usage(self, usage: requests.RequestUsage | None) -> None:
        """Note the usage of the last request, unless it is known; it is written with the next request."""
        if usage is not None and self.last is not None and self.last.usage is None:
            self._change_last(replace(self.last, usage=usage))

    def _note_writers(self) -> None:
        """Note with the last request what models wrote beside the run; without one it waits for the first."""
        if self.last is not None and (spent := self._runtime.take_spent()):
            self._change_last(replace(self.last, writers=add_spent(self.last.writers, spent)))

    def note_outcome(
        self,
        outcome: str,
        *,
        number: int | None,
        usage: Any = None,
        seconds: Mapping[str, float] | None,
        notes: Mapping[str, str] | None,
    ) -> None:
        """Note what became of a request. Raises UnknownRequest, ConfigurationError, LogError."""
        if not isinstance(outcome, str):
            raise ConfigurationError(f"an outcome is a word, not {outcome!r}")
        report = None if usage is None else requests.read_request_usage(usage)
        last = self.last if self.last is not None and number in (None, self.last.number) else None
        record = requests.with_outcome(last or self.find(number), outcome, report, seconds or {}, notes or {})
        if last is not None:
            self._change_last(record)
            self.write()
        else:
            self._account = None  # it has the record as it was
            self.table.replace(record.number, requests.encode_record(record))

    # The table

    def write(self) -> None:
        """Write what changed; where another writes at that moment, the next call does. A failure is a problem, and fails no turn."""
        if self._runtime.log.readonly:
            return
        self._note_writers()
        with self._runtime.state.problems.guard("a request is not in the table of requests"), suppress(LogBusy):
            while self._changed:
                self._write(self._changed[0])
                del self._changed[0]
            if self.last is not None and self._is_changed:
                self.last, self._is_changed = self._write(self.last), False

    def _write(self, record: requests.RequestRecord) -> requests.RequestRecord:
        if record.number:
            self.table.replace(record.number, requests.encode_record(record))
            return record
        return requests.RequestRecord(
            self.table.add(record.head, record.at, requests.encode_record(record)), *_AFTER_NUMBER(record)
        )

    def read(self, after: int, limit: int | None) -> tuple[requests.RequestRecord, ...]:
        """The records behind a number, oldest first. Raises LogError."""
        self._runtime.check_open()
        self.learn_recorded_usage()
        self.write()
        return requests.read_records(self.table, after, limit)

    def remember_recent(self) -> Sequence[requests.RequestRecord]:
        """Let the run know the last requests of its branch that were given out, by other processes too, and return them.

        One with what a list changed later is left out: a list that has it again is compared by what it says. A failure is a
        problem of the run.
        """
        state, branch = self._runtime.state, self._runtime.branches.current
        records: list[requests.RequestRecord] = []
        with state.problems.guard("a request that comes back may not be known"):
            rows = requests.read_records(self.table, self.table.last() - RECENT_REQUESTS, None)
            records += (record for record in rows if record.branch == branch and state.fold.shows_as_at(record.head))
        remember_records(state, records)
        return records

    def find(self, number: int | None) -> requests.RequestRecord:
        """The record of that number, or the last one. Raises UnknownRequest, LogError."""
        self._runtime.check_open()
        if number is None:
            number = self.last.number if self.last is not None and self.last.number else self.table.last()
        record = next(iter(requests.read_records(self.table, number - 1, 1)), None) if number > 0 else None
        if record is None or record.number != number:
            raise UnknownRequest(number, self.table.last())
        return record

    def seconds_since_last(self) -> float | None:
        """The seconds since the last request; None where there is none, it is not known, or nothing may be written."""
        at = None if self.last is None else self._last_at
        if self._runtime.log.readonly:
            return None
        if at is None:
            with suppress(LogError):
                at = next((row.at for row in self.table.rows(self.table.last() - 1, 1)), None)
        return None if at is None else self._runtime.clock() - max(at, self._runtime.state.usage.answered_at)

    # What they cost

    def cost(self) -> RunCost:
        """The cost of all requests. Raises LogError."""
        self._runtime.check_open()
        self.learn_recorded_usage()
        self._note_writers()
        if self._account is None:
            account = CostAccount(self._runtime.state.page_in.prices)
            for record in requests.read_records(self.table, 0, None):
                if self.last is None or record.number != self.last.number:
                    account.add(record)
            self._account = account
        return self._account.cost_with(self.last)

    def known_cost(self) -> RunCost | None:
        """The cost of all requests, None where the earlier ones were not read yet."""
        return None if self._account is None else self._account.cost_with(self.last)


def _tokens_by_tier(view: View) -> dict[str, int]:
    """The tokens of a view by tier; ``request`` is what every request costs beside its messages."""
    tiers: dict[str, int] = {}
    for tier, entries in groupby(view.request_entries, _TIER):
        tiers[tier] = tiers.get(tier, 0) + sum(map(_TOKENS, entries))
    rest = view.tokens - sum(tiers.values())
    return tiers | ({"request": rest} if rest else {})


def _page_in_records(view: View, shown: Sequence[PageIn]) -> tuple[requests.PageInRecord, ...]:
    """The records of the page-ins that a view shows."""
    known = {id(page_in.entry): page_in for page_in in shown}
    records: list[requests.PageInRecord] = []
    for entry in view.tail:
        if entry.tier != "recalled":
            continue
        page_in = known.get(id(entry))
        if page_in is None:
            records.append(requests.PageInRecord(entry.first, is_complete=False))
        else:
            is_complete = all(source.lines is not None for source in page_in.sources)
            records.append(requests.PageInRecord(entry.first, page_in.sources, page_in.names, is_complete))
    return tuple(records)


def _facts_records(view: View, shown: ShownFacts) -> tuple[requests.FactsRecord, ...]:
    """The records of the blocks of facts in a view's tail."""
    placed = {id(entry): block for entry, block in zip(shown.entries, shown.blocks, strict=True)}
    records: list[requests.FactsRecord] = []
    for entry in view.tail:
        block = placed.get(id(entry))
        if block is not None:
            ids = tuple((id, line.rpartition("; newer: ")[2].rstrip(")") if "; newer: " in line[-60:] else "")
                        for id, line in block.lines)  # fmt: skip
            records.append(requests.FactsRecord(entry.first, ids, is_later=bool(records)))
    return tuple(records)
