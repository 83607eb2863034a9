"""The memories behind a server: one for each branch of a run that is in use, the longest unused ones closed."""

from __future__ import annotations

import gc
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

from pagein._common.json_values import parse_json, strings_in
from pagein.context.view.view import View
from pagein.events.entries import Observed
from pagein.events.normal_form import without_thinking_text
from pagein.events.protocol import MODEL_PREFIX, SYSTEM_PREFIX, fingerprint
from pagein.events.steps import ActionStep, SystemPromptStep, TaskStep, as_text
from pagein.formats import Item, format_named
from pagein.formats.raw_messages import RawRequest
from pagein.memory._state import RunState
from pagein.memory.host_memory import HostMemory, runtime_of, take_turn
from pagein.memory.operations.client_lists import as_recorded
from pagein.memory.operations.ingest import Transcript
from pagein.memory.operations.lineage import Chain, align, find_return
from pagein.memory.operations.record import RecordResult, record
from pagein.memory.operations.references import parse_list
from pagein.memory.operations.relist import Rewriting, find_rewriting
from pagein.memory.operations.view import make_view
from pagein.server.cache_markers import SentRows
from pagein.server.naming import is_random_id
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.budget import RequestRoom
from pagein.tokens.windows import MODELS

SWITCH_SECONDS = 0.0005
"""Time after which a thread that makes a view lets the event loop go on: by default an event of a stream waits ten times as long."""

MAX_INDEXED_AHEAD = 256
"""Entries indexed after each request, at most."""

NEWEST_ENTRIES, QUOTED_CHARACTERS = 12, 200
"""Entries of a run among which the summary is looked for that a list has, and characters of it in a row, spaces aside."""


MAX_DROPPED = 4
"""Items at the end of a run that a list with its newest items need not have: a request for a summary, an answer asked for again."""

CERTAIN_ITEMS = 4
"""Items in a row, with an answer among them, that a list and the end of a run share by no chance where the list begins with
something else, and where no call tells by its id; and items that a summary stands for at least, as some clients join two messages."""

SAID_CHARACTERS = 8
"""Characters of an answer, at least, by which it is known in other words."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """A branch of a run: the tenant and the session in the store, and the branch's name."""

    tenant: str
    session: str
    branch: str


@dataclass(frozen=True, slots=True)
class Reach:
    """A list beside a run: it ends behind ``reached`` of the run's ``length`` items, and ``unknown`` of its own are not among them.

    ``shared`` counts those that both have: fewer where the view was cleared before the list began. ``has_answer`` is True
    if something that the model said is among those that both begin with.

    A list may be cut: it lacks items before the newest, which it shares. ``behind_summary`` is the number of the first that it
    shares where it has something else in the place of the others.
    """

    reached: int
    length: int
    unknown: int
    shared: int
    has_answer: bool
    is_cut: bool = False
    behind_summary: int | None = None
    is_respelled: bool = False
    """True where the list has the newest answer in other words: its client adds to what the model says, or takes from it."""

    @property
    def is_partial(self) -> bool:
        """True for a list that does not begin as the run does."""
        return self.is_cut or self.behind_summary is not None

    @property
    def is_whole(self) -> bool:
        """True for a list that says what the run has, no more and no less."""
        return self.reached == self.length and not self.unknown

    @property
    def rank(self) -> tuple[int, int]:
        """By how much they share, then by how little the list lacks."""
        return self.shared, self.reached - self.length


NO_REACH = Reach(0, 0, 0, 0, has_answer=False)


class ServerMemory(HostMemory):
    """A memory that a server holds: it compares a client's list with the run before it records anything."""

    sent: SentRows

    @classmethod
    def open_lineage(cls, url: str, lineage: Lineage, options: Mapping[str, Any]) -> Self:
        """Open the memory of a lineage. Raises UnknownBranch, LogError."""
        memory = cls.open(url, session=lineage.session, tenant=lineage.tenant, branch=lineage.branch, **options)
        memory.sent = SentRows()
        memory.trust_content_alone()
        return memory

    def trust_content_alone(self) -> None:
        """Take every list as a whole history: leniency to a program that was started again would join what is apart."""
        transcript = runtime_of(self).state.transcript
        transcript.is_untouched, transcript.habit = False, "whole"

    @property
    def is_closed(self) -> bool:
        """True after ``close``."""
        return runtime_of(self).is_closed

    def measure(self, request: RawRequest, start_row: int, place: int, *, is_cut: bool, finds_tail: bool) -> Reach:
        """Compare a list with the run. Before ``start_row`` it is known to end behind the run's first ``place`` items.

        With ``finds_tail`` a list that has the newest items alone is the run's, too. Raises FormatError.
        """
        log = runtime_of(self).state.log
        start = len(_without_systems(log.fingerprints[: log.list_start]))
        place = place if start_row else start
        chain = _without_systems(log.fingerprints)
        has_references = bool(request.referenced_ids(start_row))
        parsed = take_turn(self, parse_list, request, start_row, place) if has_references else request.parse(start_row)
        items: Sequence[Item] = [item for item in parsed if not isinstance(item, SystemPromptStep)]
        marks = [fingerprint(item) for item in items]
        alignment = align(marks, chain[place:])
        if start <= place and alignment.at < len(items) and place + alignment.reached < len(chain):
            items, marks = take_turn(self, _as_recorded, items, place - start)
            alignment = align(marks, chain[place:])
        reached = place + alignment.reached
        has_answer = any(mark.startswith(MODEL_PREFIX) for mark in chain[start:reached])
        if finds_tail and (cut := self._find_tail(items, marks, chain, alignment.at, reached)):
            return replace(cut, shared=cut.shared + reached - start, has_answer=has_answer)
        rest = marks[alignment.at :]
        if finds_tail and (anew := take_turn(self, _find_rewriting, items[alignment.at :], rest, reached - start)):
            last = reached + anew.reached
            has_answer = has_answer or any(mark.startswith(MODEL_PREFIX) for mark in chain[reached:last])
            unknown = len(rest) - anew.at + len(anew.late)
            return Reach(last, len(chain), unknown, last - start - len(anew.items), has_answer)
        is_respelled = reached == len(chain) - 1 and self._is_respelled(items[alignment.at :], reached)
        has_answer = has_answer or is_respelled
        unknown = len(items) - alignment.at + len(alignment.late)
        is_cut = is_cut and start_row > 0
        return Reach(
            reached, len(chain), unknown, reached - start, has_answer, is_cut=is_cut, is_respelled=is_respelled
        )

    def _find_tail(
        self, items: Sequence[Item], marks: Sequence[bytes], chain: Sequence[bytes], at: int, reached: int
    ) -> Reach | None:
        """Find the newest items of a run in a list that leaves it behind ``reached``; None for another list."""
        for end in range(len(chain), max(reached, len(chain) - MAX_DROPPED - 1), -1):
            back = find_return(marks, chain[:end], at, reached)
            if back is None:
                continue
            replacing, lacking = back.first - at, back.chain - reached
            enough = CERTAIN_ITEMS if replacing else 2
            if end - back.chain < enough and not self._shares_call(items[back.first : back.last], back.chain):
                continue
            is_answered = any(mark.startswith(MODEL_PREFIX) for mark in chain[back.chain : end])
            is_new = replacing and not set(chain).issuperset(marks[at : back.first])  # else it lacks several stretches
            if not is_answered or (is_new and lacking - replacing < CERTAIN_ITEMS):
                return None
            unknown = len(marks) - back.last + len(back.late)
            summary = back.chain if is_new else None
            return Reach(
                end, len(chain), unknown, end - back.chain, False, is_cut=summary is None, behind_summary=summary
            )
        return None

    def _shares_call(self, items: Sequence[Item], number: int) -> bool:
        """True if one of these items, the run's from that number on, has a call by the id by which the run has it."""
        ids = {call.id for item in items if isinstance(item, ActionStep) for call in item.tool_calls}
        start = self.position_of(number)
        steps = (entry.body for entry in self.log().read(start, self.head) if isinstance(entry.body, ActionStep))
        return any(call.id in ids and is_random_id(call.id) for step in steps for call in step.tool_calls)

    def _is_respelled(self, items: Sequence[Item], number: int) -> bool:
        """True if the first of these is the item of the run with that number in other words, and others follow it."""
        if len(items) < 2 or not isinstance(items[0], ActionStep):
            return False
        position = self.position_of(number)
        recorded = next(iter(self.log().read(position, position + 1))).body
        if not isinstance(recorded, ActionStep):
            return False
        texts = [as_text(step.content or "") for step in (items[0], recorded)]
        if not items[0].tool_calls and any(_says(texts[0], call.arguments) for call in recorded.tool_calls):
            return True
        listed, said = ("".join(without_thinking_text(text).split()) for text in texts)
        shorter, longer = sorted((listed, said), key=len)
        has_calls = any(_is_in(call.id, texts[0]) for call in recorded.tool_calls)
        return has_calls or (_is_in(shorter, longer) and items[0].tool_calls in ((), recorded.tool_calls))

    def limit_beside(self, room: RequestRoom) -> int:
        """The most tokens that messages may have beside this room."""
        usage = runtime_of(self).state.usage
        return usage.limit_beside(usage.room_beside(room))

    @property
    def length(self) -> int:
        """The number of items that applications handed over, without system prompts."""
        return len(_without_systems(runtime_of(self).state.log.fingerprints))

    def find_summary(self, text: str) -> int | None:
        """The place where a run goes on whose newest answer, a summary, stands in a text; None for another text."""
        # That is before the client's request for it, which is no word of the user's, unless the text has that, too.
        entries = self.log().read(max(0, self.head - NEWEST_ENTRIES), self.head)
        steps = [entry for entry in entries if isinstance(entry.body, ActionStep | TaskStep | Observed)]
        place = None
        for before, entry in pairwise(steps):
            if isinstance(entry.body, ActionStep) and _is_quoted(entry.body, text):
                is_asked = isinstance(before.body, TaskStep) and not _is_quoted(before.body, text)
                place = before.position if is_asked and entry is steps[-1] else self.head
        return place

    def continue_at(self, place: int) -> bool:
        """Go on with a new branch from a place, with a cleared view; False where too little was said before it."""
        self.rewind(place)
        self.trust_content_alone()
        self.clear_view()
        log = runtime_of(self).state.log
        return 0 < log.list_start == len(log.fingerprints)

    @property
    def branch(self) -> str:
        """The name of the branch that the memory goes on with."""
        return runtime_of(self).branches.current

    def position_of(self, number: int) -> int:
        """Return the place in the log of the item with this number."""
        log = runtime_of(self).state.log
        marks = enumerate(log.fingerprints)
        places = [place for place, mark in marks if not mark.startswith(SYSTEM_PREFIX)]
        return log.fingerprint_positions[places[number]]

    def rewind_to(self, length: int) -> None:
        """Go on with a new branch that has the first ``length`` items. Raises LogError."""
        self.rewind(self.position_of(length))
        self.trust_content_alone()

    def record_list(self, request: RawRequest, *, whole: bool) -> RecordResult:
        """Record what is new in a list; with ``whole`` it is the client's whole history. Raises FormatError, LogError."""
        return take_turn(self, record, Transcript(request), strict=False, whole=whole)

    def has_answer_at(self, length: int, rows: Sequence[Any], format: str) -> bool:
        """True if the items behind the first ``length`` are these messages."""
        marks = [fingerprint(item) for item in runtime_of(self).format_of(format).parse(list(rows))]
        return _without_systems(runtime_of(self).state.log.fingerprints)[length : length + len(marks)] == marks

    def make_view(self, room: RequestRoom) -> View:
        """The view, within the budget that was set, with this room kept free. Raises OverBudget."""
        return take_turn(self, make_view, room)

    def render(self, view: View, format: str, model: str) -> dict[str, Any]:
        """A view as a provider's request, under ``messages``, noted for the table of requests. Raises Illegal.

        It is written with its outcome: that spares every request a write before it is forwarded.
        """
        runtime_of(self).requests.model = model
        return runtime_of(self).render(view, format)

    def read_ahead(self) -> None:
        """Learn from what was recorded and index it, before the next request needs it. Raises PageinError.

        A run that is far from its limit pays nothing.
        """
        state = runtime_of(self).state
        view = state.usage.last_view
        if view is not None and state.page_in.is_due(view):
            state.fold.learned.learn_ahead()
            for entry in view.entries:
                state.page_in.visible.names(entry, view)
            runtime_of(self).search.index(MAX_INDEXED_AHEAD)

    @property
    def last_request(self) -> tuple[int, str]:
        """The head and the digest of the last request; (0, "") for none."""
        last = runtime_of(self).requests.last
        return (0, "") if last is None else (last.head, last.digest)

    def render_without_tail(self, view: View, format: str) -> list[Any]:
        """The messages of a view without what is shown behind the run."""
        rows: list[Any] = runtime_of(self).format_of(format).render(view.with_tail(()).messages())["messages"]
        return rows


def _as_recorded(run: RunState, items: Sequence[Item], first: int) -> tuple[list[Item], list[bytes]]:
    """The items behind the first of a run's, and their fingerprints, as they were recorded where a client changed them."""
    recorded, marks, _ = as_recorded(items, Chain(run), first)
    return recorded, marks


def _find_rewriting(run: RunState, items: Sequence[Item], marks: Sequence[bytes], first: int) -> Rewriting | None:
    return find_rewriting(items, marks, Chain(run), first)


def _says(text: str, arguments: str) -> bool:
    """True for a text that says what a call's arguments do: an answer by a schema is a call, and comes back as text.

    Programs write it as JSON in a spelling of their own, with defaults, or have one of its texts alone.
    """
    listed, said = parse_json(text), parse_json(arguments)
    if isinstance(listed, dict) and isinstance(said, dict):
        return bool(said) and said == {key: listed[key] for key in said if key in listed}
    words = "".join(text.split())
    return any(_is_in("".join(value.split()), words) for value in strings_in(said, with_keys=False))


def _is_in(words: str, text: str) -> bool:
    return len(words) >= SAID_CHARACTERS and words in text


def _without_systems(marks: Sequence[bytes]) -> list[bytes]:
    return [mark for mark in marks if not mark.startswith(SYSTEM_PREFIX)]


def _is_quoted(step: ActionStep | TaskStep, text: str) -> bool:
    """True if a text has a long stretch of what a step says, or all of it; a few words are no sign."""
    words, gap = " ".join(as_text(step.content or "").split()), QUOTED_CHARACTERS // 4
    starts = range(0, max(1, len(words) - QUOTED_CHARACTERS + 1), gap)
    return len(words) > gap and any(words[start : start + QUOTED_CHARACTERS] in text for start in starts)


def warm_up() -> None:
    """Make views of a small run, so that what they load is there before the first request: it takes half a second."""
    for model, form in (("claude", format_named("anthropic")), ("gpt-5", format_named("openai"))):
        counter = MODELS.get(model).counter
        with ServerMemory.open(
            ":memory:", session="warm", budget=Budget(1_000), counter=counter, format=form.name
        ) as memory:
            runtime_of(memory).state.has_warned = True  # nobody wants to read that this run is near its limit
            for number in range(8):
                function = {"name": "read", "arguments": f'{{"path": "src/file_{number % 3}.py"}}'}
                call = {"id": f"call_{number}", "type": "function", "function": function}
                answer = {"role": "assistant", "content": None, "tool_calls": [call]}
                result = {"role": "tool", "tool_call_id": call["id"], "content": f"def handler_{number}(): ...\n" * 40}
                memory.record_messages([answer, result], format="openai", whole=False)
                memory.to_messages()
                memory.read_ahead()
    gc.collect()
    gc.freeze()  # a walk through what came since takes the collector a fifth of the time
    sys.setswitchinterval(SWITCH_SECONDS)


class MemoryPool:
    """Open memories by lineage. The caller sees to it that one lineage is used by one thread at a time."""

    def __init__(self, url: str, options: Mapping[str, Any], *, most: int, most_bytes: int) -> None:
        self._url, self._options = url, dict(options)
        self._most, self._most_bytes = most, most_bytes
        self._open: OrderedDict[Lineage, tuple[ServerMemory, int]] = OrderedDict()
        """The memories, each with the bytes of its run's last request, the longest unused one first."""
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def take(self, lineage: Lineage, counter: TokenCounter, format: str, *, is_side: bool = False) -> ServerMemory:
        """The memory of a lineage, opened where it is not, with another counter opened again; ``keep`` gives it back.

        A side request, which agents send to small models, takes it as it is.

        Raises UnknownBranch, LogError.
        """
        with self._lock:
            memory, _ = self._open.pop(lineage, (None, 0))
        if memory is not None and (is_side or memory.counter == counter):
            try:
                memory.refresh()
            except BaseException:
                memory.close()
                raise
            return memory
        if memory is not None:
            memory.close()
        options = {**self._options, "counter": counter, "format": format}
        return ServerMemory.open_lineage(self._url, lineage, options)

    def keep(self, lineage: Lineage, memory: ServerMemory, size: int) -> None:
        """Give a memory back; ``size`` are the bytes of its run's last request. The longest unused ones are closed."""
        surplus: list[ServerMemory] = []
        with self._lock:
            previous, _ = self._open.pop(lineage, (None, 0))
            if previous is not None and previous is not memory:
                surplus.append(previous)
            self._open[lineage] = memory, size
            while len(self._open) > 1 and (
                len(self._open) > self._most or sum(size for _, size in self._open.values()) > self._most_bytes
            ):
                surplus.append(self._open.popitem(last=False)[1][0])
        for unused in surplus:
            unused.close()

    def close(self) -> None:
        """Close every memory."""
        with self._lock:
            memories = [memory for memory, _ in self._open.values()]
            self._open.clear()
        for memory in memories:
            memory.close()
