"""The parts behind one memory, and the one place where effects are performed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pagein.backends.base import BareLog, stored_log
from pagein.context.view.view import Report, View
from pagein.errors import ConfigurationError, Conflict, FormatError, Illegal, LogClosed, LogErased, LogUnreadable
from pagein.events.callbacks import PrefixBreak
from pagein.events.entries import Body, Compaction, Erased, FactsShown
from pagein.events.protocol import TextObservations, check_observations
from pagein.events.steps import MemoryStep, Step, SummaryStep
from pagein.facts.owners import is_reserved
from pagein.formats import Format, format_named
from pagein.formats.parsing import to_plain_json
from pagein.formats.raw_messages import RawRequest, choose_format, rename_roles, split_request
from pagein.formats.sdk_objects import unwrap_request
from pagein.log.base import Entry, Log, LogStore, StoredLog, Verification
from pagein.log.branch_log import BranchLog
from pagein.memory._state import RunState
from pagein.memory._turn import close_memory, open_memory, run_turn
from pagein.memory.branches import MAIN, Branches
from pagein.memory.checkpoints.schedule import CheckpointSchedule
from pagein.memory.facts_runtime import FactsRuntime
from pagein.memory.operations.changed_requests import remember_request
from pagein.memory.operations.history import find_lost_entry
from pagein.memory.operations.ingest import Transcript
from pagein.memory.operations.load import catch_up
from pagein.memory.options import Options, build_state, model_name, policy_name, resolve_embedder, with_embedder
from pagein.memory.requests import NO_FILTER, RequestFilter
from pagein.memory.run_requests import RunRequests
from pagein.memory.search_runtime import SearchRuntime
from pagein.tokens.budget import RequestRoom
from pagein.tokens.bytes import json_bytes

if TYPE_CHECKING:
    from pagein.facts.store import Facts
    from pagein.log.snapshots import SnapshotSlot
    from pagein.memory.background.asked_model import FindLoop
    from pagein.memory.background.summary_writer import SummaryWriter
    from pagein.memory.erasure.eraser import Eraser
    from pagein.memory.options import AnyModel
    from pagein.models.writer_account import WriterAccount, WriterReport
    from pagein.search.base import Hit, Query
    from pagein.summaries.job import JobOutcome, SummaryJob

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """The branches of a run in a store, and the state of a memory that is about to go on with them."""

    branches: Branches
    state: RunState
    model: AnyModel | None


class MemoryRuntime:
    """A run's log, state, search, facts, branches and background work. ``take_turn`` runs an operation in a turn.

    AgentMemory and AsyncAgentMemory hold one. An operation reaches it as ``run.runtime``: it reads, writes and waits
    by nothing else.
    """

    def __init__(
        self, source: Log | OpenedRun, options: Options, wrap_log: Callable[[StoredLog], StoredLog] = lambda log: log
    ) -> None:
        self._wrap_log = wrap_log
        facts_store: LogStore | None
        if isinstance(source, OpenedRun):
            self.branches, self.state, self.model = source.branches, source.state, source.model
            log, facts_store = wrap_log(self.branches.log(self.branches.current)), self.branches.root.store
        else:
            log = wrap_log(stored_log(source))
            facts_store = None if isinstance(log, BareLog) else log.store
            self.state, self.model = build_state(options)
            self.branches = Branches(log)
        self.state.runtime = self
        self.log: StoredLog = log
        self.clock = options.get("clock", time.time)
        embedder = resolve_embedder(options)
        if embedder is not None:
            self.state.policy = with_embedder(self.state.policy, embedder)
        self.search = SearchRuntime(log, embedder)
        self.writers = self.state.writers
        names = {"user": options.get("user"), "project": options.get("project"), "task": options.get("task")}
        self.facts = FactsRuntime(
            log, names, options.get("facts"), store=facts_store, model=self.model, embedder=embedder, clock=self.clock,
            account=None if self.writers is None else self.writers.facts,
        )  # fmt: skip
        self.state.facts_block = self.facts.initial_block
        self.format = format_named(options.get("format", "openai"))
        self.roles = dict(options.get("roles") or {})
        self.role_names = {role: name for name, role in reversed(self.roles.items())}
        self.step_types = _check_step_types(options.get("step_types", ()))
        self.schedule = CheckpointSchedule.from_options(log, options)
        self.requests = RunRequests(self, model_name(options.get("model")), policy_name(options, self.state))
        self.summary_writer: SummaryWriter | None = None
        self.turn_lock = threading.RLock()
        self.is_closed = False
        self.is_folded = False
        """True once the log was folded: an async memory does so when it is first awaited."""
        self.was_cut_off = False
        """True from a turn that ended by no error of ours, such as Ctrl-C, to the next one: the state may be half applied."""
        self._process = os.getpid()
        self._last_entry: Entry | None = None
        self._last_request: RawRequest | None = None

    def open_summary_writer(self, find_loop: FindLoop | None) -> None:
        """Have the model write summaries, where there is one; with ``find_loop`` it is awaited. Raises ConfigurationError."""
        summarizer = self.state.summaries.summarizer
        if self.model is not None and summarizer is not None:
            from pagein.memory.background.summary_writer import SummaryWriter  # noqa: PLC0415 - loads where a model writes

            self.summary_writer = SummaryWriter(self.model, summarizer, self.summary_account, find_loop)

    # Turns

    def take_turn(self, operation: Callable[Concatenate[RunState, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation in a turn of its own. Raises what the operation raises."""
        self.check_open()  # a forked process has a copy of the lock that nobody may give back
        with self.turn_lock:
            self.check_open()
            self.fold_log()
            return self.run_turn(operation, *args, **kwargs)

    def run_turn(self, operation: Callable[Concatenate[RunState, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the turn around an operation. Raises what the operation raises."""
        return run_turn(self, operation, *args, **kwargs)

    def fold_log(self) -> None:
        """Fold the log, unless that was done."""
        if not self.is_folded:
            open_memory(self)

    # Effects: what an operation reads, writes and waits for

    def append(self, bodies: tuple[Body, ...], after: int) -> tuple[Entry, ...]:
        """Append the bodies durably at position ``after``, all or none. Raises Conflict."""
        if self.log.readonly:
            return self._keep_unwritten(bodies, after)
        try:
            return self._remember_last(self.log.append(bodies, after=after, at=self.clock()))
        except (Conflict, LogErased):
            # The winner's entries are folded in, so that the loser can look at them and try again.
            catch_up(self.state)
            raise

    def read_entries(self, start: int, stop: int | None, log: Log | None = None) -> tuple[Entry, ...]:
        """Read the entries ``[start, stop)`` of the run's log, or of another log."""
        if log is not None:
            return tuple(log.read(start, stop))
        return self._remember_last(tuple(self.log.read(start, stop)))

    def recall(self, query: Query, *, across: bool = False) -> tuple[Hit, ...]:
        """Search what was recorded, in this session or ``across`` all sessions of the tenant."""
        if removed := self.state.fold.changes.removed:
            query = replace(query, exclude=query.exclude | removed)
        return self.search.recall(query, across=across)

    def begin_job(self, job: SummaryJob) -> None:
        """Have the model write summaries while the run goes on."""
        if self.summary_writer is not None:
            self.summary_writer.begin(job)

    def collect_job(self, timeout: float | None) -> JobOutcome | None:
        """Wait at most ``timeout`` seconds (None: as long as it takes) for the job; None while it is at work."""
        return None if self.summary_writer is None else self.summary_writer.collect(timeout)

    def cancel_job(self) -> None:
        """Cancel the job; its outcome is dropped."""
        if self.summary_writer is not None:
            self.summary_writer.cancel()

    def head(self) -> int:
        """Count the entries of the run's log; -1 where the log that a branch was forked from got shorter."""
        pieces = self.log.pieces if isinstance(self.log, BranchLog) else ()
        if pieces and pieces[0].log.head() + pieces[0].offset < pieces[0].last:
            return -1  # what this branch goes on from was erased
        return self.log.head()

    def _keep_unwritten(self, bodies: tuple[Body, ...], after: int) -> tuple[Entry, ...]:
        """Make entries that no log has, so that a read-only log can be viewed. Raises LogUnwritable for other bodies."""
        if not all(isinstance(body, Compaction | FactsShown) for body in bodies):
            self.branches.check_writable()
        self.state.log.unwritten += len(bodies)
        return tuple(Entry(position, self.clock(), body, "") for position, body in enumerate(bodies, after))

    def _remember_last(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """Keep the furthest entry in mind: ``verify`` looks whether the log still has it."""
        if entries and (self._last_entry is None or entries[-1].position > self._last_entry.position):
            self._last_entry = entries[-1]
        return entries

    def snapshot_slot(self, log: Log | None, before: int | None = None) -> SnapshotSlot | None:
        """Read the snapshot slot of the run's log, or of another log; None where it cannot be read.

        With ``before``, that of the last past snapshot of at most so many entries.
        """
        try:
            return (self.log if log is None else stored_log(log)).snapshot_slot(before)
        except LogUnreadable:
            return None  # damage is reported where it stands in the way

    def restart_empty(self) -> bool:
        """Go on with an empty run if the log says that the run was erased whole; False, and no change, if not."""
        root = self.branches.root
        first = next(iter(root.read(0, 1)), None)
        if first is None or not isinstance(first.body, Erased) or not first.body.gone:
            return False
        self.branches.forget()
        self.move_to(self.branch_log(MAIN))
        return True

    # Other logs

    def branch_log(self, name: str) -> StoredLog:
        """The log of a branch. Raises UnknownBranch."""
        return self._wrap_log(self.branches.log(name))

    def move_to(self, log: StoredLog, state: RunState | None = None) -> None:
        """Go on with another log, and with the state folded from it."""
        if state is not None:
            self.state = state
        self.log, self._last_entry = log, None
        self.search = self.search.for_log(log)
        self.facts.move_to(log)
        self.schedule.counted_to = log.head() if state is None else state.fold.head

    def verify_log(self) -> Verification:
        """Derive every hash of the log again, and look whether it has the last entry that was known."""
        verification = self.log.verify()
        problem = find_lost_entry(self.log, self._last_entry, verification) if verification.ok else None
        return verification if problem is None else replace(verification, problems=(problem,))

    # Between turns

    @property
    def is_forked(self) -> bool:
        """True in a process that was forked from the one that opened the memory."""
        return os.getpid() != self._process

    def check_open(self) -> None:
        """Raise LogClosed if the memory was closed, or opened before this process was forked."""
        if self.is_forked:
            raise LogClosed("this memory was opened before this process was forked; open it again in here")
        if self.is_closed:
            raise LogClosed("this memory was closed; open it again to go on")

    def check_folded(self) -> None:
        """Raise LogClosed as ``check_open``, and ConfigurationError for an async memory that was not awaited yet."""
        self.check_open()
        if not self.is_folded:
            raise ConfigurationError("this memory has not read its log yet: await it first, or use `async with`")

    def format_of(self, name: str | None) -> Format:
        """The format of that name, or the memory's own."""
        return self.format if name is None else format_named(name)

    def revive(self, steps: Iterable[tuple[int, Step]]) -> tuple[Step, ...]:
        """The steps, those of a registered class as its objects. Raises ConfigurationError."""
        if not self.step_types:
            return tuple(step for _, step in steps)
        from pagein.memory.operations.own_steps import revive  # noqa: PLC0415 - loads where there are some

        return tuple(revive(step, self.step_types) for _, step in steps)

    def read_transcript(self, messages: Any, format: str | None, observations: TextObservations) -> Transcript:
        """Split a provider's messages. Raises FormatError, and ConfigurationError for a format there is none of."""
        unwrapped = rename_roles(unwrap_request(messages), self.roles)
        form = choose_format(unwrapped, self.format) if format is None else format_named(format)
        return Transcript(split_request(unwrapped, form), check_observations(observations))

    def request_room(self, reserve: int, tools: Any, format: str | None = None) -> RequestRoom:
        """The tokens that a request needs beside its view. Raises ConfigurationError."""
        if type(reserve) is not int or reserve < 0:
            raise ConfigurationError(f"reserve is a number of tokens, 0 or more, not {reserve!r:.100}")
        if tools is None:
            return RequestRoom(reserve)
        given = [tools] if isinstance(tools, Mapping) else tools
        try:
            if isinstance(given, str | bytes) or not isinstance(given, Iterable):
                raise FormatError("tools is no list")
            plain = [to_plain_json(tool, f"tools[{at}]", encode_bytes=True) for at, tool in enumerate(given)]
        except FormatError as error:
            raise ConfigurationError(
                f"tools is the list of tool definitions that the request has, as JSON or SDK objects: {error}"
            ) from error
        return RequestRoom(
            reserve, self.format_of(format).count_tools(plain, self.state.counter.text), json_bytes(plain)
        )

    def render(self, view: View, format: str | None, filter: RequestFilter = NO_FILTER) -> dict[str, Any]:
        """The view as a provider's request, remembered as the last one. Raises Illegal."""
        form = self.format_of(format)
        request = form.render(view.messages())
        if problems := form.problems(request):
            raise Illegal(form.name, problems)
        place = self.state.log.count_fingerprints(view.head)
        # Nearly all of it was hashed for the request before.
        self._last_request = raw = RawRequest(form, request["messages"], earlier=self._last_request).keep_copy()
        remember_request(self.state.transcript, raw, place, request["messages"][-1] if view.has_ending else None)
        self.requests.note(view, raw, request, filter)
        request["messages"] = rename_roles(request["messages"], self.role_names)
        self.state.run_events()
        return request

    def note_break(self, event: PrefixBreak) -> None:
        """Note that a request's prefix broke, for the callbacks."""
        if self.state.callbacks is not None:
            self.state.events.append(event)

    # Facts, reports, erasure

    @property
    def summary_account(self) -> WriterAccount | None:
        """The account of the model that writes summaries; None where none does."""
        return None if self.writers is None else self.writers.summaries

    def use_facts(self) -> Facts:
        """The facts; every view shows them from now on."""
        self.check_open()
        facts = self.facts.facts
        self.state.facts_block.is_on = True
        return facts

    def extract_facts(self, *, flush: bool = False) -> None:
        """Extract facts from new entries when that is due, or now with ``flush``."""
        if self.writers is not None:
            self.writers.allow(self.state.fold.costs.total)
        self.facts.extract(flush=flush)

    def eraser(self) -> Eraser:
        """The eraser of this run's logs, facts and search index."""
        from pagein.memory.erasure.eraser import Eraser  # noqa: PLC0415 - loads where something is erased

        return Eraser(self.branches, self.facts, self.search, self.clock)

    def report(self) -> Report:
        """The report of the view as it stands, with every problem so far."""
        self.check_folded()
        view, last = self.state.view_with_ledger(), self.state.usage.last_view
        tail = last.tail if last is not None and last.head == view.head else ()
        problems = (*self.state.problems.messages, *self.facts.problems.messages, *self.search.problems)
        return replace(
            view.with_tail(tail).report,
            problems=problems,
            writers=(*self._writer_reports(view), *self._rater_report()),
            facts_left_out=self.facts.left_out,
            cost=self.requests.known_cost(),
        )

    def take_spent(self) -> dict[str, tuple[int, int]]:
        """Return the tokens that models read and wrote beside the run since this was asked last, by purpose."""
        accounts = () if self.writers is None else (self.writers.summaries, self.writers.facts)
        spent = {account.purpose: account.take_spent() for account in accounts}
        if (rater := getattr(self.state.policy, "rater", None)) is not None and hasattr(rater, "take_spent"):
            spent["ratings"] = rater.take_spent()
        return {purpose: tokens for purpose, tokens in spent.items() if any(tokens)}

    def _writer_reports(self, view: View) -> tuple[WriterReport, ...]:
        summarizer, fold = self.state.summaries.summarizer, self.state.fold
        if self.writers is None or summarizer is None:
            return ()
        written = (
            entry for entry in view.run if isinstance(entry.item, SummaryStep) and entry.item.author == summarizer.name
        )
        return self.writers.reports(sum(fold.costs.sum(entry.first, entry.last) - entry.tokens for entry in written))

    def _rater_report(self) -> tuple[WriterReport, ...]:
        """The account of the model that rates steps, if it was asked."""
        rater: Any = getattr(self.state.policy, "rater", None)
        report: WriterReport | None = rater.report() if hasattr(rater, "report") else None
        return (report,) if report is not None and report.asked else ()

    def wait(self, timeout: float | None) -> bool:
        """Wait for the facts being read and for vectors, at most ``timeout`` seconds each; True if all is done."""
        return self.facts.wait(timeout) and self.search.wait(timeout)

    def close(self) -> None:
        """End what is under way, and release search, facts and logs; a second call does nothing."""
        if self.is_forked:
            return  # what there is to close is the parent's
        with self.turn_lock:
            if self.is_folded and not self.is_closed:
                close_memory(self)
            self.is_closed = True
            if self.summary_writer is not None:
                self.summary_writer.close()
            self.search.close()
            self.facts.close()
            self.requests.learn_recorded_usage()
            self.requests.write()
            self.branches.close()


def runtime_type(options: Options) -> type[MemoryRuntime]:
    """The class of a memory's runtime; with telemetry, the one that traces its turns. Raises ConfigurationError."""
    if options.get("telemetry", "off") == "off":
        return MemoryRuntime
    from pagein.memory.telemetry import TracedRuntime  # noqa: PLC0415 - its API is an extra

    return TracedRuntime


def open_run(store: LogStore, options: Options, session: str, branch: str | None) -> OpenedRun:
    """Open a run in a store, on a branch. Raises ConfigurationError, UnknownBranch, BudgetError, LogError."""
    state, model = build_state(options)  # a bad option leaves no file behind
    if is_reserved(session):
        raise ConfigurationError(f"the session {session!r} is a log of facts or branches; give the run another name")
    branches = Branches(store.log(session))
    try:
        branches.select(branch)
    except BaseException:
        branches.close()
        raise
    return OpenedRun(branches, state, model)


def _check_step_types(types: Sequence[type[MemoryStep]]) -> Mapping[str, type[MemoryStep]]:
    if not types:
        return {}
    from pagein.memory.operations.own_steps import check_step_types  # noqa: PLC0415 - loads where there are some

    return check_step_types(types)
