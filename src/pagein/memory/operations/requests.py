"""Rendering a request of the past again: the log folded to its head, and what stood behind the run made from its places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pagein.context.compaction.registry import policy_named
from pagein.context.page_in import HEAD, NAMED, WHY, RecalledTurn
from pagein.context.page_in_sources import BlockSource, line_block, numbered_lines, text_checksum, tracked_by_order
from pagein.context.view.fold import Fold, make_entry, undone_positions
from pagein.context.view.layout import ContextBlock
from pagein.context.view.view import View, ViewEntry
from pagein.errors import PageinError
from pagein.events.entries import Erased, Observed
from pagein.events.quoting import quote_lines
from pagein.formats import format_named
from pagein.log.base import Entry, Log
from pagein.log.requests import hash_request
from pagein.memory._effects import Call, Flow, Read
from pagein.memory._state import FoldedLog, RunState
from pagein.memory.operations.byte_limit import hold_to_bytes
from pagein.memory.operations.history import expand
from pagein.memory.operations.view import add_ledger, filtered_view, narrow_view
from pagein.memory.requests import NO_FILTER, PageInRecord, RequestRecord

if TYPE_CHECKING:
    from pagein.facts.fact import Fact
    from pagein.memory._runtime import MemoryRuntime
    from pagein.search.passages import Passage

FACTS_WHY = "known, and likely to matter"


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """A request of the past, rendered again: the ``view`` it was, and the ``request`` in its format.

    ``problem`` is "" where its digest is that of the request that was sent; else it says what is not as it was.
    """

    record: RequestRecord
    view: View
    request: dict[str, Any]
    problem: str = ""


def render_again(run: RunState, record: RequestRecord) -> Flow[RenderedRequest]:
    """Render a request again. Raises LogError where the log cannot be read."""
    log = yield from Call(lambda runtime: runtime.branch_log(record.branch))
    entries = yield from Read(0, record.head, log)
    past = _PastRun(run, record, entries, log)
    view = yield from past.view()
    request = format_named(record.format).render(view.messages())
    problem = "" if hash_request(request) == record.digest else past.problem()
    return RenderedRequest(record, view, request, problem)


class _PastRun:
    """The run as it was when a request was made."""

    def __init__(self, run: RunState, record: RequestRecord, entries: Sequence[Entry], log: Log) -> None:
        self._run, self._record, self._entries, self._log = run, record, entries, log
        self._missing: list[str] = []
        self._state = run.for_branch()
        skip = undone_positions(entry.body for entry in entries)
        self._state.log = FoldedLog(Fold(run.counter, skip=skip))

    def view(self) -> Flow[View]:
        """The view of the request."""
        record, state = self._record, self._state
        state.usage.byte_limit = record.bytes
        tail: list[ViewEntry] = []
        folded = 0
        for page_in in record.page_ins:
            state.log.apply(self._entries[folded : page_in.head])
            folded = page_in.head
            tail.append((yield from self._page_in(page_in)))
        state.log.apply(self._entries[folded:])
        plan = record.plan
        if plan is not None:
            state.usage.budget, state.page_in.share = plan.budget, plan.page_in
            if plan.policy:
                state.policy = policy_named(plan.policy)
        if record.filter != NO_FILTER:
            return (yield from filtered_view(state, record.filter, record.limit, self._log))
        view = state.view(record.limit)
        facts = yield from self._facts()
        if plan is not None and plan.is_narrow:
            view, facts = narrow_view(state, view, facts, record.limit)
        view = add_ledger(state, hold_to_bytes(state, view, state.usage.budget))
        return view.with_tail((*facts, *tail)) if facts or tail else view

    def problem(self) -> str:
        """Say why the request is not the one that was sent, as far as that is known."""
        if any(isinstance(entry.body, Erased) or entry.erased is not None for entry in self._entries):
            return "something in it was erased since"
        if len(self._entries) < self._record.head:
            return "the log is shorter than it was"
        if self._missing:
            return f"{', '.join(dict.fromkeys(self._missing))} cannot be made again"
        if not self._record.digest:
            return "what was sent is not known: its record was too long"
        return "it does not equal what was sent: other options, another release, or another memory's roles"

    # What came back

    def _page_in(self, record: PageInRecord) -> Flow[ViewEntry]:
        """The page-in, from the run as it was at the page-in's head."""
        turns: list[tuple[int, str]] = []
        blocks: list[str] = []
        tracker = self._state.fold.tracker
        by_order = tracked_by_order(tracker) if record.blocks else {}
        try:
            if record.names:
                names = list(tracker.names)
                blocks.append(NAMED + " ".join(names[number] for number in record.names))
            for source in record.blocks:
                if source.kind == "turn":
                    turns.append((source.position, (yield from self._turn(source))))
                elif source.kind == "lines":
                    blocks.append(line_block(source.position, [by_order[at] for at in source.lines or ()]))
                else:
                    blocks.append(self._found_block(source, record.head))
        except (IndexError, KeyError, StopIteration, PageinError):
            self._missing.append("the page-in")
        if not record.is_complete:
            self._missing.append("the page-in")
        in_order = (block for _, block in sorted(turns, key=lambda turn: turn[0]))
        item = ContextBlock("recalled", "\n".join((HEAD, *in_order, *blocks)))
        return make_entry(item, record.head, record.head, self._run.counter, tier="recalled", why=WHY)

    def _found_block(self, source: BlockSource, head: int) -> str:
        """A block of search results."""
        passage = next(
            passage for passage in self._passages(source) if text_checksum(passage.text) == source.of
        )  # fmt: skip
        lines = numbered_lines(passage.text, source.lines or ())
        return "\n".join(
            (f"[{passage.handle}] {passage.role}, {head - source.position} entries ago:", *map(quote_lines, lines))
        )

    def _turn(self, source: BlockSource) -> Flow[str]:
        """A turn for the user's words."""
        passages = list(self._passages(source))
        first = passages[0]
        text = first.text if first.whole else str((yield from expand(self._state, first.handle, self._log)))
        from pagein.context.page_in import REPLACED  # noqa: PLC0415

        for old in self._state.fold.ledger.superseded_texts().get(source.position, ()):
            text = text.replace(old, REPLACED)
        shown = "\n".join(numbered_lines(text, source.lines or ()))
        return RecalledTurn(source.position, first.handle, first.role, first.at, shown, 0.0).render()

    def _passages(self, source: BlockSource) -> Iterator[Passage]:
        """The passages of a text, as the search index has them."""
        from pagein.search.passages import passages  # noqa: PLC0415 - loads where something was found

        for entry in self._entries[source.position :]:
            is_own = entry.position == source.position
            body = entry.body
            if is_own or (isinstance(body, Observed) and body.action == source.position):
                for passage in passages(entry):
                    if (passage.position, passage.part) == (source.position, source.part):
                        yield passage

    def _facts(self) -> Flow[tuple[ViewEntry, ...]]:
        """The blocks of facts in the tail."""
        if not self._record.facts:
            return ()
        facts = yield from Call(self._find_facts)
        entries: list[ViewEntry] = []
        for block in self._record.facts:
            if not all(id in facts for id, _ in block.ids):
                self._missing.append("a block of facts")
                continue
            shown = [replace(facts[id], disputed_by=disputed_by) for id, disputed_by in block.ids]
            item, at = ContextBlock("facts", facts_text(shown, is_later=block.is_later)), block.position
            entries.append(make_entry(item, at, at, self._run.counter, tier="facts", why=FACTS_WHY))
        return tuple(entries)

    def _find_facts(self, runtime: MemoryRuntime) -> dict[str, Fact]:
        """The facts that were shown, by id, as they were stated; those that are gone are left out."""
        from pagein.events.entries import FactStated  # noqa: PLC0415
        from pagein.facts.fact import fact_from_entry, parse_fact_id  # noqa: PLC0415 - loads where facts were shown
        from pagein.facts.owners import Owners  # noqa: PLC0415

        found: dict[str, Fact] = {}
        root = runtime.branches.root
        owners = Owners(root.session, tenant=root.tenant, **self._record.owners)
        for id in {id for block in self._record.facts for id, _ in block.ids}:
            scope, position = parse_fact_id(id)
            with suppress(PageinError), closing(runtime.facts.store.log(owners.log_name(scope))) as log:
                entry = next(iter(log.read(position, position + 1)), None)
                if entry is not None and isinstance(entry.body, FactStated) and entry.erased is None:
                    found[id] = fact_from_entry(entry.position, entry.at, entry.body)
        return found


def facts_text(facts: Sequence[Fact], *, is_later: bool) -> str:
    """The text of a block of these facts, in their order."""
    from pagein.facts.block import ABOUT, render_line  # noqa: PLC0415 - loads where facts were shown
    from pagein.facts.placement import LATER_BLOCK_ABOUT  # noqa: PLC0415

    lines = [LATER_BLOCK_ABOUT if is_later else ABOUT]
    for category, group in groupby(facts, key=lambda fact: fact.category):
        lines += (f"{category}:", *map(render_line, group))
    return "\n".join(lines)
