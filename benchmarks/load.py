"""Measure many concurrent writers: processes on one SQLite file, or sessions on one PostgreSQL server.

Each writer reports the entries acknowledged to it. None may be missing or duplicated, no position may be shared in a
session, and ``verify`` must be clean. For comparison, as many writers insert the same rows into the same kind of store
with bare INSERTs in the same minute.
"""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from pagein.backends.open import is_postgres, open_log
from pagein.errors import ConfigurationError, Conflict, LogBusy, PageinError
from pagein.events.steps import TaskStep
from pagein.log.base import Log
from pagein.memory.agent_memory import AgentMemory

BODY = "A line of what a tool said: src/pagein/log/sqlite.py:42: OK.\n" * 8
"""What each entry holds: about 500 bytes."""

TRIES = 10_000
PAUSE = 0.002
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """One writer's: where it writes, under what name, into which session, and for how long, in seconds."""

    url: str
    name: str
    session: str
    seconds: float
    shared: bool
    """Whether others write to the same session: then each append may meet a Conflict, and is made again."""


@dataclass(slots=True)
class Rate:
    """The result of a set of writers: writes, their latencies in milliseconds, and retries."""

    what: str
    writers: int
    seconds: float
    writes: int = 0
    conflicts: int = 0
    busy: int = 0
    p50: float = 0.0
    p95: float = 0.0
    longest: float = 0.0

    @property
    def rate(self) -> float:
        """Writes a second, all writers together."""
        return self.writes / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class Load:
    """The report: ``rates`` in the order they were measured, and every broken promise."""

    rates: list[Rate] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing was lost and nothing was there twice."""
        return not self.faults

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON-safe values."""
        return asdict(self)


def bench_load(url: str, seconds: float, *, writers: int, shared: bool, tick: Callable[[str, int], None]) -> Load:
    """Write for ``seconds`` from ``writers`` processes: each into its own session, and all into one if ``shared``.

    Raises ConfigurationError where there are no processes that start clean.
    """
    result = Load()
    plans = [("bare INSERT", None), ("own sessions", False)] + [("one session", True)] * shared
    for number, (what, together) in enumerate(plans):
        tick(what, number)
        jobs = [
            Job(url, f"w{each}", "shared" if together else f"own {each}", seconds, bool(together))
            for each in range(writers)
        ]
        told = _all(jobs, bare=together is None)
        result.rates.append(_rate(what, told, seconds))
        result.faults += [each.failure for each in told if each.failure]
        if together is not None:
            try:
                result.faults += _find_lost(url, jobs, told)
            except PageinError as error:
                result.faults.append(f"{what}: {error}")
    return result


@dataclass(frozen=True, slots=True)
class _WriterReport:
    """The report of one writer."""

    writes: int
    latencies: tuple[float, ...]
    conflicts: int = 0
    busy: int = 0
    failure: str = ""


def _all(jobs: Sequence[Job], *, bare: bool) -> list[_WriterReport]:
    """Every writer's word, all of them at work at the same time."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        raise ConfigurationError("bench load needs processes that are forked, which this system does not have")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.load"] + ["pagein.backends.postgres.log"] * is_postgres(jobs[0].url))
    start = context.Event()
    pipes, processes = [], []
    for job in jobs:
        ours, its = context.Pipe(duplex=False)
        process = context.Process(target=_write, args=(job, bare, start, its), daemon=True)
        process.start()
        its.close()
        pipes.append(ours)
        processes.append(process)
    begun = [_word(pipe, job) for pipe, job in zip(pipes, jobs, strict=True)]
    start.set()
    told = [each if each.failure else _word(pipe, job) for each, pipe, job in zip(begun, pipes, jobs, strict=True)]
    for process, pipe in zip(processes, pipes, strict=True):
        process.join()
        process.close()
        pipe.close()
    return told


def _word(pipe: Connection, job: Job) -> _WriterReport:
    with suppress(EOFError):
        if pipe.poll(job.seconds + PATIENCE):
            told: _WriterReport = pipe.recv()
            return told
    return _WriterReport(0, (), failure=f"{job.name}: the process ended without a word")


def _write(job: Job, bare: bool, start: Any, told: Connection) -> None:
    """One writer's process: it says when it is ready, waits for the others, and says at the end what it did."""
    try:
        with closing(_Bare(job) if bare else _Appending(job)) as target:
            told.send(_WriterReport(0, ()))
            start.wait()
            told.send(_run_writer(job, target.write))
    except Exception as error:  # noqa: BLE001 - told to the parent
        told.send(_WriterReport(0, (), failure=f"{job.name}: {type(error).__name__}: {error}"))


def _run_writer(job: Job, write: Callable[[int], tuple[int, int]]) -> _WriterReport:
    until = time.monotonic() + job.seconds
    latencies: list[float] = []
    conflicts = busy = 0
    try:
        while (began := time.monotonic()) < until:
            met = write(len(latencies))
            latencies.append((time.monotonic() - began) * 1000)
            conflicts, busy = conflicts + met[0], busy + met[1]
    except Exception as error:  # noqa: BLE001 - told to the parent
        failure = f"{job.name}: {type(error).__name__}: {error}"
        return _WriterReport(len(latencies), tuple(latencies), conflicts, busy, failure)
    return _WriterReport(len(latencies), tuple(latencies), conflicts, busy)


class _Appending:
    """Appends as a host does: on a Conflict it looks, and makes the call again."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._log = open_log(job.url, session=job.session, timeout=30)
        self._head = self._log.head()

    def write(self, number: int) -> tuple[int, int]:
        """The conflicts and the busy answers that were met before it was written."""
        body = TaskStep(f"{self._job.name} {number}\n{BODY}")
        conflicts = busy = 0
        for _ in range(TRIES):
            try:
                self._log.append([body], after=self._head, at=time.time())
            except Conflict as error:
                conflicts, self._head = conflicts + 1, error.head
                time.sleep(random.uniform(0, PAUSE * min(conflicts, 10)))  # noqa: S311 - who is first
            except LogBusy:
                busy += 1
            else:
                self._head += 1
                return conflicts, busy
        raise Conflict(self._head, self._log.head())

    def close(self) -> None:
        """Let the log go."""
        self._log.close()


class _Bare:
    """The same rows by the driver alone: what the store can do."""

    def __init__(self, job: Job) -> None:
        self._job = job
        if is_postgres(job.url):
            import psycopg  # noqa: PLC0415 - of the postgres extra

            connection = psycopg.connect(job.url, autocommit=True)
            connection.execute("SELECT pg_advisory_lock(1)")
            connection.execute(f"CREATE TABLE IF NOT EXISTS bare {_COLUMNS.format('bigint', 'double precision')}")
            connection.execute("SELECT pg_advisory_unlock(1)")
            self._statement = "INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
            self._connection: Any = connection
        else:
            database = sqlite3.connect(f"{job.url}.bare", isolation_level=None, timeout=30)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(f"CREATE TABLE IF NOT EXISTS bare {_COLUMNS.format('INTEGER', 'REAL')} WITHOUT ROWID")
            self._statement = "INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            self._connection = database

    def write(self, number: int) -> tuple[int, int]:
        """One row."""
        row = ("", self._job.name, number, time.time(), "task", 1, BODY, "s2:" + "0" * 64)
        self._connection.execute(self._statement, row)
        return 0, 0

    def close(self) -> None:
        """Let the store go."""
        self._connection.close()


_COLUMNS = """(tenant text NOT NULL, session text NOT NULL, position {0} NOT NULL, at {1} NOT NULL,
    kind text NOT NULL, version {0} NOT NULL, body text NOT NULL, digest text NOT NULL,
    PRIMARY KEY (tenant, session, position))"""


def _rate(what: str, told: Sequence[_WriterReport], seconds: float) -> Rate:
    every = sorted(latency for one in told for latency in one.latencies)
    rate = Rate(what, len(told), seconds, len(every))
    rate.conflicts = sum(each.conflicts for each in told)
    rate.busy = sum(each.busy for each in told)
    if every:
        rate.p50, rate.longest = statistics.median(every), every[-1]
        rate.p95 = every[min(len(every) - 1, int(0.95 * len(every)))]
    return rate


def _find_lost(url: str, jobs: Sequence[Job], told: Sequence[_WriterReport]) -> Iterator[str]:
    """The acknowledged entries that are not in the log exactly once, in their writer's order."""
    expected = {
        f"{job.name} {number}": job.session
        for job, each in zip(jobs, told, strict=True)
        for number in range(each.writes)
    }
    result: Counter[str] = Counter()
    for session in sorted({job.session for job in jobs}):
        with closing(open_log(url, session=session, timeout=30)) as log:
            texts = [step.content.split("\n")[0] for step in _tasks(log)]
            result.update(texts)
            yield from (f"{session}: verify: {problem.what}" for problem in log.verify().problems)
        for job in (each for each in jobs if each.session == session):
            numbers = [int(text.split()[1]) for text in texts if text.split()[0] == job.name]
            if numbers != sorted(numbers):
                yield f"{session}: what {job.name} wrote is out of order"
    yield from (f"{name} was acknowledged and is not there" for name in expected if not result[name])
    yield from (f"{name} is there {times} times" for name, times in result.items() if times > 1)


def _tasks(log: Log) -> Iterator[Any]:
    return (step for step in AgentMemory(log, budget=2**40).steps if isinstance(step, TaskStep))
