"""Runs, requests, steps and searches of a store, as JSON values. Nothing is written to the store.

The last runs asked about stay open. Every function may be called from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from pagein.backends.base import Store
from pagein.backends.open import display_name, open_store
from pagein.context.costs import RunCost
from pagein.context.view.layout import ContextBlock, ViewEntry
from pagein.context.view.view import View
from pagein.errors import PageinError
from pagein.events.entries import Compaction, Erased
from pagein.events.handles import parse_handle, range_handle, step_handle
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, Step, as_text, kind_name
from pagein.facts.owners import is_reserved
from pagein.log.base import Entry
from pagein.log.encryption import Key
from pagein.log.requests import RequestTable
from pagein.memory.costs import CostAccount
from pagein.memory.host_memory import RecordedRun
from pagein.memory.operations.requests import RenderedRequest
from pagein.memory.requests import RequestRecord, last_record, read_records
from pagein.search.base import Hit
from pagein.server.inspector.journal import Journal, asked_for, page_in_kinds
from pagein.server.inspector.scan import SearchCursor, scan_runs
from pagein.tokens.encodings import Encoding
from pagein.tokens.prices import PRICES

MAX_OPEN_RUNS = 8
MAX_TEXT_CHARACTERS = 20_000
"""Characters of a text that a page gets; the whole one has an address of its own."""

SEARCH_LIMIT = 40
Json = dict[str, Any]


class NotFound(PageinError):
    """There is no such run, request or step."""


class InspectorData:
    """The data of one store, for one tenant. Raises what opening the store raises."""

    def __init__(self, address: str, *, tenant: str = "", key: Key | None = None) -> None:
        self._address, self._tenant, self._key = address, tenant, key
        self._lock = threading.RLock()
        self._runs: OrderedDict[str, _OpenRun] = OrderedDict()
        self._store: Store = open_store(address, tenant=tenant, readonly=True, key=key)
        self._store.sessions()

    def close(self) -> None:
        """Close the store; a second call does nothing."""
        with self._lock:
            while self._runs:
                self._runs.popitem()[1].recorded.close()
            self._store.close()

    # Runs

    def runs(self) -> Json:
        """Every run, the one with the newest request first: entries, requests, and its last request."""
        with self._lock:
            names = [name for name in self._store.sessions() if not is_reserved(name)]
            runs = [self._run_row(name) for name in names]
        runs.sort(key=lambda row: -(row["at"] or 0.0))
        return {"runs": runs, "store": display_name(self._address)}

    def _run_row(self, name: str) -> Json:
        table = self._store.request_table(name)
        row: Json = {
            "run": name, "entries": self._store.head(name), "requests": 0, "last": None, "at": None, "problem": "",
        }  # fmt: skip
        try:
            row["requests"], last = table.last(), last_record(table)
        except PageinError as error:
            return row | {"problem": str(error)}
        return row if last is None else row | {"last": record_row(last), "at": last.at}

    def requests(self, run: str, after: int = 0) -> Json:
        """The requests of a run with numbers above ``after``; ``held`` is what the whole history cost at each."""
        rows = list(map(record_row, read_records(self._table(run), after)))
        return {"run": run, "requests": rows, "entries": self._store.head(run)}

    def cost(self, run: str) -> Json:
        """The cost of a run's requests and of the models that write beside it, as ``memory.cost()`` has it."""
        with self._lock:
            costs = self._open(run).costs
            cost = costs.read(self._table(run))
        totals = {"total": cost.total, "cached_share": cost.cached_share, "net": cost.net}
        return {"run": run, "cost": asdict(replace(cost, lines=())) | totals}

    def marks(self, run: str) -> Json:
        """The number of entries of a run, and of its last request: they differ once it went on."""
        return {"entries": self._store.head(run), "last": self._table(run).last()}

    # One request

    def request(self, run: str, number: int) -> Json:
        """A request block by block, with reasons and handles; what is out of it; whether it is what was sent."""
        return describe_request(run, self.render(run, number))

    def raw(self, run: str, number: int) -> Json:
        """A request as it was rendered for its provider."""
        return self.render(run, number).request

    def diff(self, run: str, before: int, number: int) -> Json:
        """The entries that came, left and changed from one request to another."""
        return describe_changes(run, self.render(run, before), self.render(run, number))

    def render(self, run: str, number: int | None = None) -> RenderedRequest:
        """A request rendered again, the last one without a number. Raises NotFound, UnknownRequest, LogError."""
        with self._lock:
            return self._open(run).recorded.request(number)

    # One step

    def step(self, run: str, handle: str) -> Json:
        """A step and its life: when it was recorded, replaced, brought back and asked for."""
        parsed = parse_handle(handle)
        if parsed is None:
            raise NotFound(f"{handle!r} is no handle")
        with self._lock:
            recorded, journal, _ = self._read_journal(run)
            text = str(recorded.expand(handle, journal.answers))
            entries = list(recorded.log.read(parsed.first, parsed.last))
            life = sorted(_life(entries, journal, parsed.first, parsed.last), key=lambda event: event["at"])
        body = entries[0].body if entries else None
        kind = kind_name(body) if isinstance(body, Step) else type(body).__name__.lower()
        return {"run": run, "handle": handle, "kind": kind, "life": life, **clipped(text)}

    def list_asked_again(self, run: str) -> Json:
        """Return what a run forgot, as far as it is known: what was asked for again, called again, or brought back."""
        with self._lock:
            return {"run": run, "asked": self._read_journal(run).journal.list_asked_again()}

    def text(self, run: str, handle: str) -> str:
        """The whole text of a step."""
        with self._lock:
            recorded, journal, _ = self._read_journal(run)
            return str(recorded.expand(handle, journal.answers))

    def search(self, query: str, run: str | None = None, start: SearchCursor | None = None) -> Json:
        """The passages of a run, or of all runs, that fit a query, best first; ``next`` is where a long search goes on."""
        names = [name for name in self._store.sessions() if not is_reserved(name)]
        if run is not None and run not in names:
            raise NotFound(f"there is no run {run!r}")
        result = scan_runs(self._store, query, names if run is None else [run], start, SEARCH_LIMIT)
        return {
            "query": query, "hits": [_hit_row(hit) for hit in result.hits], "entries": result.entries, "runs": result.runs,
            "unread": list(result.unread), "next": None if result.next is None else list(result.next),
        }  # fmt: skip

    # Open runs

    def _table(self, run: str) -> RequestTable:
        if run not in self._store.sessions():
            raise NotFound(f"there is no run {run!r}")
        return self._store.request_table(run)

    def _read_journal(self, run: str) -> _OpenRun:
        opened = self._open(run)
        opened.journal.read(opened.recorded.log, opened.recorded.table)
        return opened

    def _open(self, run: str) -> _OpenRun:
        if run not in self._runs:
            self._runs[run] = _OpenRun(self._open_recorded(run), Journal(), _Costs())
            while len(self._runs) > MAX_OPEN_RUNS:
                self._runs.popitem(last=False)[1].recorded.close()
        self._runs.move_to_end(run)
        return self._runs[run]

    def _open_recorded(self, run: str) -> RecordedRun:
        last = last_record(self._table(run))
        budget = max(1, last.budget) if last is not None and last.budget else 1_000_000_000
        return RecordedRun(self._store, run, budget=budget, facts=False)


class _OpenRun(NamedTuple):
    recorded: RecordedRun
    journal: Journal
    costs: _Costs


@dataclass(slots=True)
class _Costs:
    """The account of a run's requests up to ``number``: all but the last, which may still change."""

    account: CostAccount = field(default_factory=lambda: CostAccount(PRICES["default"]))
    number: int = 0

    def read(self, table: RequestTable) -> RunCost:
        """The cost of all requests; those of last time are not read again."""
        if table.last() < self.number:  # the run was erased, and began again
            self.account, self.number = CostAccount(PRICES["default"]), 0
        records = read_records(table, self.number)
        for record in records[:-1]:
            self.account.add(record)
            self.number = record.number
        return self.account.cost_with(records[-1] if records else None)


# Rows


def describe_request(run: str, again: RenderedRequest) -> Json:
    """A request block by block, with reasons and handles; what is out of it; whether it is what was sent."""
    view = again.view
    blocks = [block_row(entry) for entry in view.request_entries if entry.messages]
    return {
        "run": run, "record": record_row(again.record) | full_record(again.record), "problem": again.problem,
        "blocks": blocks, "rest": view.tokens - sum(block["tokens"] for block in blocks),
        "out": [asdict(item) for item in view.report.out], "tools": tokens_by_tool(view),
    }  # fmt: skip


def describe_changes(run: str, old: RenderedRequest, new: RenderedRequest) -> Json:
    """The entries that came, left and changed from one request to another."""
    shared = 0
    for one, other in zip(old.view.request_entries, new.view.request_entries, strict=False):
        if one.messages != other.messages:
            break
        shared += other.tokens
    return {
        "run": run, "before": record_row(old.record), "after": record_row(new.record), "shared": shared,
        "changes": list(_changes(old.view, new.view)), "problem": old.problem or new.problem,
    }  # fmt: skip


_LISTED = ("number", "head", "at", "branch", "model", "format", "limit", "tokens", "tiers", "prefix", "broke", "compactions",
           "outcome", "seconds")  # fmt: skip


def load_modules() -> None:
    """Load what rendering the first request needs: it takes longer than rendering one."""
    import pagein.context.ledger.run_ledger  # noqa: F401, PLC0415 - the first view of all runs does without

    Encoding("o200k_base").text("a")


def record_row(record: RequestRecord) -> Json:
    """The numbers of a request, for lists; ``held`` is what the whole history cost then."""
    row = {name: getattr(record, name) for name in _LISTED}
    usage = None if record.usage is None else asdict(record.usage)
    return row | {"usage": usage, "why": record.broke_why, "held": record.recorded}


def full_record(record: RequestRecord) -> Json:
    """The rest of a request's record, for its own page."""
    return {
        "budget": record.budget, "reserve": record.reserve, "digest": record.digest, "notes": dict(record.notes),
        "reasons": [list(pair) for page_in in record.page_ins for pair in page_in.reasons],
        "filter": asdict(record.filter), "owners": dict(record.owners),
    }  # fmt: skip


def block_row(entry: ViewEntry) -> Json:
    """An entry of a request: its handle, tier, tokens and reason, and what it says."""
    text = "\n\n".join(part for message in entry.messages if (part := message_text(message)))
    is_block = isinstance(entry.item, ContextBlock)
    return {
        "handle": "" if is_block else entry.handle, "first": entry.first, "last": entry.last, "tier": entry.tier,
        "why": entry.why, "tokens": entry.tokens, "kind": entry.item.kind if isinstance(entry.item, ContextBlock) else
        type(entry.item).__name__, "roles": [message.role for message in entry.messages],
        "tools": [call.name for message in entry.messages for call in message.tool_calls],
        **clipped(text),
    }  # fmt: skip


def _hit_row(hit: Hit) -> Json:
    names = {"run": hit.session, "handle": hit.handle, "role": hit.role, "at": hit.at, "why": hit.why}
    return names | clipped(hit.text)


def message_text(message: Message) -> str:
    """The text of a message, with its calls."""
    calls = (f"→ {call.name}({call.arguments})" for call in message.tool_calls)
    text = as_text(message.content) if message.content is not None else ""
    return "\n".join(part for part in (text, *calls) if part)


def clipped(text: str) -> Json:
    """A text for a page: its beginning where it is long, and its length."""
    return {"text": text[:MAX_TEXT_CHARACTERS], "characters": len(text)}


def tokens_by_tool(view: View) -> list[Json]:
    """The tokens of a request's actions by the tools they call, most first."""
    sums: dict[str, list[int]] = {}
    for entry in view.run:
        if isinstance(entry.item, ActionStep) and entry.item.tool_calls:
            name = ", ".join(dict.fromkeys(call.name for call in entry.item.tool_calls))
            total = sums.setdefault(name, [0, 0])
            total[0] += 1
            total[1] += entry.tokens
    return [
        {"tool": name, "steps": steps, "tokens": tokens}
        for name, (steps, tokens) in sorted(sums.items(), key=lambda item: -item[1][1])
    ]


def _changes(old: View, new: View) -> Iterator[Json]:
    """The entries that came, left and changed, in the order of the new request; what left is at its place in the old one."""
    before = {_entry_key(entry): entry for entry in old.request_entries}
    after = {_entry_key(entry): entry for entry in new.request_entries}
    for key, entry in before.items():
        if key not in after:
            yield _change("left", entry, -entry.tokens)
    for key, entry in after.items():
        earlier = before.get(key)
        if earlier is None:
            yield _change("came", entry, entry.tokens)
        elif earlier.messages != entry.messages:
            yield _change("changed", entry, entry.tokens - earlier.tokens) | {"was": earlier.tier}


def _entry_key(entry: ViewEntry) -> tuple[object, ...]:
    return (entry.item.kind,) if isinstance(entry.item, ContextBlock) else (entry.first, entry.last)


def _change(what: str, entry: ViewEntry, tokens: int) -> Json:
    row = block_row(entry)
    return {"what": what, "delta": tokens} | {
        name: row[name] for name in ("handle", "tier", "why", "tokens", "kind", "first")
    }


def _life(entries: Sequence[Entry], journal: Journal, first: int, last: int) -> Iterator[Json]:
    """The events in the life of the steps ``[first, last)``, which ``entries`` are."""
    for entry in entries:
        yield _event(entry.at, "recorded" if entry.erased is None else f"erased at {step_handle(entry.erased)}")
    for event in journal.events:
        yield from _later_events(event, first, last)
    for record, page_in in journal.page_ins:
        if kinds := page_in_kinds(page_in, first, last):
            yield _event(record.at, "came back", ", ".join(kinds), record.number)


def _event(at: float, what: str, why: str = "", request: int = 0) -> Json:
    return {"at": at, "what": what, "why": why, "request": request}


def _later_events(entry: Entry, first: int, last: int) -> Iterator[Json]:
    """The events of a later entry for the steps ``[first, last)``."""
    match entry.body:
        case Compaction(at_steps=replacements, policy=policy, reason=reason):
            for by in replacements:
                if by.first < last and first < by.last:
                    tiers = dict.fromkeys(stub.tier for stub in by.stubs)
                    tier = ", ".join(tiers) if by.summary is None else "summary"
                    yield _event(entry.at, f"{tier} of {range_handle(by.first, by.last)}", f"{policy}: {reason}")
        case Erased(spans=spans, reason=reason):
            if any(start < last and first < stop for start, stop in spans):
                yield _event(entry.at, "erased", reason)
        case ActionStep(tool_calls=calls):
            for call in calls:
                if asked_for(call, first, last):
                    yield _event(entry.at, f"asked for by {call.name}", step_handle(entry.position))
        case _:
            pass
