"""The jobs that a store needs, derived from its logs, and how each is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_never

from pagein.backends.base import Store
from pagein.backends.open import open_store
from pagein.errors import Conflict, PageinError
from pagein.events.entries import Compaction
from pagein.facts.owners import Owners, is_reserved
from pagein.facts.store import Facts
from pagein.log.base import LogStore
from pagein.log.branch_log import run_of
from pagein.memory._state import RunState
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.host_memory import runtime_of, take_turn
from pagein.memory.operations.compact import attach_summaries, commit_plan
from pagein.memory.operations.summarize import cancel_summary, collect_summary, plan_ahead, start_summary
from pagein.memory.options import Options
from pagein.memory.search_runtime import EMBED_BATCH, OWN_TOOLS
from pagein.search.index import SearchIndex

if TYPE_CHECKING:
    from pagein.models import Model
    from pagein.search.base import Embedder


Kind = Literal["index", "embed", "facts", "summary"]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of background work: a session's index, facts or summary, or the vectors of all a tenant's sessions."""

    kind: Kind
    session: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.session}".rstrip()


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job: the number of entries, passages, facts or tokens saved, and the error of a failed job."""

    job: Job
    count: int = 0
    failed: str = ""


class WorkQueue:
    """The background jobs of one tenant in a store. Methods raise a ``PageinError``, never a driver's error.

    Vectors are made with an ``embedder``. Facts are extracted where a ``user`` or a ``project`` is named, from
    every session of the tenant, by rules or by a ``model``. Summaries are written with ``summaries``: the
    options of the application's memories, such as ``budget`` and ``policy``, and the ``summarizer``.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant: str = "",
        embedder: Embedder | None = None,
        model: Model | None = None,
        user: str | None = None,
        project: str | None = None,
        summaries: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.url, self.tenant, self.clock = url, tenant, clock
        self._embedder, self._model = embedder, model
        self._user, self._project = user, project
        self._summaries: SummaryJobs | None = None
        if summaries:
            self._summaries = SummaryJobs(url, summaries, tenant=tenant, clock=clock)
        if self.reads_facts:
            Owners("default", user, project, None, tenant)  # an invalid name raises now

    @property
    def reads_facts(self) -> bool:
        """True where the owner of the sessions' facts is named."""
        return self._user is not None or self._project is not None

    def due_jobs(self) -> tuple[Job, ...]:
        """The due jobs: sessions to index, passages to embed, sessions to read for facts, runs to summarise."""
        with self._open_store() as store:
            names = [name for name in store.sessions() if not is_reserved(name)]
            if not names:
                return ()
            with self._index(store) as index:
                behind = [name for name in names if index.watermark(name) < store.head(name)]
                embed = [Job("embed")] if index.pending() else []
            facts = [name for name in names if self.reads_facts and self._is_unread(store, name)]
            writer = self._summaries
            summaries = [name for name in names if writer is not None and writer.is_due(store, name)]
        return (
            *(Job("index", name) for name in behind), *embed, *(Job("facts", name) for name in facts),
            *(Job("summary", name) for name in summaries),
        )  # fmt: skip

    def do(self, job: Job, stop: threading.Event) -> JobResult:
        """Do a job; a failure is in the result. Once ``stop`` is set it ends as soon as it can: the rest stays due."""
        try:
            return JobResult(job, self._do(job, stop))
        except PageinError as error:
            return JobResult(job, failed=str(error))

    def _do(self, job: Job, stop: threading.Event) -> int:
        match job.kind:
            case "index":
                with self._open_store() as store, closing(store.log(job.session)) as log, self._index(store) as index:
                    return index.catch_up(log, session=job.session)
            case "embed":
                return self._embed(stop)
            case "facts":
                return self._extract_facts(job.session)
            case "summary":
                return 0 if self._summaries is None else self._summaries.write_summary(job.session, stop)
            case _:
                assert_never(job.kind)

    def _embed(self, stop: threading.Event) -> int:
        with self._open_store() as store, self._index(store) as index:
            first = remaining = index.pending()
            while remaining and not stop.is_set():
                try:
                    remaining = index.embed_pending(EMBED_BATCH)
                except PageinError:
                    raise
                except Exception as error:  # noqa: BLE001 - anyone's embedder; its words may hold a key
                    raise PageinError(f"the embedder failed with {type(error).__name__}") from None
            return first - remaining

    def _extract_facts(self, session: str) -> int:
        with self._open_store() as store, closing(store.log(session)) as log, self._facts(store, session) as facts:
            new = facts.flush(log.read, log.head())
            if facts.last_error is not None:
                raise facts.last_error
            facts.mark_read()  # else the job would be due again
            return len(new)

    def _is_unread(self, store: Store, session: str) -> bool:
        with self._facts(store, session) as facts:
            return facts.extracted_until() < store.head(session)

    def _facts(self, store: Store, session: str) -> Facts:
        owners = Owners(session, self._user, self._project, None, self.tenant)
        return Facts(store, owners, model=self._model, embedder=self._embedder, clock=self.clock)

    def _open_store(self) -> closing[Store]:
        return closing(open_store(self.url, tenant=self.tenant))

    def _index(self, store: Store) -> SearchIndex:
        return store.search_index(embedder=self._embedder, own_tools=OWN_TOOLS)


RECENT_SECONDS = 86_400.0
"""Seconds since its last entry after which a run is taken to be at rest, and is not summarised."""

MODEL_POLL_SECONDS, COMMIT_ATTEMPTS = 0.1, 8
"""Seconds between two checks of the model; attempts to append where the application writes, too."""

Heads = tuple[int, ...]
"""The numbers of entries of a run and of each of its branches."""


class SummaryJobs:
    """The summaries of one tenant's runs. ``options`` are the application's, the summarizer among them.

    A run whose summary failed or saved nothing is tried again when it has new entries. Raises
    ConfigurationError, LogError.
    """

    def __init__(
        self, url: str, options: Mapping[str, Any], *, tenant: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self._url, self._tenant, self._clock = url, tenant, clock
        self._options = Options(**options, page_in=0.0, clock=clock)  # type: ignore[typeddict-item]
        self._last_heads: dict[str, Heads] = {}
        with closing(AgentMemory.open(":memory:", **self._options)):
            pass  # an invalid option raises now

    def is_due(self, store: LogStore, session: str) -> bool:
        """True where an active run is beyond its soft mark."""
        heads = _heads(store, session)
        if self._last_heads.get(session) == heads:
            return False
        with self._open_memory(session, readonly=True) as memory:
            last = next(iter(runtime_of(memory).log.read(heads[0] - 1, None)), None)
            is_due = (
                last is not None
                and self._clock() - last.at < RECENT_SECONDS
                and plan_ahead(run := runtime_of(memory).state, run.current_view()) is not None
            )
        if not is_due:
            self._last_heads[session] = heads
        return is_due

    def write_summary(self, session: str, stop: threading.Event) -> int:
        """Summarise a run; return the number of tokens saved in its view. Raises the model's error."""
        with self._open_memory(session) as memory:
            branch = runtime_of(memory).branches.current
            compaction = take_turn(memory, _write_and_commit, branch, stop)
            if not stop.is_set():
                self._last_heads[session] = _heads(runtime_of(memory).branches.root.store, session)
            if compaction is None and (problems := memory.report().problems):
                raise PageinError(problems[-1])
        return 0 if compaction is None else compaction.tokens_before - compaction.tokens_after

    def _open_memory(self, session: str, *, readonly: bool = False) -> AgentMemory:
        return AgentMemory.open(self._url, session=session, tenant=self._tenant, readonly=readonly, **self._options)


def _write_and_commit(run: RunState, branch: str, stop: threading.Event) -> Compaction | None:
    """Write a summary and append its compaction; None where nothing was written, or it no longer fits."""
    current = run.current_view()
    plan = plan_ahead(run, current)
    if plan is None or not start_summary(run, current, plan.replacements):
        return None
    while not collect_summary(run, MODEL_POLL_SECONDS):
        if stop.is_set():
            cancel_summary(run)
            return None
    for _ in range(COMMIT_ATTEMPTS):
        if run.runtime.branches.last_branch != branch:
            return None
        if not any(replacement.record for replacement in attach_summaries(run, current, plan.replacements)):
            return None
        try:
            return commit_plan(run, current, plan)[0]
        except Conflict:
            # The other entries are folded in by now; the summary is kept for its range where that still leaves.
            current = run.current_view()
            plan = plan_ahead(run, current)
            if plan is None:
                return None
    return None


def _heads(store: LogStore, session: str) -> Heads:
    names = store.sessions()
    return (store.head(session), *(store.head(name) for name in names if name != session and run_of(name) == session))
