"""Measure time and memory: a turn as a run grows, a durable append, a count, an import; compared with peers.

Every result is a ratio to something measured at the same time, because machines differ.
"""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import peers
from benchmarks.synthetic_run import SyntheticTurn, opening, turns
from pagein.backends.sqlite.log import SQLiteLog
from pagein.events.steps import ActionStep, Observation, ToolCall
from pagein.log.codec import encode
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.options import PAGE_IN_SHARE
from pagein.tokens.encodings import Encoding, load_tokenizer

BUDGET: Final = 8_000
LAST: Final = 50
"""The turns at each length of which the cost is the median."""

ENCODING: Final = "o200k_base"

Tick = Callable[[str, int, int], None]
"""Called with what is being measured, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: its value, and how many times another one that is."""

    what: str
    value: float | None
    unit: str
    ratio: float | None = None
    against: str = ""
    samples: int = 0
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON-safe values."""
        return asdict(self)


def bench_speed(tick: Tick, *, quick: bool = False) -> Iterator[Row]:
    """Every measurement, as it is made. ``quick``: shorter runs, and fewer samples."""
    lengths = (100, 500, 1_000) if quick else (100, 1_000, 2_000, 10_000)
    beside = 500 if quick else 2_000
    costs, without = turn_costs(lengths, tick)
    yield from _turn_rows(costs)
    yield from _page_in_rows(costs, without)
    yield from telemetry_rows(3 if quick else 9, tick)
    yield from _peer_rows(beside, costs[beside], 3 if quick else 9, tick)
    yield from append_rows(100 if quick else 400, tick)
    yield from counting_rows(3 if quick else 9, tick)
    yield from import_rows(3 if quick else 9, tick)
    yield from memory_rows(1_000 if quick else 10_000, tick)


# -- a turn


def turn_costs(
    lengths: Sequence[int], tick: Tick, shares: Sequence[float] = (PAGE_IN_SHARE, 0.0)
) -> tuple[dict[int, list[float]], ...]:
    """Seconds of each of the last 50 turns before each length; every turn is recorded and makes a request.

    One after the other for each share of the budget that may come back by itself: the usual, and none.
    """
    spent: tuple[list[float], ...] = tuple([] for _ in shares)
    with ExitStack() as opened:
        memories = [
            opened.enter_context(AgentMemory.open(":memory:", budget=BUDGET, page_in=share)) for share in shares
        ]
        for memory in memories:
            memory.record_messages(opening(), whole=False)
        for turn in turns(max(lengths)):
            for memory, each in zip(memories, spent, strict=True):
                start = time.perf_counter()
                memory.record_messages(turn.messages, whole=False)
                memory.to_messages()
                each.append(time.perf_counter() - start)
            tick("turns", turn.number + 1, max(lengths))
    return tuple({length: each[length - LAST : length] for length in lengths} for each in spent)


def _turn_rows(costs: dict[int, list[float]]) -> Iterator[Row]:
    first = min(costs)
    measures: dict[str, Callable[[Iterable[float]], float]]
    measures = {"median": statistics.median, "mean": statistics.fmean}
    for name, measure in measures.items():
        base = measure(costs[first])
        for length, spent in costs.items():
            value = measure(spent)
            what = f"turn at {length:,}, {name}"
            yield Row(what, 1e3 * value, "ms", value / base, f"at {first:,}", len(spent))


def _page_in_rows(within: dict[int, list[float]], without: dict[int, list[float]]) -> Iterator[Row]:
    """Measure the cost of page-in at the longest run, for most turns and for all."""
    length = max(within)
    measures: dict[str, Callable[[Iterable[float]], float]]
    measures = {"median": statistics.median, "mean": statistics.fmean}
    for name, measure in measures.items():
        base, value = measure(without[length]), measure(within[length])
        yield Row(f"turn at {length:,}, no page-in, {name}", 1e3 * base, "ms", 1.0, "", LAST)
        yield Row(f"with page-in, {name}", 1e3 * value, "ms", value / base, "no page-in", LAST)


TRACED_TURNS: Final = 300

TELEMETRY: Final = ("off", "on, no SDK", "on, exported in batches")


def telemetry_rows(samples: int, tick: Tick, length: int = TRACED_TURNS) -> Iterator[Row]:
    """A turn without telemetry, with the API alone, and with an SDK that exports to nowhere: each beside one without, in fresh processes."""
    is_installed = peers.is_installed("opentelemetry")
    spent: dict[str, list[list[float]]] = {}
    for done in range(samples):
        tick("telemetry", done, samples)
        for mode in TELEMETRY if is_installed else TELEMETRY[:1]:
            values = _print_fresh(_PEAK.format("play_traced", f"{mode!r}, {length}")).split()
            spent.setdefault(mode, []).append([*map(float, values)])
    for mode in TELEMETRY:
        if mode not in spent:
            yield Row(f"telemetry {mode}", None, "ms", note="not installed: pip install 'pagein[otel]'")
            continue
        value = statistics.median(on for _, on in spent[mode])
        ratio = 1.0 if mode == TELEMETRY[0] else statistics.median(on / off for off, on in spent[mode])
        yield Row(f"telemetry {mode}", 1e3 * value, "ms", ratio, f"{TELEMETRY[0]}, beside it", samples)


def play_traced(mode: str, length: int) -> None:
    """Record a run without telemetry and in this mode, turn by turn, and print the processor time of the median turns in seconds."""
    if mode == TELEMETRY[2]:
        _export_to_nowhere()
    spent: tuple[list[float], ...] = ([], [])
    with ExitStack() as opened:
        memories = [
            opened.enter_context(AgentMemory.open(":memory:", budget=BUDGET, telemetry=telemetry))
            for telemetry in ("off", "off" if mode == TELEMETRY[0] else "on")
        ]
        for memory in memories:
            memory.record_messages(opening(), whole=False)
        for turn in turns(length):
            pairs = [*zip(memories, spent, strict=True)]
            for memory, values in pairs if turn.number % 2 else reversed(pairs):
                start = time.process_time()
                memory.record_messages(turn.messages, whole=False)
                memory.to_messages()
                values.append(time.process_time() - start)
    print(*map(statistics.median, spent))  # noqa: T201 - read by the process that started this one


def _export_to_nowhere() -> None:
    """Set up OpenTelemetry's SDK: spans are exported in batches, and thrown away."""
    from opentelemetry import metrics, trace  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult  # noqa: PLC0415

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            del spans
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider(metric_readers=[InMemoryMetricReader()]))


def _peer_rows(length: int, ours: Sequence[float], samples: int, tick: Tick) -> Iterator[Row]:
    run = tuple(turns(length))
    counter = Encoding(ENCODING)
    results: tuple[tuple[str, str, Callable[[], Callable[[], object]]], ...] = (
        ("langchain_core", "langchain exact", lambda: peers.trim_messages(run, BUDGET, counter)),
        ("langchain_core", "langchain approx.", lambda: peers.trim_messages(run, BUDGET, None)),
        ("smolagents", "smolagents", lambda: peers.memory_to_messages(run)),
    )
    for done, (module, name, prepare) in enumerate(results):
        tick("peers", done, len(results))
        what = f"{name}, {length:,}"
        if not peers.is_installed(module):
            yield Row(what, None, "ms", note=f"not installed: {peers.CURE}")
            continue
        value = statistics.median(_time_calls(prepare(), samples))
        # Most turns compact nothing, so the median leaves the compactions out; the mean has them.
        against = f"our median (mean: {value / statistics.fmean(ours):.1f})"
        yield Row(what, 1e3 * value, "ms", value / statistics.median(ours), against, samples)


def _time_calls(call: Callable[[], object], samples: int) -> list[float]:
    call()  # imports, caches
    spent = []
    for _ in range(samples):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return spent


# -- an append

_BARE: Final = "CREATE TABLE entries (position INTEGER PRIMARY KEY, body TEXT NOT NULL)"


def append_rows(samples: int, tick: Tick) -> Iterator[Row]:
    """A durable append of one step, and a record of it, against a bare INSERT of as many bytes; all three by turns."""
    bodies = [_action(turn) for turn in turns(samples)]
    spent: dict[str, list[float]] = {"bare": [], "log": [], "memory": []}
    with tempfile.TemporaryDirectory(prefix="pagein-bench-") as folder:
        log = SQLiteLog(Path(folder) / "log.db")
        bare = _bare_database(Path(folder) / "bare.db")
        memory = AgentMemory.open(str(Path(folder) / "memory.db"), budget=BUDGET)
        for number, body in enumerate(bodies):
            text = encode(body).body
            spent["bare"].append(_clock(lambda: _insert(bare, number, text)))  # noqa: B023 - called at once
            spent["log"].append(_clock(lambda: log.append((body,), after=number, at=0.0)))  # noqa: B023
            spent["memory"].append(_clock(lambda: memory.record(body)))  # noqa: B023
            tick("appends", number + 1, samples)
        memory.close()
        bare.close()
        log.close()
    base = statistics.median(spent["bare"])
    yield Row("bare durable INSERT", 1e3 * base, "ms", 1.0, "", samples)
    for name, what in (("log", "durable append"), ("memory", "durable record and view")):
        value = statistics.median(spent[name])
        yield Row(what, 1e3 * value, "ms", value / base, "bare INSERT", samples)


def _action(turn: SyntheticTurn) -> ActionStep:
    call = ToolCall(f"call_{turn.number}", "bash", turn.command)
    return ActionStep(turn.thought, (call,), (Observation(call.id, turn.output),))


def _bare_database(path: Path) -> sqlite3.Connection:
    """A database of one table, with the pragmas a log sets: WAL, and every commit on the disk."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(_BARE)
    return database


def _insert(database: sqlite3.Connection, number: int, body: object) -> None:
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO entries VALUES (?, ?)", (number, body))
    database.execute("COMMIT")


def _clock(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


# -- a count


def counting_rows(samples: int, tick: Tick) -> Iterator[Row]:
    """Counting half a megabyte of tool output against the bare tokenizer on the same texts, by turns."""
    texts = [turn.output for turn in turns(500)]
    size = sum(map(len, texts)) / 1e6
    tokenizer = load_tokenizer(ENCODING)
    counts: dict[str, Callable[[str], object]] = {
        "bare": lambda text: len(tokenizer.encode_ordinary(text)),
        "ours": Encoding(ENCODING).text,
    }
    spent: dict[str, list[float]] = {name: [] for name in counts}
    for done in range(samples + 1):
        tick("counts", done, samples)
        for name, count in counts.items():
            tokenizer.clear_cache()
            spent[name].append(_clock(lambda: _each(count, texts)))  # noqa: B023 - called at once
    base, value = (statistics.median(spent[name][1:]) for name in ("bare", "ours"))
    yield Row("bare tokenizer", 1e3 * base / size, "ms/MB", 1.0, "", samples)
    yield Row("count of a text", 1e3 * value / size, "ms/MB", value / base, "bare tokenizer", samples)


def _each(call: Callable[[str], object], texts: Iterable[str]) -> None:
    for text in texts:
        call(text)


# -- an import, and memory

_IMPORT: Final = "import time; start = time.perf_counter(); import {0}; print(time.perf_counter() - start)"
_PEAK: Final = "from benchmarks.speed import {0}; {0}({1})"


def import_rows(samples: int, tick: Tick) -> Iterator[Row]:
    """``import pagein`` in fresh interpreters, the best of several; beside ``import asyncio``."""
    best: dict[str, float] = {}
    for done in range(samples):
        tick("imports", done, samples)
        for module in ("asyncio", "pagein"):
            best[module] = min(best.get(module, 1e9), _fresh(_IMPORT.format(module)))
    ratio = best["pagein"] / best["asyncio"]
    yield Row("import pagein, best", 1e3 * best["pagein"], "ms", ratio, "import asyncio", samples)


def memory_rows(length: int, tick: Tick) -> Iterator[Row]:
    """Peak memory of a process that records a long run in a file, against one that only keeps the messages."""
    if not peers.is_installed("resource"):
        yield Row("peak memory", None, "MB", note="this system does not say")
        return
    tick("memory", 0, 2)
    base = _fresh(_PEAK.format("hold_messages", length))
    tick("memory", 1, 2)
    value = _fresh(_PEAK.format("hold_memory", length))
    yield Row(f"peak memory, {length:,} steps", value, "MB", value / base, "a list of messages", 1)


def hold_messages(length: int) -> None:
    """Keep a run as a list of messages, and print the peak memory of this process in MB."""
    items = [message for turn in turns(length) for message in turn.messages]
    print(peak() if items else 0)  # noqa: T201 - read by the process that started this one


def hold_memory(length: int) -> None:
    """Record a run in a file, a request every 20 steps, and print the peak memory of this process in MB."""
    with (
        tempfile.TemporaryDirectory(prefix="pagein-bench-") as folder,
        AgentMemory.open(str(Path(folder) / "run.db"), budget=BUDGET) as memory,
    ):
        batch = opening()
        for turn in turns(length):
            batch += turn.messages
            if turn.number % 20 == 19:
                memory.record_messages(batch, whole=False)
                memory.to_messages()
                batch = []
    print(peak())  # noqa: T201 - read by the process that started this one


def peak() -> float:
    """The peak memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage here: what it gives begins with the peak of the process that started this one.
        result = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(result.split()[1]) / 2**10
    import resource  # noqa: PLC0415 - not on every system

    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _fresh(code: str) -> float:
    """Run code in a fresh interpreter and return the number that it prints."""
    return float(_print_fresh(code))


def _print_fresh(code: str) -> str:
    """Run code in a fresh interpreter and return its output."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout  # noqa: S603
