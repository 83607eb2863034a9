"""Runs behind a proxy: find the run of a request by content, record what is new, make the view, record the answer.

Everything here blocks: the proxy calls it in threads, and never twice at once for one name.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from types import UnionType
from typing import Any, Literal

from pagein._common.retry import retry_on_conflict
from pagein.backends.open import open_store
from pagein.context.view.view import View
from pagein.errors import FormatError, LogError, PageinError, UnknownBranch
from pagein.events.entries import BY_LIST
from pagein.events.protocol import fingerprint
from pagein.events.steps import ActionStep, SummaryStep, SystemPromptStep, as_text
from pagein.formats import Item, format_named
from pagein.formats.raw_messages import RawRequest, is_system, split_request
from pagein.memory.branches import MAIN
from pagein.server.budgets import BesideCounts, WindowTable, count_rows, request_room, window_budget
from pagein.server.clients import FULL_WINDOW, CompactionPoint
from pagein.server.memories import CERTAIN_ITEMS, NO_REACH, Lineage, MemoryPool, Reach, ServerMemory
from pagein.server.naming import KnownCalls
from pagein.server.wire import WireProtocol
from pagein.tokens.budget import RequestRoom
from pagein.tokens.bytes import json_bytes
from pagein.tokens.windows import MODELS

MAX_KNOWN_CHAINS, MAX_KNOWN_BYTES = 65_536, 64 * 1024 * 1024
"""Lists that are known by their hash, and bytes of the newest requests of all names that are kept, at most."""

CONFLICT_ATTEMPTS = 6

RESPELLED_ANSWERS = 2
"""Answers that a client handed over in other words, after which they are recorded as it hands them over: else each is a branch."""

MAX_CANDIDATES = 16
"""Lineages of a name that are compared with a list that no known one begins."""


KnownBy = Literal["name", "call", "content"]
"""What tells the run of a request: a name that its client gives to one run alone, the id of a call, else what the list says."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request to a model, as the proxy read it.

    ``name`` is the client's name for the run, else that of the run that made the list's newest call, else one of its first
    message.
    """

    tenant: str
    name: str
    upstream: str
    protocol: WireProtocol
    body: Mapping[str, Any]
    rows: list[Any]
    size: int
    """Bytes of the body."""
    known_by: KnownBy = "content"
    compacts_at: CompactionPoint = FULL_WINDOW
    """The point from which the client compacts."""
    is_side: bool = False
    """True for a request beside the run, of which nothing is recorded."""
    model: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The tenant and the name: runs of one are looked for among each other, one request at a time."""
        return self.tenant, self.name


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a run: the lineage, and the number of items before it."""

    lineage: Lineage
    length: int
    is_cut: bool = False
    """True where the list that ends here lacks items of the run: its client cuts it."""


@dataclass(frozen=True, slots=True)
class PreparedView:
    """The view of a request that was recorded. ``rows`` are its messages, None where the client's own are the view.

    ``stable_rows`` are those of them that are of the run: what is behind them changes from request to request, and the
    first of them, as many as ``cache_ends`` says, are sent again. ``tokens`` are those of the view, ``beside`` those beside
    the messages, ``window`` the model's.
    """

    place: Place
    tokens: int
    beside: int
    limit: int
    window: int
    request: tuple[int, str] = (0, "")
    """The head and the digest of the request, as the table of requests has it."""
    is_continued: bool = False
    """True if the client began a new list with a summary of the run: its view was cleared, and it goes on."""
    rows: list[Any] | None = None
    stable_rows: Sequence[Any] = ()
    cache_ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request: a word, the usage that its provider reported, and durations in seconds by name."""

    word: str
    usage: Any = None
    seconds: Mapping[str, float] = field(default_factory=dict)


class Runs:
    """The runs of a store, by tenant, name and content."""

    def __init__(self, url: str, options: Mapping[str, Any], windows: WindowTable, pool: MemoryPool) -> None:
        self._url, self._options, self._windows, self._pool = url, options, windows, pool
        self._lock = threading.Lock()
        self._chains: OrderedDict[tuple[str, str, bytes], tuple[Place, ...]] = OrderedDict()
        self._names: OrderedDict[tuple[str, str], list[Lineage]] = OrderedDict()
        self._responses: OrderedDict[tuple[str, str], tuple[str, Place]] = OrderedDict()
        self._calls = KnownCalls()
        self._respelled: Counter[tuple[str, str]] = Counter()
        """Answers that a client handed over in other words, by name."""
        self._awaiting: Counter[Lineage] = Counter()
        """Requests that are with their upstream, by lineage."""
        self._beside = BesideCounts()
        self._newest: OrderedDict[tuple[str, str], tuple[RawRequest, int]] = OrderedDict()
        """The newest request of each name, and its bytes."""

    # A request

    def prepare(self, request: RunRequest, *, with_view: bool = True) -> PreparedView:
        """Record what is new in a request, durably, and make its view. Raises PageinError; OverBudget where none fits."""
        return retry_on_conflict(lambda: self._prepare(request, with_view=with_view), attempts=CONFLICT_ATTEMPTS)

    def _prepare(self, request: RunRequest, *, with_view: bool) -> PreparedView:
        raw = self._split(request)
        lineage, reach = self._find_known(request, raw)
        continued = self._find_continued(request, raw, lineage, reach)
        self._count_respelled(request, reach)
        lineage, is_cut = continued or lineage or self._new_lineage(request), continued is None and reach.is_cut
        # A list without words of its own ends where an earlier one did: that request is made again.
        ends_earlier = reach.reached < reach.length and (is_cut or not reach.unknown)
        with self._use(lineage, request) as memory:
            if ends_earlier and continued is None:
                memory.rewind_to(reach.reached)
            memory.record_list(raw, whole=True)
            place = replace(_place_of(memory, lineage), is_cut=is_cut)
            self._remember(request, raw.list_hashes(), place)
            fitting = self._cut_list(memory, place, request) if is_cut and with_view else None
            prepared = fitting or self._view(memory, lineage, request, with_view=with_view)
        with self._lock:
            self._awaiting[prepared.place.lineage] += 1
        return replace(prepared, is_continued=continued is not None)

    def _find_continued(
        self, request: RunRequest, raw: RawRequest, lineage: Lineage | None, reach: Reach
    ) -> Lineage | None:
        """Let a run go on whose client compacted its list, on a new branch; None where the list begins as a run does."""
        if lineage is not None and reach.behind_summary is not None:
            return self._continue_before(lineage, request, reach.behind_summary)
        if reach.has_answer or reach.is_cut:
            return None
        # A list that lacks little of the run, as a note that it takes back, has the newest answer itself, and no summary.
        is_near = reach.shared > 0 and reach.length - reach.reached < CERTAIN_ITEMS
        return self._continue_run(request, raw, SystemPromptStep | ActionStep if is_near else SystemPromptStep)

    def _count_respelled(self, request: RunRequest, reach: Reach) -> None:
        """Count the answers in a row that a client hands over in other words; from ``RESPELLED_ANSWERS`` on it always does."""
        if reach.is_respelled:
            self._respelled[request.key] += 1
        elif self._respelled[request.key] < RESPELLED_ANSWERS:
            del self._respelled[request.key]

    def _cut_list(self, memory: ServerMemory, place: Place, request: RunRequest) -> PreparedView | None:
        """Prepare a list that its client cut, as it came; None where it does not fit."""
        window, beside, room = self._set_window(memory, request)
        tokens, limit = count_rows(request.rows, memory.counter), memory.limit_beside(room)
        fits = tokens <= limit and request.size <= (memory.budget.bytes or request.size)
        return PreparedView(place, tokens, beside, limit, window) if fits else None

    def _continue_run(self, request: RunRequest, raw: RawRequest, others: type | UnionType) -> Lineage | None:
        """Let the run go on whose newest answer, a summary, a list has; return its new branch, None for another list.

        Items of the kind ``others`` are no place for a summary.
        """
        if request.known_by != "name":
            return None
        items = (item for item in raw.parse() if not isinstance(item, others))
        text = " ".join(" ".join(as_text(item.content or "") for item in items).split())
        for lineage in reversed(self._lineages(request)[-MAX_CANDIDATES:]):
            with suppress(UnknownBranch), self._use(lineage, request) as memory:
                if (place := memory.find_summary(text)) is not None:
                    return replace(lineage, branch=memory.branch) if memory.continue_at(place) else None
        return None

    def _continue_before(self, lineage: Lineage, request: RunRequest, length: int) -> Lineage | None:
        """Let a run go on whose newest items a list has behind a summary: a new branch without them, its view cleared."""
        with self._use(lineage, request) as memory:
            is_continued = memory.continue_at(memory.position_of(length))
            return replace(lineage, branch=memory.branch) if is_continued else None

    def _split(self, request: RunRequest) -> RawRequest:
        """Split a request, and remember it for the next one of its name."""
        form = format_named(request.protocol.format)
        with self._lock:
            earlier, _ = self._newest.pop(request.key, (None, 0))
            raw = RawRequest(form, request.rows, earlier=earlier)
            self._newest[request.key] = raw, request.size
            while len(self._newest) > 1 and sum(size for _, size in self._newest.values()) > MAX_KNOWN_BYTES:
                self._newest.popitem(last=False)
        return raw

    def prepare_behind(self, request: RunRequest, place: Place) -> PreparedView:
        """As ``prepare``, for a request that has only what is new behind an answer: the view has all of it."""
        return retry_on_conflict(lambda: self._prepare_behind(request, place), attempts=CONFLICT_ATTEMPTS)

    def _prepare_behind(self, request: RunRequest, place: Place) -> PreparedView:
        form = format_named(request.protocol.format)
        with self._use(place.lineage, request) as memory:
            if memory.length > place.length:
                memory.rewind_to(place.length)
            memory.record_list(split_request(request.rows, form), whole=False)
            prepared = self._view(memory, place.lineage, request, must_render=True)
        self._add_lineage(request, prepared.place.lineage)
        return prepared

    def view_again(self, request: RunRequest, place: Place) -> PreparedView:
        """Make the view again, after the provider said that the last one was too long. Raises OverBudget."""
        with self._use(place.lineage, request) as memory:
            return self._view(memory, place.lineage, request)

    def _view(
        self,
        memory: ServerMemory,
        lineage: Lineage,
        request: RunRequest,
        *,
        with_view: bool = True,
        must_render: bool = False,
    ) -> PreparedView:
        place = _place_of(memory, lineage)
        if not with_view:
            return PreparedView(place, 0, 0, 0, self._windows.window(request.upstream, request.model))
        view, window, beside = self._make_view(memory, request)
        format = request.protocol.format
        rows = memory.render(view, format, request.model)["messages"]
        prepared = PreparedView(place, view.tokens, beside, view.limit, window, memory.last_request)
        stable = memory.render_without_tail(view, format) if view.tail else rows
        prepared = replace(prepared, cache_ends=memory.sent.find_ends(stable), stable_rows=memory.sent.rows)
        if _is_whole(view) and not must_render and request.size <= (memory.budget.bytes or request.size):
            return prepared
        return replace(prepared, rows=rows)

    def _make_view(self, memory: ServerMemory, request: RunRequest) -> tuple[View, int, int]:
        """The view of a run for a request, the window, and the tokens beside the messages. Raises OverBudget."""
        window, beside, room = self._set_window(memory, request)
        return memory.make_view(room), window, beside

    def _set_window(self, memory: ServerMemory, request: RunRequest) -> tuple[int, int, RequestRoom]:
        """Hold a memory to the window of a request; return the window, the tokens beside the messages, and the room kept."""
        window = self._windows.window(request.upstream, request.model)
        beside = self._beside.count(request.protocol, request.body, memory.counter)
        budget = replace(window_budget(window, memory.counter), bytes=memory.budget.bytes)
        if memory.budget != budget:
            memory.set_budget(budget)
        kept_free = request.compacts_at.tokens_kept_free(window)
        room = request_room(request.protocol, request.body, request.model, window, beside, kept_free=kept_free)
        if budget.bytes is not None:
            room = replace(room, tool_bytes=json_bytes(request.body) - json_bytes(request.rows))
        return window, beside, room

    def read_ahead(self, request: RunRequest, place: Place) -> None:
        """Learn from what a request recorded, while its answer is awaited. Raises PageinError."""
        with self._use(place.lineage, request) as memory:
            memory.read_ahead()

    def preview(self, request: RunRequest) -> list[Any] | None:
        """The messages that the view of a request would have, recording nothing; None where they are its own."""
        form = format_named(request.protocol.format)
        raw = split_request(request.rows, form)
        lineage, reach = self._find_known(request, raw)
        if lineage is None:
            return None
        with self._use(lineage, request) as memory:
            new_rows = _last_rows(raw, reach.unknown)
            if reach.is_partial or reach.reached < reach.length or new_rows is None:
                return None
            view, _, _ = self._make_view(memory, request)
            rows = memory.render_without_tail(view, form.name)
            rows = [*(rows[:-1] if view.with_tail(()).has_ending else rows), *new_rows]
        return None if _is_whole(view) or form.problems(rows) else rows

    # An answer

    def record_answer(
        self, request: RunRequest, prepared: PreparedView, rows: Sequence[Any], outcome: Outcome, response_id: str = ""
    ) -> Place:
        """Record an answer behind its request, durably; on a branch, where the run went on meanwhile. Raises PageinError."""
        return retry_on_conflict(
            lambda: self._record_answer(request, prepared, rows, outcome, response_id), attempts=CONFLICT_ATTEMPTS
        )

    def _record_answer(
        self, request: RunRequest, prepared: PreparedView, rows: Sequence[Any], outcome: Outcome, response_id: str
    ) -> Place:
        format, place = request.protocol.format, prepared.place
        with self._use(place.lineage, request) as memory:
            if outcome.usage is not None and not place.is_cut:
                memory.observe_usage(outcome.usage)
            is_left = self._respelled[request.key] >= RESPELLED_ANSWERS
            if not is_left and memory.length > place.length and not memory.has_answer_at(place.length, rows, format):
                memory.rewind_to(place.length)
            if not is_left and memory.length == place.length:
                memory.record_list(split_request(list(rows), format_named(format)), whole=False)
            after = _place_of(memory, place.lineage)
            _note_outcome(memory, prepared, outcome)
        if response_id:
            with self._lock:
                _put_last(self._responses, (request.tenant, response_id), (request.name, after))
        self._add_lineage(request, after.lineage)
        self._calls.add(request.tenant, request.name, after.lineage.session, rows)
        return after

    def note_outcome(self, request: RunRequest, prepared: PreparedView, outcome: Outcome) -> None:
        """Note what became of a request whose answer was none. Raises PageinError."""
        with self._use(prepared.place.lineage, request) as memory:
            _note_outcome(memory, prepared, outcome)

    def end_request(self, prepared: PreparedView) -> None:
        """Note that a request's answer came to its end, or that nobody waits for it any more."""
        with self._lock:
            self._awaiting[prepared.place.lineage] -= 1
            self._awaiting += Counter()  # those that are above 0

    def name_by_calls(self, tenant: str, rows: Sequence[Any]) -> str:
        """Return the name of the run that made the newest known call of a list; "" where none is known."""
        return self._calls.find_name(tenant, rows)

    def find_response(self, tenant: str, response_id: str) -> tuple[str, Place] | None:
        """The name of the run and the place behind a provider's response; None for one that is not known."""
        with self._lock:
            return self._responses.get((tenant, response_id))

    # Lineage

    def _find_known(self, request: RunRequest, raw: RawRequest) -> tuple[Lineage | None, Reach]:
        """The lineage that shares most with a list, and how much; None for a list that shares nothing."""
        for number, digest in reversed(raw.list_hashes()):
            with self._lock:
                places = self._chains.get((*request.key, digest), ())
            best = self._best(request, raw, ((place, number + 1) for place in places))
            if best[0] is not None:
                return best
        lineages = self._lineages(request)
        candidates = [(Place(lineage, 0), 0) for lineage in lineages[-MAX_CANDIDATES:]]
        return self._best(request, raw, candidates)

    def _best(
        self, request: RunRequest, raw: RawRequest, candidates: Iterable[tuple[Place, int]]
    ) -> tuple[Lineage | None, Reach]:
        """The candidate that shares most with a list, the newest of equals; None where none shares enough."""
        best: tuple[Lineage | None, Reach] = (None, NO_REACH)
        # Two people may say the same, and be answered the same: where a list is cut, only a name or a call tells.
        finds_tail = request.known_by != "content"
        # A call of the list is of some run with its name: of this one, where there is no other.
        is_sole = request.known_by == "call" and len({lineage.session for lineage in self._lineages(request)}) == 1
        is_named = request.known_by == "name" or is_sole
        for place, start_row in candidates:
            with suppress(UnknownBranch), self._use(place.lineage, request) as memory:
                if memory.length < place.length:
                    continue
                reach = memory.measure(raw, start_row, place.length, is_cut=place.is_cut, finds_tail=finds_tail)
                # The same words, to which no answer came and none is awaited: the client asks again.
                is_again = reach.is_whole and not self._awaiting[place.lineage]
                is_known = reach.is_partial or reach.has_answer or is_named or is_again
                if reach.shared > 0 and is_known and reach.rank >= best[1].rank:
                    best = (place.lineage, reach)
        return best

    def _lineages(self, request: RunRequest) -> list[Lineage]:
        """The lineages of a request's name, oldest first; those in the store where the name is new to this process."""
        with self._lock:
            lineages = self._names.get(request.key)
        if lineages is None:
            lineages = list(self._stored_lineages(*request.key))
            with self._lock:
                lineages = self._names.get(request.key, lineages)
                _put_last(self._names, request.key, lineages)
        return lineages

    def _stored_lineages(self, tenant: str, name: str) -> Iterable[Lineage]:
        with closing(open_store(self._url, tenant=tenant)) as store:
            for number in range(1, 10_000):
                session = numbered_session(name, number)
                if not store.head(session):
                    return
                with ServerMemory.open(self._url, session=session, tenant=tenant, **self._options) as memory:
                    branches = memory.branches()
                ordered = sorted(branches, key=lambda branch: branch.is_current)
                yield from (Lineage(tenant, session, branch.name) for branch in ordered)

    def _new_lineage(self, request: RunRequest) -> Lineage:
        lineages = self._lineages(request)
        sessions = {lineage.session for lineage in lineages}
        lineage = Lineage(request.tenant, numbered_session(request.name, len(sessions) + 1), MAIN)
        lineages.append(lineage)
        return lineage

    def _add_lineage(self, request: RunRequest, lineage: Lineage) -> None:
        lineages = self._lineages(request)
        if lineage in lineages:
            lineages.remove(lineage)
        lineages.append(lineage)

    def _remember(self, request: RunRequest, hashes: Sequence[tuple[int, bytes]], place: Place) -> None:
        self._add_lineage(request, place.lineage)
        if hashes:
            key = (*request.key, hashes[-1][1])
            with self._lock:
                others = tuple(other for other in self._chains.get(key, ()) if other.lineage != place.lineage)
                _put_last(self._chains, key, (*others[-3:], place))

    @contextmanager
    def _use(self, lineage: Lineage, request: RunRequest) -> Iterator[ServerMemory]:
        """Have the memory of a lineage. It is given back under the branch that it goes on with."""
        counter = MODELS.get(request.model).counter
        memory = self._pool.take(lineage, counter, request.protocol.format, is_side=request.is_side)
        try:
            yield memory
        except LogError:
            memory.close()
            raise
        finally:
            if not memory.is_closed:
                self._pool.keep(replace(lineage, branch=memory.branch), memory, request.size)

    def close(self) -> None:
        """Close every memory."""
        self._pool.close()


def numbered_session(name: str, number: int) -> str:
    """The session of the run of that number under a name."""
    return name if number == 1 else f"{name}~{number}"


def _put_last(table: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > MAX_KNOWN_CHAINS:
        table.popitem(last=False)


def name_by_content(protocol: WireProtocol, rows: Sequence[Any]) -> str:
    """A name made of the first message that is no system prompt."""
    first, items = [row for row in rows if not is_system(row)][:1], tuple[Item, ...]()
    with suppress(FormatError):  # raised again where the whole list is read
        items = format_named(protocol.format).parse(first) if first else ()
    digest = blake2b(b"".join(fingerprint(item) for item in items), digest_size=8).hexdigest()
    return f"run-{digest}"


def _last_rows(raw: RawRequest, items: int) -> list[Any] | None:
    """The last messages of a list that have so many items; None where no number of messages has."""
    first = len(raw.rows)
    while items > 0 and first > 0:
        first -= 1
        items -= 0 if is_system(raw.rows[first]) else len(raw.parse(first, first + 1))
    return None if items else list(raw.rows[first:])


def _is_whole(view: View) -> bool:
    """True if a view is the run as it was recorded, with the ids of its calls: then the client's own request says the same."""
    is_plain = all(entry.tier == "system" for entry in view.front)
    is_replaced = any(
        entry.stubs or isinstance(entry.item, SummaryStep)
        for entry in view.run
        if entry.why.split(":")[0] not in BY_LIST  # the client's list has it so
    )
    if not is_plain or is_replaced or view.tail:
        return False
    return all(
        call.id in ("", wire)
        for entry in view.run
        if isinstance(entry.item, ActionStep)
        for call, wire in zip(entry.item.tool_calls, entry.ids, strict=False)
    )


def _note_outcome(memory: ServerMemory, prepared: PreparedView, outcome: Outcome) -> None:
    """Write a request and its outcome into the table of requests; rows of it may be missing."""
    if not prepared.request[1] or memory.last_request != prepared.request:
        return  # another request of the run came between, or the memory was opened again
    sent = "as it came" if prepared.rows is None else "view"
    with suppress(PageinError):  # the answer is recorded: that counts
        memory.note_outcome(outcome.word, usage=outcome.usage, seconds=outcome.seconds, notes={"sent": sent})


def _place_of(memory: ServerMemory, lineage: Lineage) -> Place:
    return Place(replace(lineage, branch=memory.branch), memory.length)
