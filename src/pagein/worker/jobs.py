"""The jobs that a store needs, derived from its logs, and how each is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_never

from pagein.backends.base import Store
from pagein.backends.open import open_store
from pagein.errors import PageinError
from pagein.facts.owners import Owners, is_reserved
from pagein.facts.store import Facts
from pagein.memory.search_runtime import EMBED_BATCH, OWN_TOOLS
from pagein.search.index import SearchIndex

if TYPE_CHECKING:
    from pagein.models import Model
    from pagein.search.base import Embedder
    from pagein.worker.summaries import SummaryJobs

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
            from pagein.worker.summaries import SummaryJobs  # noqa: PLC0415 - loads where summaries are written

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
            return len(new)

    def _is_unread(self, store: Store, session: str) -> bool:
        with self._facts(store, session) as facts:
            return facts.extracted_until() < store.head(session)

    def _facts(self, store: Store, session: str) -> Facts:
        owners = Owners(session, self._user, self._project, None, self.tenant)
        return Facts(store, owners, model=self._model, embedder=self._embedder, clock=self.clock)

    @contextmanager
    def _open_store(self) -> Iterator[Store]:
        with closing(open_store(self.url, tenant=self.tenant)) as store:
            yield store

    def _index(self, store: Store) -> SearchIndex:
        return store.search_index(embedder=self._embedder, own_tools=OWN_TOOLS)
