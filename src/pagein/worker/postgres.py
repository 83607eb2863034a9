"""A worker on PostgreSQL, through procrastinate: its queue holds the jobs, its heartbeats show dead workers."""

from __future__ import annotations

import asyncio
import hashlib
import queue
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from pagein.backends.open import open_store
from pagein.errors import ConfigurationError, PageinError
from pagein.log.codec import hash_bytes
from pagein.worker.jobs import Job, JobResult, WorkQueue

try:
    import procrastinate
    import psycopg
    from procrastinate.exceptions import AlreadyEnqueued
    from procrastinate.jobs import Status
    from procrastinate.schema import SchemaManager

    from pagein.backends.postgres.connection import RetryingConnection, address_of, source_of, to_log_error
    from pagein.backends.postgres.migrations import create_worker_tables
except ImportError as error:
    raise ConfigurationError("a worker on PostgreSQL needs procrastinate: pip install 'pagein[worker]'") from error

SCHEMA = "pagein"
"""Where procrastinate's tables are made: beside the log's."""


class _End:
    """The mark behind the last result."""


def work_on_server(
    jobs: WorkQueue, *, stop: threading.Event, once: bool, every: float, lease: float
) -> Iterator[JobResult]:
    """Do jobs until ``stop`` is set or, ``once``, until none is due that no other worker has; yield results.

    procrastinate runs on an event loop in a thread of its own; the results come over a queue.
    """
    _create_tables(jobs)
    results: queue.SimpleQueue[JobResult | BaseException | type[_End]] = queue.SimpleQueue()
    serving = _ServerWorker(jobs, results, stop, once=once, every=every, lease=lease)

    def serve() -> None:
        try:
            asyncio.run(serving.serve())
            results.put(_End)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            results.put(error)

    thread = threading.Thread(target=serve, name="pagein works", daemon=True)
    thread.start()
    try:
        while not isinstance(result := results.get(), type):
            if isinstance(result, JobResult):
                yield result
            else:
                raise _as_pagein_error(jobs, result) from None
    finally:
        stop.set()
        thread.join()


class _ServerWorker:
    """One worker: it puts the due jobs into the queue, and does the jobs that the queue holds."""

    def __init__(
        self,
        jobs: WorkQueue,
        results: queue.SimpleQueue[Any],
        stop: threading.Event,
        *,
        once: bool,
        every: float,
        lease: float,
    ) -> None:
        self._jobs, self._results, self._stop = jobs, results, stop
        self._once, self._every, self._lease = once, every, lease
        # The name of a channel has 63 bytes at most, of which procrastinate takes some.
        self._queue = f"pagein {hashlib.sha256(jobs.tenant.encode()).hexdigest()[:24]}"
        self._failed: set[Job] = set()
        self._did = False
        address = address_of(jobs.url)
        if address.is_pooled:
            raise ConfigurationError(
                f"{address.name}: a worker listens on a session of its own (LISTEN, search_path), which a pooler in transaction "
                "mode does not give: give the worker the server's own address. Runs may go through the pooler meanwhile."
            )
        parameters = dict(address.parameters)
        parameters["options"] = f"{parameters.get('options') or ''} -c search_path={SCHEMA}".strip()
        connector = procrastinate.PsycopgConnector(min_size=1, max_size=4, kwargs=parameters)
        self._app = procrastinate.App(connector=connector)
        self._task = self._app.task(name="pagein", queue=self._queue)(self._do)

    async def serve(self) -> None:
        async with self._app.open_async():
            while not self._stop.is_set():
                await self._forget_the_dead()
                await self._enqueue(await asyncio.to_thread(self._jobs.due_jobs))
                self._did = False
                await self._work()
                if not self._did and self._once:
                    return
                if not self._did:
                    await asyncio.to_thread(self._stop.wait, self._every)

    async def _enqueue(self, jobs: tuple[Job, ...]) -> None:
        """Put the jobs into the queue that are not in it yet."""
        for job in jobs:
            if job in self._failed and self._once:
                continue
            name = hash_bytes(f"{self._jobs.tenant}\0{job.kind}\0{job.session}".encode())
            try:
                await self._task.configure(lock=name, queueing_lock=name).defer_async(
                    kind=job.kind, session=job.session
                )
            except AlreadyEnqueued:
                continue

    async def _forget_the_dead(self) -> None:
        """Remove the jobs of dead workers; those that are still due are found again."""
        manager = self._app.job_manager
        for job in await manager.get_stalled_jobs(queue=self._queue, seconds_since_heartbeat=self._lease):
            await manager.finish_job(job, status=Status.FAILED, delete_job=True)

    async def _work(self) -> None:
        """Do the jobs in the queue, one after the other, until ``stop`` is set."""
        worker = self._app.run_worker_async(
            queues=[self._queue],
            wait=False,
            install_signal_handlers=False,
            delete_jobs="always",
            listen_notify=False,
            update_heartbeat_interval=self._lease / 3,
            stalled_worker_timeout=self._lease,
        )
        working = asyncio.ensure_future(worker)
        stopping = asyncio.ensure_future(asyncio.to_thread(self._wait_for, working))
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()  # it ends what it is at, and fetches no more
        await asyncio.gather(working, return_exceptions=self._stop.is_set())
        await stopping

    def _wait_for(self, working: asyncio.Future[None]) -> None:
        while not working.done() and not self._stop.wait(0.1):
            pass

    async def _do(self, kind: Any, session: str) -> None:
        job = Job(kind, session)
        if self._stop.is_set():
            return
        try:
            result = await asyncio.to_thread(self._jobs.do, job, self._stop)
        except Exception as error:  # noqa: BLE001 - a bug, raised in the waiting thread
            self._stop.set()
            self._results.put(error)
            return
        self._did = self._did or not result.failed
        self._failed.update([job] if result.failed else ())
        self._results.put(result)


def _create_tables(jobs: WorkQueue) -> None:
    """Create the log's tables and procrastinate's where they are missing; concurrent calls take turns."""
    open_store(jobs.url, tenant=jobs.tenant).log().close()
    with closing(RetryingConnection(source_of(jobs.url, timeout=5.0), timeout=5.0)) as server:
        server.call(lambda using, _: create_worker_tables(using, SCHEMA, SchemaManager.get_schema()), writing=True)


def _as_pagein_error(jobs: WorkQueue, error: BaseException) -> BaseException:
    """The error as a PageinError, without what may be a password in it."""
    if isinstance(error, PageinError) or not isinstance(error, Exception):
        return error
    cause, address = error.__cause__, address_of(jobs.url)
    if isinstance(cause, psycopg.Error):
        return to_log_error(address, cause, writing=True)
    return PageinError(f"{address.name}: {address.clean(f'{type(error).__name__}: {error}')}")
