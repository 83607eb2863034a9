"""A worker on PostgreSQL, through procrastinate: its queue holds the jobs, its heartbeats say which worker is dead."""

from __future__ import annotations

import asyncio
import hashlib
import queue
import threading
from collections.abc import Iterator
from typing import Any

from pagein.backends.open import open_log
from pagein.errors import ConfigurationError, PageinError
from pagein.log.hash_chain import blob_name
from pagein.worker.jobs import Desk, Done, Job

try:
    import procrastinate
    import psycopg
    from procrastinate.exceptions import AlreadyEnqueued
    from procrastinate.jobs import Status
    from procrastinate.schema import SchemaManager

    from pagein.backends.postgres.connection import Connection, address_of, in_our_words
    from pagein.backends.postgres.retry import Asking, source_of
    from pagein.backends.postgres.search_schema import lock
except ImportError as error:
    raise ConfigurationError(
        "a worker on PostgreSQL needs procrastinate: pip install 'pagein[worker]'"
    ) from error

SCHEMA = "pagein"
"""Where procrastinate's tables are made: beside the log's."""

_THERE = """SELECT 1 FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid
    WHERE nspname = %s AND relname = 'procrastinate_jobs'"""


class _End:
    """Nothing more comes."""


def work_on_server(
    desk: Desk, *, stop: threading.Event, once: bool, every: float, lease: float
) -> Iterator[Done]:
    """Each job as it is done, until ``stop`` is set or, ``once``, until nothing is due that another does not hold.

    procrastinate runs on an event loop in a thread of its own; what it did comes over a queue.
    """
    _prepare(desk)
    told: queue.SimpleQueue[Done | BaseException | type[_End]] = queue.SimpleQueue()
    serving = _Serving(desk, told, stop, once=once, every=every, lease=lease)

    def serve() -> None:
        try:
            asyncio.run(serving.serve())
            told.put(_End)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            told.put(error)

    thread = threading.Thread(target=serve, name="pagein works", daemon=True)
    thread.start()
    try:
        while not isinstance(each := told.get(), type):
            if isinstance(each, Done):
                yield each
            else:
                raise _told(desk, each) from None
    finally:
        stop.set()
        thread.join()


class _Serving:
    """One worker: it looks what is due, puts that into the queue, and does what the queue holds."""

    def __init__(
        self,
        desk: Desk,
        told: queue.SimpleQueue[Any],
        stop: threading.Event,
        *,
        once: bool,
        every: float,
        lease: float,
    ) -> None:
        self._desk, self._told, self._stop = desk, told, stop
        self._once, self._every, self._lease = once, every, lease
        # The name of a channel has 63 bytes at most, of which procrastinate takes some.
        self._queue = f"pagein {hashlib.sha256(desk.tenant.encode()).hexdigest()[:24]}"
        self._failed: set[Job] = set()
        self._did = False
        parameters = dict(address_of(desk.url).parameters)
        parameters["options"] = f"{parameters.get('options') or ''} -c search_path={SCHEMA}".strip()
        connector = procrastinate.PsycopgConnector(min_size=1, max_size=4, kwargs=parameters)
        self._app = procrastinate.App(connector=connector)
        self._task = self._app.task(name="pagein", queue=self._queue)(self._do)

    async def serve(self) -> None:
        async with self._app.open_async():
            while not self._stop.is_set():
                await self._forget_the_dead()
                await self._put(await asyncio.to_thread(self._desk.due))
                self._did = False
                await self._work()
                if not self._did and self._once:
                    return
                if not self._did:
                    await asyncio.to_thread(self._stop.wait, self._every)

    async def _put(self, jobs: tuple[Job, ...]) -> None:
        """Put into the queue what is not there yet."""
        for job in jobs:
            if job in self._failed and self._once:
                continue
            name = blob_name(f"{self._desk.tenant}\0{job.kind}\0{job.session}".encode())
            try:
                await self._task.configure(lock=name, queueing_lock=name).defer_async(
                    kind=job.kind, session=job.session
                )
            except AlreadyEnqueued:
                continue

    async def _forget_the_dead(self) -> None:
        """Take out the jobs of workers that were not heard of; what of them is still due is found by looking."""
        manager = self._app.job_manager
        for job in await manager.get_stalled_jobs(queue=self._queue, seconds_since_heartbeat=self._lease):
            await manager.finish_job(job, status=Status.FAILED, delete_job=True)

    async def _work(self) -> None:
        """Do what the queue holds, one after the other; until told to stop."""
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
            done = await asyncio.to_thread(self._desk.do, job, self._stop)
        except Exception as error:  # noqa: BLE001 - a fault of ours, raised where this is waited for
            self._stop.set()
            self._told.put(error)
            return
        self._did = self._did or not done.failed
        self._failed.update([job] if done.failed else ())
        self._told.put(done)


def _prepare(desk: Desk) -> None:
    """The log's tables and procrastinate's, made where they are not there; two that do it at once take turns."""
    open_log(desk.url, tenant=desk.tenant).close()
    server = Asking(source_of(desk.url, timeout=5.0), timeout=5.0)

    def prepared(using: Connection, _: bool) -> None:
        with using.transaction():
            lock(using, f"{SCHEMA} worker")
            if using.execute(_THERE, (SCHEMA,)).fetchone() is None:
                using.execute(f"SET LOCAL search_path = {SCHEMA}")
                using.execute(SchemaManager.get_schema())

    try:
        server.ask(prepared, writing=True)
    finally:
        server.close()


def _told(desk: Desk, error: BaseException) -> BaseException:
    """The error as one of ours, without what may be a password in it."""
    if isinstance(error, PageinError) or not isinstance(error, Exception):
        return error
    cause, address = error.__cause__, address_of(desk.url)
    if isinstance(cause, psycopg.Error):
        return in_our_words(address, cause, writing=True)
    return PageinError(f"{address.name}: {address.clean(f'{type(error).__name__}: {error}')}")
