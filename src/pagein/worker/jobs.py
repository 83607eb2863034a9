"""What is due in a store, found by looking at its logs and what was derived from them; and how each job is done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_never

from pagein.backends.open import open_log
from pagein.backends.search import archive_of
from pagein.errors import PageinError
from pagein.facts.owners import Owners, is_reserved
from pagein.facts.store import Facts
from pagein.log.base import Log
from pagein.memory.search_runtime import BATCH, OWN_TOOLS
from pagein.search.index import DerivedArchive

if TYPE_CHECKING:
    from pagein.models import Model
    from pagein.search.base import Embedder
    from pagein.worker.summaries import Summarising

Kind = Literal["index", "embed", "facts", "summary"]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of background work: a session's index, facts or summary, or the vectors of all a tenant's sessions."""

    kind: Kind
    session: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.session}".rstrip()


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a job: how many entries, passages, facts or tokens less it came to, and why it failed, or nothing."""

    job: Job
    count: int = 0
    failed: str = ""


class Desk:
    """The background work of one tenant in a store. Every method raises a ``PageinError``, never a driver's error.

    Vectors are made where there is an ``embedder``; facts are read where a ``user`` or a ``project`` is named, whose
    every session of the tenant then is, by rules or by a ``model``. Summaries are written where there are ``summaries``:
    what the hosts' memories were opened with, as ``budget`` and ``policy``, and the ``summarizer`` that writes.
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
        self._summarising: Summarising | None = None
        if summaries:
            from pagein.worker.summaries import Summarising  # noqa: PLC0415 - loads where summaries are written

            self._summarising = Summarising(url, summaries, tenant=tenant, clock=clock)
        if self.reads_facts:
            Owners("default", user, project, None, tenant)  # a name that cannot be one is told now

    @property
    def reads_facts(self) -> bool:
        """Whether it is known whose facts the sessions tell."""
        return self._user is not None or self._project is not None

    def due(self) -> tuple[Job, ...]:
        """What is behind its log: what to index, then what to embed, to read for facts, and to write a summary of."""
        with self._opened("default") as log:
            names = [each for each in getattr(log, "sessions", tuple)() if not is_reserved(each)]
            if not names:
                return ()
            with self._archive(log) as archive:
                index = [each for each in names if archive.watermark(each) < self._head(each)]
                embed = [Job("embed")] if archive.pending() else []
            writes = self._summarising
            summaries = [each for each in names if writes is not None and writes.is_due(log, each)]
        facts = [each for each in names if self.reads_facts and self._is_unread(each)]
        return (
            *(Job("index", each) for each in index), *embed, *(Job("facts", each) for each in facts),
            *(Job("summary", each) for each in summaries),
        )  # fmt: skip

    def do(self, job: Job, stop: threading.Event) -> Done:
        """The job, done; told where it failed. Once ``stop`` is set it ends as soon as it can: the rest stays due."""
        try:
            return Done(job, self._do(job, stop))
        except PageinError as error:
            return Done(job, failed=str(error))

    def _do(self, job: Job, stop: threading.Event) -> int:
        match job.kind:
            case "index":
                with self._opened(job.session) as log, self._archive(log) as archive:
                    return archive.catch_up(log)
            case "embed":
                return self._embed(stop)
            case "facts":
                return self._read(job.session)
            case "summary":
                return 0 if self._summarising is None else self._summarising.summarise(job.session, stop)
            case _:
                assert_never(job.kind)

    def _embed(self, stop: threading.Event) -> int:
        with self._opened("default") as log, self._archive(log) as archive:
            first = left = archive.pending()
            while left and not stop.is_set():
                try:
                    left = archive.embed_pending(BATCH)
                except PageinError:
                    raise
                except Exception as error:  # noqa: BLE001 - anyone's embedder; its words may hold a key
                    raise PageinError(f"the embedder failed with {type(error).__name__}") from None
            return first - left

    def _read(self, session: str) -> int:
        with self._opened(session) as log, self._facts(session) as facts:
            found = facts.flush(log.read, log.head())
            if facts.failed is not None:
                raise facts.failed
            return len(found)

    def _is_unread(self, session: str) -> bool:
        with self._facts(session) as facts:
            return facts.upto() < self._head(session)

    def _head(self, session: str) -> int:
        with self._opened(session) as log:
            return log.head()

    def _facts(self, session: str) -> Facts:
        return Facts.open(
            self.url, session=session, tenant=self.tenant, user=self._user, project=self._project,
            model=self._model, embedder=self._embedder, clock=self.clock,
        )  # fmt: skip

    @contextmanager
    def _opened(self, session: str) -> Iterator[Log]:
        with closing(open_log(self.url, session=session, tenant=self.tenant)) as log:
            yield log

    def _archive(self, log: Log) -> DerivedArchive:
        return archive_of(log, embedder=self._embedder, own_tools=OWN_TOOLS)
