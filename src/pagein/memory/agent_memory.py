"""AgentMemory: what a user holds. Each method runs one operation in a turn of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

from pagein.context.costs import RunCost
from pagein.context.view.view import Report, View
from pagein.events.entries import Compaction, FactScope, Importance
from pagein.events.protocol import TextObservations
from pagein.events.replay import replay
from pagein.events.steps import Observation, Step
from pagein.formats import FormatName, keywords
from pagein.log.base import Log, Verification
from pagein.memory import checkpoints, erasure
from pagein.memory._memory_base import MemoryBase
from pagein.memory._runtime import OpenedRun
from pagein.memory.branches import Branch, Comparison
from pagein.memory.operations import branch as branching
from pagein.memory.operations import compact as compacting
from pagein.memory.operations import edit as editing
from pagein.memory.operations import history, pins
from pagein.memory.operations.facts_block import save_procedure
from pagein.memory.operations.filtered_view import make_filtered_view
from pagein.memory.operations.history import Expansion
from pagein.memory.operations.pins import LedgerEntry
from pagein.memory.operations.record import RecordResult, record
from pagein.memory.operations.requests import RenderedRequest, render_again
from pagein.memory.operations.summarize import collect_summary
from pagein.memory.operations.view import make_view
from pagein.memory.options import Options, RecallFilters, check_count, check_usage
from pagein.memory.requests import RequestFilter, RequestRecord
from pagein.memory.tools import call_tool

if TYPE_CHECKING:
    from pagein.facts.fact import Fact
    from pagein.facts.ranking import RankedFact
    from pagein.memory.checkpoints import CheckpointInfo, RunStatus
    from pagein.memory.erasure import Erasure
    from pagein.search.base import Hit


class AgentMemory(MemoryBase):
    """A run recorded whole, and a view of it that is never over budget and never malformed.

    ``AgentMemory.open("run.db", budget=80_000)`` opens or makes the record; the memory is a context manager. Calls
    from several threads take turns. Every method raises a PageinError only, and a call that raises changed nothing.
    """

    def __init__(self, log: Log | OpenedRun, **options: Unpack[Options]) -> None:
        super().__init__(log, **options)
        self._runtime.open_summary_writer(None)
        self._runtime.fold_log()

    def report(self) -> Report:
        """Report every token of the view as it stands, the page-in included, and what is out of view. Compacts nothing."""
        with self._runtime.state.problems.guard("the report has no cost of the requests"):
            self._runtime.requests.cost()
        return self._runtime.report()

    def cost(self) -> RunCost:
        """The cost of the run's requests at the ``prices``, what each compaction and page-in cost and saved, and the provider's usage.

        Raises LogError.
        """
        return self._runtime.requests.cost()

    # Recording

    def record(self, *items: Step | Observation, importance: Importance | None = None) -> RecordResult:
        """Record steps or observations durably, all or none, before this returns, with their importance: see ``mark``.

        Raises ProtocolError, and ConfigurationError for another importance.
        """
        return self._runtime.take_turn(record, items, strict=True, importance=importance)

    def record_messages(
        self,
        messages: Any,
        format: FormatName | None = None,
        *,
        whole: bool | None = None,
        usage: Any = None,
        observations: TextObservations = None,
    ) -> RecordResult:
        """Record what is new in a provider's messages: a list, one message, a whole request, or the objects of its SDK.

        What is new is found by comparing contents: hand over the whole list, only what is new, or the result of ``to_messages`` with
        what followed. A list that says something else than the run begins a branch. ``whole`` True means that the
        list is the whole history, False that all of it is new. ``format`` names the messages' format; without it, the
        memory's, or another that they certainly are in. ``usage`` is what the provider reported for the request
        before. ``observations`` says which messages of the user are results, for an agent that uses plain text: the
        beginning of their text, a compiled pattern or a function; False for none. Broken messages are repaired, and
        the result names each repair. Raises FormatError, ProtocolError, ConfigurationError.
        """
        report = None if usage is None else check_usage(usage)
        transcript = self._runtime.read_transcript(messages, format, observations)
        if usage is not None:
            self._runtime.requests.note_written(usage)
        return self._runtime.take_turn(record, transcript, strict=False, whole=whole, usage=report)

    def pin(self, text: str) -> str:
        """Keep the text word for word in every view; returns the handle that ``unpin`` takes.

        The handle of an entry of ``ledger`` confirms the entry: its words are pinned. A text that is pinned already keeps its
        handle. Raises ConfigurationError for an empty text, OverBudget for one with which no view would fit.
        """
        return self._runtime.take_turn(pins.pin, text)

    def unpin(self, handle: str) -> None:
        """Drop a pin, an entry of ``ledger``, or what a step left open. Raises UnknownHandle."""
        return self._runtime.take_turn(pins.unpin, handle)

    def mark(self, handle: str, importance: Importance = "high") -> None:
        """Mark a step: "high" keeps it whole under every policy, in up to .3 of the limit; "low" lets its results leave first.

        "normal" takes a mark away. What is out of view already stays out. Raises UnknownHandle, ConfigurationError.
        """
        return self._runtime.take_turn(pins.mark, handle, importance)

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return what was said and still holds: rules, limits, decisions, goals, preferences, current values, oldest first.

        Every view shows those whose steps are out of it, in a share of the budget of their own.
        """
        return self._runtime.take_turn(pins.ledger)

    def save_procedure(self, task: str | None = None) -> Fact:
        """Save how the current task was done, for a similar one: the steps that did not fail, without results and secrets.

        The project owns it, or else the user. ``task`` describes the task instead of the user's words. Raises FactError.
        """
        return self._runtime.take_turn(save_procedure, task)

    def find_procedures(self, query: str, limit: int = 2) -> tuple[RankedFact, ...]:
        """Find how tasks similar to the one that the query describes were done, the most similar first."""
        return self.facts.find_procedures(query, limit=limit)

    def call_tool(self, name: str, arguments: str | Mapping[str, Any] = "{}") -> str:
        """Run one of ``tools`` for the model, and return its bounded text; record that as the call's result.

        The text also says what the model did wrong, an unknown tool too. Raises LogError.
        """
        return self._runtime.take_turn(call_tool, name, arguments, self._runtime.clock())

    # The view

    def view(self, *, reserve: int = 0, tools: Any = None) -> View:
        """Make the view for the model, within budget; what leaves it is recorded. Raises OverBudget.

        ``reserve`` are tokens to keep free in this request: for its output, or a system prompt that you add. ``tools``
        are the definitions of all tools that the request has; what they cost beyond ``budget.tools`` is kept free too.
        What leaves for one request only is not recorded, unless one of the three requests before needed as much.
        """
        return self._runtime.take_turn(make_view, self._runtime.request_room(reserve, tools))

    def to_messages(
        self,
        format: FormatName | None = None,
        *,
        summary_mode: bool = False,
        keep_last_n: int | None = None,
        max_tokens: int | None = None,
        reserve: int = 0,
        tools: Any = None,
    ) -> list[Any]:
        """The view as a provider's messages: within budget, legal, and with the last request's prefix kept.

        ``summary_mode`` leaves out system prompts, plans and the model's prose (smolagents), ``keep_last_n`` shows
        only the last n actions, or the newest of them that fit. ``max_tokens`` is another budget for this call, filled with
        the newest steps. None of the three records anything.
        ``reserve`` and ``tools`` keep tokens free for the request, as in ``view``. Raises OverBudget.
        """
        room = self._runtime.request_room(reserve, tools, format)
        filter = RequestFilter(summary_mode, check_count(keep_last_n), max_tokens)
        view = self._runtime.take_turn(make_filtered_view, filter, room)
        messages: list[Any] = self._runtime.render(view, format, filter)["messages"]
        self._runtime.requests.write()
        return messages

    def to_request(self, format: FormatName | None = None, *, reserve: int = 0, tools: Any = None) -> dict[str, Any]:
        """The view as the keyword arguments of the provider's SDK: its messages, and ``system`` if that is an argument.

        ``reserve`` and ``tools`` keep tokens free for the request, as in ``view``; add the tools yourself. Raises OverBudget.
        """
        runtime, name = self._runtime, format or self._runtime.format.name
        view = self._runtime.take_turn(make_view, runtime.request_room(reserve, tools, format))
        request = keywords(name, runtime.render(view, format))
        runtime.requests.write()
        return request

    def compact(self, *, wait: bool = False) -> Compaction | None:
        """Compact now, whatever the view costs; None if nothing would get smaller.

        With ``wait`` a model writes its summaries first; else it writes while the run goes on.
        """
        return self._runtime.take_turn(compacting.compact, wait=wait)

    def clear_view(self) -> Compaction | None:
        """Take everything said so far out of the view, but calls without a result; None if that would save nothing.

        Pins and the ledger stay. ``recall``, page-in and ``expand`` find the old steps, ``undo`` reverts it. The next list begins anew.
        """
        return self._runtime.take_turn(compacting.clear_view)

    def undo(self) -> Compaction:
        """Take back the last compaction. Raises NothingToUndo."""
        return self._runtime.take_turn(compacting.undo)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the summary being written, the facts being read and vectors, at most ``timeout`` seconds each.

        True if all is done.
        """
        return self._runtime.take_turn(collect_summary, timeout) and self._runtime.wait(timeout)

    # History

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every recorded step, whole and in order, read from the log. Steps of ``step_types`` are objects of these classes."""
        return self._runtime.revive(self._runtime.take_turn(history.read_steps))

    def get_full_steps(self) -> list[dict[str, Any]]:
        """Every step as JSON-safe values, whole; images as base64."""
        return history.full_steps(self._runtime.take_turn(history.read_steps))

    def get_succinct_steps(self) -> list[dict[str, Any]]:
        """Every step as JSON-safe values: long texts cut, images by their hash."""
        return history.succinct_steps(self._runtime.take_turn(history.read_steps))

    def return_full_code(self) -> str:
        """The code of all steps, in order: their ``code_action``, or what smolagents' Python call was given."""
        return history.full_code(self._runtime.take_turn(history.read_steps))

    def replay(self, detailed: bool = False, write: Callable[[str], object] = print) -> None:
        """Pass the run's lines, step by step, to ``write``; with ``detailed`` longer texts, arguments and results."""
        replay((step for _, step in self._runtime.take_turn(history.read_steps)), write, detailed=detailed)

    def edit(self, handle: str, step: Step | Observation | str) -> Compaction:
        """Replace a step or a result in every view, by its handle: with a step of its kind, an Observation, or a text.

        An entry of the log says so, and ``undo`` takes it back; the original stays behind the handle. The step keeps its kind
        and its calls. Raises UnknownHandle, and ProtocolError where a request would become illegal.
        """
        return self._runtime.take_turn(editing.edit, handle, step)

    def remove(self, handle: str) -> Compaction:
        """Remove a step from every view, by its handle; an action leaves with its results. ``undo`` reverts it.

        The original stays behind the handle, but no search and no page-in finds it. ``erase`` is for good. Raises
        UnknownHandle, and ProtocolError where a request would become illegal.
        """
        return self._runtime.take_turn(editing.remove, handle)

    def reset(self) -> Branch:
        """Begin again with only the system prompts, on a new branch. ``switch`` returns to the run so far.

        Raises LogError.
        """
        return self._runtime.take_turn(branching.reset, self._runtime.clock())

    def expand(self, handle: str | int) -> Expansion:
        """The original behind a handle or at a position, whole. Raises UnknownHandle."""
        return self._runtime.take_turn(history.expand, handle)

    def recall(self, query: str, limit: int = 10, **filters: Unpack[RecallFilters]) -> tuple[Hit, ...]:
        """Search everything recorded, in view or not; at most ``limit`` hits, best first.

        Any text may be a query. See ``RecallFilters``. Raises ConfigurationError, LogError.
        """
        return self._runtime.take_turn(history.recall, query, limit, filters, self._runtime.clock())

    def verify(self) -> Verification:
        """Derive every hash of the record again, and say what is wrong and where."""
        return self._runtime.take_turn(history.verify)

    # Requests

    def requests(self, after: int = 0, limit: int | None = None) -> tuple[RequestRecord, ...]:
        """The requests of this run with numbers above ``after``, oldest first: what was sent, and what it cost.

        The records are no part of the log: they may be missing, and hold no text of the run. Raises LogError.
        """
        return self._runtime.requests.read(after, limit)

    def request(self, number: int | None = None) -> RenderedRequest:
        """Render a request again, by default the last one: byte for byte, or ``problem`` says what differs.

        Raises UnknownRequest, LogError.
        """
        return self._runtime.take_turn(render_again, self._runtime.requests.find(number))

    def note_outcome(
        self,
        outcome: str = "",
        *,
        number: int | None = None,
        usage: Any = None,
        seconds: Mapping[str, float] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Note what became of a request, by default the last one: a word, its usage, durations, short notes.

        It is only noted; ``observe_usage`` also learns from a usage. No text of the run belongs in ``notes``. Raises
        UnknownRequest, ConfigurationError, LogError.
        """
        self._runtime.requests.note_outcome(outcome, number=number, usage=usage, seconds=seconds, notes=notes)

    # Checkpoints

    def checkpoint(self, name: str, state: Any = None) -> str:
        """Record the state of the run under a name, durably; returns the handle of that entry.

        Done, open and ruled-out work, decisions and calls in flight are derived from the log; ``state`` is kept beside
        them: any JSON-safe value. The newest of a name counts. Raises ConfigurationError, LogError.
        """
        return self._runtime.take_turn(checkpoints.checkpoint, name, state)

    def checkpoints(self) -> tuple[CheckpointInfo, ...]:
        """The checkpoints of this run, oldest first."""
        return self._runtime.take_turn(checkpoints.checkpoints)

    def status(self, name: str | None = None) -> RunStatus:
        """The status of the run, as ``resume`` returns it; writes nothing. Raises UnknownCheckpoint."""
        return self._runtime.take_turn(checkpoints.status, name)

    def resume(self, name: str | None = None, *, fresh: bool = False) -> RunStatus:
        """Go on with a run that stopped: return its status, and close calls in flight as unknown.

        Nothing is run again; a result that comes after all is accepted once. With ``fresh`` the view starts from the
        checkpoint of that name, or from here: earlier steps leave it, except the user's words and pins. They stay behind
        their handles, and ``undo`` brings them back. Raises UnknownCheckpoint, LogError.
        """
        return self._runtime.take_turn(checkpoints.resume, name, fresh=fresh)

    # Branches

    def fork(self, at: int | str | None = None, name: str | None = None) -> Branch:
        """Fork a branch from here, or from ``at``: a number of entries, a checkpoint's name or a step's handle.

        Nothing is copied, so every fork costs the same. The run stays on its branch until ``switch``. Without a name the
        branch gets one. Raises ConfigurationError, UnknownCheckpoint, Conflict, LogError.
        """
        return self._runtime.take_turn(branching.fork, at, name, self._runtime.clock())

    def switch(self, branch: str) -> None:
        """Go on with another branch, now and whenever the run is opened again. Raises UnknownBranch, LogError.

        View, compactions, summaries, pins and recall are that branch's alone. A summary being written is cancelled.
        """
        return self._runtime.take_turn(branching.switch, branch, self._runtime.clock())

    def branches(self) -> tuple[Branch, ...]:
        """The branches of this run: ``main`` first, then in the order of their forks."""
        return self._runtime.take_turn(branching.list_branches)

    def drop(self, branch: str) -> None:
        """Drop a branch: ``branches`` no longer names it, but its entries stay in the record.

        Its name stays taken. Raises UnknownBranch, ConfigurationError for the run's own branch, LogError.
        """
        return self._runtime.take_turn(branching.drop, branch, self._runtime.clock())

    def rewind(self, to: int | str) -> Branch:
        """Go on from an earlier place, as ``fork`` takes it, on a new branch; the later entries stay on their branch."""
        return self._runtime.take_turn(branching.rewind, to, self._runtime.clock())

    def compare(self, left: str, right: str) -> Comparison:
        """Compare two branches: what they share, and the steps that only one of them has. Raises UnknownBranch."""
        return self._runtime.take_turn(branching.compare, left, right)

    # Erasure

    def erase(self, *handles: str | int, reason: str = "") -> Erasure:
        """Erase steps, results or pins by their handles, or facts by their ids, for good and wherever they were repeated.

        Positions, kinds, times, the ids and names of calls stay; "[erased]" stands in place of the text. It goes from
        the log, the index, facts derived from it alone, summaries, stubs, checkpoints and results of the memory's tools,
        on every branch. ``reason`` is kept. Drop your own copies yourself. Raises UnknownHandle,
        UnknownFact, Conflict after many losses, LogError; nothing was erased then.
        """
        return self._runtime.take_turn(erasure.erase, handles, reason)

    def erase_facts(self, scope: FactScope = "user", *, reason: str = "") -> Erasure:
        """Erase every fact of a scope's owner, with its history. They are not extracted from this run again."""
        return self._runtime.take_turn(erasure.erase_facts, scope, reason)

    def erase_session(self, *, reason: str = "", trace: bool = True) -> Erasure:
        """Erase the whole run, on every branch, with the facts derived from it alone; this memory goes on with an empty run.

        With ``trace`` one entry stays that says how many there were, when and why. Raises LogError.
        """
        return self._runtime.take_turn(erasure.erase_session, reason, trace=trace)

    # Closing

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        self._runtime.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
