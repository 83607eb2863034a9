"""AgentMemory: what a user holds. Every verb is a flow; this drives it, and does the I/O; its twin is in ``amemory``."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from pagein._common.drive import drive
from pagein.context.view.view import Report, View
from pagein.errors import ConfigurationError, Conflict, Illegal, LogClosed, LogErased, UnknownHandle
from pagein.events.entries import Compaction
from pagein.events.steps import Observation, Step, Usage, as_text
from pagein.formats import format_named, keywords
from pagein.log.base import Entry, Log, Verification
from pagein.log.encryption import Key, held
from pagein.memory._effects import (
    Append,
    Attend,
    Begin,
    Collect,
    Effect,
    Flow,
    Index,
    Known,
    Read,
    Recall,
    Remember,
)
from pagein.memory.api import Branching, Verbs
from pagein.memory.branches import Grove, beside, on_branch
from pagein.memory.checkpoints.automatic import Marks, begun, closing, followed
from pagein.memory.facts_runtime import Knowledge, open_beside
from pagein.memory.operations import load as flows
from pagein.memory.operations import view as paging
from pagein.memory.operations.expand import Expansion, expand
from pagein.memory.operations.history import lost_since
from pagein.memory.operations.ingest import Handed, Rendered, handed
from pagein.memory.operations.load import Recorded
from pagein.memory.options import (
    Narrowed,
    Options,
    checked_count,
    checked_session,
    checked_usage,
    embedder_of,
    session_of,
)
from pagein.memory.search_runtime import Library
from pagein.memory.tools import call, tools
from pagein.tokens import Budget

if TYPE_CHECKING:
    from pagein.facts.store import Facts
    from pagein.memory.background.summary_writer import Thread
    from pagein.models import Overflow
    from pagein.search.base import Hit

T = TypeVar("T")


class Memory(Branching):
    """What both colours share: the log, the session, and the effects a flow may ask for."""

    def __init__(self, log: Log, **options: Unpack[Options]) -> None:
        self._log = log
        self._closed = False
        self._clock = options.get("clock", time.time)
        self._known: Entry | None = None
        self._session, self._author = session_of(options)
        embedder = embedder_of(options)
        self._library = Library(log, embedder)
        names = {"user": options.get("user"), "project": options.get("project"), "task": options.get("task")}
        self._knowledge = Knowledge(
            log, names, options.get("facts"), model=self._author, embedder=embedder, clock=self._clock
        )
        self._session.has_facts, self._session.placement = self._knowledge.is_on, self._knowledge.placement
        self._format = format_named(options.get("format", "openai"))
        self._marks = Marks.of(log, options)
        self._branches = Grove(log, beside(log))

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str],
        *,
        session: str = "default",
        tenant: str = "",
        branch: str | None = None,
        readonly: bool = False,
        timeout: float = 5.0,
        synchronous: str = "FULL",
        key: Key | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """The memory of one session in a store: a SQLite file, or ``:memory:``. See ``Options`` and ``SQLiteLog``.

        With ``readonly`` nothing is written: what leaves the view is remembered by this memory only. ``branch`` is the
        one to go on with, without it the one that was switched to last. With a ``key`` what is stored is encrypted.
        Raises ConfigurationError, UnknownBranch, BudgetError, LogError.
        """
        from pagein.backends.open import open_log  # noqa: PLC0415 - a store's drivers load when one is opened

        made, author = session_of(options)  # a bad option leaves no file behind
        checked_session(session)
        store: dict[str, Any] = {"tenant": tenant, "readonly": readonly, "timeout": timeout}
        store |= {"synchronous": synchronous, "key": held(key)}
        grove = Grove(open_log(url, session=session, **store), partial(open_beside, url, **store))
        try:
            # A table is read, and a warning given, once.
            told = Options(counter=made.counter, budget=made.budget)
            if author is not None:
                told["model" if made.author is not None and made.author.holds_run else "summarizer"] = author
            memory = cls(on_branch(grove, branch), **(options | told))
        except BaseException:
            grove.close()
            raise
        memory._branches = grove
        memory._knowledge.open_log = memory._library.open_log = partial(open_beside, url, **store)
        return memory

    @property
    def budget(self) -> Budget:
        """The budget every view is held to."""
        return self._session.budget

    @property
    def system_prompt(self) -> str:
        """The text of the system prompts, in order, a blank line between them; for APIs that take it apart."""
        self._check_open()
        shown = self._session.fold.view(1).systems
        return "\n\n".join(as_text(message.content) for each in shown for message in each.messages)

    @property
    def facts(self) -> Facts:
        """What outlives the run: stated, corrected, searched; from its first use on shown in every view too.

        It does its own work on its own logs, at once; in async code call it in a thread. Raises ConfigurationError
        where the memory was opened with ``facts=False``.
        """
        self._check_open()
        self._session.has_facts = True
        return self._knowledge.facts

    def tools(self, format: str | None = None) -> list[dict[str, Any]]:
        """The tools a model may be offered, as its provider takes them: recall, expand, pin, note, forget and more."""
        return tools(self._format.name if format is None else format)

    @property
    def repairs(self) -> tuple[str, ...]:
        """What had to be mended in the transcripts handed over since this memory was opened."""
        return tuple(self._session.repairs)

    def report(self) -> Report:
        """Every token of the view as it stands, what came back last too, and what is out. Compacts nothing."""
        self._check_open()
        session = self._session
        view = session.fold.view(session.limit(session.budget))
        last = session.last
        behind = last.tail if last is not None and last.head == view.head else ()
        told = (*session.problems, *self._knowledge.problems, *self._library.problems)
        return replace(view.with_tail(behind).report, problems=told)

    def reported(self, usage: Usage) -> None:
        """Tell what the provider counted for the last request, so that later counts come nearer to it."""
        self._check_open()
        self._session.learn(checked_usage(usage).input_tokens)

    def overflowed(self, error: BaseException | str) -> Overflow | None:
        """Learn from a provider's error that the last request was too long: the next view fits, and is smaller.

        None, and nothing learnt, for an error that says nothing of the kind. What is learnt holds until the memory is
        closed.
        """
        self._check_open()
        from pagein.models.overflow import overflow_in  # noqa: PLC0415 - loads where something overflowed

        found = overflow_in(error)
        if found is not None:
            self._session.shrink(found.window, found.asked)
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed("this memory was closed; open it again to go on")

    def _perform(self, effect: Effect[Any]) -> Any:
        match effect:
            case Append(bodies=bodies, after=after):
                if getattr(self._log, "readonly", False):
                    return self._held(bodies, after)
                try:
                    return self._noted(self._log.append(bodies, after=after, at=self._clock()))
                except (Conflict, LogErased):
                    # The winner's entries are folded in, so that the loser can look at them and try again.
                    drive(flows.catch_up(self._session), self._perform)
                    raise
            case Recall(query=query, across=across):
                return self._library.recall(query, across=across)
            case Index(limit=limit):
                return self._library.index(limit)
            case Attend(now=now):
                return self._knowledge.flush() if now else self._knowledge.attend()
            case Known():
                return self._knowledge.laid(effect, self._session.counter)
            case Remember(verb=verb, given=given):
                return getattr(self.facts, verb)(**given)
            case Read(start=start, stop=stop, log=None):
                return self._noted(tuple(self._log.read(start, stop)))
            case _:
                return self._branched(effect)

    def _noted(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The entries, the furthest one known kept in mind."""
        if entries and (self._known is None or entries[-1].position > self._known.position):
            self._known = entries[-1]
        return entries

    def _verified(self) -> Flow[Verification]:
        found = self._log.verify()
        lost = lost_since(self._log, self._known, found) if found.ok else None
        if lost is not None:
            found = replace(found, problems=(lost,))
        if found.ok:
            yield from flows.reload(self._session)
        return found

    def _unpinned(self, handle: str) -> Flow[None]:
        if not isinstance(handle, str):
            raise UnknownHandle(str(handle), self._session.fold.head)
        yield from flows.unpin(self._session, handle)

    def _recalled(self, query: str, limit: int, narrowed: Narrowed) -> Flow[tuple[Hit, ...]]:
        from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

        since, until, role = narrowed.get("since"), narrowed.get("until"), narrowed.get("role")
        asked = Query(query, limit, since, until, role, now=self._clock())
        return (yield from Recall(asked, across=narrowed.get("across", False)))

    def _pinned(self, text: str) -> Flow[str]:
        if not isinstance(text, str) or not text.strip():
            raise ConfigurationError(f"a pin is text to keep in every view, not {text!r}")
        return (yield from flows.pin(self._session, text))

    def _handed(self, messages: Any, format: str | None, usage: Usage | None) -> Handed:
        if usage is not None:
            checked_usage(usage)
        return handed(self._format if format is None else format_named(format), messages)

    def _rendered(self, view: View, format: str | None) -> dict[str, Any]:
        form = self._format if format is None else format_named(format)
        request = form.render(view.messages())
        if problems := form.problems(request):
            raise Illegal(form.name, problems)
        self._session.rendered[form.name] = Rendered(tuple(request["messages"]), view.head)
        return request


class AgentMemory(Verbs, Memory):
    """A run recorded whole, and a view of it that is never over budget and never malformed.

    ``AgentMemory.open("run.db", budget=80_000)`` opens or makes the record; the memory is a context manager. Calls
    from several threads take their turns. Every verb raises errors of ours only, and a call that raises changed
    nothing.
    """

    def __init__(self, log: Log, **options: Unpack[Options]) -> None:
        super().__init__(log, **options)
        self._turn = threading.RLock()
        self._writing: Thread | None = self._thread()
        self._run(begun(self._marks, self._session))

    def _run(self, flow: Flow[T]) -> T:
        with self._turn:
            self._check_open()
            return drive(followed(self._marks, self._session, flow), self._perform)

    def _perform(self, effect: Effect[Any]) -> Any:
        writing = self._writing
        if isinstance(effect, Begin) and writing is not None:
            return writing.begin(effect.job)
        if isinstance(effect, Collect) and writing is not None:
            return writing.collect(effect.timeout)
        return super()._perform(effect)

    def _thread(self) -> Thread | None:
        if self._author is None or self._session.author is None:
            return None
        from pagein.memory.background.summary_writer import Thread  # noqa: PLC0415 - loads where a model writes

        return Thread(self._author, self._session.author)

    def record(self, *items: Step | Observation) -> Recorded:
        """Write steps or observations durably, all or none, before this returns. Raises ProtocolError."""
        return self._run(flows.record(self._session, items, strict=True))

    def record_messages(
        self,
        messages: Any,
        format: str | None = None,
        *,
        whole: bool | None = None,
        usage: Usage | None = None,
    ) -> Recorded:
        """Write what is new in a provider's messages: a list, or a whole request.

        What ``to_messages`` gave may be handed back with what came since. ``whole`` True says that the list starts
        with all that was recorded, False that all of it is new; without it the list's beginning tells. ``usage`` is what the provider reported for the request before. What is broken is
        mended and named in the result. Raises FormatError, ProtocolError.
        """
        given = self._handed(messages, format, usage)
        return self._run(flows.record(self._session, given, strict=False, whole=whole, usage=usage))

    def view(self) -> View:
        """What the model sees now, within budget; what leaves to get there is recorded. Raises OverBudget."""
        return self._run(paging.view(self._session))

    def to_messages(
        self,
        format: str | None = None,
        *,
        summary_mode: bool = False,
        keep_last_n: int | None = None,
        max_tokens: int | None = None,
    ) -> list[dict[str, Any]]:
        """The view as a provider's messages: within budget, legal, and the last request's prefix kept.

        ``summary_mode`` leaves out system prompts, plans and the model's prose (smolagents), ``keep_last_n`` shows
        only the last n actions, ``max_tokens`` is another budget for this call; none of the three records anything.
        Raises OverBudget.
        """
        view = self._run(paging.shown(self._session, summary_mode, checked_count(keep_last_n), max_tokens))
        messages: list[dict[str, Any]] = self._rendered(view, format)["messages"]
        return messages

    def to_request(self, format: str | None = None) -> dict[str, Any]:
        """The view as the provider's keyword arguments: its messages, and ``system`` where it stands apart."""
        return keywords(format or self._format.name, self._rendered(self.view(), format))

    def expand(self, handle: str | int) -> Expansion:
        """The original behind a handle or at a position, whole. Raises UnknownHandle."""
        return self._run(expand(self._session, handle))

    def recall(self, query: str, limit: int = 10, **narrowed: Unpack[Narrowed]) -> tuple[Hit, ...]:
        """What was recorded and matches, best first, whether it left the view or not: at most ``limit`` hits.

        Any text may be asked. See ``Narrowed`` for what narrows it. Raises ConfigurationError, LogError.
        """
        return self._run(self._recalled(query, limit, narrowed))

    def call_tool(self, name: str, arguments: str | Mapping[str, Any] = "{}") -> str:
        """Run one of ``tools`` that the model called, and give the text it gets back, bounded; record that as its result.

        What the model did wrong is told it in that text. Raises ConfigurationError for a tool there is not, LogError.
        """
        return self._run(call(self._session, name, arguments, self._clock()))

    def pin(self, text: str) -> str:
        """Keep the text verbatim in every view; gives the handle that ``unpin`` takes."""
        return self._run(self._pinned(text))

    def unpin(self, handle: str) -> None:
        """Let a pin go. Raises UnknownHandle."""
        self._run(self._unpinned(handle))

    def compact(self, *, wait: bool = False) -> Compaction | None:
        """Compact now, whatever the view costs; None where nothing would get smaller.

        With ``wait`` the model that writes summaries is waited for; else it writes while the run goes on.
        """
        return self._run(paging.compact(self._session, wait=wait))

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until no summary is being written and nothing read for facts, at most ``timeout`` seconds each; True when so."""
        return self._run(paging.settled(self._session, timeout)) and self._knowledge.wait(timeout)

    def undo(self) -> Compaction:
        """Take back the last compaction. Raises NothingToUndo."""
        return self._run(flows.undo(self._session))

    def verify(self) -> Verification:
        """Derive every hash of the record again, and say what is wrong and where."""
        return self._run(self._verified())

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        with self._turn:
            if not self._closed:
                drive(closing(self._marks, self._session), self._perform)
            self._closed = True
            if self._writing is not None:
                self._writing.close()
            self._library.close()
            self._knowledge.close()
            self._branches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
