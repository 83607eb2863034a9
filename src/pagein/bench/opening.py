"""What it costs to go on with a long run: opening it, its first view, memory, a fork, and the bytes on the disk.

Each opening is in a process of its own, as after a crash or on another day: nothing is warm but the file.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pagein.bench.speed import Row, Tick, peak
from pagein.bench.synthetic import opening, turns
from pagein.log import Compaction
from pagein.memory import AgentMemory

BUDGET: Final = 80_000
FORKS: Final = 5
COMPACTIONS: Final = 20
BATCH: Final = 20
"""Steps between two requests while a run is made."""

_OPEN: Final = "from pagein.bench.opening import tell_opening; tell_opening({0!r}, {1})"


def bench_opening(lengths: Sequence[int], samples: int, tick: Tick) -> Iterator[Row]:
    """Every measurement, as it is made: at each of the lengths, in steps; the bytes at the longest."""
    bare = _bare()
    base: dict[str, float] = {}
    for done, length in enumerate(lengths):
        with tempfile.TemporaryDirectory(prefix="pagein-bench-") as folder:
            path = str(Path(folder) / "run.db")
            tick(f"{length:,} steps", done, len(lengths) + 1)
            entries = make(path, length)
            yield from _opened(path, length, entries, samples, bare, base)
            yield from _forked(path, length, samples, base)
    tick("storage", len(lengths), len(lengths) + 1)
    yield from storage_rows(max(lengths))


def make(path: str, length: int, every: int = BATCH) -> int:
    """Make a run of so many steps in a file, with a request ``every`` so many; the number of its entries."""
    with AgentMemory.open(path, budget=BUDGET, page_in=0, synchronous="OFF") as memory:
        batch = opening()
        for turn in turns(length):
            batch += turn.messages
            if turn.number % every == every - 1 or turn.number == length - 1:
                memory.record_messages(batch, whole=False)
                memory.view()
                batch = []
        return memory.view().head


def _opened(
    path: str, length: int, entries: int, samples: int, bare: float, base: dict[str, float]
) -> Iterator[Row]:
    for page_in, what in ((0.0, "first view"), (0.2, "first view, page-in")):
        _told(path, page_in)  # what is brought up to date once: the index
        found = [_told(path, page_in) for _ in range(samples)]
        for name in ("open", "view", "both", "processor"):
            if page_in and name == "open":
                continue
            value = statistics.median(each[name] for each in found)
            spoken = {
                "open": "open",
                "view": what,
                "both": f"open + {what}",
                "processor": "the same, processor's time",
            }
            said = f"{spoken[name]}, {length:,} steps"
            ratio = value / base.setdefault(f"{name} {page_in}", value)
            yield Row(said, 1e3 * value, "ms", ratio, "the shortest", samples, f"{entries:,} entries")
        most = statistics.median(each["peak"] for each in found)
        said = f"memory over the interpreter, {what}, {length:,} steps"
        yield Row(said, most - bare, "MB", None, "", samples)


def _told(path: str, page_in: float) -> dict[str, float]:
    code = _OPEN.format(path, page_in)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    told: dict[str, float] = json.loads(done.stdout)
    return told


def tell_opening(path: str, page_in: float) -> None:
    """Open a run and make its first request, and print what that took, in seconds and MB."""
    start, worked = time.perf_counter(), time.process_time()
    memory = AgentMemory.open(path, budget=BUDGET, page_in=page_in)
    opened = time.perf_counter()
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


def _forked(path: str, length: int, samples: int, base: dict[str, float]) -> Iterator[Row]:
    spent = []
    with AgentMemory.open(path, budget=BUDGET, page_in=0) as memory:
        memory.fork()
        for _ in range(max(samples, FORKS)):
            start = time.perf_counter()
            memory.fork()
            spent.append(time.perf_counter() - start)
    value = statistics.median(spent)
    ratio = value / base.setdefault("fork", value)
    yield Row(f"fork at {length:,} steps", 1e3 * value, "ms", ratio, "the shortest", len(spent))


def storage_rows(length: int) -> Iterator[Row]:
    """Bytes on the disk of a run with at most 20 compactions and 5 forks, and of its index, against its messages as JSON."""
    every = (*opening(), *(message for turn in turns(length) for message in turn.messages))
    raw = sum(len(json.dumps(each, ensure_ascii=False).encode()) for each in every)
    with tempfile.TemporaryDirectory(prefix="pagein-bench-") as folder:
        path = str(Path(folder) / "run.db")
        entries = make(path, length, max(BATCH, length // COMPACTIONS))
        with AgentMemory.open(path, budget=BUDGET, page_in=0) as memory:
            for number in range(FORKS):
                memory.fork(entries * (number + 1) // (FORKS + 1))
            compactions = sum(isinstance(each.body, Compaction) for each in memory._log.read())  # noqa: SLF001
        held = _bytes(folder)
        with AgentMemory.open(path, budget=BUDGET, page_in=0) as memory:
            memory.recall("anything")
        index = _bytes(folder) - held
    note = f"{compactions} compactions, {FORKS} forks; with the snapshot, without the index"
    yield Row(f"messages, {length:,} steps", raw / 1e6, "MB", 1.0, "")
    yield Row("the log", held / 1e6, "MB", held / raw, "messages", 1, note)
    yield Row("the index of the archive", index / 1e6, "MB", index / raw, "messages", 1, "can be thrown away")


def _bytes(folder: str) -> int:
    return sum(each.stat().st_size for each in Path(folder).iterdir())
