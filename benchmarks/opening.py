"""Measure resuming a long run: opening, first view, memory, fork, and bytes on disk.

Each opening has its own process, as after a crash or on another day: only the store is warm.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.speed import Row, Tick, peak
from benchmarks.synthetic_run import opening, turns
from pagein.backends.open import is_postgres
from pagein.events.entries import Compaction
from pagein.events.steps import TaskStep
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import PAGE_IN_SHARE

BUDGETS: Final = (80_000, 500_000)
FORKS: Final = 5
COMPACTIONS: Final = 20
BATCH: Final = 20
"""Steps between two requests while a run is made."""

_OPEN: Final = "from benchmarks.opening import tell_opening; tell_opening({0!r}, {1}, {2}, {3!r})"

OPENINGS: Final = (
    (0.0, "", "first view"),
    (PAGE_IN_SHARE, "", "first view, page-in"),
    (PAGE_IN_SHARE, "Go on with the next part, then look at the first again.", "new words and first view, page-in"),
)
"""The share for what comes back, what the user says before the first view, and what that is called."""

Place = Callable[[], AbstractContextManager[tuple[str, Path, Any]]]
"""Makes a new store: its address, and a folder that holds all of it where it is a file."""


def bench_opening(
    place: Place, lengths: Sequence[int], samples: int, budgets: Sequence[int], tick: Tick
) -> Iterator[Row]:
    """Every measurement, as it is made: at each of the lengths, in steps, under the first of the budgets.

    The bytes at the longest, under each budget.
    """
    bare = _bare()
    base: dict[str, float] = {}
    of = len(lengths) + len(budgets)
    for done, length in enumerate(lengths):
        with place() as (url, *_):
            tick(f"{length:,} steps", done, of)
            entries = make(url, length, budgets[0])
            yield from _measure_opening(Run(url, length, entries, budgets[0]), samples, bare, base)
            yield from _measure_fork(url, length, budgets[0], samples, base)
    for done, budget in enumerate(budgets, len(lengths)):
        tick(f"storage, {budget:,} tokens", done, of)
        with place() as (url, folder, *_):
            yield from storage_rows(url, folder, max(lengths), budget)


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was made: so many steps and entries, under a budget."""

    url: str
    length: int
    entries: int
    budget: int


def make(url: str, length: int, budget: int, every: int = BATCH, page_in: float = PAGE_IN_SHARE) -> int:
    """Make a run of so many steps in a store, with a request ``every`` so many; the number of its entries."""
    with AgentMemory.open(url, budget=budget, page_in=page_in, synchronous="OFF") as memory:
        batch = opening()
        for turn in turns(length):
            batch += turn.messages
            if turn.number % every == every - 1 or turn.number == length - 1:
                memory.record_messages(batch, whole=False)
                memory.view()
                batch = []
        return memory.view().head


def _measure_opening(run: Run, samples: int, bare: float, base: dict[str, float]) -> Iterator[Row]:
    for page_in, words, what in OPENINGS:
        _measure_calls(run, page_in, words)  # what is brought up to date once: the index
        results = [_measure_calls(run, page_in, words) for _ in range(samples)]
        for name in ("open", "view", "both", "processor"):
            if what != OPENINGS[0][2] and name == "open":
                continue
            value = statistics.median(each[name] for each in results)
            spoken = {"open": "open", "view": what, "both": f"open + {what}", "processor": "the same, processor's time"}
            said = f"{spoken[name]}, {run.length:,} steps"
            ratio = value / base.setdefault(f"{name} {what}", value)
            yield Row(said, 1e3 * value, "ms", ratio, "the shortest", samples, f"{run.entries:,} entries")
        most = statistics.median(each["peak"] for each in results)
        said = f"memory over the interpreter, {what}, {run.length:,} steps"
        yield Row(said, most - bare, "MB", None, "", samples)


def _measure_calls(run: Run, page_in: float, words: str) -> dict[str, float]:
    code = _OPEN.format(run.url, page_in, run.budget, words)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    costs: dict[str, float] = json.loads(child.stdout)
    return costs


def tell_opening(url: str, page_in: float, budget: int, words: str) -> None:
    """Open a run, have the user say something, and make its first request; print what that took, in seconds and MB."""
    start, worked = time.perf_counter(), time.process_time()
    memory = AgentMemory.open(url, budget=budget, page_in=page_in)
    opened = time.perf_counter()
    if words:
        memory.record(TaskStep(words))
    memory.to_messages()
    seen, spent = time.perf_counter(), time.process_time()
    told = {"open": opened - start, "view": seen - opened, "both": seen - start, "processor": spent - worked}
    print(json.dumps(told | {"peak": peak()}))  # noqa: T201 - read by the process that started this one
    memory.close()


def _bare() -> float:
    """The peak memory of an interpreter that did nothing, in MB."""
    code = "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    return int(done.stdout) / 2**10 if done.returncode == 0 else 0.0


def _measure_fork(url: str, length: int, budget: int, samples: int, base: dict[str, float]) -> Iterator[Row]:
    spent = []
    with AgentMemory.open(url, budget=budget, page_in=0) as memory:
        memory.fork()
        for _ in range(max(samples, FORKS)):
            start = time.perf_counter()
            memory.fork()
            spent.append(time.perf_counter() - start)
    value = statistics.median(spent)
    ratio = value / base.setdefault("fork", value)
    yield Row(f"fork at {length:,} steps", 1e3 * value, "ms", ratio, "the shortest", len(spent))


def storage_rows(url: str, folder: Path, length: int, budget: int) -> Iterator[Row]:
    """Bytes on the disk of a run with at most 20 compactions and 5 forks, and of its index, against its messages as JSON."""
    every = (*opening(), *(message for turn in turns(length) for message in turn.messages))
    raw = sum(len(json.dumps(each, ensure_ascii=False).encode()) for each in every)
    entries = make(url, length, budget, max(BATCH, length // COMPACTIONS), page_in=0)
    with AgentMemory.open(url, budget=budget, page_in=0) as memory:
        for number in range(FORKS):
            memory.fork(entries * (number + 1) // (FORKS + 1))
        compactions = sum(isinstance(each.body, Compaction) for each in memory._runtime.log.read())  # noqa: SLF001
    items = _bytes(url, folder)
    with AgentMemory.open(url, budget=budget, page_in=0) as memory:
        memory.recall("anything")
    index = _bytes(url, folder) - items
    note = "the log: with the snapshot and the database's own indices, without the archive's"
    what = f"{budget:,} tokens, {compactions} compactions, {FORKS} forks"
    yield Row(f"messages, {length:,} steps", raw / 1e6, "MB", 1.0, "")
    yield Row(f"the log, {what}", items / 1e6, "MB", items / raw, "messages", 1, note)
    yield Row("the index of the archive", index / 1e6, "MB", index / raw, "messages", 1, "can be thrown away")


def _bytes(url: str, folder: Path) -> int:
    """The bytes of the store on disk: a file and those beside it, or pagein's tables on a server."""
    if not is_postgres(url):
        return sum(each.stat().st_size for each in folder.iterdir())
    import psycopg  # noqa: PLC0415 - of the postgres extra

    with psycopg.connect(url) as using:
        result = using.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'pagein'::regnamespace"
        ).fetchone()
    return int(result[0]) if result else 0
