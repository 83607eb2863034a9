"""Rendering a request of the past again: the log folded to its head, and what stood behind the run made from its places."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pagein.context.compaction.registry import policy_named
from pagein.context.page_in.block import REPLACED, day_of, line_block, passage_block, render_page_in, turn_block
from pagein.context.page_in.files import file_block
from pagein.context.page_in.sources import BlockSource, has_checksum, numbered_lines, unpack_numbers
from pagein.context.salience.extract import ExtractLine
from pagein.context.view.fold import Fold, undone_positions
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.errors import PageinError
from pagein.events.entries import Erased, FactStated
from pagein.events.handles import observation_handle
from pagein.facts.owners import Owners
from pagein.formats import format_named
from pagein.formats.raw_messages import RawRequest, rename_roles
from pagein.log.base import Entry, Log
from pagein.log.requests import is_same_request
from pagein.memory._state import PAST_SNAPSHOT_ENTRIES, RECENT_REQUESTS, FoldedLog, RunState, SummaryState
from pagein.memory.operations.changed_requests import remember_request
from pagein.memory.operations.facts_block import facts_entry
from pagein.memory.operations.filtered_view import filtered_view
from pagein.memory.operations.history import expand
from pagein.memory.operations.load import keep_past, load_past
from pagein.memory.operations.view import add_ledger, narrow_view
from pagein.memory.requests import NO_FILTER, PageInRecord, RequestRecord
from pagein.memory.snapshots import counter_key
from pagein.tokens import TokenCounter
from pagein.tokens.encodings import Encoding
from pagein.tokens.windows import MODELS

if TYPE_CHECKING:
    from pagein.facts.fact import Fact
    from pagein.search.passages import Passage

MAX_PENDING_TEXTS = 2_048
"""Texts that are not learned from, at most: only a page-in of lines or names needs what is learned."""


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """A request of the past, rendered again: the ``view`` it was, and the ``request`` in its format.

    ``problem`` is "" where its digest is that of the request that was sent; else it says what is not as it was.
    """

    record: RequestRecord
    view: View
    request: dict[str, Any]
    problem: str = ""


def render_again(run: RunState, record: RequestRecord) -> RenderedRequest:
    """Render a request again. Raises LogError where the log cannot be read."""
    log = run.runtime.branch_log(record.branch)
    run = replace(run, counter=_counter_of(run, record))
    if run.past.counter != run.counter:
        run.past.clear()
        run.past.counter = run.counter
    past = _PastRun(run, record, log)
    view = past.view()
    form = format_named(record.format)
    request = form.render(view.messages())
    hashes = RawRequest(form, request["messages"]).hashes()
    problem = "" if is_same_request(request, hashes, record.digest) else past.problem()
    request["messages"] = rename_roles(request["messages"], record.roles)
    return RenderedRequest(record, view, request, problem)


def remember_rendered(run: RunState, records: Sequence[RequestRecord]) -> None:
    """Render the last of these requests again, and remember their messages: a list may be one that the host changed."""
    last = {record.digest: record for record in records}
    for record in [*last.values()][-RECENT_REQUESTS:]:
        view, form = render_again(run, record).view, format_named(record.format)
        raw = RawRequest(form, form.render(view.messages())["messages"])
        ending = raw.rows[-1] if view.has_ending else None
        remember_request(run.transcript, raw, run.log.count_fingerprints(record.head), ending)


def _counter_of(run: RunState, record: RequestRecord) -> TokenCounter:
    """The counter of a request, by its key: what it leaves out depends on what it counts. The run's, where it is not known."""
    known = (run.counter, MODELS.get(record.model).counter, Encoding("o200k_base"))
    return next((counter for counter in known if counter_key(counter) == record.counter), run.counter)


class _PastRun:
    """The run as it was when a request was made."""

    def __init__(self, run: RunState, record: RequestRecord, log: Log) -> None:
        self._run, self._record, self._log = run, record, log
        self._missing: list[str] = []
        self._state = run.for_branch()
        self._start, self._keeps_states = 0, False

    def view(self) -> View:
        """The view of the request."""
        record, state = self._record, self._state
        state.usage.byte_limit = record.bytes
        past, keys = self._run.past, [(record.branch, page_in) for page_in in record.page_ins]
        page_ins = {key: past.page_ins[key] for key in keys if key in past.page_ins}
        new = [page_in for branch, page_in in keys if (branch, page_in) not in page_ins]
        entries = self._begin(min((page_in.head for page_in in new), default=record.head))
        for page_in in new:
            self._fold_to(page_in.head, entries)
            page_ins[record.branch, page_in] = self._page_in(page_in)
        self._fold_to(record.head, entries)
        tail = [page_ins[key] for key in keys]
        if self._keeps_states:
            past.last, past.page_ins = (record.branch, state.log), {} if self._missing else page_ins
        plan = record.plan
        if plan is not None:
            state.usage.budget, state.page_in.share = plan.budget, plan.page_in
            if plan.policy:
                state.policy = policy_named(plan.policy)
            if plan.worth is not None:
                state.summaries, state.page_in.extract_worth = SummaryState(), plan.worth
        if record.filter != NO_FILTER:
            return filtered_view(state, record.filter, record.limit, self._log)
        view = state.view(record.limit)
        facts = self._facts()
        if plan is not None and plan.is_narrow:
            view, facts = narrow_view(state, view, facts, record.limit)
        view = add_ledger(state, view, state.usage.budget)
        return view.with_tail((*facts, *tail)) if facts or tail else view

    def _begin(self, before: int) -> tuple[Entry, ...]:
        """Load a state of at most ``before`` entries; return the entries that follow it, up to the request's head."""
        head = self._record.head
        log = load_past(self._run, self._record.branch, self._log, before)
        start = log.fold.head
        entries = self._run.runtime.read_entries(start, head, self._log)
        undone = undone_positions(entry.body for entry in entries)
        if start and (not undone <= log.fold.skip or any(isinstance(entry.body, Erased) for entry in entries)):
            log, start = FoldedLog(Fold(self._run.counter)), 0
            entries = self._run.runtime.read_entries(0, head, self._log)
            undone = undone_positions(entry.body for entry in entries)
        log.fold.skip |= undone
        log.fold.learned.tracker.max_pending = MAX_PENDING_TEXTS
        self._state.log, self._start, self._keeps_states = log, start, not undone
        return entries

    def _fold_to(self, head: int, entries: Sequence[Entry]) -> None:
        """Fold the entries up to a head; the states on the way that the store has not are kept."""
        log = self._state.log
        while log.fold.head < min(head, self._start + len(entries)):
            at = log.fold.head - self._start
            log.apply(entries[at : min(at + PAST_SNAPSHOT_ENTRIES, head - self._start)])
            if self._keeps_states and log.fold.head - self._start == at + PAST_SNAPSHOT_ENTRIES:
                keep_past(self._run, self._record.branch, log)

    def problem(self) -> str:
        """Say why the request is not the one that was sent, as far as that is known."""
        entries = self._run.runtime.read_entries(0, self._record.head, self._log)
        if any(isinstance(entry.body, Erased) or entry.erased is not None for entry in entries):
            return "something in it was erased since"
        if len(entries) < self._record.head:
            return "the log is shorter than it was"
        if self._missing:
            return f"{', '.join(dict.fromkeys(self._missing))} cannot be made again"
        if not self._record.digest:
            return "what was sent is not known: its record was too long"
        return "it does not equal what was sent: other options, or another release"

    # What came back

    def _page_in(self, record: PageInRecord) -> ViewEntry:
        """The page-in, from the run as it was at the page-in's head."""
        turns: list[tuple[int, str, str]] = []
        names: list[str] = []
        blocks: list[str] = []
        tracker = self._state.fold.learned.tracker
        has_lines = any(source.kind == "lines" for source in record.blocks)
        tables = (tracker.lines, tracker.old_actions) if has_lines else ()
        by_order = {line.order: line for table in tables for line in table.values()}
        try:
            if record.names:
                tracked_names = list(tracker.names)
                names = [tracked_names[number] for number in record.names]
            for source in record.blocks:
                if source.kind in ("turn", "recent"):
                    turns.append((source.position, *self._turn(source)))
                elif source.kind == "lines":
                    lines = [ExtractLine.of(by_order[at]) for at in source.lines or ()]
                    blocks.append(line_block(source.position, lines))
                elif source.kind == "file":
                    blocks.append(self._file_block(source, record.head))
                else:
                    blocks.append(self._found_block(source, record.head))
        except (IndexError, KeyError, PageinError):
            self._missing.append("the page-in")
        if not record.is_complete:
            self._missing.append("the page-in")
        return render_page_in(turns, names, blocks, record.head, self._run.counter)

    def _file_block(self, source: BlockSource, head: int) -> str:
        handle = observation_handle(source.position, source.part)
        lines = str(expand(self._state, handle, self._log)).splitlines()
        numbers = unpack_numbers(source.lines or (), len(lines))
        return file_block(source.position, source.part, lines, numbers, head).text

    def _found_block(self, source: BlockSource, head: int) -> str:
        passages = self._passages(source)
        passage = next((passage for passage in passages if has_checksum(passage.text, source.of)), None)
        if passage is None:
            raise IndexError(source.position)
        lines = numbered_lines(passage.text, source.lines or ())
        return passage_block(passage.handle, passage.role, head - source.position, lines)

    def _turn(self, source: BlockSource) -> tuple[str, str]:
        """The day and the block of a turn."""
        passages = self._passages(source)
        first = passages[0]
        text = first.text if first.whole else str(expand(self._state, first.handle, self._log))
        for old in self._state.fold.learned.ledger.superseded_texts().get(source.position, ()):
            text = text.replace(old, REPLACED)
        shown = "\n".join(numbered_lines(text, source.lines or ()))
        return day_of(first.at), turn_block(first.handle, first.role, shown)

    def _passages(self, source: BlockSource) -> list[Passage]:
        """The passages of a text, as the search index has them."""
        from pagein.search.passages import passages  # noqa: PLC0415 - loads where something was found

        found: list[Passage] = []
        fold = self._state.fold
        for at in (
            *reversed(fold.changes.wordings.get(source.position, ())),
            source.position,
            *fold.calls.answers.get(source.position, ()),
        ):
            for entry in self._run.runtime.read_entries(at, at + 1, self._log):
                found += (part for part in passages(entry) if (part.position, part.part) == source[1:3])
        return found

    def _facts(self) -> tuple[ViewEntry, ...]:
        """The blocks of facts in the tail."""
        if not self._record.facts:
            return ()
        facts = self._find_facts()
        entries: list[ViewEntry] = []
        for block in self._record.facts:
            if not all(id in facts for id, _ in block.ids):
                self._missing.append("a block of facts")
                continue
            shown = [replace(facts[id], disputed_by=disputed_by) for id, disputed_by in block.ids]
            text = facts_text(shown, is_later=block.is_later)
            entries.append(facts_entry(text, block.position, self._run.counter))
        return tuple(entries)

    def _find_facts(self) -> dict[str, Fact]:
        """The facts that were shown, by id, as they were stated; those that are gone are left out."""
        from pagein.facts.fact import fact_from_entry, parse_fact_id  # noqa: PLC0415 - loads where facts were shown

        found: dict[str, Fact] = {}
        root = self._run.runtime.branches.root
        owners = Owners(root.session, tenant=root.tenant, **self._record.owners)
        for id in {id for block in self._record.facts for id, _ in block.ids}:
            scope, position = parse_fact_id(id)
            with suppress(PageinError), closing(self._run.runtime.facts.store.log(owners.log_name(scope))) as log:
                entry = next(iter(log.read(position, position + 1)), None)
                if entry is not None and isinstance(entry.body, FactStated) and entry.erased is None:
                    found[id] = fact_from_entry(entry.position, entry.at, entry.body)
        return found


def facts_text(facts: Sequence[Fact], *, is_later: bool) -> str:
    """The text of a block of these facts, in their order."""
    from pagein.facts.block import ABOUT, render_inner  # noqa: PLC0415 - loads where facts were shown
    from pagein.facts.placement import LATER_BLOCK_ABOUT  # noqa: PLC0415

    return render_inner(facts, (), LATER_BLOCK_ABOUT if is_later else ABOUT)
